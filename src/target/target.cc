/*!
 * \file target.cc
 * \brief Parsing, printing and scoping of targets.
 */
#include <tvm/node/repr_printer.h>
#include <tvm/runtime/logging.h>
#include <tvm/runtime/registry.h>
#include <tvm/target/target.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <map>
#include <optional>
#include <sstream>
#include <vector>

namespace tvm {

TVM_REGISTER_NODE(TargetNode);

namespace {

std::string Normalized(const std::string& key) {
  std::string text = key;
  std::replace(text.begin(), text.end(), '-', '_');
  return text;
}

Any FindIn(const Map<String, Any>& table, const std::string& key) {
  for (const auto& entry : table) {
    if (Normalized(entry.first) == key) return entry.second;
  }
  return Any();
}

Array<String> SplitByComma(const std::string& text) {
  Array<String> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, ',');) {
    if (!part.empty()) parts.push_back(part);
  }
  return parts;
}

/*!
 * \brief Texts of several targets, as ValueText joins them.
 *
 * Kinds alone are separated by commas. Where one has options, which have blanks before them and
 * commas inside, a semicolon stands between targets.
 */
std::vector<std::string> SplitTargets(const std::string& text) {
  const bool has_options = text.find(' ') != std::string::npos;
  const char separator = has_options || text.find(';') != std::string::npos ? ';' : ',';
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, separator);) {
    if (part.find_first_not_of(' ') != std::string::npos) parts.push_back(part);
  }
  return parts;
}

/*! \brief The kind's own spelling of an option, whichever of '-' and '_' the user typed. */
String DeclaredName(const TargetKind& kind, const std::string& key) {
  std::string wanted = Normalized(key);
  std::string known;
  for (const auto& option : kind->option_types) {
    if (Normalized(option.first) == wanted) return option.first;
    known += (known.empty() ? "" : ", ") + std::string(option.first);
  }
  TVM_FATAL(ValueError) << "Target(\"" << kind->name << "\"): unknown option \"" << key
                        << "\"; this kind has keys, host, " << known;
}

Any ParseValue(const TargetKind& kind, const String& option, const std::string& text) {
  std::string type = kind->option_types[option];
  if (type == "int") {
    char* end = nullptr;
    long long value = std::strtoll(text.c_str(), &end, 10);
    TVM_CHECK(!text.empty() && *end == '\0', ValueError)
        << "Target(\"" << kind->name << "\"): option " << option << " must be an integer, got \""
        << text << "\"";
    return static_cast<int64_t>(value);
  }
  if (type == "bool") {
    bool yes = text == "1" || text == "true" || text == "True";
    TVM_CHECK(yes || text == "0" || text == "false" || text == "False", ValueError)
        << "Target(\"" << kind->name << "\"): option " << option << " must be true or false, got \""
        << text << "\"";
    return yes;
  }
  if (type == "array") return SplitByComma(text);
  if (type == "targets") {
    Array<Target> targets;
    for (const std::string& part : SplitTargets(text)) targets.push_back(Target(String(part)));
    return targets;
  }
  return String(text);
}

Target FromAny(const Any& spec);

/*! \brief Check a value given in a table, and bring it to the form ParseValue would give. */
Any CheckValue(const TargetKind& kind, const String& option, const Any& value) {
  std::string type = kind->option_types[option];
  if (auto text = value.TryCast<std::string>()) return ParseValue(kind, option, *text);
  if (type == "int") {
    if (auto number = value.TryCast<int64_t>()) return *number;
  } else if (type == "bool") {
    if (auto yes = value.TryCast<bool>()) return *yes;
  } else if (type == "array") {
    if (auto parts = value.TryCast<Array<String>>()) return *parts;
  } else if (type == "targets") {
    if (auto parts = value.TryCast<Array<Any>>()) {
      Array<Target> targets;
      for (const Any& part : *parts) targets.push_back(FromAny(part));
      return targets;
    }
  }
  TVM_FATAL(ValueError) << "Target(\"" << kind->name << "\"): option " << option
                        << " must be of type " << type << ", got " << value.TypeName();
}

