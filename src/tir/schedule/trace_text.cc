/*!
 * \file trace_text.cc
 * \brief The language in which traces write arguments: literals, lists, and sizes computed by
 *        + - * // % tir.min tir.max from what instructions returned and tir.vscale().
 */
#include "trace_text.h"

#include <tvm/expr/builtin.h>
#include <tvm/expr/expr.h>
#include <tvm/expr/lanes.h>
#include <tvm/runtime/stack_guard.h>
#include <tvm/tir/index_map.h>

#include <charconv>
#include <cmath>

#include "runtime/json.h"
#include "text_list.h"
#include "tree.h"

namespace tvm {
namespace tir {
namespace sched {
namespace {

/*! \brief An operation on sizes; functions have two arguments in parentheses. */
struct Operation {
  const char* symbol;
  bool is_function;
  bool (*operands)(const Object* node, PrimExpr* a, PrimExpr* b);
  PrimExpr (*make)(PrimExpr a, PrimExpr b);
};

template <typename TRef>
Operation Row(const char* symbol, bool is_function) {
  return {symbol, is_function,
          [](const Object* node, PrimExpr* a, PrimExpr* b) {
            using Node = typename TRef::ContainerType;
            if (!node->IsInstance<Node>()) return false;
            *a = static_cast<const Node*>(node)->a;
            *b = static_cast<const Node*>(node)->b;
            return true;
          },
          [](PrimExpr a, PrimExpr b) -> PrimExpr { return TRef(std::move(a), std::move(b)); }};
}

const std::vector<Operation>& Operations() {
  static const std::vector<Operation> rows = {Row<Add>("+", false),      Row<Sub>("-", false),
                                              Row<Mul>("*", false),      Row<FloorDiv>("//", false),
                                              Row<FloorMod>("%", false), Row<Min>("tir.min", true),
                                              Row<Max>("tir.max", true)};
  return rows;
}

const Operation* OperationOf(const Any& value, PrimExpr* a, PrimExpr* b) {
  if (value.as<PrimExprNode>() == nullptr) return nullptr;
  for (const Operation& row : Operations()) {
    if (row.operands(value.object(), a, b)) return &row;
  }
  return nullptr;
}

const Operation* OperationNamed(const std::string& symbol) {
  for (const Operation& row : Operations()) {
    if (symbol == row.symbol) return &row;
  }
  return nullptr;
}

}  // namespace

const Object* AsRV(const Any& value) {
  bool is_rv = value.as<BlockRVNode>() || value.as<LoopRVNode>() || value.as<VarNode>();
  return is_rv ? value.object() : nullptr;
}

Any MapRVs(const Any& value, const std::function<Any(const Any&)>& exchange) {
  if (value.object() == nullptr) return value;
  if (AsRV(value)) return exchange(value);
  if (const auto* items = value.as<ArrayNode>()) {
    Array<Any> mapped;
    for (const Any& item : items->data) mapped.push_back(MapRVs(item, exchange));
    return mapped;
  }
  if (const auto* entries = value.as<runtime::MapNode>()) {
    Map<String, Any> mapped;
    for (const auto& [key, item] : entries->entries()) {
      mapped.Set(key.cast<String>(), MapRVs(item, exchange));
    }
    return mapped;
  }
  if (const auto* map = value.as<IndexMapNode>()) {
    // Parameters are variables too, but none of the trace.
    auto outside = [&](const Any& rv) {
      for (const Var& own : map->initial_indices) {
        if (own.get() == rv.object()) return rv;
      }
      return exchange(rv);
    };
    Array<PrimExpr> results;
    for (const PrimExpr& index : map->final_indices) {
      results.push_back(MapRVs(index, outside).cast<PrimExpr>());
    }
    return IndexMap(map->initial_indices, results, map->inverse_index_map);
  }
  PrimExpr a, b;
  if (const Operation* row = OperationOf(value, &a, &b)) {
    return row->make(MapRVs(a, exchange).cast<PrimExpr>(), MapRVs(b, exchange).cast<PrimExpr>());
  }
  return value;
}

std::string Quoted(const std::string& text) {
  std::string quoted;
  json::WriteString(text, &quoted);
  return quoted;
}

namespace {

std::string RealText(double value) {
  char buffer[40];
  std::string text(buffer, std::to_chars(buffer, buffer + sizeof(buffer), value).ptr);
  bool plain = std::isfinite(value) && text.find_first_of(".e") == std::string::npos;
  return plain ? text + ".0" : text;
}

}  // namespace

namespace {

/*! \brief A map of indices as a lambda, whose parameters are numbered where names repeat. */
std::string MapText(const IndexMapNode* map, const Names& names) {
  Names inside = names;
  std::string parameters, results;
  std::unordered_map<std::string, int> taken;
  for (const PrimExpr& index : map->final_indices) {
    for (const Var& var : VarsOf(index)) {
      if (auto rv = names.find(var.get()); rv != names.end()) taken[rv->second] = 1;
    }
  }
  for (const Var& var : map->initial_indices) {
    std::string name;
    for (char c : std::string(var->name_hint)) {
      name += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
    }
    if (name.empty() || std::isdigit(static_cast<unsigned char>(name[0]))) name = "i" + name;
    if (int number = taken[name]++; number > 0) name += "_" + std::to_string(number);
    AddItem(&parameters, name);
    inside[var.get()] = name;
  }
  for (const PrimExpr& index : map->final_indices) AddItem(&results, ToText(index, inside));
  return "lambda " + parameters + ": [" + results + "]";
}

}  // namespace

namespace {
constexpr const char* kVScale = "tir.vscale";
}  // namespace

std::string ToText(const Any& value, const Names& names) {
  if (const Object* rv = AsRV(value)) {
    auto name = names.find(rv);
    TVM_CHECK(name != names.end(), ValueError) << value << " is no random variable of this trace";
    return name->second;
  }
  switch (value.type_code()) {
    case kTVMNull:
      return "None";
    case kTVMBool:
      return value.cast<bool>() ? "True" : "False";
    case kTVMInt:
      return std::to_string(value.cast<int64_t>());
    case kTVMFloat:
      return RealText(value.cast<double>());
    default:
      break;
  }
  if (const auto* literal = value.as<IntImmNode>()) return std::to_string(literal->value);
  if (const auto* literal = value.as<FloatImmNode>()) return RealText(literal->value);
  if (const auto* literal = value.as<StringImmNode>()) return Quoted(literal->value);
  if (auto text = value.TryCast<std::string>()) return Quoted(*text);
  if (const auto* items = value.as<ArrayNode>()) {
    std::string text;
    for (const Any& item : items->data) AddItem(&text, ToText(item, names));
    return "[" + text + "]";
  }
  if (const auto* entries = value.as<runtime::MapNode>()) {
    std::string text;
    for (const auto& [key, item] : entries->entries()) {
      AddItem(&text, Quoted(key.cast<std::string>()) + ": " + ToText(item, names));
    }
    return "{" + text + "}";
  }
  if (const auto* map = value.as<IndexMapNode>()) return MapText(map, names);
  if (const auto* call = value.as<CallNode>(); call && call->op.same_as(builtin::vscale())) {
    return std::string(kVScale) + "()";
  }
  if (const auto* converted = value.as<CastNode>()) return ToText(converted->value, names);
  PrimExpr a, b;
  if (const Operation* row = OperationOf(value, &a, &b)) {
    std::string left = ToText(a, names), right = ToText(b, names);
    if (row->is_function) return std::string(row->symbol) + "(" + left + ", " + right + ")";
    return "(" + left + " " + row->symbol + " " + right + ")";
  }
  TVM_CHECK(value.as<PrimExprNode>() == nullptr, ValueError)
      << value
      << " cannot be recorded in a trace; sizes are computed with +, -, *, //, %, tir.min, "
         "tir.max and tir.vscale";
  TVM_FATAL(TypeError) << "a " << value.TypeName()
                       << " cannot be recorded in a trace; give numbers, texts and lists";
}

namespace {

class TextReader {
 public:
  TextReader(const std::string& text, const NamedRVs& known) : text_(text), known_(known) {}

