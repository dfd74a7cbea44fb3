/*!
 * \file report.cc
 * \brief Reports as tables and as text that other programs read.
 */
#include <tvm/runtime/profiling.h>
#include <tvm/runtime/registry.h>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <iomanip>
#include <map>
#include <sstream>

namespace tvm {
namespace runtime {
namespace profiling {
namespace {

const char* const kName = "Name";
const char* const kDuration = "Duration (us)";
// Columns that come first, if present; the others follow in alphabetical order.
const char* const kLeading[] = {kName, kDuration, "Percent", "Device", "Count", "Argument Shapes"};

bool NumberOf(const Any& metric, double* out) {
  if (const auto* duration = metric.as<DurationNode>()) return *out = duration->microseconds, true;
  if (const auto* percent = metric.as<PercentNode>()) return *out = percent->percent, true;
  if (const auto* ratio = metric.as<RatioNode>()) return *out = ratio->ratio, true;
  if (const auto* count = metric.as<CountNode>()) {
    return *out = static_cast<double>(count->value), true;
  }
  return false;
}

std::string Fixed(double value, int digits) {
  std::ostringstream os;
  os << std::fixed << std::setprecision(digits) << value;
  return os.str();
}

// 1234567 as 1,234,567.
std::string Grouped(std::string digits) {
  size_t end = std::min(digits.find('.'), digits.size());
  const size_t first = digits[0] == '-' ? 1 : 0;
  while (end > first + 3) digits.insert(end -= 3, 1, ',');
  return digits;
}

std::string CellText(const Any& metric, bool grouped) {
  auto number = [grouped](std::string digits) { return grouped ? Grouped(digits) : digits; };
  if (const auto* node = metric.as<DurationNode>()) return number(Fixed(node->microseconds, 2));
  if (const auto* node = metric.as<PercentNode>()) return Fixed(node->percent, 2);
  if (const auto* node = metric.as<CountNode>()) return number(std::to_string(node->value));
  if (const auto* node = metric.as<RatioNode>()) return number(Fixed(node->ratio, 4));
  if (auto text = metric.TryCast<std::string>()) return *text;
  double value;
  if (AnyToFloat(metric, &value)) return Fixed(value, 4);
  return metric.TypeName();
}

/*! \brief Sum of two cells; ratios, percentages of other totals and texts that differ have none. */
Any Sum(const Any& a, const Any& b) {
  double x, y;
  if (a.as<DurationNode>() && b.as<DurationNode>()) {
    NumberOf(a, &x), NumberOf(b, &y);
    return ObjectRef(make_object<DurationNode>(x + y));
  }
  if (a.as<PercentNode>() && b.as<PercentNode>()) {
    NumberOf(a, &x), NumberOf(b, &y);
    return ObjectRef(make_object<PercentNode>(x + y));
  }
  if (a.as<CountNode>() && b.as<CountNode>()) {
    return ObjectRef(make_object<CountNode>(a.as<CountNode>()->value + b.as<CountNode>()->value));
  }
  return AnyEqual()(a, b) ? a : Any();
}

using Row = std::map<std::string, Any>;

Row RowOf(const Metrics& metrics) {
  Row row;
  for (const auto& [name, value] : metrics) row[name] = value;
  return row;
}

void AddTo(Row* sum, const Row& row) {
  for (auto& [name, value] : *sum) {
    auto other = row.find(name);
    value = other == row.end() ? Any() : Sum(value, other->second);
  }
}

std::string TextOr(const Row& row, const std::string& name) {
  auto cell = row.find(name);
  return cell == row.end() ? "" : CellText(cell->second, false);
}

double DurationOf(const Row& row) {
  double us = 0;
  auto cell = row.find(kDuration);
  if (cell != row.end()) NumberOf(cell->second, &us);
  return us;
}

std::vector<Row> Aggregated(const std::vector<Row>& rows) {
  std::vector<Row> out;
  std::map<std::string, size_t> position;
  for (const Row& row : rows) {
    const std::string key =
        TextOr(row, kName) + '\0' + TextOr(row, "Device") + '\0' + TextOr(row, "Argument Shapes");
    auto [known, is_new] = position.emplace(key, out.size());
    if (is_new) {
      out.push_back(row);
    } else {
      AddTo(&out[known->second], row);
    }
  }
  return out;
}

std::vector<std::string> ColumnsOf(const std::vector<Row>& rows) {
  std::vector<std::string> columns;
  std::map<std::string, bool> present;
  for (const Row& row : rows) {
    for (const auto& [name, value] : row) present[name] = true;
  }
  for (const char* name : kLeading) {
    if (present.erase(name) > 0) columns.push_back(name);
  }
  for (const auto& [name, unused] : present) columns.push_back(name);
  return columns;
}

void Align(const std::vector<std::vector<std::string>>& lines, std::ostream& os) {
  std::vector<size_t> width(lines[0].size(), 0);
  for (const auto& line : lines) {
    for (size_t i = 0; i < line.size(); ++i) width[i] = std::max(width[i], line[i].size());
  }
  for (const auto& line : lines) {
    std::ostringstream text;
    for (size_t i = 0; i < line.size(); ++i) {
      // Names to the left, numbers to the right.
      text << (i == 0 ? std::left : std::right) << std::setw(static_cast<int>(width[i])) << line[i]
           << (i + 1 < line.size() ? "  " : "");
    }
    const std::string padded = text.str();
    os << padded.substr(0, padded.find_last_not_of(' ') + 1) << '\n';
  }
}

// ---- JSON -------------------------------------------------------------------------------------

std::string Quoted(const std::string& text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      char code[8];
      std::snprintf(code, sizeof(code), "\\u%04x", c);
      out += code;
    } else {
      out += c;
    }
  }
  return out + "\"";
}

std::string Exact(double value) {
  std::ostringstream os;
  os << std::setprecision(17) << value;
  return os.str();
}

void WriteMetric(const Any& metric, std::ostream& os) {
  if (const auto* node = metric.as<DurationNode>()) {
    os << "{\"microseconds\": " << Exact(node->microseconds) << "}";
  } else if (const auto* node = metric.as<PercentNode>()) {
    os << "{\"percent\": " << Exact(node->percent) << "}";
  } else if (const auto* node = metric.as<CountNode>()) {
    os << "{\"count\": " << node->value << "}";
  } else if (const auto* node = metric.as<RatioNode>()) {
    os << "{\"ratio\": " << Exact(node->ratio) << "}";
  } else {
    os << "{\"string\": " << Quoted(CellText(metric, false)) << "}";
  }
}

void WriteMetrics(const Metrics& metrics, std::ostream& os) {
  const char* separator = "{";
  for (const auto& [name, value] : metrics) {
    os << separator << Quoted(name) << ": ";
    WriteMetric(value, os);
    separator = ", ";
  }
  os << (metrics.size() == 0 ? "{}" : "}");
}

/*! \brief Reads the JSON that a report is written in: objects, arrays, texts and numbers. */
class Reader {
 public:
  explicit Reader(const std::string& text) : text_(text) {}

