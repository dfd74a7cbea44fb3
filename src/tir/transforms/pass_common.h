/*!
 * \file src/tir/transforms/pass_common.h
 * \brief What the sources of several passes share.
 */
#ifndef TVM_SRC_TIR_TRANSFORMS_PASS_COMMON_H_
#define TVM_SRC_TIR_TRANSFORMS_PASS_COMMON_H_

#include <tvm/tir/stmt_functor.h>
#include <tvm/tir/transform.h>

#include <utility>

namespace tvm {
namespace tir {

/*! \brief `func` with another body; the same object when the body is the same. */
inline PrimFunc WithBody(PrimFunc func, Stmt body) {
  if (body.same_as(func->body)) return func;
  func.CopyOnWrite()->body = std::move(body);
  return func;
}

/*! \brief A pass over bodies: `rewrite` maps the body of each function to its new body. */
template <typename F>
inline transform::Pass BodyPass(const char* name, F rewrite) {
  return transform::CreatePrimFuncPass(
      [rewrite](PrimFunc func, IRModule, transform::PassContext ctx) {
        Stmt body = rewrite(func, ctx);
        return WithBody(std::move(func), std::move(body));
      },
      0, name);
}

/*!
 * \brief A copy of `stmt` that binds variables of its own, for use beside the original.
 *
 * The same object when nothing is bound inside.
 */
Stmt RenewBindings(Stmt stmt);

/*! \brief The target without the one that launches its functions. */
Target WithoutHost(const Target& target);

/*!
 * \brief `stmt` without what does nothing: empty loops and branches, unused values and memory.
 * \param drop_unread Whether memory that is written and never read is unused.
 */
Stmt RemoveNoOps(const Stmt& stmt, bool drop_unread = false);

}  // namespace tir
}  // namespace tvm
#endif  // TVM_SRC_TIR_TRANSFORMS_PASS_COMMON_H_