std::string ValueText(const Any& value) {
  if (auto text = value.TryCast<std::string>()) return *text;
  if (auto number = value.TryCast<int64_t>()) return std::to_string(*number);
  if (auto targets = value.TryCast<Array<Target>>(); targets && !targets->empty()) {
    // Semicolons at the end of each, so that one alone is taken for a list as well.
    std::string text;
    for (const Target& target : *targets) text += target->str() + ";";
    return text;
  }
  std::string text;
  for (const String& part : value.cast<Array<String>>()) {
    text += (text.empty() ? "" : ",") + std::string(part);
  }
  return text;
}

ObjectPtr<TargetNode> NewTarget(const TargetKind& kind) {
  ObjectPtr<TargetNode> node = make_object<TargetNode>();
  node->kind = kind;
  node->keys = kind->default_keys;
  return node;
}

/*! \brief Take the limits of a device that is there; of one that is not, nothing is known. */
void TakeDeviceLimits(TargetNode* node, int number) {
  const auto* ask = runtime::Registry::Get("runtime.GetDeviceAttr");
  Device device{static_cast<DLDeviceType>(node->kind->device_type), number};
  // Numbers of DeviceAttrKind.
  constexpr int kExist = 0, kMaxThreads = 1, kWarpSize = 2, kMaxSharedMemory = 3;
  if (ask == nullptr || !(*ask)(device, kExist).cast<bool>()) return;
  auto take = [&](const char* name, int kind) {
    if (auto value = (*ask)(device, kind).TryCast<int64_t>()) node->features.Set(name, *value);
  };
  take("max_num_threads", kMaxThreads);
  take("max_threads_per_block", kMaxThreads);
  take("thread_warp_size", kWarpSize);
  take("max_shared_memory_per_block", kMaxSharedMemory);
}

/*! \brief Add a family of schedules at the end, unless it is there. */
void AddKey(Array<String>* keys, const char* wanted) {
  const bool present = std::any_of(keys->begin(), keys->end(),
                                   [wanted](const String& key) { return key == wanted; });
  if (!present) keys->push_back(wanted);
}

bool StartsWith(const std::string& text, const std::string& prefix) {
  return text.compare(0, prefix.size(), prefix) == 0;
}

/*!
 * \brief What the name of an ARM processor without an operating system says of its instructions.
 *
 * The names and their extensions are those of ARM's technical reference manuals: all of the M
 * profile but M0 and M3 multiply packed integers (DSP), M55 and M85 have vectors (MVE), which need
 * DSP. A suffix `+nodsp` or `+nomve` says that the chip was made without.
 */
void TakeCortexM(TargetNode* node) {
  const std::string name = node->GetStr("mcpu", "");
  if (!StartsWith(name, "cortex-m")) return;
  auto is_any_of = [&name](std::initializer_list<const char*> processors) {
    return std::any_of(processors.begin(), processors.end(),
                       [&name](const char* processor) { return StartsWith(name, processor); });
  };
  const std::string flags = name + "," + node->GetStr("mattr", "");
  auto lacks = [&flags](const char* flag) { return flags.find(flag) != std::string::npos; };
  const bool vectors = is_any_of({"cortex-m55", "cortex-m85"});
  const bool packed =
      (vectors || is_any_of({"cortex-m4", "cortex-m7", "cortex-m33", "cortex-m35p"})) &&
      !lacks("+nodsp");
  node->features.Set("has_dsp", packed);
  node->features.Set("has_mve", vectors && packed && !lacks("+nomve"));
}

