/*!
 * \file src/tir/ir/printer.cc
 * \brief Text of expressions, statements and functions.
 */
#include "printer.h"

#include <tvm/node/repr_printer.h>
#include <tvm/tir/builtin.h>
#include <tvm/tir/op.h>

#include <charconv>
#include <cmath>
#include <string_view>

namespace tvm {
namespace tir {

std::string TIRPrinter::Fresh(const Object* key, const std::string& hint) {
  auto it = names_.find(key);
  if (it != names_.end()) return it->second;
  std::string base = hint.empty() ? "v" : hint;
  std::string name = base;
  for (int i = 1; !taken_.insert(name).second; ++i) name = base + "_" + std::to_string(i);
  names_.emplace(key, name);
  return name;
}

std::string TIRPrinter::NameOf(const VarNode* var) { return Fresh(var, var->name_hint); }

std::string TIRPrinter::NameOf(const BufferNode* buffer) {
  // The flat view of an allocation is read as the allocation itself.
  if (buffer->data.defined() && buffer->data->name_hint == buffer->name) {
    return Fresh(buffer->data.get(), buffer->name);
  }
  return Fresh(buffer, buffer->name);
}

void TIRPrinter::NewLine() {
  os_ << '\n';
  for (int i = 0; i < indent_; ++i) os_ << ' ';
}

// ---- expressions ----------------------------------------------------------------------------

void TIRPrinter::PrintAt(const PrimExpr& expr, int level) {
  if (!expr.defined()) {
    os_ << "None";
    return;
  }
  int outer = level_;
  level_ = level;
  VisitExpr(expr);
  level_ = outer;
}

void TIRPrinter::PrintInfix(const PrimExpr& a, const char* op, const PrimExpr& b, int level) {
  bool parens = level_ > level;
  if (parens) os_ << '(';
  PrintAt(a, level);
  os_ << op;
  // Operators group to the left, and comparisons do not group at all.
  PrintAt(b, level + 1);
  if (parens) os_ << ')';
}

void TIRPrinter::PrintList(const Array<PrimExpr>& values) {
  for (size_t i = 0; i < values.size(); ++i) {
    if (i != 0) os_ << ", ";
    PrintAt(values[i], 0);
  }
}

void TIRPrinter::PrintCallLike(const char* name, std::initializer_list<PrimExpr> args) {
  os_ << name << '(';
  PrintList(Array<PrimExpr>(args));
  os_ << ')';
}

void TIRPrinter::PrintIndices(const Array<PrimExpr>& indices) {
  os_ << '[';
  PrintList(indices);
  // Python spells the index of a zero-dimensional buffer as an empty tuple.
  if (indices.empty()) os_ << "()";
  os_ << ']';
}

void TIRPrinter::PrintBounds(const Array<Range>& bounds) {
  os_ << '[';
  for (size_t i = 0; i < bounds.size(); ++i) {
    if (i != 0) os_ << ", ";
    PrintAt(bounds[i]->min, 0);
    os_ << ':';
    PrintAt(bounds[i]->min + bounds[i]->extent, 0);
  }
  os_ << ']';
}

namespace {
template <typename T>
std::string ShortestReal(T value) {
  char text[64];
  auto [end, error] = std::to_chars(text, text + sizeof(text), value);
  std::string out(text, end);
  if (out.find_first_of(".e") == std::string::npos) out += ".0";
  return out;
}
}  // namespace

void TIRPrinter::VisitExpr_(const IntImmNode* op) {
  if (op->dtype.is_bool()) {
    os_ << (op->value ? "True" : "False");
  } else if (op->dtype == DataType::Int(32)) {
    os_ << op->value;
  } else {
    os_ << "T." << op->dtype << '(' << op->value << ')';
  }
}

void TIRPrinter::VisitExpr_(const FloatImmNode* op) {
  if (!std::isfinite(op->value)) {
    const char* text = std::isnan(op->value) ? "nan" : op->value > 0 ? "inf" : "-inf";
    os_ << "T." << op->dtype << "(\"" << text << "\")";
  } else if (op->dtype == DataType::Float(32)) {
    os_ << ShortestReal(static_cast<float>(op->value));
  } else {
    os_ << "T." << op->dtype << '(' << ShortestReal(op->value) << ')';
  }
}

void TIRPrinter::VisitExpr_(const StringImmNode* op) {
  os_ << '"';
  for (char c : op->value.str()) {
    if (c == '\n') {
      os_ << "\\n";
      continue;
    }
    if (c == '"' || c == '\\') os_ << '\\';
    os_ << c;
  }
  os_ << '"';
}

void TIRPrinter::VisitExpr_(const VarNode* op) { os_ << NameOf(op); }
void TIRPrinter::VisitExpr_(const SizeVarNode* op) { os_ << NameOf(op); }

void TIRPrinter::VisitExpr_(const AddNode* op) { PrintInfix(op->a, " + ", op->b, kSum); }
void TIRPrinter::VisitExpr_(const SubNode* op) { PrintInfix(op->a, " - ", op->b, kSum); }
void TIRPrinter::VisitExpr_(const MulNode* op) { PrintInfix(op->a, "*", op->b, kProduct); }
void TIRPrinter::VisitExpr_(const FloorDivNode* op) { PrintInfix(op->a, "//", op->b, kProduct); }
void TIRPrinter::VisitExpr_(const FloorModNode* op) { PrintInfix(op->a, "%", op->b, kProduct); }
void TIRPrinter::VisitExpr_(const DivNode* op) {
  if (op->dtype.is_int() || op->dtype.is_uint()) {
    PrintCallLike("T.truncdiv", {op->a, op->b});
  } else {
    PrintInfix(op->a, "/", op->b, kProduct);
  }
}
void TIRPrinter::VisitExpr_(const ModNode* op) { PrintCallLike("T.truncmod", {op->a, op->b}); }
void TIRPrinter::VisitExpr_(const MinNode* op) { PrintCallLike("T.min", {op->a, op->b}); }
void TIRPrinter::VisitExpr_(const MaxNode* op) { PrintCallLike("T.max", {op->a, op->b}); }
void TIRPrinter::VisitExpr_(const EQNode* op) { PrintInfix(op->a, " == ", op->b, kCompare); }
void TIRPrinter::VisitExpr_(const NENode* op) { PrintInfix(op->a, " != ", op->b, kCompare); }
void TIRPrinter::VisitExpr_(const LTNode* op) { PrintInfix(op->a, " < ", op->b, kCompare); }
void TIRPrinter::VisitExpr_(const LENode* op) { PrintInfix(op->a, " <= ", op->b, kCompare); }
void TIRPrinter::VisitExpr_(const GTNode* op) { PrintInfix(op->a, " > ", op->b, kCompare); }
void TIRPrinter::VisitExpr_(const GENode* op) { PrintInfix(op->a, " >= ", op->b, kCompare); }
void TIRPrinter::VisitExpr_(const AndNode* op) { PrintInfix(op->a, " and ", op->b, kAnd); }
void TIRPrinter::VisitExpr_(const OrNode* op) { PrintInfix(op->a, " or ", op->b, kOr); }
void TIRPrinter::VisitExpr_(const NotNode* op) {
  bool parens = level_ > kNot;
  os_ << (parens ? "(not " : "not ");
  PrintAt(op->a, kNot);
  if (parens) os_ << ')';
}

void TIRPrinter::VisitExpr_(const CastNode* op) {
  os_ << "T.cast(";
  PrintAt(op->value, 0);
  os_ << ", \"" << op->dtype << "\")";
}
void TIRPrinter::VisitExpr_(const SelectNode* op) {
  PrintCallLike("T.Select", {op->condition, op->true_value, op->false_value});
}
void TIRPrinter::VisitExpr_(const BufferLoadNode* op) {
  os_ << NameOf(op->buffer.get());
  PrintIndices(op->indices);
}
void TIRPrinter::VisitExpr_(const ProducerLoadNode* op) {
  os_ << op->producer->GetNameHint();
  PrintIndices(op->indices);
}
void TIRPrinter::VisitExpr_(const RampNode* op) {
  os_ << "T.Ramp(";
  PrintAt(op->base, 0);
  os_ << ", ";
  PrintAt(op->stride, 0);
  os_ << ", " << op->lanes << ')';
}
void TIRPrinter::VisitExpr_(const BroadcastNode* op) {
  os_ << "T.Broadcast(";
  PrintAt(op->value, 0);
  os_ << ", " << op->lanes << ')';
}
void TIRPrinter::VisitExpr_(const LetNode* op) {
  os_ << "T.Let(" << NameOf(op->var.get()) << ", ";
  PrintAt(op->value, 0);
  os_ << ", ";
  PrintAt(op->body, 0);
  os_ << ')';
}
void TIRPrinter::VisitExpr_(const CallNode* op) {
  bool first = true;
  if (const auto* intrinsic = op->op.as<OpNode>()) {
    std::string_view name = intrinsic->name.str();
    constexpr std::string_view kPrefix = "tir.";
    if (name.substr(0, kPrefix.size()) == kPrefix) name.remove_prefix(kPrefix.size());
    os_ << "T." << name << '(';
    // The result type of these cannot be seen from the arguments.
    if (name.substr(0, 5) == "call_" || name == "reinterpret" || name == "tvm_struct_get" ||
        name == "tvm_call_packed" || name == "tvm_call_packed_lowered") {
      os_ << '"' << op->dtype << '"';
      first = false;
    }
  } else if (const auto* global = op->op.as<GlobalVarNode>()) {
    os_ << global->name_hint << '(';
  } else {
    os_ << op->op << '(';
  }
  for (const PrimExpr& arg : op->args) {
    if (!first) os_ << ", ";
    PrintAt(arg, 0);
    first = false;
  }
  os_ << ')';
}
void TIRPrinter::VisitExpr_(const ShuffleNode* op) {
  os_ << "T.Shuffle([";
  PrintList(op->vectors);
  os_ << "], [";
  PrintList(op->indices);
  os_ << "])";
}

namespace {
/*! \brief The name of a reduction by one of the four common operators, or null. */
const char* CommonReduction(const CommReducerNode* combiner) {
  if (combiner->result.size() != 1) return nullptr;
  const PrimExpr& result = combiner->result[0];
  auto is = [&](const auto* node) {
    return node != nullptr && node->a.same_as(combiner->lhs[0]) &&
           node->b.same_as(combiner->rhs[0]);
  };
  if (is(result.as<AddNode>())) return "T.sum(";
  if (is(result.as<MulNode>())) return "T.prod(";
  if (is(result.as<MaxNode>())) return "T.max(";
  if (is(result.as<MinNode>())) return "T.min(";
  return nullptr;
}
}  // namespace

void TIRPrinter::VisitExpr_(const ReduceNode* op) {
  if (const char* name = CommonReduction(op->combiner.get())) {
    os_ << name;
    PrintAt(op->source[0], 0);
  } else {
    os_ << "T.reduce(";
    Print(op->combiner.get());
    os_ << ", [";
    PrintList(op->source);
    os_ << "], value_index=" << op->value_index;
  }
  os_ << ", axis=[";
  for (size_t i = 0; i < op->axis.size(); ++i) {
    os_ << (i != 0 ? ", " : "") << NameOf(op->axis[i]->var.get());
  }
  os_ << ']';
  if (!is_one(op->condition)) {
    os_ << ", where=";
    PrintAt(op->condition, 0);
  }
  if (!op->init.empty()) {
    os_ << ", init=[";
    PrintList(op->init);
    os_ << ']';
  }
  os_ << ')';
}

void TIRPrinter::Print(const CommReducerNode* combiner) {
  os_ << "comm_reducer(lambda ";
  for (size_t i = 0; i < combiner->lhs.size(); ++i) os_ << NameOf(combiner->lhs[i].get()) << ", ";
  for (size_t i = 0; i < combiner->rhs.size(); ++i) {
    os_ << (i != 0 ? ", " : "") << NameOf(combiner->rhs[i].get());
  }
  os_ << ": [";
  PrintList(combiner->result);
  os_ << "], [";
  PrintList(combiner->identity_element);
  os_ << "])";
}

void TIRPrinter::Print(const IterVarNode* iv) {
  os_ << "iter_var(" << NameOf(iv->var.get());
  if (iv->dom.defined()) {
    os_ << ", [";
    PrintAt(iv->dom->min, 0);
    os_ << ", ";
    PrintAt(iv->dom->min + iv->dom->extent, 0);
    os_ << ')';
  }
  if (iv->iter_type != kDataPar) os_ << ", " << IterVarTypeToString(iv->iter_type);
  if (!iv->thread_tag.empty()) os_ << ", " << iv->thread_tag;
  os_ << ')';
}

// ---- statements -----------------------------------------------------------------------------

void TIRPrinter::Print(const Stmt& stmt) {
  if (!stmt.defined()) {
    os_ << "None";
    return;
  }
  VisitStmt(stmt);
}

void TIRPrinter::PrintBody(const Stmt& body) {
  bool outer = tail_;
  tail_ = true;
  indent_ += 4;
  NewLine();
  VisitStmt(body);
  indent_ -= 4;
  tail_ = outer;
}

template <typename FLine, typename FWith>
void TIRPrinter::PrintScope(FLine line, FWith with, const Stmt& body) {
  if (tail_) {
    line();
    NewLine();
    VisitStmt(body);
  } else {
    os_ << "with ";
    with();
    os_ << ':';
    PrintBody(body);
  }
}

void TIRPrinter::PrintAny(const Any& value) {
  if (const auto* expr = value.as<PrimExprNode>()) {
    PrintAt(GetRef<PrimExpr>(expr), 0);
  } else {
    ReprPrinter(os_).Print(value);
  }
}

void TIRPrinter::PrintShape(const Array<PrimExpr>& shape) {
  os_ << '(';
  PrintList(shape);
  os_ << (shape.size() == 1 ? ",)" : ")");
}

void TIRPrinter::PrintBufferType(const BufferNode* buffer) {
  os_ << "T.Buffer(";
  PrintShape(buffer->shape);
  os_ << ", \"" << buffer->dtype << '"';
  if (!buffer->strides.empty()) {
    os_ << ", strides=";
    PrintShape(buffer->strides);
  }
  if (buffer->elem_offset.defined() && !is_zero(buffer->elem_offset)) {
    os_ << ", elem_offset=";
    PrintAt(buffer->elem_offset, 0);
  }
  String scope = GetRef<Buffer>(buffer).scope();
  if (scope != "global") os_ << ", scope=\"" << scope << '"';
  os_ << ')';
}

void TIRPrinter::Print(const BufferNode* buffer) {
  os_ << NameOf(buffer) << ": ";
  PrintBufferType(buffer);
}

void TIRPrinter::VisitStmt_(const LetStmtNode* op) {
  PrintScope(
      [&] {
        os_ << NameOf(op->var.get()) << ": T." << op->var->dtype << " = ";
        PrintAt(op->value, 0);
      },
      [&] {
        os_ << "T.let(" << NameOf(op->var.get()) << ", ";
        PrintAt(op->value, 0);
        os_ << ')';
      },
      op->body);
}

void TIRPrinter::VisitStmt_(const AttrStmtNode* op) {
  auto line = [&] {
    os_ << "T.attr(";
    if (const auto* buffer = op->node.as<BufferNode>()) {
      os_ << NameOf(buffer);
    } else if (const auto* iv = op->node.as<IterVarNode>()) {
      Print(iv);
    } else if (const auto* expr = op->node.as<PrimExprNode>()) {
      PrintAt(GetRef<PrimExpr>(expr), 0);
    } else if (!op->node.defined()) {
      os_ << "None";
    } else {
      ReprPrinter(os_).Print(op->node);
    }
    os_ << ", \"" << op->attr_key << "\", ";
    PrintAt(op->value, 0);
    os_ << ')';
  };
  PrintScope(line, line, op->body);
}

void TIRPrinter::VisitStmt_(const AssertStmtNode* op) {
  os_ << "assert ";
  PrintAt(op->condition, 0);
  os_ << ", ";
  PrintAt(op->message, 0);
  NewLine();
  VisitStmt(op->body);
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

void TIRPrinter::VisitStmt_(const AllocateNode* op) {
  auto call = [&] {
    os_ << "T.allocate([";
    PrintList(op->extents);
    os_ << "], \"" << op->dtype << '"';
    const auto* pointer = op->buffer_var->type_annotation.as<PointerTypeNode>();
    if (pointer != nullptr && !pointer->storage_scope.empty()) {
      os_ << ", \"" << pointer->storage_scope << '"';
    }
    if (!is_one(op->condition)) {
      os_ << ", condition=";
      PrintAt(op->condition, 0);
    }
    os_ << ')';
  };
  PrintScope(
      [&] {
        os_ << NameOf(op->buffer_var.get()) << " = ";
        call();
      },
      [&] {
        call();
        os_ << " as " << NameOf(op->buffer_var.get());
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
    os_ << (first ? "\"" : ", \"") << key << "\": ";
    PrintAny(value);
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
  if (!is_zero(op->min)) {
    PrintAt(op->min, 0);
    os_ << ", ";
    PrintAt(op->min + op->extent, 0);
  } else {
    PrintAt(op->extent, 0);
  }
  if (op->thread_binding.defined()) {
    os_ << ", thread=\"" << op->thread_binding->thread_tag << '"';
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
  for (const ForNode* loop : nest) loops_[loop->loop_var.get()] = loop;
  PrintBody(nest.back()->body);
}

void TIRPrinter::VisitStmt_(const WhileNode* op) {
  os_ << "while ";
  PrintAt(op->condition, 0);
  os_ << ':';
  PrintBody(op->body);
}

void TIRPrinter::VisitStmt_(const PrefetchNode* op) {
  os_ << "T.prefetch(" << NameOf(op->buffer.get());
  PrintBounds(op->bounds);
  os_ << ')';
}

void TIRPrinter::Print(const PrimFuncNode* func) {
  os_ << "@T.prim_func";
  NewLine();
  os_ << "def " << func->GetAttr<String>(attr::kGlobalSymbol, "main") << '(';
  for (size_t i = 0; i < func->params.size(); ++i) {
    if (i != 0) os_ << ", ";
    const Var& param = func->params[i];
    if (Optional<Buffer> buffer = func->buffer_map.Get(param)) {
      Print(buffer.get());
    } else {
      os_ << NameOf(param.get()) << ": T." << param->dtype;
    }
  }
  os_ << "):";
  indent_ += 4;
  if (func->attrs.defined() && !func->attrs->dict.empty()) {
    NewLine();
    os_ << "T.func_attr({";
    bool first = true;
    for (const auto& [key, value] : func->attrs->dict) {
      os_ << (first ? "\"" : ", \"") << key << "\": ";
      PrintAny(value);
      first = false;
    }
    os_ << "})";
  }
  NewLine();
  VisitStmt(func->body);
  indent_ -= 4;
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
TVM_REGISTER_REPR(IterVarNode, [](const IterVarNode* node, ReprPrinter* p) {
  TIRPrinter(p->stream).Print(node);
});
TVM_REGISTER_REPR(CommReducerNode, [](const CommReducerNode* node, ReprPrinter* p) {
  TIRPrinter(p->stream).Print(node);
});

}  // namespace tir
}  // namespace tvm
