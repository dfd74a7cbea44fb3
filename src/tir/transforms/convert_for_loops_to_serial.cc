/*!
 * \file src/tir/transforms/convert_for_loops_to_serial.cc
 * \brief Loops without parallelism or copies, for targets with one thread and little memory.
 */
#include <tvm/runtime/registry.h>

#include "pass_common.h"

namespace tvm {
namespace tir {
namespace {

class SerialConverter final : public StmtMutator {
  Stmt VisitStmt_(const ForNode* op) final {
    For loop = Downcast<For>(StmtMutator::VisitStmt_(op));
    if (op->kind == ForKind::kParallel || op->kind == ForKind::kUnrolled) {
      loop.CopyOnWrite()->kind = ForKind::kSerial;
    }
    return loop;
  }
};

}  // namespace

namespace transform {

Pass ConvertForLoopsToSerial() {
  return BodyPass("tir.ConvertForLoopsToSerial", [](const PrimFunc& func, const PassContext&) {
    return SerialConverter()(func->body);
  });
}

TVM_REGISTER_GLOBAL("tir.transform.ConvertForLoopsToSerial")
    .set_body_typed(ConvertForLoopsToSerial);

}  // namespace transform
}  // namespace tir
}  // namespace tvm