/*! \brief An ARM processor takes ARM's schedules, whether `-device` says so or its name does. */
void TakeArmKeys(TargetNode* node, bool chosen) {
  if (node->kind->device_type != kDLCPU) return;
  const std::string triple = node->GetStr("mtriple", "");
  if (!StartsWith(triple, "aarch64") && !StartsWith(triple, "arm") &&
      !StartsWith(node->GetStr("mcpu", ""), "cortex-m")) {
    return;
  }
  if (!chosen) {
    Array<String> keys{"arm_cpu"};
    for (const String& key : node->keys) {
      if (key != keys[0]) keys.push_back(key);
    }
    node->keys = keys;
  }
  AddKey(&node->keys, "arm_cpu");
  AddKey(&node->keys, "cpu");
}

/*!
 * \brief Fill in what follows from the options; called once when all of them are known.
 * \param chosen Whether the user gave the keys.
 */
Target Finish(ObjectPtr<TargetNode> node, bool chosen) {
  node->features = node->kind->default_features;
  // What every target has that names no board; two that say the same in other words are one.
  if (Any model = FindIn(node->attrs, "model"); model.defined() && ValueText(model) == "unknown") {
    node->attrs.erase("model");
  }
  TakeArmKeys(node.get(), chosen);
  TakeCortexM(node.get());
  // A device name also selects its family of schedules, ahead of the kind's own.
  if (Any device = FindIn(node->attrs, "device"); device.defined()) {
    Array<String> keys{device.cast<String>()};
    for (const String& key : node->keys) {
      if (key != keys[0]) keys.push_back(key);
    }
    node->keys = keys;
  }
  if (Any number = FindIn(node->attrs, "from_device"); number.defined()) {
    TakeDeviceLimits(node.get(), static_cast<int>(number.cast<int64_t>()));
  }
  Target target{ObjectPtr<Object>(node)};
  if (const auto* probe =
          runtime::Registry::Get("target.features." + std::string(node->kind->name))) {
    Map<String, Any> found = (*probe)(target);
    for (const auto& entry : found) node->features.Set(entry.first, entry.second);
  }
  return target;
}

/*! \brief Words between blanks; what stands in quotes is one word, or a part of one. */
std::vector<std::string> SplitByBlank(const std::string& text) {
  std::vector<std::string> words;
  char quote = '\0';
  bool inside = false;
  for (char c : text) {
    if (quote == '\0' && std::isspace(static_cast<unsigned char>(c)) != 0) {
      inside = false;
      continue;
    }
    if (!inside) words.emplace_back();
    inside = true;
    if (quote == '\0' && (c == '\'' || c == '"')) {
      quote = c;
    } else if (c == quote) {
      quote = '\0';
    } else {
      words.back() += c;
    }
  }
  TVM_CHECK(quote == '\0', ValueError) << "Target(\"" << text << "\"): a quote is not closed";
  return words;
}

/*! \brief The table that the name of a machine stands for; Python keeps the names. */
std::optional<Map<String, Any>> Tagged(const std::string& text) {
  const auto* find = runtime::Registry::Get("target.Tagged");
  if (find == nullptr) return std::nullopt;
  Any found = (*find)(String(text));
  if (found.is_null()) return std::nullopt;
  return found.cast<Map<String, Any>>();
}

/*!
 * \brief Whether the option is one that said how a program is linked and run, until TVM 0.8 moved
 * those out of targets.
 *
 * Records of that time carry them with the values that hold anyway (libraries take their parameters
 * with them unless told otherwise), and so name the same target without them.
 */
bool WasOfLinking(const TargetKind& kind, const std::string& key, const Any& value) {
  static const std::map<std::string, std::vector<std::string>> options{
      {"link_params", {"0", "false", "1", "true"}},
      {"unpacked_api", {"0", "false"}},
      {"interface_api", {"packed"}},
      {"executor", {"graph"}},
      {"runtime", {"cpp", "c++"}},
  };
  auto found = options.find(Normalized(key));
  if (found == options.end()) return false;
  const std::vector<std::string>& usual = found->second;
  std::string text = ValueText(value);
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return std::tolower(c); });
  TVM_CHECK(std::find(usual.begin(), usual.end(), text) != usual.end(), ValueError)
      << "Target(\"" << kind->name << "\"): " << key << "=" << text
      << " is no option of a target; give tvm.relay.build an Executor or a Runtime that says so";
  return true;
}

