/*!
 * \file src/tir/ir/printer_expr.cc
 * \brief Text of expressions.
 */
#include <tvm/expr/builtin.h>
#include <tvm/expr/lanes.h>
#include <tvm/expr/op.h>
#include <tvm/ir/script_printer.h>
#include <tvm/node/repr_printer.h>

#include <charconv>
#include <cmath>
#include <string_view>

#include "expr/call_dtype.h"
#include "printer.h"

namespace tvm {
namespace tir {

namespace {

/*! \brief Calls whose text begins with their dtype, which nothing else in them tells. */
bool TypeIsFirstArgument(std::string_view name) {
  return name.substr(0, 5) == "call_" || name == "reinterpret" || name == "tvm_struct_get" ||
         name == "type_annotation" || name == "tvm_call_packed" ||
         name == "tvm_call_packed_lowered" || name == "tvm_call_cpacked" ||
         name == "tvm_call_cpacked_lowered";
}

}  // namespace

void TIRPrinter::PrintAt(const PrimExpr& expr, int level) {
  if (!expr.defined()) {
    os_ << "None";
    return;
  }
  int outer = level_;
  level_ = level;
  ScriptMark mark(os_, expr.get());
  VisitExpr(expr);
  level_ = outer;
}

void TIRPrinter::PrintInfix(const PrimExpr& a, const char* op, const PrimExpr& b, int level) {
  bool parens = level_ > level;
  if (parens) os_ << '(';
  PrintAt(a, level == kCompare ? level + 1 : level);
  os_ << op;
  // Operators group to the left, and comparisons do not group at all.
  PrintAt(b, level + 1);
  if (parens) os_ << ')';
}

void TIRPrinter::PrintProduct(const PrimExpr& a, const char* op, const PrimExpr& b) {
  const std::string spaced = IsCompact() ? op : " " + std::string(op) + " ";
  PrintInfix(a, spaced.c_str(), b, kProduct);
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

void TIRPrinter::PrintInterval(const PrimExpr& min, const PrimExpr& extent, const char* separator) {
  PrintAt(min, 0);
  os_ << separator;
  if (is_zero(min)) {
    PrintAt(extent, 0);
  } else if (min->IsInstance<IntImmNode>() && extent->IsInstance<IntImmNode>()) {
    PrintAt(min + extent, 0);
  } else {
    // Not folded: the extent is what is added to the first end.
    PrintAt(Add(min, extent), 0);
  }
}

void TIRPrinter::PrintBounds(const Array<Range>& bounds) {
  os_ << '[';
  for (size_t i = 0; i < bounds.size(); ++i) {
    if (i != 0) os_ << ", ";
    PrintInterval(bounds[i]->min, bounds[i]->extent, ":");
  }
  os_ << (bounds.empty() ? "()]" : "]");
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
    const char* name = op->value ? "True" : "False";
    os_ << (IsCompact() ? "" : "T.bool(") << name << (IsCompact() ? "" : ")");
  } else if (op->dtype == ScriptScope::Style().int_dtype) {
    os_ << op->value;
  } else {
    os_ << "T." << op->dtype << '(' << op->value << ')';
  }
}

void TIRPrinter::VisitExpr_(const FloatImmNode* op) {
  if (!std::isfinite(op->value)) {
    const char* text = std::isnan(op->value) ? "nan" : op->value > 0 ? "inf" : "-inf";
    os_ << "T." << op->dtype << "(\"" << text << "\")";
  } else if (op->dtype == ScriptScope::Style().float_dtype) {
    os_ << (op->dtype == DataType::Float(32) ? ShortestReal(static_cast<float>(op->value))
                                             : ShortestReal(op->value));
  } else if (op->dtype == DataType::Float(32)) {
    os_ << (IsCompact() ? "" : "T.float32(") << ShortestReal(static_cast<float>(op->value))
        << (IsCompact() ? "" : ")");
  } else {
    os_ << "T." << op->dtype << '(' << ShortestReal(op->value) << ')';
  }
}

void TIRPrinter::VisitExpr_(const StringImmNode* op) { PrintScriptText(os_, op->value.str()); }

void TIRPrinter::VisitExpr_(const VarNode* op) { os_ << NameOf(op); }
void TIRPrinter::VisitExpr_(const SizeVarNode* op) { os_ << NameOf(op); }

void TIRPrinter::VisitExpr_(const AddNode* op) { PrintInfix(op->a, " + ", op->b, kSum); }
void TIRPrinter::VisitExpr_(const SubNode* op) { PrintInfix(op->a, " - ", op->b, kSum); }
void TIRPrinter::VisitExpr_(const MulNode* op) { PrintProduct(op->a, "*", op->b); }
void TIRPrinter::VisitExpr_(const FloorDivNode* op) { PrintProduct(op->a, "//", op->b); }
void TIRPrinter::VisitExpr_(const FloorModNode* op) { PrintProduct(op->a, "%", op->b); }
void TIRPrinter::VisitExpr_(const DivNode* op) {
  if (op->dtype.is_int() || op->dtype.is_uint()) {
    PrintCallLike("T.truncdiv", {op->a, op->b});
  } else {
    PrintProduct(op->a, "/", op->b);
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
  // T.cast would leave out a conversion that changes nothing.
  os_ << "T.Cast(\"" << op->dtype << "\", ";
  PrintAt(op->value, 0);
  os_ << ')';
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
  os_ << ", ";
  PrintAt(LaneCount(op->lanes), 0);
  os_ << ')';
}
void TIRPrinter::VisitExpr_(const BroadcastNode* op) {
  os_ << "T.Broadcast(";
  PrintAt(op->value, 0);
  os_ << ", ";
  PrintAt(LaneCount(op->lanes), 0);
  os_ << ')';
}
void TIRPrinter::VisitExpr_(const LetNode* op) {
  if (script_ == nullptr && !IsCompact()) {
    os_ << "T.Let(";
    PrintAt(op->body, 0);
    os_ << ", where={" << NameOf(op->var.get()) << ": ";
    PrintAt(op->value, 0);
    os_ << "})";
    return;
  }
  os_ << "T.Let(" << NameOf(op->var.get()) << ", ";
  PrintAt(op->value, 0);
  Show(op->var.get());
  os_ << ", ";
  PrintAt(op->body, 0);
  if (!IsPlainVar(op->var.get())) {
    os_ << ", type=";
    PrintVarType(op->var.get(), true);
  }
  os_ << ')';
}

void TIRPrinter::VisitExpr_(const CallNode* op) {
  bool first = true;
  bool typed = false;
  if (const auto* intrinsic = op->op.as<OpNode>()) {
    std::string_view name = intrinsic->name.str();
    constexpr std::string_view kPrefix = "tir.";
    if (name.substr(0, kPrefix.size()) == kPrefix) {
      name.remove_prefix(kPrefix.size());
      os_ << "T." << name << '(';
      typed = TypeIsFirstArgument(name);
      if (typed) os_ << '"' << op->dtype << '"';
    } else {
      typed = true;
      os_ << "T.call_intrin(\"" << op->dtype << "\", \"" << name << '"';
    }
    first = !typed;
  } else if (const auto* global = op->op.as<GlobalVarNode>()) {
    if (script_ == nullptr) {
      os_ << global->name_hint << '(';
    } else if (PythonName(global->name_hint) == global->name_hint.str()) {
      os_ << ScriptScope::ModuleAlias() << '.' << global->name_hint << '(';
    } else {
      os_ << "I.GlobalVar(\"" << global->name_hint << "\")(";
    }
  } else {
    os_ << op->op << '(';
  }
  for (const PrimExpr& arg : op->args) {
    if (!first) os_ << ", ";
    PrintAt(arg, 0);
    first = false;
  }
  if (!typed && op->dtype != CallDType(op->op, op->args)) {
    os_ << (first ? "" : ", ") << "dtype=\"" << op->dtype << '"';
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
  for (const IterVar& axis : op->axis) Show(axis->var.get());
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
  os_ << (IsFull() ? "T.comm_reducer(lambda " : "comm_reducer(lambda ");
  for (const Array<Var>& side : {combiner->lhs, combiner->rhs}) {
    for (const Var& var : side) Show(var.get());
  }
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

void TIRPrinter::PrintThread(const IterVarNode* iv) {
  os_ << "T.iter_var(" << NameOf(iv->var.get()) << ", ";
  if (iv->dom.defined()) {
    PrintRange(iv->dom.get());
  } else {
    os_ << "None";
  }
  os_ << ", \"" << IterVarTypeToString(iv->iter_type) << "\", ";
  PrintScriptText(os_, iv->thread_tag);
  DataType expected = iv->dom.defined() ? iv->dom->extent.dtype() : DataType::Int(32);
  if (iv->var->dtype != expected) os_ << ", dtype=\"" << iv->var->dtype << '"';
  os_ << ')';
  if (script_ != nullptr) Show(iv->var.get());
}

void TIRPrinter::Print(const IterVarNode* iv) {
  if (IsFull()) {
    PrintPart(false, [&](TIRPrinter* printer) { printer->PrintThread(iv); });
  } else {
    PrintThread(iv);
  }
}

}  // namespace tir
}  // namespace tvm
