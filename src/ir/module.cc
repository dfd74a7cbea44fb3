#include <tvm/ir/module.h>
#include <tvm/ir/script_marks.h>
#include <tvm/ir/script_printer.h>
#include <tvm/node/repr_printer.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace tvm {

TVM_REGISTER_NODE(IRModuleNode, "ir.IRModule");

namespace {

std::string KnownNames(const IRModuleNode* mod) {
  std::ostringstream os;
  for (const auto& [var, func] : mod->functions) {
    os << (os.tellp() > 0 ? ", " : "") << var->name_hint;
  }
  return os.tellp() > 0 ? os.str() : "(no functions)";
}

}  // namespace

void IRModuleNode::Init() {
  // No attributes has one form, so that equal modules compare equal.
  if (attrs.defined() && attrs->dict.empty()) attrs = DictAttrs();
  Map<String, GlobalVar> names;
  for (const auto& [var, func] : functions) {
    TVM_CHECK(!names.contains(var->name_hint), ValueError)
        << "IRModule: there are two functions \"" << var->name_hint << '"';
    names.Set(var->name_hint, var);
  }
  global_var_map_ = std::move(names);
}

IRModule IRModule::FromExpr(const BaseFunc& func, String name) {
  TVM_CHECK(func.defined(), ValueError) << "IRModule.from_expr: got None";
  String symbol = func->GetAttr<String>(attr::kGlobalSymbol, name);
  return IRModule({{GlobalVar(symbol), func}});
}

bool IRModuleNode::ContainGlobalVar(const String& name) const {
  return global_var_map_.contains(name);
}

GlobalVar IRModuleNode::GetGlobalVar(const String& name) const {
  Optional<GlobalVar> var = global_var_map_.Get(name);
  TVM_CHECK(var.defined(), KeyError) << "IRModule: there is no function \"" << name
                                     << "\"; the functions are: " << KnownNames(this);
  return var.value();
}

Array<GlobalVar> IRModuleNode::GetGlobalVars() const {
  Array<GlobalVar> vars;
  for (const auto& [var, func] : functions) vars.push_back(var);
  return vars;
}

BaseFunc IRModuleNode::Lookup(const GlobalVar& var) const {
  Optional<BaseFunc> func = functions.Get(var);
  TVM_CHECK(func.defined(), KeyError) << "IRModule: there is no function " << var->name_hint
                                      << "; the functions are: " << KnownNames(this);
  return func.value();
}

BaseFunc IRModuleNode::Lookup(const String& name) const { return Lookup(GetGlobalVar(name)); }

void IRModuleNode::Add(const GlobalVar& var, const BaseFunc& func, bool update) {
  TVM_CHECK(var.defined() && func.defined(), ValueError) << "IRModule: cannot add None";
  Optional<GlobalVar> existing = global_var_map_.Get(var->name_hint);
  if (existing.defined() && !existing.value().same_as(var)) {
    TVM_CHECK(update, ValueError) << "IRModule: there already is a function \"" << var->name_hint
                                  << "\"; use update_func to replace it";
    functions.erase(existing.value());
  } else if (existing.defined() && !update && !functions.at(var).same_as(func)) {
    TVM_FATAL(ValueError) << "IRModule: there already is a function \"" << var->name_hint
                          << "\"; use update_func to replace it";
  }
  functions.Set(var, func);
  global_var_map_.Set(var->name_hint, var);
}

void IRModuleNode::Remove(const GlobalVar& var) {
  functions.erase(var);
  global_var_map_.erase(var->name_hint);
}

namespace {

/*! \brief A number of 7 bits that follows from a name, the same in every process. */
int NameTag(const String& name) {
  uint32_t hash = 2166136261u;
  for (size_t i = 0; i < name.size(); ++i) {
    hash = (hash ^ static_cast<unsigned char>(name.c_str()[i])) * 16777619u;
  }
  return static_cast<int>((hash ^ (hash >> 7) ^ (hash >> 21)) & 0x7f);
}

}  // namespace

void IRModuleNode::AddTypeDef(const TypeData& definition, bool update) {
  TVM_CHECK(definition.defined(), ValueError) << "IRModule: cannot add None";
  const String& name = definition->header->name_hint;
  Optional<TypeData> known = type_definitions.Get(name);
  TVM_CHECK(update || !known.defined() || known.value().same_as(definition), ValueError)
      << "IRModule: there already is a type \"" << name << '"';
  // Tags tell values of one type apart, and as far as 7 bits go types from each other.
  int tag = NameTag(name) << 24;
  for (const Constructor& constructor : definition->constructors) constructor->tag = tag++;
  type_definitions.Set(name, definition);
}

/*! \brief The text of a module whose functions are not of the script's language, or nothing. */
std::optional<String> ForeignText(const IRModuleNode* node) {
  if (!node->type_definitions.empty()) {
    const runtime::PackedFunc* print = runtime::Registry::Get("relay.ir.AsText");
    if (print != nullptr) return (*print)(GetRef<IRModule>(node), false, nullptr).cast<String>();
  }
  for (const auto& [var, func] : node->functions) {
    if (func->GetTypeKey() != "relay.Function") continue;
    const runtime::PackedFunc* print = runtime::Registry::Get("relay.ir.AsText");
    if (print == nullptr) return std::nullopt;
    return (*print)(GetRef<IRModule>(node), false, nullptr).cast<String>();
  }
  return std::nullopt;
}