Target ParseTable(const Map<String, Any>& config);

Target ParseText(const std::string& text) {
  if (auto table = Tagged(text)) return ParseTable(*table);
  std::vector<std::string> words = SplitByBlank(text);
  TVM_CHECK(!words.empty(), ValueError)
      << "Target: the text is empty; write a kind, such as \"llvm\"";
  ObjectPtr<TargetNode> node = NewTarget(TargetKind::Get(words[0]));
  bool chosen = false;
  for (size_t i = 1; i < words.size(); ++i) {
    const std::string& word = words[i];
    size_t begin = word.find_first_not_of('-');
    TVM_CHECK(begin != std::string::npos && begin >= 1 && begin <= 2, ValueError)
        << "Target(\"" << text << "\"): expected an option such as -mcpu=name, got \"" << word
        << "\"";
    size_t equals = word.find('=');
    std::string key = word.substr(begin, equals == std::string::npos ? equals : equals - begin);
    bool given = equals != std::string::npos || (i + 1 < words.size() && words[i + 1][0] != '-');
    std::string value;
    if (equals != std::string::npos) {
      value = word.substr(equals + 1);
    } else if (i + 1 < words.size() && words[i + 1][0] != '-') {
      value = words[++i];
    } else {
      value = "true";
    }
    if (key == "keys") {
      node->keys = SplitByComma(value);
      chosen = true;
    } else if (key == "host") {
      node->host = Target(String(value));
    } else if (!WasOfLinking(node->kind, key, String(value))) {
      String option = DeclaredName(node->kind, key);
      TVM_CHECK(given || node->kind->option_types[option] == "bool", ValueError)
          << "Target(\"" << text << "\"): option " << option << " needs a value: -" << option
          << "=...";
      node->attrs.Set(option, ParseValue(node->kind, option, value));
    }
  }
  return Finish(node, chosen);
}

Target ParseTable(const Map<String, Any>& config) {
  Any kind = FindIn(config, "kind");
  TVM_CHECK(kind.as<StringObj>() != nullptr, ValueError)
      << "Target: a table needs an entry \"kind\" naming the target kind";
  ObjectPtr<TargetNode> node = NewTarget(TargetKind::Get(kind.cast<String>()));
  bool chosen = false;
  for (const auto& entry : config) {
    const std::string key = entry.first;
    if (key == "kind") continue;
    if (key == "keys") {
      node->keys = entry.second.cast<Array<String>>();
      chosen = true;
    } else if (key == "host") {
      node->host = FromAny(entry.second);
    } else if (!WasOfLinking(node->kind, key, entry.second)) {
      String option = DeclaredName(node->kind, key);
      node->attrs.Set(option, CheckValue(node->kind, option, entry.second));
    }
  }
  return Finish(node, chosen);
}

Target FromAny(const Any& spec) {
  if (const auto* target = spec.as<TargetNode>()) return GetRef<Target>(target);
  if (auto text = spec.TryCast<std::string>()) return ParseText(*text);
  TVM_CHECK(spec.as<MapNode>() != nullptr, TypeError)
      << "Target: expected text, a dict or a Target, got " << spec.TypeName();
  return ParseTable(spec.cast<Map<String, Any>>());
}

std::vector<Target>& ScopeStack() {
  static thread_local std::vector<Target> stack;
  return stack;
}

}  // namespace

Any TargetNode::Find(const std::string& key) const {
  std::string wanted = Normalized(key);
  Any own = FindIn(attrs, wanted);
  return own.defined() ? own : FindIn(features, wanted);
}