  Any Read() {
    Any value = Sum();
    Skip();
    if (at_ != text_.size()) Refuse("the text goes on behind the value");
    return value;
  }

 private:
  [[noreturn]] void Refuse(const std::string& why) {
    TVM_FATAL(ValueError) << Quoted(text_) << " is no expression of a trace: " << why
                          << " at character " << at_;
  }

  void Skip() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
  }

  bool Take(const char* symbol) {
    Skip();
    if (text_.compare(at_, std::char_traits<char>::length(symbol), symbol) != 0) return false;
    at_ += std::char_traits<char>::length(symbol);
    return true;
  }

  void Expect(const char* symbol) {
    if (!Take(symbol)) Refuse(std::string("expected ") + symbol);
  }

  PrimExpr Size(const Any& value) {
    bool number = value.type_code() == kTVMInt || value.type_code() == kTVMBool;
    if (!number && value.as<PrimExprNode>() == nullptr) {
      Refuse("sizes are computed from integers");
    }
    return value.cast<PrimExpr>();
  }

  Any Binary(const char* symbol, const Any& a, const Any& b) {
    return OperationNamed(symbol)->make(Size(a), Size(b));
  }

  Any Sum() {
    runtime::CheckStack();
    Any value = Product();
    for (;;) {
      if (Take("+")) {
        value = Binary("+", value, Product());
      } else if (Take("-")) {
        value = Binary("-", value, Product());
      } else {
        return value;
      }
    }
  }