  profiling::Report ReadReport() {
    Array<Metrics> calls;
    Map<String, Metrics> device_metrics;
    Metrics configuration;
    Object([&](const std::string& key) {
      if (key == "calls") {
        Sequence([&] { calls.push_back(ReadMetrics()); });
      } else if (key == "device_metrics") {
        Object([&](const std::string& device) { device_metrics.Set(device, ReadMetrics()); });
      } else if (key == "configuration") {
        configuration = ReadMetrics();
      } else {
        Fail("one of \"calls\", \"device_metrics\" and \"configuration\"");
      }
    });
    if (Peek() != '\0') Fail("the end of the text");
    return profiling::Report(calls, device_metrics, configuration);
  }

 private:
  Metrics ReadMetrics() {
    Metrics metrics;
    Object([&](const std::string& name) { metrics.Set(name, ReadMetric()); });
    return metrics;
  }
  Any ReadMetric() {
    Any metric;
    Object([&](const std::string& kind) {
      if (kind == "string") {
        metric = String(Text());
      } else if (kind == "microseconds") {
        metric = ObjectRef(make_object<DurationNode>(Number()));
      } else if (kind == "percent") {
        metric = ObjectRef(make_object<PercentNode>(Number()));
      } else if (kind == "ratio") {
        metric = ObjectRef(make_object<RatioNode>(Number()));
      } else if (kind == "count") {
        metric = ObjectRef(make_object<CountNode>(Integer()));
      } else {
        Fail("a kind of metric (string, microseconds, percent, ratio, count)");
      }
    });
    return metric;
  }

