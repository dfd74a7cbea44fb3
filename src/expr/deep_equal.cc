/*!
 * \file src/expr/deep_equal.cc
 * \brief Equality and hash of expressions whose variables are already known to be the same.
 */
#include <tvm/expr/analysis.h>
#include <tvm/expr/expr_functor.h>
#include <tvm/runtime/registry.h>

#include <cstring>

namespace tvm {
namespace tir {
namespace {

class DeepComparer final : private ExprFunctor<bool(const PrimExpr&, const PrimExpr&)> {
 public:
  bool Equal(const PrimExpr& lhs, const PrimExpr& rhs) {
    if (lhs.same_as(rhs)) return true;
    if (!lhs.defined() || !rhs.defined()) return false;
    if (lhs->type_index() != rhs->type_index() || lhs.dtype() != rhs.dtype()) return false;
    return VisitExpr(lhs, rhs);
  }

 private:
  bool Equal(const Array<PrimExpr>& lhs, const Array<PrimExpr>& rhs) {
    if (lhs.same_as(rhs)) return true;
    if (lhs.size() != rhs.size()) return false;
    for (size_t i = 0; i < lhs.size(); ++i) {
      if (!Equal(lhs[i], rhs[i])) return false;
    }
    return true;
  }

  template <typename TNode>
  static const TNode* As(const PrimExpr& expr) {
    return static_cast<const TNode*>(expr.get());
  }

  // The same variable was accepted by address before.
  bool VisitExpr_(const VarNode*, const PrimExpr&) final { return false; }
  bool VisitExpr_(const IntImmNode* a, const PrimExpr& other) final {
    return a->value == As<IntImmNode>(other)->value;
  }
  bool VisitExpr_(const FloatImmNode* a, const PrimExpr& other) final {
    double x = a->value, y = As<FloatImmNode>(other)->value;
    // NaN is the same constant as NaN, while zeros of different sign are not.
    return std::memcmp(&x, &y, sizeof(x)) == 0;
  }
  bool VisitExpr_(const StringImmNode* a, const PrimExpr& other) final {
    return a->value == As<StringImmNode>(other)->value;
  }
  bool VisitExpr_(const BufferLoadNode* a, const PrimExpr& other) final {
    const auto* b = As<BufferLoadNode>(other);
    return a->buffer.same_as(b->buffer) && Equal(a->indices, b->indices);
  }
  bool VisitExpr_(const ProducerLoadNode* a, const PrimExpr& other) final {
    const auto* b = As<ProducerLoadNode>(other);
    return a->producer.same_as(b->producer) && Equal(a->indices, b->indices);
  }
  bool VisitExpr_(const LetNode* a, const PrimExpr& other) final {
    const auto* b = As<LetNode>(other);
    return a->var.same_as(b->var) && Equal(a->value, b->value) && Equal(a->body, b->body);
  }
  bool VisitExpr_(const CallNode* a, const PrimExpr& other) final {
    const auto* b = As<CallNode>(other);
    return a->op.same_as(b->op) && Equal(a->args, b->args);
  }
  bool VisitExpr_(const ReduceNode* a, const PrimExpr& other) final {
    const auto* b = As<ReduceNode>(other);
    if (!a->combiner.same_as(b->combiner) || a->value_index != b->value_index ||
        a->axis.size() != b->axis.size()) {
      return false;
    }
    for (size_t i = 0; i < a->axis.size(); ++i) {
      if (!a->axis[i].same_as(b->axis[i])) return false;
    }
    return Equal(a->source, b->source) && Equal(a->init, b->init) &&
           Equal(a->condition, b->condition);
  }
  bool VisitExpr_(const CastNode* a, const PrimExpr& other) final {
    return Equal(a->value, As<CastNode>(other)->value);
  }
  bool VisitExpr_(const NotNode* a, const PrimExpr& other) final {
    return Equal(a->a, As<NotNode>(other)->a);
  }
  bool VisitExpr_(const SelectNode* a, const PrimExpr& other) final {
    const auto* b = As<SelectNode>(other);
    return Equal(a->condition, b->condition) && Equal(a->true_value, b->true_value) &&
           Equal(a->false_value, b->false_value);
  }
  bool VisitExpr_(const RampNode* a, const PrimExpr& other) final {
    const auto* b = As<RampNode>(other);
    return Equal(a->base, b->base) && Equal(a->stride, b->stride);
  }
  bool VisitExpr_(const BroadcastNode* a, const PrimExpr& other) final {
    return Equal(a->value, As<BroadcastNode>(other)->value);
  }
  bool VisitExpr_(const ShuffleNode* a, const PrimExpr& other) final {
    const auto* b = As<ShuffleNode>(other);
    return Equal(a->vectors, b->vectors) && Equal(a->indices, b->indices);
  }
#define TVM_TIR_COMPARE_BINARY(Name)                                  \
  bool VisitExpr_(const Name##Node* a, const PrimExpr& other) final { \
    const auto* b = As<Name##Node>(other);                            \
    return Equal(a->a, b->a) && Equal(a->b, b->b);                    \
  }
  TVM_TIR_COMPARE_BINARY(Add)
  TVM_TIR_COMPARE_BINARY(Sub)
  TVM_TIR_COMPARE_BINARY(Mul)
  TVM_TIR_COMPARE_BINARY(Div)
  TVM_TIR_COMPARE_BINARY(Mod)
  TVM_TIR_COMPARE_BINARY(FloorDiv)
  TVM_TIR_COMPARE_BINARY(FloorMod)
  TVM_TIR_COMPARE_BINARY(Min)
  TVM_TIR_COMPARE_BINARY(Max)
  TVM_TIR_COMPARE_BINARY(EQ)
  TVM_TIR_COMPARE_BINARY(NE)
  TVM_TIR_COMPARE_BINARY(LT)
  TVM_TIR_COMPARE_BINARY(LE)
  TVM_TIR_COMPARE_BINARY(GT)
  TVM_TIR_COMPARE_BINARY(GE)
  TVM_TIR_COMPARE_BINARY(And)
  TVM_TIR_COMPARE_BINARY(Or)
#undef TVM_TIR_COMPARE_BINARY
};

/*! \brief Folds class, type and leaves of an expression into one number, in visiting order. */
class DeepHasher final : public ExprVisitor {
 public:
  size_t hash = 0;
  void VisitExpr(const PrimExpr& expr) override {
    Mix(expr->type_index());
    Mix(std::hash<DataType>()(expr.dtype()));
    ExprVisitor::VisitExpr(expr);
  }

