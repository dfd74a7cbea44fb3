/*!
 * \file src/tir/ir/printer.cc
 * \brief Text of statements, and the names in all texts.
 */
#include "printer.h"

#include <tvm/expr/op.h>
#include <tvm/ir/script_printer.h>
#include <tvm/ir/type_repr.h>
#include <tvm/node/repr_printer.h>
#include <tvm/node/structural_equal.h>
#include <tvm/tir/analysis.h>

#include <algorithm>
#include <cstring>
#include <sstream>

namespace tvm {
namespace tir {

std::string TIRPrinter::Fresh(const Object* key, const std::string& hint) {
  auto it = names_.find(key);
  if (it != names_.end()) return it->second;
  std::string base = script_ != nullptr ? PythonName(hint) : hint.empty() ? "v" : hint;
  base = ScriptScope::Addressed(base, key);
  std::string name = base;
  for (int i = 1; !taken_.insert(name).second; ++i) name = base + "_" + std::to_string(i);
  names_.emplace(key, name);
  named_.push_back(key);
  return name;
}

std::string TIRPrinter::NameOf(const VarNode* var) {
  if (script_ != nullptr) {
    auto it = script_->owner.find(var);
    if (it != script_->owner.end()) return NameOf(it->second) + ".data";
  }
  return Fresh(var, var->name_hint);
}

std::string TIRPrinter::NameOf(const BufferNode* buffer) {
  if (script_ != nullptr) {
    buffer = script_->Representative(buffer);
    return Fresh(buffer, buffer->name);
  }
  // The flat view of an allocation is read as the allocation itself.
  const bool is_flat = buffer->data.defined() && buffer->data->name_hint == buffer->name;
  const Object* key = is_flat ? static_cast<const Object*>(buffer->data.get()) : buffer;
  buffers_.emplace(key, buffer);
  return Fresh(key, buffer->name);
}

bool TIRPrinter::IsCompact() const { return script_ == nullptr && ScriptScope::Style().compact; }

bool TIRPrinter::IsFull() const {
  return script_ != nullptr || (ScriptScope::IsOpen() && !IsCompact());
}

void TIRPrinter::Show(const VarNode* var) {
  introduced_.insert(var);
  if (script_ != nullptr) script_->visible.insert(var);
}

void TIRPrinter::ShowBuffer(const BufferNode* buffer) {
  introduced_.insert(buffer);
  if (script_ != nullptr) script_->visible.insert(buffer);
}

void TIRPrinter::NewLine() {
  os_ << '\n';
  for (int i = 0; i < indent_; ++i) os_ << ' ';
}

// ---- statements -----------------------------------------------------------------------------

void TIRPrinter::Print(const Stmt& stmt) {
  if (!stmt.defined()) {
    os_ << "None";
    return;
  }
  PrintPart(true, [&](TIRPrinter* printer) { printer->VisitStmt(stmt); });
}

void TIRPrinter::Print(const PrimExpr& expr) {
  PrintPart(false, [&](TIRPrinter* printer) { printer->PrintAt(expr, 0); });
}

void TIRPrinter::PrintPart(bool is_statement, const std::function<void(TIRPrinter*)>& print) {
  if (!ScriptScope::TakeWhole(is_statement)) {
    print(this);
    return;
  }
  // What the part names is known once it is printed.
  std::ostringstream text;
  TIRPrinter part(text, indent_);
  part.tail_ = false;
  print(&part);
  const std::string body = text.str();
  text.str("");
  const std::vector<const Object*> named = part.named_;
  for (const Object* name : named) part.Declare(name);
  os_ << text.str() << body;
}

void TIRPrinter::Declare(const Object* named) {
  auto as_buffer = buffers_.find(named);
  if (as_buffer == buffers_.end()) {
    if (!introduced_.insert(named).second) return;
    const auto* var = static_cast<const VarNode*>(named);
    os_ << NameOf(var) << " = ";
    PrintVarType(var, true);
    NewLine();
    return;
  }
  const BufferNode* buffer = as_buffer->second;
  if (introduced_.count(buffer->data.get()) != 0 || !introduced_.insert(buffer).second) return;
  for (const Array<PrimExpr>& parts :
       {buffer->shape, buffer->strides, Array<PrimExpr>{buffer->elem_offset}}) {
    for (const PrimExpr& part : parts) {
      for (const Var& var : UndefinedVars(part)) Declare(var.get());
    }
  }
  os_ << NameOf(buffer) << " = T.Buffer(";
  PrintBufferArguments(buffer, false);
  os_ << ')';
  NewLine();
}

void TIRPrinter::Print(const RangeNode* range) {
  PrintPart(false, [&](TIRPrinter* printer) { printer->PrintRange(range); });
}

void TIRPrinter::PrintRange(const RangeNode* range) {
  os_ << "T.Range(";
  PrintInterval(range->min, range->extent, ", ");
  os_ << ')';
}

void TIRPrinter::PrintBody(const Stmt& body) {
  bool outer = tail_;
  tail_ = true;
  indent_ += 4;
  NewLine();
  PrintReadyBuffers();
  VisitStmt(body);
  indent_ -= 4;
  tail_ = outer;
}

template <typename FLine, typename FWith>
void TIRPrinter::PrintScope(FLine line, FWith with, const Stmt& body) {
  if (tail_) {
    line();
    NewLine();
    PrintReadyBuffers();
    VisitStmt(body);
  } else {
    os_ << "with ";
    with();
    os_ << ':';
    PrintBody(body);
  }
}

void TIRPrinter::PrintValue(const Any& value, bool objects) {
  const auto* expr = value.as<PrimExprNode>();
  bool literal = expr == nullptr || expr->IsInstance<IntImmNode>() ||
                 expr->IsInstance<FloatImmNode>() || expr->IsInstance<StringImmNode>();
  if (literal) {
    PrintScriptValue(os_, value, objects);
  } else {
    PrintAt(GetRef<PrimExpr>(expr), 0);
  }
}

void TIRPrinter::VisitStmt_(const LetStmtNode* op) {
  const VarNode* var = op->var.get();
  PrintScope(
      [&] {
        os_ << NameOf(var) << ": ";
        PrintVarType(var, false);
        os_ << " = ";
        PrintAt(op->value, 0);
        Show(var);
      },
      [&] {
        os_ << "T.LetStmt(";
        PrintAt(op->value, 0);
        if (!IsPlainVar(var) || op->value.dtype() != var->dtype) {
          os_ << ", ";
          PrintVarType(var, true);
        }
        os_ << ") as " << NameOf(var);
        Show(var);
      },
      op->body);
}

void TIRPrinter::PrintAttrNode(const ObjectRef& node) {
  if (const auto* buffer = node.as<BufferNode>()) {
    os_ << NameOf(buffer);
  } else if (const auto* iv = node.as<IterVarNode>()) {
    Print(iv);
  } else if (const auto* combiner = node.as<CommReducerNode>()) {
    Print(combiner);
  } else if (const auto* expr = node.as<PrimExprNode>()) {
    PrintAt(GetRef<PrimExpr>(expr), 0);
  } else if (!node.defined()) {
    os_ << "None";
  } else if (const auto* items = node.as<ArrayNode>(); items != nullptr && script_ != nullptr) {
    os_ << '[';
    for (size_t i = 0; i < items->size(); ++i) {
      os_ << (i == 0 ? "" : ", ");
      PrintAttrNode(items->at(i).cast<ObjectRef>());
    }
    os_ << ']';
  } else if (node->GetTypeKey() == "Target" && IsFull()) {
    PrintScriptValue(os_, Any(node), false);
  } else {
    ReprPrinter(os_).Print(node);
  }
}

bool TIRPrinter::IsLaunch(const AttrStmtNode* op) const {
  const auto* iv = op->node.as<IterVarNode>();
  if (script_ == nullptr || iv == nullptr || iv->dom.defined() || iv->iter_type != kThreadIndex ||
      iv->var->dtype != op->value.dtype() || !IsPlainVar(iv->var.get())) {
    return false;
  }
  bool is_virtual = iv->thread_tag.str().rfind("vthread", 0) == 0;
  return op->attr_key == (is_virtual ? attr::virtual_thread : attr::thread_extent);
}

void TIRPrinter::PrintLaunch(const AttrStmtNode* op) {
  const auto* iv = op->node.as<IterVarNode>();
  os_ << "T.launch_thread(";
  if (script_->shared_threads.count(iv->var.get()) != 0) {
    os_ << NameOf(iv->var.get());
  } else {
    PrintScriptText(os_, iv->thread_tag);
  }
  os_ << ", ";
  PrintAt(op->value, 0);
  os_ << ')';
  Show(iv->var.get());
}

void TIRPrinter::VisitStmt_(const AttrStmtNode* op) {
  if (IsLaunch(op)) {
    const VarNode* var = op->node.as<IterVarNode>()->var.get();
    bool introduces = script_->shared_threads.count(var) == 0;
    PrintScope(
        [&] {
          if (introduces) os_ << NameOf(var) << " = ";
          PrintLaunch(op);
        },
        [&] {
          PrintLaunch(op);
          if (introduces) os_ << " as " << NameOf(var);
        },
        op->body);
    return;
  }
  auto line = [&] {
    os_ << "T.attr(";
    PrintAttrNode(op->node);
    os_ << ", ";
    PrintScriptText(os_, op->attr_key);
    os_ << ", ";
    PrintAt(op->value, 0);
    os_ << ')';
  };
  PrintScope(line, line, op->body);
}

void TIRPrinter::VisitStmt_(const AssertStmtNode* op) {
  PrintScope(
      [&] {
        os_ << "assert ";
        PrintAt(op->condition, 0);
        os_ << ", ";
        PrintAt(op->message, 0);
      },
      [&] {
        os_ << "T.Assert(";
        PrintAt(op->condition, 0);
        os_ << ", ";
        PrintAt(op->message, 0);
        os_ << ')';
      },
      op->body);
}

void TIRPrinter::VisitStmt_(const BufferStoreNode* op) {
  os_ << NameOf(op->buffer.get());
  PrintIndices(op->indices);
  os_ << " = ";
  PrintAt(op->value, 0);
}

void TIRPrinter::VisitStmt_(const BufferRealizeNode* op) {
  auto line = [&] {
    os_ << "T.realize(" << NameOf(op->buffer.get());
    PrintBounds(op->bounds);
    os_ << ", \"" << op->buffer.scope() << '"';
    if (!is_one(op->condition)) {
      os_ << ", condition=";
      PrintAt(op->condition, 0);
    }
    os_ << ')';
  };
  PrintScope(line, line, op->body);
}

void TIRPrinter::VisitStmt_(const ProducerStoreNode* op) {
  os_ << op->producer->GetNameHint();
  PrintIndices(op->indices);
  os_ << " = ";
  PrintAt(op->value, 0);
}

void TIRPrinter::VisitStmt_(const ProducerRealizeNode* op) {
  auto line = [&] {
    os_ << "T.ProducerRealize(" << op->producer->GetNameHint();
    PrintBounds(op->bounds);
    os_ << ", ";
    PrintAt(op->condition, 0);
    if (!op->storage_scope.empty()) {
      os_ << ", ";
      PrintScriptText(os_, op->storage_scope);
    }
    os_ << ')';
  };
  PrintScope(line, line, op->body);
}

void TIRPrinter::VisitStmt_(const AllocateNode* op) {
  const VarNode* data = op->buffer_var.get();
  auto call = [&] {
    os_ << "T.allocate([";
    PrintList(op->extents);
    os_ << "], \"" << op->dtype << '"';
    const auto* pointer = data->type_annotation.as<PointerTypeNode>();
    os_ << ", ";
    const bool is_global = pointer == nullptr || pointer->storage_scope.empty();
    PrintScriptText(os_, is_global ? "global" : pointer->storage_scope);
    if (!is_one(op->condition)) {
      os_ << ", condition=";
      PrintAt(op->condition, 0);
    }
    if (script_ != nullptr && !op->annotations.empty()) {
      os_ << ", annotations=";
      PrintAnnotations(op->annotations);
    }
    if (script_ != nullptr) {
      ShowAllocation(op);
    } else {
      Show(data);
    }
    os_ << ')';
  };
  PrintScope(
      [&] {
        os_ << NameOf(data) << " = ";
        call();
      },
      [&] {
        call();
        os_ << " as " << NameOf(data);
      },
      op->body);
}

void TIRPrinter::PrintTensor(const runtime::NDArray& tensor) {
  constexpr int64_t kMaxElements = 200;
  int64_t elements = 1;
  for (int64_t extent : tensor.Shape()) elements *= extent;
  const DataType dtype = tensor.dtype();
  const bool readable = dtype == DataType::Float(32) || dtype == DataType::Float(64) ||
                        dtype.is_int() || dtype.is_uint();
  if (elements > kMaxElements || !readable || dtype.bits() < 8) {
    PrintValue(Any(tensor), true);
    return;
  }
  runtime::NDArray host = tensor.CopyTo(Device{kDLCPU, 0});
  const auto* bytes = static_cast<const char*>(host.data());
  os_ << '[';
  for (int64_t i = 0; i < elements; ++i) {
    const char* at = bytes + i * dtype.bytes();
    os_ << (i == 0 ? "" : ", ");
    if (dtype.is_float()) {
      float single;
      double value;
      std::memcpy(&single, at, sizeof single);
      if (dtype.bits() == 64) std::memcpy(&value, at, sizeof value);
      PrintValue(Any(FloatImm(DataType::Float(32), dtype.bits() == 64 ? value : single)), true);
    } else {
      int64_t value = 0;
      std::memcpy(&value, at, dtype.bytes());
      // Little endian, so that the low bytes are in place; the sign is carried to the others.
      const int spare = 64 - dtype.bits();
      if (dtype.is_int())
        value = static_cast<int64_t>(static_cast<uint64_t>(value) << spare) >> spare;
      os_ << value;
    }
  }
  os_ << ']';
}

void TIRPrinter::VisitStmt_(const AllocateConstNode* op) {
  const VarNode* data = op->buffer_var.get();
  auto call = [&] {
    os_ << "T.allocate_const(";
    if (op->data.defined()) {
      PrintTensor(op->data.value());
    } else {
      os_ << "None";
    }
    os_ << ", \"" << op->dtype << "\", [";
    PrintList(op->extents);
    os_ << ']';
    if (op->irmod_storage_idx.defined()) {
      os_ << ", irmod_storage_idx=" << op->irmod_storage_idx.value()->value;
    }
    if (script_ != nullptr && !op->annotations.empty()) {
      os_ << ", annotations=";
      PrintAnnotations(op->annotations);
    }
    os_ << ')';
    Show(data);
  };
  PrintScope(
      [&] {
        os_ << NameOf(data) << " = ";
        call();
      },
      [&] {
        call();
        os_ << " as " << NameOf(data);
      },
      op->body);
}

void TIRPrinter::VisitStmt_(const DeclBufferNode* op) {
  const BufferNode* buffer = op->buffer.get();
  auto call = [&] {
    os_ << "T.decl_buffer(";
    PrintBufferArguments(buffer, false);
    os_ << ')';
    ShowBuffer(buffer);
  };
  PrintScope(
      [&] {
        os_ << NameOf(buffer) << " = ";
        call();
      },
      [&] {
        call();
        os_ << " as " << NameOf(buffer);
      },
      op->body);
}

void TIRPrinter::VisitStmt_(const SeqStmtNode* op) {
  bool outer = tail_;
  for (size_t i = 0; i < op->seq.size(); ++i) {
    if (i != 0) NewLine();
    tail_ = outer && i + 1 == op->seq.size();
    VisitStmt(op->seq[i]);
  }
  tail_ = outer;
}

void TIRPrinter::VisitStmt_(const IfThenElseNode* op) {
  os_ << "if ";
  for (const IfThenElseNode* branch = op;;) {
    PrintAt(branch->condition, 0);
    os_ << ':';
    PrintBody(branch->then_case);
    if (!branch->else_case.defined()) return;
    NewLine();
    const auto* next = branch->else_case.as<IfThenElseNode>();
    if (next == nullptr) {
      os_ << "else:";
      PrintBody(branch->else_case);
      return;
    }
    os_ << "elif ";
    branch = next;
  }
}

void TIRPrinter::VisitStmt_(const EvaluateNode* op) {
  os_ << "T.evaluate(";
  PrintAt(op->value, 0);
  os_ << ')';
}

void TIRPrinter::PrintAnnotations(const Map<String, ObjectRef>& annotations) {
  os_ << '{';
  bool first = true;
  for (const auto& [key, value] : annotations) {
    os_ << (first ? "" : ", ");
    PrintScriptText(os_, key);
    os_ << ": ";
    PrintValue(value, true);
    first = false;
  }
  os_ << '}';
}

void TIRPrinter::PrintForHeader(const ForNode* op) {
  // Bounds first: they are read outside the scope of the loop variable.
  os_ << "for " << NameOf(op->loop_var.get()) << " in ";
  if (op->kind == ForKind::kSerial) {
    os_ << "range(";
  } else {
    os_ << "T." << ForKindToString(op->kind) << '(';
  }
  if (is_zero(op->min)) {
    PrintAt(op->extent, 0);
  } else {
    PrintInterval(op->min, op->extent, ", ");
  }
  if (op->thread_binding.defined()) {
    const IterVar& thread = op->thread_binding.value();
    bool usual = !thread->dom.defined() && thread->iter_type == kThreadIndex &&
                 thread->var->dtype == op->loop_var->dtype && IsPlainVar(thread->var.get()) &&
                 (script_ == nullptr || script_->shared_threads.count(thread->var.get()) == 0);
    os_ << ", thread=";
    if (usual || script_ == nullptr) {
      PrintScriptText(os_, thread->thread_tag);
    } else {
      PrintThread(thread.get());
    }
  }
  if (!op->annotations.empty()) {
    os_ << ", annotations=";
    PrintAnnotations(op->annotations);
  }
  os_ << "):";
}

void TIRPrinter::VisitStmt_(const ForNode* op) {
  std::vector<const ForNode*> nest = LoopsOfBlock(op);
  if (nest.size() < 2) {
    nest = {op};
    PrintForHeader(op);
  } else {
    os_ << "for ";
    for (const ForNode* loop : nest) {
      os_ << (loop == op ? "" : ", ") << NameOf(loop->loop_var.get());
    }
    os_ << " in T.grid(";
    for (const ForNode* loop : nest) {
      os_ << (loop == op ? "" : ", ");
      PrintAt(loop->extent, 0);
    }
    os_ << "):";
  }
  for (const ForNode* loop : nest) {
    loops_[loop->loop_var.get()] = loop;
    Show(loop->loop_var.get());
  }
  PrintBody(nest.back()->body);
}

void TIRPrinter::VisitStmt_(const WhileNode* op) {
  os_ << "while ";
  PrintAt(op->condition, 0);
  os_ << ':';
  PrintBody(op->body);
}

void TIRPrinter::VisitStmt_(const PrefetchNode* op) {
  os_ << "T.prefetch(" << NameOf(op->buffer.get()) << ", [";
  for (size_t i = 0; i < op->bounds.size(); ++i) {
    os_ << (i == 0 ? "" : ", ");
    PrintRange(op->bounds[i].get());
  }
  os_ << "])";
}

// ---- registration ---------------------------------------------------------------------------

#define TVM_TIR_REGISTER_REPR(Name)                                          \
  TVM_REGISTER_REPR(Name##Node, [](const Name##Node* node, ReprPrinter* p) { \
    TIRPrinter(p->stream, p->indent).Print(GetRef<Name>(node));              \
  });
TVM_TIR_FOR_EACH_STMT(TVM_TIR_REGISTER_REPR)
#undef TVM_TIR_REGISTER_REPR

// One printer for all expressions; the literals of tvm/ir have their own.
TVM_REGISTER_REPR(PrimExprNode, [](const PrimExprNode* node, ReprPrinter* p) {
  TIRPrinter(p->stream).Print(GetRef<PrimExpr>(node));
});
TVM_REGISTER_REPR(PrimFuncNode, [](const PrimFuncNode* node, ReprPrinter* p) {
  TIRPrinter(p->stream, p->indent).Print(node);
});
TVM_REGISTER_REPR(BufferNode, [](const BufferNode* node, ReprPrinter* p) {
  TIRPrinter(p->stream).Print(node);
});
TVM_REGISTER_REPR(RangeNode,
                  [](const RangeNode* node, ReprPrinter* p) { TIRPrinter(p->stream).Print(node); });
// The types of tensor programs; those of graphs are written by their fields.
TVM_REGISTER_REPR(PrimTypeNode, [](const PrimTypeNode* node, ReprPrinter* p) {
  TIRPrinter(p->stream).Print(GetRef<Type>(node));
});
TVM_REGISTER_REPR(PointerTypeNode, [](const PointerTypeNode* node, ReprPrinter* p) {
  TIRPrinter(p->stream).Print(GetRef<Type>(node));
});
TVM_REGISTER_REPR(TupleTypeNode, [](const TupleTypeNode* node, ReprPrinter* p) {
  if (ScriptScope::IsOpen() || node->fields.empty()) {
    TIRPrinter(p->stream).Print(GetRef<Type>(node));
    return;
  }
  p->stream << "T.Tuple(";
  for (size_t i = 0; i < node->fields.size(); ++i) {
    if (i != 0) p->stream << ", ";
    PrintInnerType(node->fields[static_cast<int64_t>(i)], p);
  }
  p->stream << ')';
});
TVM_REGISTER_REPR(IterVarNode, [](const IterVarNode* node, ReprPrinter* p) {
  TIRPrinter(p->stream).Print(node);
});
TVM_REGISTER_REPR(CommReducerNode, [](const CommReducerNode* node, ReprPrinter* p) {
  TIRPrinter(p->stream).Print(node);
});

}  // namespace tir
}  // namespace tvm