/*! \brief The functions as a text lists them: what is only named, tensor programs, graphs; each by
 *         name. */
std::vector<std::pair<GlobalVar, BaseFunc>> InOrderOfText(const IRModuleNode* node) {
  std::vector<std::pair<GlobalVar, BaseFunc>> functions;
  for (const auto& [var, func] : node->functions) functions.emplace_back(var, func);
  auto rank = [](const BaseFunc& func) {
    std::string kind = func->GetTypeKey();
    return kind == "relax.expr.ExternFunc" ? 0 : kind == "tir.PrimFunc" ? 1 : 2;
  };
  std::sort(functions.begin(), functions.end(), [&](const auto& one, const auto& other) {
    int first = rank(one.second), second = rank(other.second);
    if (first != second) return first < second;
    return one.first->name_hint.str() < other.first->name_hint.str();
  });
  return functions;
}

TVM_REGISTER_REPR(IRModuleNode, [](const IRModuleNode* node, ReprPrinter* p) {
  if (std::optional<String> text = ForeignText(node)) {
    p->stream << *text;
    return;
  }
  ScriptScope scope;
  ScriptMark mark(p->stream, node);
  scope.global_infos() = node->global_infos;
  p->stream << "@I.ir_module\nclass " << ScriptScope::ModuleName() << ":\n";
  if (node->attrs.defined()) {
    p->stream << "    I.module_attrs(";
    PrintScriptValue(p->stream, Any(node->attrs->dict), false);
    p->stream << ")\n";
  }
  if (!node->global_infos.empty()) {
    p->stream << "    I.module_global_infos(";
    PrintScriptValue(p->stream, Any(node->global_infos), false);
    p->stream << ")\n";
  }
  if (node->attrs.defined() || !node->global_infos.empty()) {
    if (!node->functions.empty()) p->stream << '\n';
  } else if (node->functions.empty()) {
    p->stream << "    pass\n";
  }
  p->indent += 4;
  bool first = true;
  for (const auto& [var, func] : InOrderOfText(node)) {
    // Functions print themselves at the margin; their text is moved inside the class.
    std::ostringstream text;
    scope.function_name() = var->name_hint;
    // What is only named has a line, and no body.
    if (func->GetTypeKey() == "relax.expr.ExternFunc") text << PythonName(var->name_hint) << " = ";
    ReprPrinter(text).Print(func);
    scope.function_name().clear();
    if (!first) p->stream << '\n';
    first = false;
    std::istringstream lines(text.str());
    for (std::string line; std::getline(lines, line);) {
      if (!line.empty()) p->PrintIndent();
      p->stream << line << '\n';
    }
  }
  p->indent -= 4;
  scope.global_infos() = {};
  scope.PrintFooter(p->stream);
});

TVM_REGISTER_GLOBAL("ir.Module_FromExpr").set_body_typed([](BaseFunc func, String name) {
  return IRModule::FromExpr(func, name);
});

TVM_REGISTER_GLOBAL("ir.Module_Lookup").set_body_typed([](IRModule mod, GlobalVar var) {
  return mod->Lookup(var);
});

TVM_REGISTER_GLOBAL("ir.Module_Lookup_str").set_body_typed([](IRModule mod, String name) {
  return mod->Lookup(name);
});

TVM_REGISTER_GLOBAL("ir.Module_GetGlobalVar").set_body_typed([](IRModule mod, String name) {
  return mod->GetGlobalVar(name);
});

TVM_REGISTER_GLOBAL("ir.Module_GetGlobalVars").set_body_typed([](IRModule mod) {
  return mod->GetGlobalVars();
});

TVM_REGISTER_GLOBAL("ir.Module_ContainGlobalVar").set_body_typed([](IRModule mod, String name) {
  return mod->ContainGlobalVar(name);
});

TVM_REGISTER_GLOBAL("ir.Module_Add")
    .set_body_typed([](IRModule mod, GlobalVar var, BaseFunc func, bool update) {
      mod->Add(var, func, update);
    });

TVM_REGISTER_GLOBAL("ir.Module_Remove").set_body_typed([](IRModule mod, GlobalVar var) {
  mod->Remove(var);
});

TVM_REGISTER_GLOBAL("ir.Module_AddTypeDef")
    .set_body_typed([](IRModule mod, TypeData definition, bool update) {
      mod->AddTypeDef(definition, update);
    });

TVM_REGISTER_GLOBAL("ir.Module_UpdateGlobalInfo")
    .set_body_typed([](IRModule mod, String name, Array<GlobalInfo> infos) {
      mod->global_infos.Set(name, infos);
    });

TVM_REGISTER_GLOBAL("ir.Module_WithAttr").set_body_typed([](IRModule mod, String key, Any value) {
  mod.CopyOnWrite()->attrs = WithAttr(mod->attrs, key, value);
  return mod;
});

TVM_REGISTER_GLOBAL("ir.Module_WithoutAttr").set_body_typed([](IRModule mod, String key) {
  DictAttrs attrs = WithoutAttr(mod->attrs, key);
  // No attributes has one form, so that equal modules compare equal.
  mod.CopyOnWrite()->attrs = attrs.defined() && attrs->dict.empty() ? DictAttrs() : attrs;
  return mod;
});

}  // namespace tvm