  template <typename F>
  void Object(F&& entry) {
    Take('{');
    if (TakeIf('}')) return;
    do {
      const std::string key = Text();
      Take(':');
      entry(key);
    } while (TakeIf(','));
    Take('}');
  }
  template <typename F>
  void Sequence(F&& item) {
    Take('[');
    if (TakeIf(']')) return;
    do {
      item();
    } while (TakeIf(','));
    Take(']');
  }
  std::string Text() {
    Take('"');
    std::string out;
    while (at_ < text_.size() && text_[at_] != '"') {
      char c = text_[at_++];
      if (c == '\\') c = Escape();
      out += c;
    }
    if (at_ == text_.size()) Fail("a closing quote");
    ++at_;
    return out;
  }
  char Escape() {
    const char c = at_ < text_.size() ? text_[at_++] : '\0';
    switch (c) {
      case 'n':
        return '\n';
      case 't':
        return '\t';
      case 'r':
        return '\r';
      case 'b':
        return '\b';
      case 'f':
        return '\f';
      case 'u': {
        // Only what Quoted writes: control characters.
        const std::string digits = text_.substr(at_, 4);
        at_ += digits.size();
        const long code = std::strtol(digits.c_str(), nullptr, 16);
        if (digits.size() != 4 || code > 0x7f) Fail("an ASCII character");
        return static_cast<char>(code);
      }
      case '\0':
        Fail("a character after the backslash");
      default:
        return c;
    }
  }
  double Number() {
    Peek();
    char* end = nullptr;
    const double value = std::strtod(text_.c_str() + at_, &end);
    Advance(end);
    return value;
  }
  int64_t Integer() {
    Peek();
    char* end = nullptr;
    const int64_t value = std::strtoll(text_.c_str() + at_, &end, 10);
    Advance(end);
    return value;
  }
  void Advance(const char* end) {
    if (end == text_.c_str() + at_) Fail("a number");
    at_ = static_cast<size_t>(end - text_.c_str());
  }
  char Peek() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool TakeIf(char c) { return Peek() == c && ++at_ > 0; }
  void Take(char c) {
    if (!TakeIf(c)) Fail(std::string("'") + c + "'");
  }
  [[noreturn]] void Fail(const std::string& expected) {
    TVM_FATAL(ValueError) << "profiling.Report: expected " << expected << " at character " << at_
                          << " of the text";
  }

