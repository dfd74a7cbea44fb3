/*!
 * \file tvm/expr/expr_functor.h
 * \brief Dispatch on the class of an expression, and visitors and mutators built on it.
 */
#ifndef TVM_EXPR_EXPR_FUNCTOR_H_
#define TVM_EXPR_EXPR_FUNCTOR_H_

#include <tvm/expr/expr.h>
#include <tvm/runtime/stack_guard.h>

#include <utility>
#include <vector>

namespace tvm {
namespace tir {

/*! \brief Applies X to the name of every expression node class, without the suffix Node. */
// clang-format off
#define TVM_TIR_FOR_EACH_EXPR(X)                                                                \
  X(Var) X(SizeVar) X(BufferLoad) X(ProducerLoad) X(Let) X(Call) X(Add) X(Sub) X(Mul)           \
  X(Div) X(Mod) X(FloorDiv) X(FloorMod) X(Min) X(Max) X(EQ) X(NE) X(LT) X(LE) X(GT)             \
  X(GE) X(And) X(Or) X(Reduce) X(Cast) X(Not) X(Select) X(Ramp) X(Broadcast) X(Shuffle)         \
  X(IntImm) X(FloatImm) X(StringImm)
// clang-format on

namespace detail {
/*! \brief Of any signature: a table is filled without knowing what its visits take and return. */
using AnyVisit = void (*)();
/*! \brief Makes `visit` the entry of a class in the table of a functor. */
void SetVisit(std::vector<AnyVisit>* table, uint32_t type_index, AnyVisit visit);
}  // namespace detail

template <typename FType>
class ExprFunctor;

/*!
 * \brief `VisitExpr(e, args...)` calls the `VisitExpr_` of the class of `e`.
 *
 * A class that is not overridden goes to VisitExprDefault_, which is an internal error. SizeVar
 * goes to the overload of Var unless overridden.
 */
template <typename R, typename... Args>
class ExprFunctor<R(const PrimExpr& n, Args...)> {
 public:
  virtual ~ExprFunctor() = default;
  R operator()(const PrimExpr& n, Args... args) {
    return VisitExpr(n, std::forward<Args>(args)...);
  }
  virtual R VisitExpr(const PrimExpr& n, Args... args);

#define TVM_TIR_DECLARE_VISIT(Name)                            \
  virtual R VisitExpr_(const Name##Node* op, Args... args) {   \
    return VisitExprDefault_(op, std::forward<Args>(args)...); \
  }
  TVM_TIR_DECLARE_VISIT(Var)
  virtual R VisitExpr_(const SizeVarNode* op, Args... args) {
    return VisitExpr_(static_cast<const VarNode*>(op), std::forward<Args>(args)...);
  }
  TVM_TIR_DECLARE_VISIT(BufferLoad)
  TVM_TIR_DECLARE_VISIT(ProducerLoad)
  TVM_TIR_DECLARE_VISIT(Let)
  TVM_TIR_DECLARE_VISIT(Call)
  TVM_TIR_DECLARE_VISIT(Add)
  TVM_TIR_DECLARE_VISIT(Sub)
  TVM_TIR_DECLARE_VISIT(Mul)
  TVM_TIR_DECLARE_VISIT(Div)
  TVM_TIR_DECLARE_VISIT(Mod)
  TVM_TIR_DECLARE_VISIT(FloorDiv)
  TVM_TIR_DECLARE_VISIT(FloorMod)
  TVM_TIR_DECLARE_VISIT(Min)
  TVM_TIR_DECLARE_VISIT(Max)
  TVM_TIR_DECLARE_VISIT(EQ)
  TVM_TIR_DECLARE_VISIT(NE)
  TVM_TIR_DECLARE_VISIT(LT)
  TVM_TIR_DECLARE_VISIT(LE)
  TVM_TIR_DECLARE_VISIT(GT)
  TVM_TIR_DECLARE_VISIT(GE)
  TVM_TIR_DECLARE_VISIT(And)
  TVM_TIR_DECLARE_VISIT(Or)
  TVM_TIR_DECLARE_VISIT(Reduce)
  TVM_TIR_DECLARE_VISIT(Cast)
  TVM_TIR_DECLARE_VISIT(Not)
  TVM_TIR_DECLARE_VISIT(Select)
  TVM_TIR_DECLARE_VISIT(Ramp)
  TVM_TIR_DECLARE_VISIT(Broadcast)
  TVM_TIR_DECLARE_VISIT(Shuffle)
  TVM_TIR_DECLARE_VISIT(IntImm)
  TVM_TIR_DECLARE_VISIT(FloatImm)
  TVM_TIR_DECLARE_VISIT(StringImm)
#undef TVM_TIR_DECLARE_VISIT

