/*!
 * \file src/tir/transforms/remove_assume.cc
 * \brief Statements that only say what holds are dropped.
 */
#include <tvm/expr/analysis.h>
#include <tvm/ir/op.h>
#include <tvm/runtime/registry.h>

#include "pass_common.h"

namespace tvm {
namespace tir {

// Evaluating a fact does nothing; where it stands counts, so it is not moved or shared.
TVM_REGISTER_OP("tir.assume")
    .set_num_inputs(1)
    .set_attr<Integer>(kTCallEffectKind, Integer(static_cast<int>(CallEffectKind::kOpaque)));

// Any value of its type, not the same one at each use. RemoveStoreUndef drops what stores it.
TVM_REGISTER_OP("tir.undef")
    .set_num_inputs(0)
    .set_attr<Integer>(kTCallEffectKind, Integer(static_cast<int>(CallEffectKind::kReadState)));

namespace {

class AssumeRemover final : public StmtMutator {
 private:
  Stmt VisitStmt_(const EvaluateNode* op) final {
    static const Op assume = Op::Get("tir.assume");
    const auto* call = op->value.as<CallNode>();
    return call && call->op.same_as(assume) ? Evaluate(0) : GetRef<Stmt>(op);
  }
};

}  // namespace

namespace transform {
namespace {

Pass RemoveAssume() {
  return BodyPass("tir.RemoveAssume", [](const PrimFunc& func, const PassContext&) {
    return RemoveNoOps(AssumeRemover()(func->body));
  });
}

}  // namespace

TVM_REGISTER_GLOBAL("tir.transform.RemoveAssume").set_body_typed(RemoveAssume);

}  // namespace transform
}  // namespace tir
}  // namespace tvm
