/*!
 * \file src/ir/script_printer.cc
 * \brief Attribute values, metadata and prelude of scripts.
 */
#include <tvm/ir/expr.h>
#include <tvm/ir/script_marks.h>
#include <tvm/ir/script_printer.h>
#include <tvm/node/serialization.h>
#include <tvm/node/structural_equal.h>
#include <tvm/runtime/ndarray.h>
#include <tvm/runtime/registry.h>

#include <cctype>
#include <charconv>
#include <cmath>
#include <sstream>
#include <unordered_set>
#include <utility>

namespace tvm {

namespace {

thread_local ScriptScope* current_scope = nullptr;

void PrintReal(std::ostream& os, double value) {
  if (!std::isfinite(value)) {
    os << "float(\"" << (std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf") << "\")";
    return;
  }
  char buffer[40];
  auto end = std::to_chars(buffer, buffer + sizeof(buffer), value).ptr;
  std::string text(buffer, end);
  os << text << (text.find_first_of(".e") == std::string::npos ? ".0" : "");
}

/*! \brief Any node as its type and fields. */
void PrintNode(std::ostream& os, const Object* node) {
  const NodeReflection* reflection = node->type_info()->reflection;
  if (reflection == nullptr || reflection->collect == nullptr) {
    // Functions, modules and the like have no text; reading this back says so.
    os << AsRepr(Any(GetRef<ObjectRef>(node)));
    return;
  }
  os << "I.node(\"" << node->GetTypeKey() << '"';
  for (const FieldInfo& field : reflection->fields()) {
    if (std::string(field.name) == "span") continue;
    os << ", " << field.name << '=';
    PrintScriptValue(os, field.Get(node), false);
  }
  os << ')';
}

/*!
 * \brief An index map as the function that it is, whose class stands above this room; false if its
 *        variables are not those that a function is given.
 */
bool PrintIndexMap(std::ostream& os, const Object* node) {
  Array<PrimExpr> from, to;
  Any inverse;
  for (const FieldInfo& field : node->type_info()->reflection->fields()) {
    const std::string name = field.name;
    if (name == "initial_indices") from = field.Get(node);
    if (name == "final_indices") to = field.Get(node);
    if (name == "inverse_index_map") inverse = field.Get(node);
  }
  std::unordered_set<std::string> names;
  for (const PrimExpr& index : from) {
    if (index.dtype() != DataType::Int(64) || !names.insert(AsRepr(Any(index))).second)
      return false;
  }
  os << "T.index_map(lambda";
  for (size_t i = 0; i < from.size(); ++i) os << (i == 0 ? " " : ", ") << AsRepr(Any(from[i]));
  os << ": [";
  for (size_t i = 0; i < to.size(); ++i) {
    os << (i == 0 ? "" : ", ");
    PrintScriptValue(os, Any(to[i]), false);
  }
  os << ']';
  if (!inverse.is_null()) {
    os << ", inverse_index_map=";
    PrintScriptValue(os, inverse, false);
  }
  os << ')';
  return true;
}

void PrintObject(std::ostream& os, const Object* node, bool objects) {
  if (const auto* text = node->IsInstance<runtime::StringObj>()
                             ? static_cast<const runtime::StringObj*>(node)
                             : nullptr) {
    PrintScriptText(os, text->data);
  } else if (node->IsInstance<ArrayNode>()) {
    const auto* items = static_cast<const ArrayNode*>(node);
    os << '[';
    for (size_t i = 0; i < items->size(); ++i) {
      os << (i == 0 ? "" : ", ");
      PrintScriptValue(os, items->at(i), false);
    }
    os << ']';
  } else if (node->IsInstance<MapNode>()) {
    os << '{';
    bool first = true;
    for (const auto& [key, value] : static_cast<const MapNode*>(node)->entries()) {
      os << (first ? "" : ", ");
      first = false;
      PrintScriptValue(os, key, false);
      os << ": ";
      PrintScriptValue(os, value, false);
    }
    os << '}';
  } else if (node->IsInstance<IntImmNode>()) {
    const auto* literal = static_cast<const IntImmNode*>(node);
    bool plain = objects && literal->dtype == DataType::Int(32);
    if (!plain) os << "T." << literal->dtype << '(';
    if (literal->dtype.is_bool()) {
      os << (literal->value != 0 ? "True" : "False");
    } else {
      os << literal->value;
    }
    if (!plain) os << ')';
  } else if (node->IsInstance<FloatImmNode>()) {
    const auto* literal = static_cast<const FloatImmNode*>(node);
    if (objects && literal->dtype == DataType::Float(32)) {
      PrintReal(os, literal->value);
      return;
    }
    os << "T." << literal->dtype << '(';
    PrintReal(os, literal->value);
    os << ')';
  } else if (node->GetTypeKey() == "tir.StringImm") {
    os << "T.StringImm(" << AsRepr(Any(GetRef<ObjectRef>(node))) << ')';
  } else if (node->IsInstance<PrimExprNode>() || node->IsInstance<GlobalVarNode>()) {
    os << AsRepr(Any(GetRef<ObjectRef>(node)));
  } else if (node->IsInstance<runtime::NDArrayObj>()) {
    os << ScriptScope().Refer(GetRef<ObjectRef>(node));
  } else if (node->GetTypeKey() == "Target") {
    // The kinds of targets are registered above this layer, which only knows their text.
    ObjectRef target = GetRef<ObjectRef>(node);
    const runtime::PackedFunc* host_of = runtime::Registry::Get("target.TargetGetHost");
    os << "T.target(";
    PrintScriptText(os, AsRepr(Any(target)));
    if (host_of != nullptr) {
      Any host = (*host_of)(target);
      if (!host.is_null()) {
        os << ", host=";
        PrintScriptText(os, AsRepr(host));
      }
    }
    os << ')';
  } else if (node->IsInstance<VDeviceNode>()) {
    const auto* device = static_cast<const VDeviceNode*>(node);
    os << "I.vdevice(";
    PrintScriptValue(os, Any(device->target), false);
    os << ", " << device->vdevice_id << ", ";
    PrintScriptText(os, device->memory_scope);
    os << ')';
  } else if (node->IsInstance<DummyGlobalInfoNode>()) {
    os << "I.dummy_global_info()";
  } else if (node->IsInstance<GlobalInfoNode>()) {
    // Other kinds are of rooms above this one, which have their text.
    os << AsRepr(Any(GetRef<ObjectRef>(node)));
  } else if (node->GetTypeKey() != "tir.IndexMap" || !PrintIndexMap(os, node)) {
    PrintNode(os, node);
  }
}

/*! \brief The kind of a target, whose class stands above this room: the first word of its text. */
std::string KindOfTarget(const VDevice& device) {
  std::string text = AsRepr(Any(device->target));
  return text.substr(0, text.find(' '));
}

}  // namespace

std::string ScriptScope::DeviceName(const VDevice& device) {
  std::string kind = KindOfTarget(device);
  int number = device->vdevice_id;
  Array<GlobalInfo> known;
  if (current_scope != nullptr && current_scope->global_infos_.contains("vdevice")) {
    known = current_scope->global_infos_.at("vdevice");
  }
  int of_kind = 0;
  for (const GlobalInfo& info : known) {
    VDevice other = Downcast<VDevice>(info);
    if (StructuralEqual()(other, device)) {
      number = of_kind;
      break;
    }
    if (KindOfTarget(other) == kind) ++of_kind;
  }
  return kind + ":" + std::to_string(number) + ":" + device->memory_scope.str();
}

std::string ScriptScope::GlobalInfoName(const GlobalInfo& info) {
  if (current_scope != nullptr) {
    for (const auto& [name, infos] : current_scope->global_infos_) {
      for (size_t i = 0; i < infos.size(); ++i) {
        if (StructuralEqual()(infos[i], info)) {
          return "\"" + name.str() + "[" + std::to_string(i) + "]\"";
        }
      }
    }
  }
  return AsRepr(Any(info));
}

ScriptScope::ScriptScope() : root_(current_scope == nullptr ? this : current_scope) {
  current_scope = root_;
}

ScriptScope::~ScriptScope() {
  if (root_ == this) current_scope = nullptr;
}

const ScriptStyle& ScriptScope::Style() {
  static const ScriptStyle usual;
  return current_scope == nullptr ? usual : current_scope->style_;
}

bool ScriptScope::IsOpen() { return current_scope != nullptr; }

bool ScriptScope::TakeWhole(bool always) {
  if (current_scope == nullptr || !std::exchange(current_scope->is_at_start_, false)) return false;
  return always || current_scope->style_.verbose;
}

std::string ScriptScope::ModuleName() { return Style().name.empty() ? "Module" : Style().name; }

std::string ScriptScope::ModuleAlias() {
  return Style().module_alias.empty() ? ModuleName() : Style().module_alias;
}

std::string ScriptScope::Addressed(const std::string& hint, const Object* object) {
  if (!Style().addresses) return hint;
  std::ostringstream os;
  os << hint << "_0x" << std::hex << reinterpret_cast<uintptr_t>(object);
  return os.str();
}

std::string ScriptScope::Refer(const ObjectRef& object) {
  std::string key = object->GetTypeKey();
  std::vector<ObjectRef>& kept = root_->metadata_[key];
  size_t index = 0;
  while (index < kept.size() && !kept[index].same_as(object)) ++index;
  if (index == kept.size()) kept.push_back(object);
  return "metadata[\"" + key + "\"][" + std::to_string(index) + "]";
}

void ScriptScope::PrintFooter(std::ostream& os) const {
  if (root_ != this || show_metadata_ || metadata_.empty()) return;
  os << "\n# Metadata omitted. Use show_meta=True in script() method to show it.";
}

std::string PythonName(const std::string& hint) {
  static const std::unordered_set<std::string> reserved = {
      "False",    "None",  "True",     "and",  "as",     "assert", "async",  "await",  "break",
      "class",    "cls",   "continue", "def",  "del",    "elif",   "else",   "except", "finally",
      "for",      "from",  "global",   "if",   "import", "in",     "is",     "lambda", "metadata",
      "nonlocal", "not",   "or",       "pass", "raise",  "range",  "return", "try",    "while",
      "with",     "yield", "I",        "R",    "T"};
  std::string name;
  for (unsigned char c : hint) {
    name += std::isalnum(c) != 0 || c == '_' ? static_cast<char>(c) : '_';
  }
  if (name.empty()) return "v";
  if (std::isdigit(static_cast<unsigned char>(name[0])) != 0) name.insert(0, "v");
  return reserved.count(name) != 0 ? name + "_" : name;
}

void PrintScriptText(std::ostream& os, const std::string& text) {
  static const char* digits = "0123456789abcdef";
  os << '"';
  for (unsigned char c : text) {
    switch (c) {
      case '"':
      case '\\':
        os << '\\' << c;
        break;
      case '\n':
        os << "\\n";
        break;
      case '\t':
        os << "\\t";
        break;
      case '\r':
        os << "\\r";
        break;
      default:
        if (c < 0x20 || c == 0x7f) {
          os << "\\x" << digits[c >> 4] << digits[c & 15];
        } else {
          os << c;
        }
    }
  }
  os << '"';
}

void PrintScriptValue(std::ostream& os, const Any& value, bool objects) {
  switch (value.type_code()) {
    case kTVMNull:
      os << "None";
      return;
    case kTVMBool:
      os << (value.raw().v_int64 != 0 ? "True" : "False");
      return;
    case kTVMInt:
      os << value.raw().v_int64;
      return;
    case kTVMFloat:
      PrintReal(os, value.raw().v_float64);
      return;
    case kTVMDataType:
      os << "T.dtype(\"" << DataType(value.raw().v_dtype) << "\")";
      return;
    case kTVMStr:
      PrintScriptText(os, value.raw().v_str);
      return;
    case kTVMObject:
      PrintObject(os, value.object(), objects);
      return;
    default:
      os << AsRepr(value);
  }
}

/*! \brief Look for an object or a place of the program. */
void Watch(ScriptMarks* marks, const ObjectRef& program, const ObjectRef& what,
           std::optional<std::string> note) {
  if (const auto* path = what.as<ObjectPathNode>()) {
    marks->Watch(Any(program), GetRef<ObjectPath>(path), std::move(note));
  } else {
    marks->Watch(what, std::move(note));
  }
}

/*!
 * \brief The metadata of a program as JSON, or nothing, and its text.
 *
 * `underline` has objects and ObjectPaths to mark, `annotate` pairs of such and a note.
 */
TVM_REGISTER_GLOBAL("ir.Script")
    .set_body_typed([](ObjectRef program, bool show_meta, Map<String, Any> style,
                       Array<ObjectRef> underline, Array<ObjectRef> annotate, Array<String> notes) {
      ScriptScope scope;
      if (show_meta) scope.ShowMetadata();
      auto dtype = [&](const char* key) {
        const std::string text = style.at(key).cast<String>();
        return text == "void" ? DataType::Void() : DataType::FromString(text);
      };
      ScriptStyle chosen;
      chosen.sugar = style.at("syntax_sugar").cast<bool>();
      chosen.verbose = style.at("verbose_expr").cast<bool>();
      chosen.all_struct_info = style.at("show_all_struct_info").cast<bool>();
      chosen.addresses = style.at("show_object_address").cast<bool>();
      chosen.name = style.at("name").cast<String>();
      chosen.module_alias = style.at("module_alias").cast<String>();
      chosen.int_dtype = dtype("int_dtype");
      chosen.float_dtype = dtype("float_dtype");
      chosen.buffer_dtype = dtype("buffer_dtype");
      scope.SetStyle(std::move(chosen));
      std::string text;
      if (underline.empty() && annotate.empty()) {
        text = AsRepr(Any(program));
      } else {
        ScriptMarks marks;
        for (const ObjectRef& what : underline) Watch(&marks, program, what, std::nullopt);
        for (size_t i = 0; i < annotate.size(); ++i) Watch(&marks, program, annotate[i], notes[i]);
        text = marks.Draw(AsRepr(Any(program)));
      }
      if (!show_meta) {
        std::ostringstream footer;
        scope.PrintFooter(footer);
        return Array<String>{"", text + footer.str()};
      }
      if (scope.metadata().empty()) return Array<String>{"", text};
      Map<String, Any> metadata;
      for (const auto& [key, objects] : scope.metadata()) {
        metadata.Set(key, Array<ObjectRef>(objects));
      }
      return Array<String>{SaveJSON(Any(metadata)), text};
    });

}  // namespace tvm