  const std::string& text_;
  size_t at_ = 0;
};

}  // namespace

Report::Report(Array<Metrics> calls, Map<String, Metrics> device_metrics, Metrics configuration) {
  auto node = make_object<ReportNode>();
  node->calls = std::move(calls);
  node->device_metrics = std::move(device_metrics);
  node->configuration = std::move(configuration);
  data_ = std::move(node);
}

Report Report::FromJSON(const std::string& text) { return Reader(text).ReadReport(); }

String ReportNode::AsTable(bool sort, bool aggregate, bool column_sums) const {
  std::vector<Row> rows;
  for (const Metrics& call : calls) rows.push_back(RowOf(call));
  Row sum;
  if (!rows.empty()) sum = rows[0];
  for (size_t i = 1; i < rows.size(); ++i) AddTo(&sum, rows[i]);
  if (aggregate) rows = Aggregated(rows);
  if (sort) {
    std::stable_sort(rows.begin(), rows.end(),
                     [](const Row& a, const Row& b) { return DurationOf(a) > DurationOf(b); });
  }
  if (column_sums && !rows.empty()) {
    for (const char* text : {"Device", "Argument Shapes"}) sum.erase(text);
    sum[kName] = String("Sum");
    rows.push_back(sum);
  }
  for (const auto& [device, metrics] : device_metrics) {
    Row total = RowOf(metrics);
    total[kName] = String("Total");
    total["Device"] = device;
    rows.push_back(total);
  }
  std::ostringstream os;
  if (!rows.empty()) {
    const std::vector<std::string> columns = ColumnsOf(rows);
    std::vector<std::vector<std::string>> lines{columns};
    for (const Row& row : rows) {
      lines.emplace_back();
      for (const std::string& column : columns) {
        auto cell = row.find(column);
        const bool empty = cell == row.end() || cell->second.is_null();
        lines.back().push_back(empty ? "" : CellText(cell->second, true));
      }
    }
    Align(lines, os);
  }
  if (configuration.size() > 0) {
    os << "\nConfiguration\n-------------\n";
    for (const auto& [name, value] : configuration) {
      os << name.str() << ": " << CellText(value, true) << '\n';
    }
  }
  return os.str();
}

String ReportNode::AsCSV() const {
  auto quoted = [](const std::string& text) {
    if (text.find_first_of(",\"\n") == std::string::npos) return text;
    std::string out = "\"";
    for (char c : text) out += c == '"' ? std::string("\"\"") : std::string(1, c);
    return out + "\"";
  };
  std::vector<Row> rows;
  for (const Metrics& call : calls) rows.push_back(RowOf(call));
  const std::vector<std::string> columns = ColumnsOf(rows);
  std::ostringstream os;
  for (size_t i = 0; i < columns.size(); ++i) os << (i ? "," : "") << quoted(columns[i]);
  os << '\n';
  for (const Row& row : rows) {
    for (size_t i = 0; i < columns.size(); ++i) {
      os << (i ? "," : "") << quoted(TextOr(row, columns[i]));
    }
    os << '\n';
  }
  return os.str();
}

String ReportNode::AsJSON() const {
  std::ostringstream os;
  os << "{\"calls\": [";
  for (size_t i = 0; i < calls.size(); ++i) {
    os << (i ? ",\n" : "\n");
    WriteMetrics(calls[i], os);
  }
  os << "],\n\"device_metrics\": {";
  const char* separator = "";
  for (const auto& [device, metrics] : device_metrics) {
    os << separator << Quoted(device) << ": ";
    WriteMetrics(metrics, os);
    separator = ", ";
  }
  os << "},\n\"configuration\": ";
  WriteMetrics(configuration, os);
  os << "}";
  return os.str();
}

TVM_REGISTER_GLOBAL("runtime.profiling.Report")
    .set_body_typed([](Array<Metrics> calls, Map<String, Metrics> device_metrics,
                       Metrics configuration) {
      return Report(calls, device_metrics, configuration);
    });
TVM_REGISTER_GLOBAL("runtime.profiling.ReportCalls").set_body_typed([](Report report) {
  return report->calls;
});
TVM_REGISTER_GLOBAL("runtime.profiling.ReportDeviceMetrics").set_body_typed([](Report report) {
  return report->device_metrics;
});
TVM_REGISTER_GLOBAL("runtime.profiling.ReportConfiguration").set_body_typed([](Report report) {
  return report->configuration;
});
TVM_REGISTER_GLOBAL("runtime.profiling.AsTable")
    .set_body_typed([](Report report, bool sort, bool aggregate, bool column_sums) {
      return report->AsTable(sort, aggregate, column_sums);
    });
TVM_REGISTER_GLOBAL("runtime.profiling.AsCSV").set_body_typed([](Report report) {
  return report->AsCSV();
});
TVM_REGISTER_GLOBAL("runtime.profiling.AsJSON").set_body_typed([](Report report) {
  return report->AsJSON();
});
TVM_REGISTER_GLOBAL("runtime.profiling.FromJSON").set_body_typed([](std::string text) {
  return Report::FromJSON(text);
});

TVM_REGISTER_GLOBAL("runtime.profiling.Duration").set_body_typed([](double microseconds) {
  return ObjectRef(make_object<DurationNode>(microseconds));
});
TVM_REGISTER_GLOBAL("runtime.profiling.Percent").set_body_typed([](double percent) {
  return ObjectRef(make_object<PercentNode>(percent));
});
TVM_REGISTER_GLOBAL("runtime.profiling.Count").set_body_typed([](int64_t value) {
  return ObjectRef(make_object<CountNode>(value));
});
TVM_REGISTER_GLOBAL("runtime.profiling.Ratio").set_body_typed([](double ratio) {
  return ObjectRef(make_object<RatioNode>(ratio));
});
TVM_REGISTER_GLOBAL("runtime.profiling.MetricValue").set_body_typed([](ObjectRef metric) -> Any {
  if (const auto* count = metric.as<CountNode>()) return count->value;
  double value;
  TVM_CHECK(NumberOf(metric, &value), TypeError)
      << "profiling: expected a metric, got " << Any(metric).TypeName();
  return value;
});
TVM_REGISTER_GLOBAL("runtime.profiling.DeviceWrapper").set_body_typed([](Device device) {
  return ObjectRef(make_object<DeviceWrapperNode>(device));
});
TVM_REGISTER_GLOBAL("runtime.profiling.DeviceWrapperDevice").set_body_typed([](ObjectRef wrapper) {
  const auto* node = wrapper.as<DeviceWrapperNode>();
  TVM_CHECK(node != nullptr, TypeError) << "profiling: expected a DeviceWrapper";
  return node->device;
});

}  // namespace profiling
}  // namespace runtime
}  // namespace tvm
