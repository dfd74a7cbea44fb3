/*!
 * \file tvm/expr/analysis.h
 * \brief Equality of expressions, and what evaluating one may do.
 */
#ifndef TVM_EXPR_ANALYSIS_H_
#define TVM_EXPR_ANALYSIS_H_

#include <tvm/expr/expr.h>

namespace tvm {
namespace tir {

/*! \brief Equality of expressions in which every variable equals only itself. */
struct ExprDeepEqual {
  bool operator()(const PrimExpr& lhs, const PrimExpr& rhs) const;
};

/*! \brief Hash that agrees with ExprDeepEqual. */
struct ExprDeepHash {
  size_t operator()(const PrimExpr& expr) const;
};

/*! \brief What evaluating an expression may do, weakest first. */
enum class CallEffectKind : int {
  kExprAnnotation = 0,
  kPure = 1,
  /*! \brief Reads memory, so may not move over a store. */
  kReadState = 2,
  /*! \brief Writes memory or does what we cannot see. */
  kUpdateState = 3,
  /*! \brief Default of an Op that declares nothing. */
  kOpaque = 3,
};

/*! \brief Op attribute with the effect of a call of that Op, an Integer. */
constexpr const char* kTCallEffectKind = "TCallEffectKind";

/*! \brief Op attribute, a bool: its code is a long chain of operations that wait on each other. */
constexpr const char* kTElementary = "TElementary";

CallEffectKind SideEffect(const PrimExpr& expr);

}  // namespace tir
}  // namespace tvm
#endif  // TVM_EXPR_ANALYSIS_H_