 private:
  void Mix(size_t value) { hash = (hash ^ value) * 0x9E3779B97F4A7C15u + (hash >> 29); }
  void MixAddress(const Object* object) { Mix(std::hash<const void*>()(object)); }

  void VisitExpr_(const VarNode* op) final { MixAddress(op); }
  void VisitExpr_(const IntImmNode* op) final { Mix(std::hash<int64_t>()(op->value)); }
  void VisitExpr_(const FloatImmNode* op) final {
    uint64_t bits;
    std::memcpy(&bits, &op->value, sizeof(bits));
    Mix(bits);
  }
  void VisitExpr_(const StringImmNode* op) final { Mix(std::hash<std::string>()(op->value)); }
  void VisitExpr_(const BufferLoadNode* op) final {
    MixAddress(op->buffer.get());
    ExprVisitor::VisitExpr_(op);
  }
  void VisitExpr_(const ProducerLoadNode* op) final {
    MixAddress(op->producer.get());
    ExprVisitor::VisitExpr_(op);
  }
  void VisitExpr_(const CallNode* op) final {
    MixAddress(op->op.get());
    ExprVisitor::VisitExpr_(op);
  }
};

}  // namespace

bool ExprDeepEqual::operator()(const PrimExpr& lhs, const PrimExpr& rhs) const {
  return DeepComparer().Equal(lhs, rhs);
}

size_t ExprDeepHash::operator()(const PrimExpr& expr) const {
  DeepHasher hasher;
  hasher.VisitExpr(expr);
  return hasher.hash;
}

TVM_REGISTER_GLOBAL("tir.analysis.expr_deep_equal").set_body_typed([](PrimExpr a, PrimExpr b) {
  return ExprDeepEqual()(a, b);
});

}  // namespace tir
}  // namespace tvm
