/*!
 * \file src/relax/printer.cc
 * \brief Text of graph functions, from which tvm.script reads the same functions.
 */
#include "printer.h"

#include <tvm/ir/op.h>
#include <tvm/ir/script_printer.h>
#include <tvm/node/structural_equal.h>
#include <tvm/tir/stmt_functor.h>

#include <charconv>
#include <cmath>

namespace tvm {
namespace relax {

namespace {

/*! \brief The value of a constant of one number as text; empty if that would not have all of it. */
std::string NumberText(const runtime::NDArray& data) {
  DataType dtype = data.dtype();
  bool on_host = data->tensor.device.device_type == kDLCPU;
  if (!on_host || !data.Shape().empty() || dtype.lanes() != 1) return "";
  const void* at = data.data();
  char text[64];
  auto write = [&](auto value) {
    char* end = std::to_chars(text, text + sizeof(text), value).ptr;
    std::string digits(text, end);
    bool real = std::is_floating_point_v<decltype(value)>;
    if (real && digits.find_first_of(".e") == std::string::npos) digits += ".0";
    return digits;
  };
  if (dtype == DataType::Float(32)) {
    float value = *static_cast<const float*>(at);
    return std::isfinite(value) ? write(value) : "";
  }
  if (dtype == DataType::Float(64)) {
    double value = *static_cast<const double*>(at);
    return std::isfinite(value) ? write(value) : "";
  }
  if (dtype == DataType::Int(32)) return write(*static_cast<const int32_t*>(at));
  if (dtype == DataType::Int(64)) return write(*static_cast<const int64_t*>(at));
  if (dtype.is_bool()) {
    return *static_cast<const uint8_t*>(at) != 0 ? "True" : "False";
  }
  return "";
}

}  // namespace

std::string RelaxPrinter::Fresh(const Object* key, const std::string& hint) {
  auto it = names_.find(key);
  if (it != names_.end()) return it->second;
  const bool distinct = in_function_ || verbose_;
  std::string base = ScriptScope::Addressed(distinct ? PythonName(hint) : hint, key);
  std::string name = base;
  for (int i = 1; distinct && !taken_.insert(name).second; ++i) {
    name = base + "_" + std::to_string(i);
  }
  names_.emplace(key, name);
  if (verbose_ && !in_function_ && bound_.count(key) == 0) Declare(key, name);
  return name;
}

void RelaxPrinter::Declare(const Object* key, const std::string& name) {
  std::ostringstream text;
  if (key->IsInstance<VarNode>()) {
    std::streambuf* sink = os_.rdbuf(text.rdbuf());
    os_ << name;
    PrintAnnotation(GetRef<RelayExpr>(static_cast<const VarNode*>(key)));
    os_.rdbuf(sink);
  } else {
    text << name << " = T." << static_cast<const tir::VarNode*>(key)->dtype << "()";
  }
  declarations_.push_back(text.str());
}

void RelaxPrinter::NewLine() {
  os_ << '\n';
  for (int i = 0; i < indent_; ++i) os_ << ' ';
}

void RelaxPrinter::PrintExtent(const PrimExpr& extent) {
  bool symbolic = false;
  PrimExpr named = tir::Substitute(extent, [&](const tir::Var& var) -> PrimExpr {
    symbolic = true;
    std::string name = Fresh(var.get(), var->name_hint);
    return name == var->name_hint.str() ? PrimExpr(var) : tir::Var(name, var->dtype);
  });
  bool quoted = symbolic && in_signature_;
  const auto* literal = named.as<IntImmNode>();
  os_ << (quoted ? "\"" : "");
  if (literal != nullptr) {
    os_ << literal->value;
  } else {
    os_ << AsRepr(Any(named));
  }
  os_ << (quoted ? "\"" : "");
}

void RelaxPrinter::PrintExtents(const Array<PrimExpr>& extents) {
  for (size_t i = 0; i < extents.size(); ++i) {
    os_ << (i == 0 ? "" : ", ");
    PrintExtent(extents[i]);
  }
}

void RelaxPrinter::Print(const StructInfo& info) {
  if (!info.defined()) {
    os_ << "None";
  } else if (const auto* scalar = info.as<PrimStructInfoNode>()) {
    os_ << "R.Prim(";
    if (scalar->value) {
      os_ << "value=";
      PrintExtent(scalar->value.value());
    } else {
      os_ << '"' << scalar->dtype << '"';
    }
    os_ << ')';
  } else if (const auto* shape = info.as<ShapeStructInfoNode>()) {
    os_ << "R.Shape(";
    if (shape->values) {
      os_ << '[';
      PrintExtents(shape->values.value());
      os_ << "])";
    } else {
      os_ << "ndim=" << shape->ndim << ')';
    }
  } else if (const auto* tensor = info.as<TensorStructInfoNode>()) {
    Print(tensor);
  } else if (const auto* parts = info.as<distributed::DTensorStructInfoNode>()) {
    Print(parts);
  } else if (const auto* tuple = info.as<TupleStructInfoNode>()) {
    os_ << "R.Tuple";
    if (tuple->fields.empty()) return;
    os_ << '(';
    PrintInfos(tuple->fields);
    os_ << ')';
  } else if (const auto* func = info.as<FuncStructInfoNode>()) {
    Print(func);
  } else {
    os_ << "R.Object";
  }
}

void RelaxPrinter::Print(const TensorStructInfoNode* tensor) {
  os_ << "R.Tensor(";
  const char* comma = "";
  if (const auto* literal = tensor->shape ? tensor->shape.value().as<ShapeExprNode>() : nullptr) {
    os_ << '(';
    PrintExtents(literal->values);
    os_ << (literal->values.size() == 1 ? ",)" : ")");
    comma = ", ";
  } else if (tensor->shape) {
    Print(tensor->shape.value());
    comma = ", ";
  }
  if (!tensor->dtype.is_void()) {
    os_ << comma << "dtype=\"" << tensor->dtype << '"';
    comma = ", ";
  }
  if (!tensor->shape && tensor->ndim != -1) {
    os_ << comma << "ndim=" << tensor->ndim;
    comma = ", ";
  }
  if (tensor->vdevice) {
    os_ << comma << "vdevice=";
    PrintScriptText(os_, ScriptScope::DeviceName(tensor->vdevice.value()));
  }
  os_ << ')';
}

void RelaxPrinter::Print(const distributed::DTensorStructInfoNode* parts) {
  const TensorStructInfo& tensor = parts->tensor_sinfo;
  const bool named = !tensor->shape || tensor->dtype.is_void();
  os_ << "R.DTensor(";
  if (const auto* literal = tensor->shape ? tensor->shape.value().as<ShapeExprNode>() : nullptr) {
    os_ << '(';
    PrintExtents(literal->values);
    os_ << (literal->values.size() == 1 ? ",), " : "), ");
  } else if (tensor->shape) {
    Print(tensor->shape.value());
    os_ << ", ";
  }
  if (!tensor->dtype.is_void()) {
    os_ << (named ? "dtype=\"" : "\"") << tensor->dtype << "\", ";
  }
  os_ << (named ? "device_mesh=" : "") << ScriptScope::GlobalInfoName(parts->device_mesh);
  os_ << (named ? ", placement=" : ", ") << parts->placement;
  if (!tensor->shape && tensor->ndim != -1) os_ << ", ndim=" << tensor->ndim;
  os_ << ')';
}

void RelaxPrinter::Print(const FuncStructInfoNode* func) {
  os_ << "R.Callable";
  const bool any = func->ret.as<ObjectStructInfoNode>() != nullptr;
  if (!func->params) {
    if (any && !func->purity) return;
    os_ << "(ret=";
    Print(func->ret);
    os_ << ", purity=" << (func->purity ? "True" : "False") << ')';
    return;
  }
  const Array<StructInfo>& params = func->params.value();
  os_ << "((";
  PrintInfos(params);
  os_ << (params.size() == 1 ? ",), " : "), ");
  Print(func->ret);
  os_ << ", " << (func->purity ? "True" : "False") << ')';
}

void RelaxPrinter::PrintInfos(const Array<StructInfo>& infos) {
  for (size_t i = 0; i < infos.size(); ++i) {
    os_ << (i == 0 ? "" : ", ");
    Print(infos[i]);
  }
}

void RelaxPrinter::Print(const RelayExpr& expr) {
  if (const auto* var = expr.as<VarNode>()) {
    os_ << Fresh(var, var->name_hint);
  } else if (const auto* constant = expr.as<ConstantNode>()) {
    const std::string number = NumberText(constant->data);
    StructInfo info = GetStructInfo(expr);
    if (number.empty()) {
      os_ << ScriptScope().Refer(expr);
    } else if (info->IsInstance<distributed::DTensorStructInfoNode>()) {
      os_ << "R.dist.const(" << number << ", ";
      Print(info);
      os_ << ')';
    } else {
      os_ << "R.const(" << number << ", \"" << constant->data.dtype() << "\")";
    }
  } else if (const auto* shape = expr.as<ShapeExprNode>()) {
    os_ << "R.shape([";
    PrintExtents(shape->values);
    os_ << "])";
  } else if (const auto* external = expr.as<ExternFuncNode>()) {
    os_ << "R.ExternFunc(";
    PrintScriptText(os_, external->global_symbol);
    os_ << ')';
  } else if (const auto* tuple = expr.as<TupleNode>()) {
    if (tuple->fields.empty()) {
      // Python's empty tuple would be read as a shape without extents where one is expected.
      os_ << "R.tuple()";
      return;
    }
    os_ << '(';
    PrintList(tuple->fields);
    os_ << (tuple->fields.size() == 1 ? ",)" : ")");
  } else if (const auto* field = expr.as<TupleGetItemNode>()) {
    Print(field->tuple_value);
    os_ << '[' << field->index << ']';
  } else if (const auto* call = expr.as<CallNode>()) {
    PrintCall(call);
  } else if (const auto* scalar = expr.as<PrimValueNode>()) {
    os_ << "R.prim_value(";
    PrintScalar(scalar->value);
    os_ << ')';
  } else if (const auto* text = expr.as<StringImmNode>()) {
    os_ << "R.str(";
    PrintScriptText(os_, text->value);
    os_ << ')';
  } else if (const auto* kind = expr.as<DataTypeImmNode>()) {
    os_ << "R.dtype(\"" << kind->value << "\")";
  } else if (const auto* branch = expr.as<IfNode>()) {
    PrintIf(branch, nullptr);
  } else if (const auto* global = expr.as<GlobalVarNode>()) {
    std::string name = global->name_hint;
    if (PythonName(name) != name) {
      os_ << AsRepr(Any(expr));
    } else {
      os_ << (in_function_ ? ScriptScope::ModuleAlias() + "." : "") << name;
    }
  } else if (const auto* sequence = expr.as<SeqExprNode>()) {
    Print(PrintBlocks(GetRef<RelayExpr>(sequence)));
  } else {
    os_ << AsRepr(Any(expr));
  }
}

void RelaxPrinter::PrintList(const Array<RelayExpr>& items) {
  for (size_t i = 0; i < items.size(); ++i) {
    os_ << (i == 0 ? "" : ", ");
    Print(items[i]);
  }
}

void RelaxPrinter::PrintScalar(const PrimExpr& value) {
  const auto* number = value.as<IntImmNode>();
  if (number != nullptr && number->dtype == DataType::Int(64)) {
    os_ << number->value;
  } else if (number != nullptr && number->dtype.is_bool()) {
    os_ << (number->value != 0 ? "True" : "False");
  } else if (const auto* real = value.as<FloatImmNode>();
             real != nullptr && real->dtype.bits() == 64) {
    PrintScriptValue(os_, Any(real->value), false);
  } else {
    bool outer = in_signature_;
    in_signature_ = false;
    PrintExtent(value);
    in_signature_ = outer;
  }
}

namespace {

/*! \brief Whether an object is an expression of the host that is no literal. */
bool IsComputed(const Object* node) {
  return node->IsInstance<PrimExprNode>() && !node->IsInstance<IntImmNode>() &&
         !node->IsInstance<FloatImmNode>() && !node->IsInstance<tir::StringImmNode>();
}

}  // namespace

void RelaxPrinter::PrintSetting(const Any& value) {
  if (value.is_object() && value.object()->IsInstance<IntImmNode>()) {
    const auto* number = static_cast<const IntImmNode*>(value.object());
    if (number->dtype == DataType::Int(64)) {
      os_ << number->value;
      return;
    }
  }
  if (value.is_object() && value.object()->IsInstance<ArrayNode>()) {
    const auto* items = static_cast<const ArrayNode*>(value.object());
    os_ << '[';
    for (size_t i = 0; i < items->size(); ++i) {
      os_ << (i == 0 ? "" : ", ");
      PrintSetting(items->at(i));
    }
    os_ << ']';
    return;
  }
  if (value.is_object() && value.object()->IsInstance<MapNode>()) {
    const auto* items = static_cast<const MapNode*>(value.object());
    os_ << '{';
    const char* before = "";
    for (const auto& [key, item] : items->entries()) {
      os_ << before;
      PrintScriptValue(os_, key, false);
      os_ << ": ";
      PrintSetting(item);
      before = ", ";
    }
    os_ << '}';
    return;
  }
  if (value.is_object() && IsComputed(value.object())) {
    PrintScalar(GetRef<PrimExpr>(static_cast<const PrimExprNode*>(value.object())));
    return;
  }
  if (value.is_object() && value.object()->IsInstance<VDeviceNode>()) {
    const auto* device = static_cast<const VDeviceNode*>(value.object());
    PrintScriptText(os_, ScriptScope::DeviceName(GetRef<VDevice>(device)));
    return;
  }
  if (value.is_object() && value.object()->IsInstance<distributed::DeviceMeshNode>()) {
    const auto* mesh = static_cast<const distributed::DeviceMeshNode*>(value.object());
    os_ << ScriptScope::GlobalInfoName(GetRef<GlobalInfo>(mesh));
    return;
  }
  if (value.is_object() && value.object()->IsInstance<distributed::PlacementNode>()) {
    os_ << AsRepr(value);
    return;
  }
  if (value.is_object() && value.object()->IsInstance<PrimValueNode>()) {
    Print(GetRef<RelayExpr>(static_cast<const PrimValueNode*>(value.object())));
    return;
  }
  PrintScriptValue(os_, value, false);
}

namespace {

/*! \brief Calls whose text says what they give, so that their variable need not. */
bool SaysItsResult(const CallNode* call) {
  if (call->sinfo_args.empty()) return false;
  const auto* op = call->op.as<OpNode>();
  return op != nullptr || call->op.as<ExternFuncNode>() != nullptr;
}

/*! \brief Whether what a call gives are tensors on several devices. */
bool HasParts(const CallNode* call) {
  for (const StructInfo& info : call->sinfo_args) {
    if (info->IsInstance<distributed::DTensorStructInfoNode>()) return true;
    const auto* tuple = info.as<TupleStructInfoNode>();
    if (tuple == nullptr) continue;
    for (const StructInfo& field : tuple->fields) {
      if (field->IsInstance<distributed::DTensorStructInfoNode>()) return true;
    }
  }
  return false;
}

/*! \brief Operators whose text is called for its effect. */
bool IsStatement(const RelayExpr& value) {
  const auto* call = value.as<CallNode>();
  const auto* op = call == nullptr ? nullptr : call->op.as<OpNode>();
  return op != nullptr && (op->name == "relax.print" || op->name == "relax.assert_op");
}

}  // namespace

void RelaxPrinter::PrintCall(const CallNode* call) {
  bool destination = false;
  bool first = true;
  std::string name;
  if (const auto* op = call->op.as<OpNode>()) {
    name = op->name.str();
    const std::string prefix = "relax.";
    if (name.rfind(prefix, 0) == 0) {
      const bool parts = name == "relax.call_tir" && HasParts(call);
      os_ << (parts ? "R.dist." : "R.") << name.substr(prefix.size()) << '(';
    } else {
      os_ << "R.call_op(\"" << name << '"';
      first = false;
    }
    destination = name == "relax.call_tir" || name == "relax.call_dps_packed" ||
                  name == "relax.call_tir_inplace" || name == "relax.call_tir_with_grad" ||
                  name == "relax.dist.call_tir_local_view";
  } else if (const auto* external = call->op.as<ExternFuncNode>()) {
    os_ << "R.call_packed(";
    PrintScriptText(os_, external->global_symbol);
    first = false;
  } else {
    Print(call->op);
    os_ << '(';
  }
  auto comma = [&]() {
    os_ << (first ? "" : ", ");
    first = false;
  };
  // The text of print and assert_op comes first among the operands and last in the script.
  size_t format = name == "relax.print" ? 0 : name == "relax.assert_op" ? 1 : call->args.size();
  for (size_t i = 0; i < call->args.size(); ++i) {
    if (i == format || (destination && i == 2)) continue;
    comma();
    const auto* callee = call->args[i].as<ExternFuncNode>();
    if (i == 0 && callee != nullptr) {
      PrintScriptText(os_, callee->global_symbol);
    } else {
      Print(call->args[i]);
    }
  }
  if (format < call->args.size()) {
    comma();
    os_ << "format=";
    Print(call->args[format]);
  }
  if (!call->sinfo_args.empty()) {
    comma();
    const auto* several =
        call->sinfo_args.size() == 1 ? call->sinfo_args[0].as<TupleStructInfoNode>() : nullptr;
    if (destination) {
      os_ << "out_sinfo=";
      if (several != nullptr) {
        os_ << '[';
        PrintInfos(several->fields);
        os_ << ']';
      } else {
        Print(call->sinfo_args[0]);
      }
    } else {
      os_ << "sinfo_args=(";
      PrintInfos(call->sinfo_args);
      os_ << ",)";
    }
  }
  for (const auto& [key, value] : call->attrs->dict) {
    comma();
    os_ << key << '=';
    PrintSetting(value);
  }
  if (destination && call->args.size() > 2) {
    comma();
    os_ << "tir_vars=";
    Print(call->args[2]);
  }
  os_ << ')';
}

void RelaxPrinter::PrintIf(const IfNode* node, const Var* var) {
  os_ << "if ";
  Print(node->cond);
  os_ << ':';
  const RelayExpr* branches[] = {&node->true_branch, &node->false_branch};
  for (int i = 0; i < 2; ++i) {
    if (i == 1) {
      NewLine();
      os_ << "else:";
    }
    indent_ += 4;
    NewLine();
    Framed([&] {
      RelayExpr result = PrintBlocks(*branches[i]);
      if (var != nullptr) {
        Print(*var);
        PrintAnnotation(*var);
        os_ << " = ";
      }
      Print(result);
    });
    indent_ -= 4;
  }
}

void RelaxPrinter::PrintAnnotation(const RelayExpr& expr) {
  if (StructInfo info = GetStructInfo(expr); info.defined()) {
    os_ << ": ";
    Print(info);
  }
}

void RelaxPrinter::Print(const Binding& binding) {
  Var var = binding.var();
  Bind(var);
  if (const auto* branch = binding->value.as<IfNode>()) {
    PrintIf(branch, &var);
    return;
  }
  if (const auto* func = binding->value.as<FunctionNode>()) {
    PrintNested(func, var);
    return;
  }
  if (IsStatement(binding->value)) {
    Print(binding->value);
    return;
  }
  const auto* call = binding->value.as<CallNode>();
  const auto* matched = binding.as<MatchCastNode>();
  bool told = matched == nullptr && call != nullptr && SaysItsResult(call);
  StructInfo known = GetStructInfo(binding->value);
  if (!ScriptScope::Style().all_struct_info) {
    told = true;
    if (matched != nullptr) known = matched->struct_info;
  }
  told = told && StructuralEqual()(GetStructInfo(var), known);
  Print(var);
  if (!told) PrintAnnotation(var);
  os_ << " = ";
  if (const auto* cast = binding.as<MatchCastNode>()) {
    os_ << "R.match_cast(";
    Print(cast->value);
    os_ << ", ";
    Print(cast->struct_info);
    os_ << ')';
  } else if (const auto* external = binding->value.as<ExternFuncNode>()) {
    os_ << "R.ExternFunc(";
    PrintScriptText(os_, external->global_symbol);
    os_ << ')';
  } else {
    Print(binding->value);
  }
}

void RelaxPrinter::PrintNested(const FunctionNode* func, const Var& var) {
  std::string name = Fresh(var.get(), var->name_hint);
  os_ << "@R.function";
  if (!func->is_pure) os_ << "(pure=False)";
  NewLine();
  os_ << "def " << name << '(';
  PrintSignature(func);
  indent_ += 4;
  NewLine();
  PrintAttrs(func, false);
  PrintBody(func->body);
  indent_ -= 4;
}

void RelaxPrinter::PrintBlock(const BindingBlock& block, bool scoped) {
  bool is_dataflow = block->IsInstance<DataflowBlockNode>();
  if (is_dataflow || scoped) {
    os_ << (is_dataflow ? "with R.dataflow():" : "with R.block():");
    indent_ += 4;
    NewLine();
    if (!is_dataflow && block->bindings.empty()) {
      os_ << "pass";
      NewLine();
    }
  }
  Array<RelayExpr> outputs;
  for (size_t i = 0; i < block->bindings.size(); ++i) {
    const Binding& binding = block->bindings[i];
    Print(binding);
    if (!binding.var()->IsInstance<DataflowVarNode>()) outputs.push_back(binding.var());
    if (is_dataflow || i + 1 != block->bindings.size()) NewLine();
  }
  if (is_dataflow) {
    os_ << "R.output(";
    PrintList(outputs);
    os_ << ')';
  }
  if (is_dataflow || scoped) indent_ -= 4;
}

RelayExpr RelaxPrinter::PrintBlocks(const RelayExpr& body) {
  const auto* sequence = body.as<SeqExprNode>();
  if (sequence == nullptr) return body;
  bool after_plain = false;
  for (const BindingBlock& block : sequence->blocks) {
    // Lines that follow each other are one block, so a second one says that it is another.
    PrintBlock(block, after_plain || block->bindings.empty());
    after_plain = !block->IsInstance<DataflowBlockNode>();
    NewLine();
  }
  return sequence->body;
}

void RelaxPrinter::PrintBody(const RelayExpr& body) {
  RelayExpr result = PrintBlocks(body);
  os_ << "return ";
  Print(result);
}

void RelaxPrinter::PrintSignature(const FunctionNode* func) {
  in_signature_ = true;
  for (size_t i = 0; i < func->params.size(); ++i) {
    os_ << (i == 0 ? "" : ", ");
    Print(func->params[i]);
    PrintAnnotation(func->params[i]);
  }
  os_ << ')';
  if (func->ret_struct_info.defined()) {
    os_ << " -> ";
    Print(func->ret_struct_info);
  }
  in_signature_ = false;
  os_ << ':';
}

void RelaxPrinter::Print(const FunctionNode* func) {
  ScriptScope scope;
  in_function_ = true;
  auto symbol = func->GetAttr<String>(attr::kGlobalSymbol);
  std::string name = scope.function_name();
  bool in_module = !name.empty();
  if (!in_module) name = symbol ? std::string(symbol.value()) : ScriptScope::Style().name;
  if (name.empty()) name = "main";
  scope.function_name().clear();
  std::string options;
  if (!symbol) options += ", private=True";
  if (!func->is_pure) options += ", pure=False";
  if (PythonName(name) != name) options += ", name=\"" + name + "\"";
  os_ << "@R.function";
  if (!options.empty()) os_ << '(' << options.substr(2) << ')';
  NewLine();
  os_ << "def " << PythonName(name) << '(';
  PrintSignature(func);
  indent_ += 4;
  NewLine();
  PrintAttrs(func, symbol && std::string(symbol.value()) == name);
  PrintHead(func, in_module);
  PrintBody(func->body);
  indent_ -= 4;
  scope.PrintFooter(os_);
}

void RelaxPrinter::PrintAttrs(const FunctionNode* func, bool symbol_is_name) {
  bool first = true;
  for (const auto& [key, value] : func->attrs->dict) {
    if (key == attr::kGlobalSymbol && symbol_is_name) continue;
    os_ << (first ? "R.func_attr({" : ", ");
    first = false;
    PrintScriptText(os_, key);
    os_ << ": ";
    PrintScriptValue(os_, value, false);
  }
  if (first) return;
  os_ << "})";
  NewLine();
}

void RelaxPrinter::PrintHead(const FunctionNode* func, bool in_module) {
  std::vector<tir::Var> extents;
  bool calls_module = false;
  CollectNames(func, &extents, &calls_module);
  for (size_t i = 0; i < extents.size(); ++i) {
    os_ << (i == 0 ? "" : ", ") << Fresh(extents[i].get(), extents[i]->name_hint);
  }
  for (size_t i = 0; i < extents.size(); ++i) {
    os_ << (i == 0 ? " = " : ", ") << "T." << extents[i]->dtype;
    const auto* size = extents[i].as<tir::SizeVarNode>();
    os_ << (size == nullptr ? "()" : "(is_size_var=True");
    if (size == nullptr) continue;
    if (size->kind != tir::SizeVarKind::kOther) os_ << ", kind=" << static_cast<int>(size->kind);
    os_ << ')';
  }
  if (!extents.empty()) NewLine();
  if (calls_module && in_module && !ScriptScope::Style().module_alias.empty()) {
    os_ << ScriptScope::ModuleAlias() << " = " << ScriptScope::ModuleName();
    NewLine();
  }
}

}  // namespace relax
}  // namespace tvm
