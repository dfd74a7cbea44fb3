/*!
 * \file store_facts.cc
 * \brief What features of one store are made of.
 */
#include <tvm/auto_scheduler/loop_features.h>
#include <tvm/expr/builtin.h>
#include <tvm/expr/op.h>
#include <tvm/tir/stmt_functor.h>

namespace tvm {
namespace auto_scheduler {

using namespace tir;

namespace {

/*!
 * \brief Operations of a stored value, per element.
 *
 * Index arithmetic is left out: it folds into addresses, and how much of it is visible depends on
 * what lowering could simplify.
 */
class OpCounter : public ExprVisitor {
 public:
  OpCounts counts{};

 private:
  using ExprVisitor::VisitExpr_;

  double& at(OpKind kind) { return counts[static_cast<size_t>(kind)]; }

  static bool IsFloat(const PrimExpr& e) { return e.dtype().is_float() || e.dtype().is_bfloat16(); }

  void Count(const PrimExpr& typed, OpKind for_float, OpKind for_int) {
    at(IsFloat(typed) ? for_float : for_int) += 1;
  }

  // x + a * b is one multiply-add; of two products one is left over.
  void VisitSum(const PrimExpr& sum, const PrimExpr& a, const PrimExpr& b) {
    const auto* product = b.as<MulNode>();
    PrimExpr other = a;
    if (!product) product = a.as<MulNode>(), other = b;
    if (!product) {
      Count(sum, OpKind::kFloatAddSub, OpKind::kIntAddSub);
      VisitExpr(a);
      VisitExpr(b);
      return;
    }
    Count(sum, OpKind::kFloatMad, OpKind::kIntMad);
    VisitExpr(product->a);
    VisitExpr(product->b);
    VisitExpr(other);
  }

  void VisitExpr_(const AddNode* op) override { VisitSum(GetRef<PrimExpr>(op), op->a, op->b); }
  void VisitExpr_(const SubNode* op) override { VisitSum(GetRef<PrimExpr>(op), op->a, op->b); }

#define TVM_COUNT(Node, for_float, for_int)  \
  void VisitExpr_(const Node* op) override { \
    Count(op->a, for_float, for_int);        \
    VisitExpr(op->a);                        \
    VisitExpr(op->b);                        \
  }
  TVM_COUNT(MulNode, OpKind::kFloatMul, OpKind::kIntMul)
  TVM_COUNT(DivNode, OpKind::kFloatDivMod, OpKind::kIntDivMod)
  TVM_COUNT(ModNode, OpKind::kFloatDivMod, OpKind::kIntDivMod)
  TVM_COUNT(FloorDivNode, OpKind::kFloatDivMod, OpKind::kIntDivMod)
  TVM_COUNT(FloorModNode, OpKind::kFloatDivMod, OpKind::kIntDivMod)
  TVM_COUNT(MinNode, OpKind::kFloatCmp, OpKind::kIntCmp)
  TVM_COUNT(MaxNode, OpKind::kFloatCmp, OpKind::kIntCmp)
#undef TVM_COUNT

  // Comparisons of indices, as padding has them, are decided outside the inner loop.
#define TVM_COMPARE(Node)                    \
  void VisitExpr_(const Node* op) override { \
    if (!IsFloat(op->a)) return;             \
    at(OpKind::kFloatCmp) += 1;              \
    VisitExpr(op->a);                        \
    VisitExpr(op->b);                        \
  }
  TVM_COMPARE(EQNode)
  TVM_COMPARE(NENode)
  TVM_COMPARE(LTNode)
  TVM_COMPARE(LENode)
  TVM_COMPARE(GTNode)
  TVM_COMPARE(GENode)
#undef TVM_COMPARE

  // For the same reason only what joins conditions on values counts.
  template <typename F>
  void VisitCondition(F visit_operands) {
    double before = at(OpKind::kFloatCmp);
    visit_operands();
    if (at(OpKind::kFloatCmp) > before) at(OpKind::kBool) += 1;
  }
  void VisitExpr_(const AndNode* op) override {
    VisitCondition([&] { ExprVisitor::VisitExpr_(op); });
  }
  void VisitExpr_(const OrNode* op) override {
    VisitCondition([&] { ExprVisitor::VisitExpr_(op); });
  }
  void VisitExpr_(const NotNode* op) override {
    VisitCondition([&] { ExprVisitor::VisitExpr_(op); });
  }

  void VisitExpr_(const SelectNode* op) override {
    at(OpKind::kSelect) += 1;
    VisitExpr(op->condition);
    VisitExpr(op->true_value);
    VisitExpr(op->false_value);
  }

  void VisitExpr_(const CallNode* op) override {
    if (op->op.same_as(builtin::if_then_else())) {
      at(OpKind::kSelect) += 1;
    } else if (!op->op.same_as(builtin::likely())) {
      bool pure = op->op.as<OpNode>() && !op->op.same_as(builtin::call_extern());
      Count(GetRef<PrimExpr>(op), pure ? OpKind::kFloatMath : OpKind::kFloatOther,
            pure ? OpKind::kIntMath : OpKind::kIntOther);
    }
    for (const PrimExpr& arg : op->args) VisitExpr(arg);
  }

  void VisitExpr_(const BufferLoadNode*) override {}
};

}  // namespace

PrimExpr IsMoreThanOne(const PrimExpr& extent) {
  if (const int64_t* value = as_const_int(extent)) return *value > 1 ? const_true() : const_false();
  return LT(make_const(extent.dtype(), 1), extent);
}

PrimExpr BothOf(const PrimExpr& a, const PrimExpr& b) {
  if (is_zero(a) || is_one(b)) return a;
  if (is_one(a) || is_zero(b)) return b;
  return And(a, b);
}

PrimExpr EitherOf(const PrimExpr& a, const PrimExpr& b) {
  if (is_one(a) || is_zero(b)) return a;
  if (is_zero(a) || is_one(b)) return b;
  return Or(a, b);
}

PrimExpr Opposite(const PrimExpr& a) {
  if (is_one(a)) return const_false();
  if (is_zero(a)) return const_true();
  return Not(a);
}

PrimExpr If(const PrimExpr& cond, const PrimExpr& value) {
  return Choose(cond, value, RealConst(0));
}

OpCounts CountOps(const PrimExpr& value) {
  OpCounter counter;
  counter(value);
  return counter.counts;
}

StoreFacts::StoreFacts(const LoopProgram& program, const StoreInfo& store,
                       const MachineFacts& machine)
    : program(program), store(store), machine(machine) {
  const size_t n = store.loops.size();
  for (const LoopRef& loop : store.loops) {
    runs.push_back(IsMoreThanOne(loop->extent));
    extents.push_back(ToReal(loop->extent));
  }
  outer.assign(n + 1, RealConst(1));
  inner.assign(n + 1, RealConst(1));
  for (size_t i = 0; i < n; ++i) outer[i + 1] = outer[i] * extents[i];
  for (size_t i = n; i-- > 0;) inner[i] = extents[i] * inner[i + 1];
  op_counts = CountOps(store.value);
}

PrimExpr StoreFacts::trips() const {
  return store.share.defined() ? outer.back() * store.share : outer.back();
}

}  // namespace auto_scheduler
}  // namespace tvm
