/*!
 * \file src/tir/ir/printer_function.cc
 * \brief Text of functions: parameters, buffers, and the variables nothing else introduces.
 */
#include <tvm/expr/op.h>
#include <tvm/ir/script_printer.h>
#include <tvm/node/structural_equal.h>

#include <algorithm>

#include "printer.h"

namespace tvm {
namespace tir {

void TIRPrinter::PrintShape(const Array<PrimExpr>& shape) {
  os_ << '(';
  PrintList(shape);
  os_ << (shape.size() == 1 ? ",)" : ")");
}

void TIRPrinter::PrintType(const Type& type) {
  if (const auto* scalar = type.as<PrimTypeNode>()) {
    os_ << "T." << scalar->dtype;
  } else if (const auto* pointer = type.as<PointerTypeNode>()) {
    os_ << "T.handle(";
    if (const auto* element = pointer->element_type.as<PrimTypeNode>()) {
      os_ << '"' << element->dtype << '"';
    } else {
      PrintType(pointer->element_type);
    }
    if (!pointer->storage_scope.empty()) {
      os_ << ", ";
      PrintScriptText(os_, pointer->storage_scope);
    }
    os_ << ')';
  } else if (const auto* tuple = type.as<TupleTypeNode>()) {
    if (tuple->fields.empty()) {
      os_ << "None";
      return;
    }
    os_ << "T.Tuple(";
    for (size_t i = 0; i < tuple->fields.size(); ++i) {
      os_ << (i == 0 ? "" : ", ");
      PrintType(tuple->fields[i]);
    }
    os_ << ')';
  } else {
    PrintScriptValue(os_, type, false);
  }
}

void TIRPrinter::PrintVarType(const VarNode* var, bool call) {
  if (const auto* size = dynamic_cast<const SizeVarNode*>(var)) {
    os_ << "T." << var->dtype << "(is_size_var=True";
    if (size->kind != SizeVarKind::kOther) os_ << ", kind=" << static_cast<int>(size->kind);
    os_ << ')';
    return;
  }
  PrintType(var->type_annotation);
  if (call && IsPlainVar(var)) os_ << "()";
}

void TIRPrinter::PrintBufferArguments(const BufferNode* buffer, bool always_dtype) {
  PrintShape(buffer->shape);
  if (always_dtype || buffer->dtype != ScriptScope::Style().buffer_dtype)
    os_ << ", \"" << buffer->dtype << '"';
  bool owns_data = true;
  if (script_ != nullptr) {
    auto owner = script_->owner.find(buffer->data.get());
    owns_data = owner != script_->owner.end() && owner->second == buffer;
    if (!owns_data) os_ << ", data=" << NameOf(buffer->data.get());
  }
  if (!buffer->strides.empty()) {
    os_ << ", strides=";
    PrintShape(buffer->strides);
  }
  bool at_start = is_zero(buffer->elem_offset) &&
                  buffer->elem_offset.dtype() == GetRef<Buffer>(buffer).IndexDType();
  if (!at_start) {
    os_ << ", elem_offset=";
    PrintAt(buffer->elem_offset, 0);
  }
  String scope = GetRef<Buffer>(buffer).scope();
  if (owns_data && scope != "global") {
    os_ << ", scope=";
    PrintScriptText(os_, scope);
  }
  if (buffer->data_alignment != kAllocationAlignment) os_ << ", align=" << buffer->data_alignment;
  if (buffer->offset_factor != 1) os_ << ", offset_factor=" << buffer->offset_factor;
  if (!buffer->axis_separators.empty()) {
    os_ << ", axis_separators=[";
    for (size_t i = 0; i < buffer->axis_separators.size(); ++i) {
      os_ << (i == 0 ? "" : ", ") << buffer->axis_separators[i]->value;
    }
    os_ << ']';
  }
}

void TIRPrinter::Print(const BufferNode* buffer) {
  if (script_ == nullptr && ScriptScope::TakeWhole()) {
    NameOf(buffer);
    Declare(named_.front());
    os_ << NameOf(buffer);
    return;
  }
  ScriptMark mark(os_, buffer);
  os_ << NameOf(buffer) << ": T.Buffer(";
  PrintBufferArguments(buffer, true);
  os_ << ')';
}

void TIRPrinter::ShowAllocation(const AllocateNode* op) {
  const VarNode* data = op->buffer_var.get();
  const auto* pointer = data->type_annotation.as<PointerTypeNode>();
  const auto* element = pointer == nullptr ? nullptr : pointer->element_type.as<PrimTypeNode>();
  DataType usual = op->dtype.is_bool() ? DataType::Int(8) : op->dtype;
  if (element == nullptr || element->dtype != usual) {
    os_ << ", type=";
    PrintVarType(data, true);
  }
  Show(data);
  // Loads and stores through the view of the same type and extents read as if from the memory.
  auto& waiting = script_->waiting;
  for (const BufferNode* view : script_->by_data[data]) {
    // What a statement declares is printed there.
    if (std::find(waiting.begin(), waiting.end(), view) == waiting.end()) continue;
    bool plain = view->dtype == op->dtype && view->strides.empty() && is_zero(view->elem_offset) &&
                 view->data_alignment == kAllocationAlignment && view->offset_factor == 1 &&
                 view->elem_offset.dtype() == GetRef<Buffer>(view).IndexDType() &&
                 StructuralEqual()(view->shape, op->extents);
    if (!plain) continue;
    names_[view] = NameOf(data);
    ShowBuffer(view);
    waiting.erase(std::remove(waiting.begin(), waiting.end(), view), waiting.end());
    return;
  }
}

bool TIRPrinter::HasSugar(const PrimFuncNode* func, const Var& param, const Buffer& buffer) const {
  auto constant = [](const Array<PrimExpr>& values) {
    return std::all_of(values.begin(), values.end(),
                       [](const PrimExpr& e) { return e->IsInstance<IntImmNode>(); });
  };
  auto owner = script_->owner.find(buffer->data.get());
  return ScriptScope::Style().sugar && param->type_annotation->IsInstance<PrimTypeNode>() &&
         script_->used.count(param.get()) == 0 && owner != script_->owner.end() &&
         owner->second == buffer.get() && constant(buffer->shape) && constant(buffer->strides) &&
         buffer->elem_offset->IsInstance<IntImmNode>();
}

void TIRPrinter::PrintFreeVariables() {
  // Parameters print as what is free in them, so that the text is a function of its own.
  std::vector<const VarNode*> vars = script_->free;
  if (!vars.empty()) {
    for (size_t i = 0; i < vars.size(); ++i) os_ << (i == 0 ? "" : ", ") << NameOf(vars[i]);
    os_ << " = ";
    for (size_t i = 0; i < vars.size(); ++i) {
      os_ << (i == 0 ? "" : ", ");
      PrintVarType(vars[i], true);
      Show(vars[i]);
    }
    NewLine();
  }
  for (const IterVarNode* axis : script_->shared_axes) {
    os_ << NameOf(axis->var.get()) << " = T.env_thread(";
    PrintScriptText(os_, axis->thread_tag);
    if (axis->var->dtype != DataType::Int(32)) os_ << ", \"" << axis->var->dtype << '"';
    os_ << ')';
    Show(axis->var.get());
    NewLine();
  }
}

void TIRPrinter::PrintReadyBuffers() {
  if (script_ == nullptr) return;
  // One view may be what another one waits for.
  for (bool again = true; again;) {
    again = false;
    for (size_t i = 0; i < script_->waiting.size(); ++i) {
      const BufferNode* view = script_->waiting[i];
      if (!script_->IsReady(view)) continue;
      os_ << NameOf(view) << " = T.Buffer(";
      PrintBufferArguments(view, false);
      os_ << ')';
      NewLine();
      ShowBuffer(view);
      script_->waiting.erase(script_->waiting.begin() + static_cast<int64_t>(i));
      again = true;
      break;
    }
  }
}

void TIRPrinter::PrintSignature(const PrimFuncNode* func, const std::string& name) {
  os_ << "def " << PythonName(name) << '(';
  for (size_t i = 0; i < func->params.size(); ++i) {
    if (i != 0) os_ << ", ";
    const Var& param = func->params[i];
    Optional<Buffer> buffer = func->buffer_map.Get(param);
    if (buffer && HasSugar(func, param, buffer.value())) {
      Print(buffer.get());
    } else {
      if (buffer && param->name_hint == buffer.value()->name) {
        Fresh(param.get(), "var_" + param->name_hint.str());
      }
      os_ << NameOf(param.get()) << ": ";
      PrintVarType(param.get(), false);
    }
    Show(param.get());
  }
  os_ << ')';
  if (!IsVoidType(func->ret_type)) {
    os_ << " -> ";
    PrintType(func->ret_type);
  }
  os_ << ':';
}

void TIRPrinter::FindRoot(const PrimFuncNode* func) {
  bool has_blocks = false;
  PostOrderVisit(func->body, [&](const ObjectRef& node) {
    has_blocks = has_blocks || (node->IsInstance<BlockNode>() && !node.same_as(RootOf(func)));
  });
  const BlockNode* root = RootOf(func).get();
  if (root == nullptr) {
    // A block of the whole function that takes no values is a root, whatever its name.
    const auto* whole = func->body.as<BlockRealizeNode>();
    lacks_root_ = has_blocks && (whole == nullptr || !whole->iter_values.empty());
    return;
  }
  // A root is understood where there is something for it to hold; else it is written out.
  const auto* inner = root->body.as<BlockRealizeNode>();
  bool nested = inner != nullptr && inner->iter_values.empty();
  if ((has_blocks || !root->alloc_buffers.empty()) && !nested) root_ = root;
}

void TIRPrinter::Print(const PrimFuncNode* func) {
  ScriptScope scope;
  // A function declares what it names by itself, and its parts are none.
  ScriptScope::TakeWhole();
  ScriptMark mark(os_, func);
  script_ = std::make_unique<ScriptNames>(func);
  FindRoot(func);
  auto symbol = func->GetAttr<String>(attr::kGlobalSymbol);
  std::string name = scope.function_name();
  if (name.empty()) name = symbol ? std::string(symbol.value()) : ScriptScope::Style().name;
  if (name.empty()) name = "main";
  scope.function_name().clear();
  std::string options;
  if (!symbol) options += ", private=True";
  if (lacks_root_) options += ", implicit_root=False";
  if (PythonName(name) != name) options += ", name=\"" + name + "\"";
  os_ << "@T.prim_func";
  if (!options.empty()) os_ << '(' << options.substr(2) << ')';
  NewLine();
  PrintSignature(func, name);
  indent_ += 4;
  NewLine();
  // The name says the symbol where they are the same.
  const bool named = symbol && std::string(symbol.value()) == name;
  if (func->attrs.defined() && func->attrs->dict.size() > (named ? 1 : 0)) {
    os_ << "T.func_attr({";
    bool first = true;
    for (const auto& [key, value] : func->attrs->dict) {
      if (named && key == attr::kGlobalSymbol) continue;
      os_ << (first ? "" : ", ");
      PrintScriptText(os_, key);
      os_ << ": ";
      PrintValue(value, false);
      first = false;
    }
    os_ << "})";
    NewLine();
  }
  PrintFreeVariables();
  for (const Var& param : func->params) {
    Optional<Buffer> buffer = func->buffer_map.Get(param);
    if (buffer && !HasSugar(func, param, buffer.value())) {
      {
        ScriptMark of_buffer(os_, buffer.get());
        os_ << NameOf(buffer.get()) << " = T.match_buffer(" << NameOf(param.get()) << ", ";
        PrintBufferArguments(buffer.get(), false);
        os_ << ')';
      }
      NewLine();
    }
    if (buffer) ShowBuffer(buffer.get());
  }
  PrintReadyBuffers();
  VisitStmt(func->body);
  indent_ -= 4;
  scope.PrintFooter(os_);
}

}  // namespace tir
}  // namespace tvm