  Any Product() {
    Any value = Signed();
    for (;;) {
      if (Take("//")) {
        value = Binary("//", value, Signed());
      } else if (Take("*")) {
        value = Binary("*", value, Signed());
      } else if (Take("%")) {
        value = Binary("%", value, Signed());
      } else {
        return value;
      }
    }
  }

  Any Signed() {
    runtime::CheckStack();
    if (!Take("-")) return Atom();
    Any value = Signed();
    if (value.type_code() == kTVMFloat) return -value.cast<double>();
    if (value.type_code() != kTVMInt) Refuse("a sign is for numbers");
    return -value.cast<int64_t>();
  }

  Any Atom() {
    Skip();
    if (at_ == text_.size()) Refuse("a value is missing");
    char c = text_[at_];
    if (c == '"' || c == '\'') return Text(c);
    if (std::isdigit(static_cast<unsigned char>(c)) || c == '.') return Number();
    if (Take("(")) {
      Any value = Sum();
      Expect(")");
      return value;
    }
    if (Take("[")) return List();
    if (Take("{")) return Dict();
    return Named();
  }

  Any List() {
    Array<Any> items;
    while (!Take("]")) {
      if (!items.empty()) Expect(",");
      items.push_back(Sum());
    }
    return items;
  }

  Any Dict() {
    Map<String, Any> entries;
    while (!Take("}")) {
      if (!entries.empty()) Expect(",");
      Skip();
      if (at_ == text_.size() || (text_[at_] != '"' && text_[at_] != '\'')) {
        Refuse("keys are texts");
      }
      String key = Text(text_[at_]);
      Expect(":");
      entries.Set(key, Sum());
    }
    return entries;
  }

  Any Lambda() {
    Array<Var> parameters;
    while (!Take(":")) {
      if (!parameters.empty()) Expect(",");
      Skip();
      size_t start = at_;
      while (at_ < text_.size() &&
             (std::isalnum(static_cast<unsigned char>(text_[at_])) || text_[at_] == '_')) {
        ++at_;
      }
      if (at_ == start) Refuse("the name of a parameter is missing");
      parameters.push_back(Var(text_.substr(start, at_ - start)));
    }
    Array<Var> outer = parameters_;
    parameters_ = parameters;
    Any body = Sum();
    parameters_ = outer;
    Array<PrimExpr> results;
    if (const auto* items = body.as<ArrayNode>()) {
      for (const Any& item : items->data) results.push_back(Result(item));
    } else {
      results.push_back(Result(body));
    }
    return IndexMap(parameters, results);
  }

  PrimExpr Result(const Any& value) {
    return value.type_code() == kTVMFloat ? value.cast<PrimExpr>() : Size(value);
  }

