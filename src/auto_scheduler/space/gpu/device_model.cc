/*!
 * \file device_model.cc
 */
#include "device_model.h"

#include <tvm/auto_scheduler/knob_point.h>
#include <tvm/expr/op.h>
#include <tvm/runtime/registry.h>
#include <tvm/te/schedule_pass.h>

#include <algorithm>

#include "kernel_facts.h"
#include "kernel_times.h"

namespace tvm {
namespace auto_scheduler {

namespace {

double Value(const PrimExpr& e) { return EvaluateAt({e}, {})[0]; }

double SecondsOf(const LoopProgram& program, int id, const KernelUse* used,
                 const MachineFacts& machine) {
  std::vector<size_t> stores;
  for (size_t i = 0; i < program.stores.size(); ++i) {
    if (program.stores[i].kernel == id) stores.push_back(i);
  }
  KernelFacts facts = KernelOf(program, id, machine);
  if (used) {
    facts.registers = IntImm(DataType::Int(64), std::max<int64_t>(used->registers, 1));
    facts.shared_bytes = IntImm(DataType::Int(64), used->shared_bytes);
    facts.resident_blocks = ResidentBlocks(facts, machine);
  }
  TVM_CHECK(Value(facts.resident_blocks) >= 1, ValueError)
      << "device model: no block of kernel " << id
      << " fits a multiprocessor: " << Value(facts.threads) << " threads of "
      << Value(facts.registers) << " registers, " << Value(facts.shared_bytes)
      << " bytes of shared memory";
  const Traffic traffic = TrafficOf(program, stores, machine);
  return Value(KernelTimesOf(program, id, facts, traffic, machine).total) / machine.clock_rate;
}

}  // namespace

double ModeledSeconds(const LoopProgram& program, const MachineFacts& machine,
                      const std::vector<KernelUse>& used) {
  const int num_kernels = CountKernels(program);
  TVM_CHECK(num_kernels > 0, ValueError)
      << "device model: the program has no kernel; bind loops to threads";
  TVM_CHECK(used.empty() || static_cast<int>(used.size()) == num_kernels, ValueError)
      << "device model: resources of " << used.size() << " kernels are given, the program has "
      << num_kernels;
  double seconds = 0;
  for (int i = 0; i < num_kernels; ++i) {
    seconds += SecondsOf(program, i, used.empty() ? nullptr : &used[i], machine);
  }
  return seconds;
}

/*! \brief (schedule, arguments, target, [[registers, shared bytes] of each kernel]) -> seconds. */
TVM_REGISTER_GLOBAL("auto_scheduler.ModeledSeconds")
    .set_body_typed([](te::Schedule schedule, Array<te::Tensor> args, Target target,
                       Array<Array<Any>> used) {
      std::vector<KernelUse> uses;
      for (const Array<Any>& of_one : used) {
        uses.push_back({of_one[0].cast<int64_t>(), of_one[1].cast<int64_t>()});
      }
      te::Schedule normalized = schedule.normalize_for_feature_extraction();
      te::Stmt body = te::ScheduleOps(normalized, te::InferBound(normalized));
      Array<ObjectRef> params(args.begin(), args.end());
      tir::PrimFunc func = te::SchedulePostProcToPrimFunc(params, body);
      return ModeledSeconds(ReadLoopProgram(func, arith::VarContext::Make()),
                            MachineFacts::Of(target), uses);
    });

}  // namespace auto_scheduler
}  // namespace tvm