int64_t TargetNode::GetInt(const std::string& key, int64_t otherwise) const {
  Any value = Find(key);
  return value.defined() ? value.cast<int64_t>() : otherwise;
}

std::string TargetNode::GetStr(const std::string& key, const std::string& otherwise) const {
  Any value = Find(key);
  return value.defined() ? ValueText(value) : otherwise;
}

Target TargetNode::GetHost() const {
  return host.defined() ? Downcast<Target>(host.value()) : Target(nullptr);
}

std::string TargetNode::str() const {
  std::string text = kind->name;
  if (!keys.empty()) text += " -keys=" + ValueText(keys);
  std::vector<std::string> options;
  for (const auto& entry : attrs) {
    options.push_back(" -" + std::string(entry.first) + "=" + ValueText(entry.second));
  }
  // A value with blanks stays one word.
  for (std::string& option : options) {
    const size_t value = option.find('=') + 1;
    if (option.find(' ', value) == std::string::npos) continue;
    const char quote = option.find('\'') == std::string::npos ? '\'' : '"';
    option = option.substr(0, value) + quote + option.substr(value) + quote;
  }
  std::sort(options.begin(), options.end());
  for (const std::string& option : options) text += option;
  return text;
}

Target::Target(const String& text) : Target(ParseText(text)) {}

Target::Target(const Map<String, Any>& config) : Target(ParseTable(config)) {}

Target::Target(const Target& target, const Target& host) {
  ObjectPtr<TargetNode> node = make_object<TargetNode>(*target.get());
  if (host.defined()) node->host = host;
  *this = Target(ObjectPtr<Object>(node));
}

Target Target::Current(bool allow_none) {
  std::vector<Target>& stack = ScopeStack();
  if (!stack.empty()) return stack.back();
  TVM_CHECK(allow_none, ValueError) << "Target.current: no target is in scope; write `with "
                                       "tvm.target.Target(...):` around the call";
  return Target(nullptr);
}

void Target::EnterScope() const { ScopeStack().push_back(*this); }

void Target::ExitScope() const {
  std::vector<Target>& stack = ScopeStack();
  ICHECK(!stack.empty() && stack.back().same_as(*this)) << "target scopes must nest";
  stack.pop_back();
}

Target DefaultTargetHost(const Target& target) {
  if (target.defined() && target->GetTargetDeviceType() == kDLCPU) return target;
  bool has_llvm = runtime::Registry::Get("target.build.llvm") != nullptr;
  return Target(String(has_llvm ? "llvm" : "stackvm"));
}

TVM_REGISTER_REPR(TargetNode,
                  [](const TargetNode* target, ReprPrinter* p) { p->stream << target->str(); });

TVM_REGISTER_GLOBAL("target.Target").set_body_typed([](Any spec, Target host) {
  Target target = FromAny(spec);
  return host.defined() ? Target(target, host) : target;
});
TVM_REGISTER_GLOBAL("target.TargetStr").set_body_typed([](Target target) {
  return String(target->str());
});
TVM_REGISTER_GLOBAL("target.TargetFind").set_body_typed([](Target target, String key) {
  return target->Find(key);
});
TVM_REGISTER_GLOBAL("target.TargetFeatures").set_body_typed([](Target target) {
  return target->features;
});
TVM_REGISTER_GLOBAL("target.TargetGetHost").set_body_typed([](Target target) {
  return target->GetHost();
});
TVM_REGISTER_GLOBAL("target.TargetCurrent").set_body_typed(Target::Current);
TVM_REGISTER_GLOBAL("target.TargetEnterScope").set_body_typed([](Target target) {
  target.EnterScope();
});
TVM_REGISTER_GLOBAL("target.TargetExitScope").set_body_typed([](Target target) {
  target.ExitScope();
});
TVM_REGISTER_GLOBAL("target.DefaultTargetHost").set_body_typed(DefaultTargetHost);

}  // namespace tvm