  Any Named() {
    size_t start = at_;
    while (at_ < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[at_])) ||
                                  text_[at_] == '_' || text_[at_] == '.')) {
      ++at_;
    }
    std::string name = text_.substr(start, at_ - start);
    if (name == "None") return Any();
    if (name == "lambda") return Lambda();
    for (const Var& var : parameters_) {
      if (var->name_hint == name) return var;
    }
    if (name == "True" || name == "False") return name == "True";
    if (name == kVScale) {
      Expect("(");
      Expect(")");
      return LaneCount(-1);
    }
    if (const Operation* row = OperationNamed(name); row != nullptr && row->is_function) {
      Expect("(");
      Any a = Sum();
      Expect(",");
      Any b = Sum();
      Expect(")");
      return row->make(Size(a), Size(b));
    }
    auto rv = known_.find(name);
    if (rv == known_.end()) {
      at_ = start;
      Refuse("no instruction before returned " + (name.empty() ? "this" : name));
    }
    return rv->second;
  }

  Any Number() {
    size_t start = at_;
    bool real = false;
    while (at_ < text_.size()) {
      char c = text_[at_];
      bool exponent = c == 'e' || c == 'E';
      bool sign = (c == '-' || c == '+') && std::tolower(text_[at_ - 1]) == 'e';
      if (!std::isdigit(static_cast<unsigned char>(c)) && c != '.' && !exponent && !sign) break;
      real |= c == '.' || exponent;
      ++at_;
    }
    const char* end = text_.data() + at_;
    int64_t integer = 0;
    double value = 0;
    auto result = real ? std::from_chars(text_.data() + start, end, value)
                       : std::from_chars(text_.data() + start, end, integer);
    if (result.ec != std::errc() || result.ptr != end) Refuse("this is no number of 64 bits");
    return real ? Any(value) : Any(integer);
  }

  /*! \brief Code point of `digits` hexadecimal digits, as UTF-8. */
  void AddCode(int digits, std::string* out) {
    uint32_t code = Hex(digits);
    // JSON writes what is beyond 16 bits as two halves.
    if (code >= 0xd800 && code < 0xdc00 && text_.compare(at_, 2, "\\u") == 0) {
      at_ += 2;
      code = 0x10000 + ((code - 0xd800) << 10) + ((Hex(4) - 0xdc00) & 0x3ff);
    }
    if (code < 0x80) {
      out->push_back(static_cast<char>(code));
      return;
    }
    int more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
    constexpr uint32_t kLead[] = {0, 0xc0, 0xe0, 0xf0};
    out->push_back(static_cast<char>(kLead[more] | (code >> (6 * more))));
    while (more-- > 0) out->push_back(static_cast<char>(0x80 | ((code >> (6 * more)) & 0x3f)));
  }

  uint32_t Hex(int digits) {
    uint32_t code = 0;
    size_t end = at_ + static_cast<size_t>(digits);
    if (end > text_.size()) Refuse("an escape ends early");
    auto result = std::from_chars(text_.data() + at_, text_.data() + end, code, 16);
    if (result.ptr != text_.data() + end) Refuse("an escape has no such digits");
    at_ = end;
    return code;
  }

  std::string Text(char quote) {
    std::string value;
    for (++at_;; ++at_) {
      if (at_ >= text_.size()) Refuse("a text does not end");
      char c = text_[at_];
      if (c == quote) break;
      if (c != '\\') {
        value.push_back(c);
        continue;
      }
      static const std::string kinds = "ntrbf\\/\"'", means = "\n\t\r\b\f\\/\"'";
      char kind = ++at_ < text_.size() ? text_[at_] : '\0';
      if (size_t which = kinds.find(kind); which != std::string::npos) {
        value.push_back(means[which]);
      } else if (kind == 'u' || kind == 'x') {
        ++at_;
        AddCode(kind == 'u' ? 4 : 2, &value);
        --at_;
      } else {
        Refuse("there is no such escape");
      }
    }
    ++at_;
    return value;
  }

  const std::string& text_;
  const NamedRVs& known_;
  Array<Var> parameters_;
  size_t at_ = 0;
};

}  // namespace

Any FromText(const std::string& text, const NamedRVs& known) {
  return TextReader(text, known).Read();
}

}  // namespace sched
}  // namespace tir
}  // namespace tvm