  virtual R VisitExprDefault_(const Object* op, Args...) {
    TVM_FATAL(InternalError) << "this pass does not handle expressions of class "
                             << op->GetTypeKey();
    throw;  // unreachable
  }

 private:
  using Dispatch = R (*)(const Object*, ExprFunctor*, Args...);

  template <typename TNode>
  static void Register(std::vector<detail::AnyVisit>* table) {
    Dispatch visit = [](const Object* node, ExprFunctor* self, Args... args) -> R {
      return self->VisitExpr_(static_cast<const TNode*>(node), std::forward<Args>(args)...);
    };
    detail::SetVisit(table, TNode::RuntimeTypeIndex(), reinterpret_cast<detail::AnyVisit>(visit));
  }

  static std::vector<detail::AnyVisit> MakeTable();
};

// Outside of the class, so that the signatures below are compiled once.
template <typename R, typename... Args>
R ExprFunctor<R(const PrimExpr& n, Args...)>::VisitExpr(const PrimExpr& n, Args... args) {
  static const std::vector<detail::AnyVisit> table = MakeTable();
  ICHECK(n.defined()) << "visit of an undefined expression";
  runtime::CheckStack();
  const Object* node = n.get();
  uint32_t index = node->type_index();
  if (index >= table.size() || table[index] == nullptr) {
    return VisitExprDefault_(node, std::forward<Args>(args)...);
  }
  return reinterpret_cast<Dispatch>(table[index])(node, this, std::forward<Args>(args)...);
}

template <typename R, typename... Args>
std::vector<detail::AnyVisit> ExprFunctor<R(const PrimExpr& n, Args...)>::MakeTable() {
  std::vector<detail::AnyVisit> table;
#define TVM_TIR_REGISTER_VISIT(Name) Register<Name##Node>(&table);
  TVM_TIR_FOR_EACH_EXPR(TVM_TIR_REGISTER_VISIT)
#undef TVM_TIR_REGISTER_VISIT
  return table;
}

// Bases of most passes; in each file that has one, they took longer to compile than the pass.
extern template class ExprFunctor<void(const PrimExpr&)>;
extern template class ExprFunctor<PrimExpr(const PrimExpr&)>;

/*! \brief Visits every operand of every expression, operands left to right. */
class ExprVisitor : public ExprFunctor<void(const PrimExpr&)> {
 public:
  using ExprFunctor::operator();

 protected:
  using ExprFunctor::VisitExpr;
#define TVM_TIR_DECLARE_VISIT(Name) void VisitExpr_(const Name##Node* op) override;
  TVM_TIR_FOR_EACH_EXPR(TVM_TIR_DECLARE_VISIT)
#undef TVM_TIR_DECLARE_VISIT
};

/*!
 * \brief Rebuilds an expression from its mutated operands.
 *
 * Returns the node it was given when no operand changed. A rebuilt operator is not folded. An
 * operation that takes the place of another keeps its span.
 */
class ExprMutator : public ExprFunctor<PrimExpr(const PrimExpr&)> {
 public:
  using ExprFunctor::operator();

 protected:
  PrimExpr VisitExpr(const PrimExpr& e) override;
#define TVM_TIR_DECLARE_VISIT(Name) PrimExpr VisitExpr_(const Name##Node* op) override;
  TVM_TIR_FOR_EACH_EXPR(TVM_TIR_DECLARE_VISIT)
#undef TVM_TIR_DECLARE_VISIT
};

}  // namespace tir
}  // namespace tvm
#endif  // TVM_EXPR_EXPR_FUNCTOR_H_
