// A matrix product followed by a rectifier, as a task for a named processor.
#ifndef TESTS_CPP_AUTO_SCHEDULER_MATMUL_TASK_H_
#define TESTS_CPP_AUTO_SCHEDULER_MATMUL_TASK_H_

#include <tvm/auto_scheduler/search_task.h>
#include <tvm/expr/op.h>
#include <tvm/te/operation.h>

namespace tvm {
namespace auto_scheduler {

inline SearchTask MatmulTask(const char* target = "c -num-cores=4") {
  te::Tensor a = te::placeholder({64, 48}, DataType::Float(32), "A");
  te::Tensor b = te::placeholder({48, 32}, DataType::Float(32), "B");
  te::IterVar k = te::reduce_axis(Range::FromMinExtent(0, 48), "k");
  te::Tensor c = te::compute(
      Array<PrimExpr>{64, 32},
      [&](const Array<tir::Var>& i) { return sum(a(i[0], k->var) * b(k->var, i[1]), {k}); }, "C");
  te::Tensor d = te::compute(
      Array<PrimExpr>{64, 32}, [&](const Array<tir::Var>& i) { return max(c(i), 0.0f); }, "D");
  return SearchTask(ComputeDAG({a, b, d}), "matmul", "matmul", Target(String(target)), NullOpt,
                    HardwareParams(), LayoutRewriteOption::kNoRewrite, {});
}

}  // namespace auto_scheduler
}  // namespace tvm

#endif  // TESTS_CPP_AUTO_SCHEDULER_MATMUL_TASK_H_
