/*!
 * \file feature.cc
 * \brief Per-store features of states and measured programs, and their packed form.
 */
#include <tvm/arith/var_context.h>
#include <tvm/auto_scheduler/measure.h>
#include <tvm/expr/op.h>
#include <tvm/ir/transform.h>
#include <tvm/runtime/container/bytes.h>
#include <tvm/runtime/registry.h>
#include <tvm/runtime/threading_backend.h>
#include <tvm/target/machine.h>
#include <tvm/te/operation.h>
#include <tvm/te/schedule_pass.h>
#include <tvm/tir/analysis.h>
#include <tvm/tir/transform.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "per_store_features.h"

namespace tvm {
namespace auto_scheduler {

namespace {

using Rows = std::vector<std::vector<float>>;

/*!
 * \brief Whether the bounds of all loops alone show that a GPU program exceeds its device.
 *
 * Most random programs do, and lowering them further would take most of the time.
 */
bool ExceedsDevice(const MachineFacts& limits, const te::Schedule& schedule,
                   const Map<tir::IterVar, Range>& bounds) {
  for (const auto& [loop, range] : bounds) {
    const int64_t* extent = tir::as_const_int(range->extent);
    bool virtual_thread = std::string(loop->thread_tag).rfind("vthread", 0) == 0;
    if (virtual_thread && extent && *extent > limits.max_vthread_extent) return true;
  }
  for (const te::Stage& stage : schedule->stages) {
    // What one stage reads is in memory all at once.
    int64_t shared_bytes = 0;
    for (const te::Tensor& tensor : stage->op->InputTensors()) {
      const auto* copy = tensor->op.as<te::ComputeOpNode>();
      if (copy == nullptr || schedule[tensor->op]->scope != "shared") continue;
      int64_t bytes = tensor->dtype.bytes() * tensor->dtype.lanes();
      for (const tir::IterVar& axis : copy->axis) {
        const int64_t* extent = tir::as_const_int(bounds.at(axis)->extent);
        bytes = extent ? bytes * *extent : 0;
      }
      shared_bytes += bytes;
    }
    if (shared_bytes > limits.max_dynamic_shared_memory_per_block) return true;
  }
  return false;
}

/*! \brief Loops of a state before buffers are flattened; none if they cannot fit the device. */
std::optional<tir::PrimFunc> LoopsOf(const SearchTask& task, const State& state, bool gpu) {
  // A layout that the program expects is part of it; a stage that makes one is not what is tuned.
  LayoutRewriteOption layout =
      task->layout_rewrite_option == LayoutRewriteOption::kRewriteForPreTransformed
          ? LayoutRewriteOption::kRewriteForPreTransformed
          : LayoutRewriteOption::kNoRewrite;
  auto [schedule, args] = task->compute_dag.ApplySteps(state->transform_steps, layout);
  te::Schedule normalized = schedule.normalize_for_feature_extraction();
  Map<tir::IterVar, Range> bounds = te::InferBound(normalized);
  if (gpu && ExceedsDevice(task->Machine(), normalized, bounds)) return std::nullopt;
  te::Stmt body = te::ScheduleOps(normalized, bounds);
  Array<ObjectRef> params;
  for (const te::Tensor& arg : args) params.push_back(arg);
  return te::SchedulePostProcToPrimFunc(params, body);
}

/*! \brief Whether the kernels of a GPU program stay within the limits of a device. */
bool FitsDevice(const MachineFacts& limits, const tir::PrimFunc& func) {
  namespace pass = tir::transform;
  constexpr int kCacheLineBytes = 64;
  // What makes memory, vectors and copies of virtual threads. Limits say nothing of indices, so
  // these stay as they are: simplifying them takes half of the time of a program's features.
  IRModule mod =
      transform::Sequential({pass::StorageFlatten(kCacheLineBytes, false),
                             pass::VectorizeLoop(true, 8 * limits.vector_bytes, 1),
                             pass::InjectVirtualThread(), pass::StorageRewrite()},
                            "auto_scheduler.verify_gpu")(IRModule::FromExpr(func, "main"));
  return tir::VerifyGPUCode(
      Downcast<tir::PrimFunc>(mod->Lookup("main")),
      {{"max_shared_memory_per_block", Integer(limits.max_dynamic_shared_memory_per_block)},
       {"max_local_memory_per_block", Integer(limits.max_local_memory_per_block)},
       {"max_threads_per_block", Integer(limits.max_threads_per_block)},
       {"max_vector_bytes", Integer(limits.vector_bytes)}});
}

/*! \brief Rows of a state; none if it cannot be lowered or does not fit the device. */
Rows FeaturesOf(const SearchTask& task, const State& state, int max_n_bufs) {
  try {
    const bool gpu = task->target->GetTargetDeviceType() != kDLCPU;
    const std::optional<tir::PrimFunc> func = LoopsOf(task, state, gpu);
    if (!func || (gpu && !FitsDevice(task->Machine(), *func))) return {};
    LoopProgram program =
        ReadLoopProgram(*func, arith::VarContext::Make(), ReboundThreads::kMultiply);
    return PerStoreFeatures(program, task->hardware_params->cache_line_bytes, max_n_bufs);
  } catch (const runtime::Error& error) {
    // What a search proposes need not be legal; anything else is a mistake of ours.
    if (error.kind() != "ScheduleError") throw;
    return {};
  }
}

std::vector<Rows> FeaturesOfAll(const Array<SearchTask>& tasks, const Array<State>& states,
                                int skip_first, int max_n_bufs) {
  TVM_CHECK(max_n_bufs >= 1, ValueError)
      << "per-store features: max_n_bufs must be >= 1, got " << max_n_bufs;
  std::vector<Rows> out(states.size());
  int first = std::min<int>(std::max(skip_first, 0), states.size());
  runtime::threading::ParallelFor(static_cast<int>(states.size()) - first, [&](int i) {
    const SearchTask& task = tasks.size() == 1 ? tasks[0] : tasks[first + i];
    out[first + i] = FeaturesOf(task, states[first + i], max_n_bufs);
  });
  return out;
}

/*!
 * \brief The form in which features cross to Python, all values of four bytes.
 *
 * The number n of programs; n + 2 sizes in values; for each program the number of its rows and the
 * rows, nothing if it is invalid; n throughputs (n or 0); n numbers of tasks (n or 0).
 */
Bytes Pack(const std::vector<Rows>& programs, const std::vector<float>& throughputs,
           const std::vector<int32_t>& task_ids) {
  std::string out;
  auto append = [&out](auto value) {
    static_assert(sizeof(value) == 4);
    out.append(reinterpret_cast<const char*>(&value), sizeof(value));
  };
  append(static_cast<int32_t>(programs.size()));
  for (const Rows& rows : programs) {
    append(static_cast<int32_t>(rows.empty() ? 0 : 1 + rows.size() * rows[0].size()));
  }
  append(static_cast<int32_t>(throughputs.size()));
  append(static_cast<int32_t>(task_ids.size()));
  for (const Rows& rows : programs) {
    if (rows.empty()) continue;
    append(static_cast<float>(rows.size()));
    for (const std::vector<float>& row : rows) {
      for (float value : row) append(value);
    }
  }
  for (float value : throughputs) append(value);
  for (int32_t id : task_ids) append(id);
  return Bytes(std::move(out));
}

Bytes FeaturesOfMeasurePairs(const Array<MeasureInput>& inputs, const Array<MeasureResult>& results,
                             int skip_first, int max_n_bufs) {
  TVM_CHECK(inputs.size() == results.size(), ValueError)
      << "per-store features: " << inputs.size() << " inputs but " << results.size() << " results";
  auto was_timed = [](const MeasureResult& result) {
    return result->error_no == 0 && !result->costs.empty() && result->costs.front() > 0;
  };
  Array<SearchTask> tasks;
  Array<State> states;
  std::map<std::string, int32_t> ids;
  std::vector<double> best;
  std::vector<int32_t> task_ids;
  for (size_t i = 0; i < inputs.size(); ++i) {
    tasks.push_back(inputs[i]->task);
    states.push_back(inputs[i]->state);
    std::string key = std::string(inputs[i]->task->workload_key) + "\n" +
                      std::string(inputs[i]->task->target->str());
    auto [it, fresh] = ids.emplace(key, static_cast<int32_t>(ids.size()));
    if (fresh) best.push_back(std::numeric_limits<double>::infinity());
    task_ids.push_back(it->second);
    if (was_timed(results[i])) {
      best[it->second] = std::min(best[it->second], results[i]->MeanCost());
    }
  }
  std::vector<float> throughputs;
  for (size_t i = 0; i < inputs.size(); ++i) {
    throughputs.push_back(was_timed(results[i])
                              ? static_cast<float>(best[task_ids[i]] / results[i]->MeanCost())
                              : 0.0f);
  }
  return Pack(FeaturesOfAll(tasks, states, skip_first, max_n_bufs), throughputs, task_ids);
}

}  // namespace

TVM_REGISTER_GLOBAL("auto_scheduler.GetPerStoreFeaturesFromStates")
    .set_body_typed([](Array<State> states, SearchTask task, int max_n_bufs) {
      return Pack(FeaturesOfAll({task}, states, 0, max_n_bufs), {}, {});
    });
TVM_REGISTER_GLOBAL("auto_scheduler.GetPerStoreFeaturesFromMeasurePairs")
    .set_body_typed(FeaturesOfMeasurePairs);
// Models that look at patterns of accesses ask for their rows under this name; the rows describe
// each buffer of a store already, so they are the same.
TVM_REGISTER_GLOBAL("auto_scheduler.GetPerStoreFeaturesFromMeasurePairsPAM")
    .set_body_typed(FeaturesOfMeasurePairs);
TVM_REGISTER_GLOBAL("auto_scheduler.GetPerStoreFeaturesFromPrimFuncs")
    .set_body_typed([](Array<tir::PrimFunc> functions, Target target, int max_n_bufs) {
      int line = static_cast<int>(MachineFacts::Of(target).cache_line_bytes);
      std::vector<Rows> rows(functions.size());
      runtime::threading::ParallelFor(static_cast<int>(functions.size()), [&](int i) {
        LoopProgram program = ReadLoopProgram(functions[i], arith::VarContext::Make());
        rows[i] = PerStoreFeatures(program, line, max_n_bufs);
      });
      return Pack(rows, {}, {});
    });
TVM_REGISTER_GLOBAL("auto_scheduler.GetPerStoreFeatureNames").set_body_typed([](int max_n_bufs) {
  Array<String> names;
  for (const std::string& name : PerStoreFeatureNames(max_n_bufs)) names.push_back(name);
  return names;
});
TVM_REGISTER_GLOBAL("auto_scheduler.PerStoreFeatureVersion").set_body_typed([]() {
  return kPerStoreFeatureVersion;
});

}  // namespace auto_scheduler
}  // namespace tvm
