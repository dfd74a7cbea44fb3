/*!
 * \file loop_state.cc
 * \brief Stages, states and the primitives that append steps to them.
 */
#include <tvm/auto_scheduler/compute_dag.h>
#include <tvm/auto_scheduler/loop_state.h>
#include <tvm/auto_scheduler/transform_step.h>
#include <tvm/expr/op.h>
#include <tvm/node/structural_hash.h>
#include <tvm/runtime/registry.h>

#include <sstream>
#include <string>
#include <vector>

#include "utils.h"

namespace tvm {
namespace auto_scheduler {

TVM_REGISTER_NODE(LoopPartNode);
TVM_REGISTER_NODE(IteratorNode);
TVM_REGISTER_NODE(StageNode);
TVM_REGISTER_NODE(StateNode);

const char* AnnotationText(IteratorAnnotation annotation) {
  switch (annotation) {
    case IteratorAnnotation::kNone:
      return "for";
    case IteratorAnnotation::kUnroll:
      return "unroll";
    case IteratorAnnotation::kVectorize:
      return "vectorize";
    case IteratorAnnotation::kParallel:
      return "parallel";
    case IteratorAnnotation::kVThread:
      return "vthread";
    case IteratorAnnotation::kBlockX:
      return "blockIdx.x";
    case IteratorAnnotation::kThreadX:
      return "threadIdx.x";
    case IteratorAnnotation::kBlockY:
      return "blockIdx.y";
    case IteratorAnnotation::kThreadY:
      return "threadIdx.y";
    case IteratorAnnotation::kBlockZ:
      return "blockIdx.z";
    case IteratorAnnotation::kThreadZ:
      return "threadIdx.z";
    case IteratorAnnotation::kTensorize:
      return "tensorize";
  }
  TVM_FATAL(ValueError) << "annotation: no loop annotation has the number "
                        << static_cast<int>(annotation) << "; they go from 0 (none) to 11";
}

int64_t Iterator::ConstExtent() const {
  if (!get()->range.defined()) return -1;
  const int64_t* extent = tir::as_const_int(get()->range.value()->extent);
  return extent == nullptr ? -1 : *extent;
}

Stage::Stage(te::Operation op, int id) {
  auto node = make_object<StageNode>();
  node->id = id;
  if (const auto* compute = op.as<te::ComputeOpNode>()) {
    int axis_id = 0;
    auto add = [&](const te::IterVar& axis, IteratorKind kind) {
      LoopPart whole(axis_id++, axis->dom->extent, Integer(1));
      node->iters.push_back(Iterator(CleanName(axis->var->name_hint), axis->dom, kind,
                                     IteratorAnnotation::kNone, {}, {whole}));
    };
    for (const te::IterVar& axis : compute->axis) add(axis, IteratorKind::kSpatial);
    for (const te::IterVar& axis : compute->reduce_axis) add(axis, IteratorKind::kReduction);
    node->op_type = StageKind::kCompute;
  } else {
    TVM_CHECK(op->IsInstance<te::PlaceholderOpNode>(), ValueError)
        << "State: operation " << op->name << " is a " << op->GetTypeKey()
        << ", but only te.compute and te.placeholder can be scheduled automatically";
    node->op_type = StageKind::kPlaceholder;
  }
  node->op = std::move(op);
  data_ = std::move(node);
}

State::State(const Array<te::Operation>& ops) {
  auto node = make_object<StateNode>();
  for (const te::Operation& op : ops) {
    node->stages.push_back(Stage(op, static_cast<int>(node->stages.size())));
  }
  data_ = std::move(node);
}

int State::PositionOf(int id) const {
  const Array<Stage>& stages = get()->stages;
  for (size_t i = 0; i < stages.size(); ++i) {
    if (stages[i]->id == id) return static_cast<int>(i);
  }
  TVM_FATAL(InternalError) << "State: no stage has the identity " << id;
}

std::vector<int> State::AttachedStages(int stage_id, int iter_id) const {
  std::vector<int> attached;
  const Array<Stage>& stages = get()->stages;
  const int id = stages[stage_id]->id;
  for (size_t i = 0; i < stages.size(); ++i) {
    if (stages[i]->attach_stage == id && stages[i]->attach_iter == iter_id) {
      attached.push_back(static_cast<int>(i));
    }
  }
  return attached;
}

bool State::HasAttachedStages(int stage_id, int iter_id) const {
  const int id = get()->stages[stage_id]->id;
  for (const Stage& stage : get()->stages) {
    if (stage->attach_stage == id && stage->attach_iter == iter_id) return true;
  }
  return false;
}

namespace {

/*! \brief Prints the loops of one stage, and inside them the stages attached there. */
class StatePrinter {
 public:
  StatePrinter(const State& state, bool delete_trivial_loop)
      : state_(state), delete_trivial_loop_(delete_trivial_loop) {}

  std::string Print() {
    bool first = true;
    for (const Stage& stage : state_->stages) {
      if (stage->op_type != StageKind::kPlaceholder) continue;
      os_ << (first ? "Placeholder: " : ", ") << stage->op->name;
      first = false;
    }
    if (!first) os_ << "\n";
    for (size_t i = 0; i < state_->stages.size(); ++i) {
      const Stage& stage = state_->stages[i];
      if (stage->op_type == StageKind::kCompute && stage->compute_at == ComputeAtKind::kRoot) {
        PrintStage(static_cast<int>(i), 0);
      }
    }
    return os_.str();
  }

 private:
  void Indent(int depth) { os_ << std::string(2 * depth, ' '); }

  void PrintStage(int stage_id, int depth) {
    const Stage& stage = state_->stages[stage_id];
    if (stage->auto_unroll_max_step != 0) {
      Indent(depth);
      os_ << stage->op->name << " auto_unroll: " << stage->auto_unroll_max_step << "\n";
    }
    if (stage->storage_offset != 0) {
      Indent(depth);
      os_ << stage->op->name << " storage_offset: " << stage->storage_offset << "\n";
    }
    for (size_t i = 0; i < stage->iters.size(); ++i) {
      const Iterator& iter = stage->iters[i];
      if (!(delete_trivial_loop_ && iter.ConstExtent() == 1)) {
        Indent(depth);
        os_ << AnnotationText(iter->annotation) << " " << iter->name << " ";
        if (iter->range.defined()) {
          Range range = iter->range.value();
          os_ << "(" << range->min << "," << range->extent << ")\n";
        } else {
          os_ << "(None)\n";
        }
        ++depth;
      }
      for (int attached : state_.AttachedStages(stage_id, static_cast<int>(i))) {
        PrintStage(attached, depth);
      }
    }
    Indent(depth);
    os_ << stage->op->name << " = ...\n";
  }

  const State& state_;
  bool delete_trivial_loop_;
  std::ostringstream os_;
};

uint64_t Mix(uint64_t seed, uint64_t value) {
  // The finalizer of splitmix64: every input bit reaches every output bit.
  uint64_t x = seed ^ (value + 0x9e3779b97f4a7c15ULL + (seed << 6) + (seed >> 2));
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

uint64_t HashStage(const State& state, int stage_id, uint64_t hash) {
  const Stage& stage = state->stages[stage_id];
  hash = Mix(hash, static_cast<uint64_t>(stage->auto_unroll_max_step));
  hash = Mix(hash, static_cast<uint64_t>(stage->storage_offset));
  StructuralHash structural_hash;
  for (size_t i = 0; i < stage->iters.size(); ++i) {
    const Iterator& iter = stage->iters[i];
    if (iter.ConstExtent() != 1) {
      hash = Mix(hash, static_cast<uint64_t>(iter->annotation));
      hash = Mix(hash, std::hash<std::string>()(iter->name));
      // Where a loop starts follows from the rest, in terms of variables that are new in each
      // replay.
      if (iter->range.defined()) hash = Mix(hash, structural_hash(iter->range.value()->extent));
    }
    for (int attached : state.AttachedStages(stage_id, static_cast<int>(i))) {
      hash = HashStage(state, attached, Mix(hash, 1));
    }
  }
  return Mix(hash, std::hash<std::string>()(stage->op->name));
}

/*! \brief Marks of copies that are made ahead of their use, which no loop shows; in order. */
std::vector<std::string> CopiesAhead(const State& state) {
  std::vector<std::string> marks;
  for (const Step& step : state->transform_steps) {
    if (const auto* ahead = step.as<FetchAheadStepNode>()) {
      std::ostringstream mark;
      mark << "fetch_ahead " << ahead->lengths[0];
      marks.push_back(mark.str());
    }
    const auto* pragma = step.as<PragmaStepNode>();
    if (pragma == nullptr) continue;
    const std::string type = pragma->pragma_type;
    if (type == "double_buffer" || type == "async_copy") marks.push_back(type);
  }
  return marks;
}

}  // namespace

std::string State::ToStr(bool delete_trivial_loop) const {
  std::string text = StatePrinter(*this, delete_trivial_loop).Print();
  for (const std::string& mark : CopiesAhead(*this)) text += "pragma " + mark + "\n";
  return text;
}

uint64_t State::ProgramHash() const {
  uint64_t hash = 0;
  for (size_t i = 0; i < get()->stages.size(); ++i) {
    const Stage& stage = get()->stages[i];
    if (stage->op_type == StageKind::kCompute && stage->compute_at == ComputeAtKind::kRoot) {
      hash = HashStage(*this, static_cast<int>(i), hash);
    }
  }
  for (const std::string& mark : CopiesAhead(*this)) {
    hash = Mix(hash, std::hash<std::string>()(mark));
  }
  return hash;
}

int State::AppendStep(const Step& step, const ComputeDAG& dag) {
  CopyOnWrite()->transform_steps.push_back(step);
  step->ApplyToState(this, dag);
  return step->AddedStage().value_or(step->stage_id);
}

void State::AppendStep(const Step& step) {
  ICHECK(!step->AddsStage()) << step->Tag() << " rebuilds the DAG, so it needs it";
  CopyOnWrite()->transform_steps.push_back(step);
  step->ApplyToState(this, ComputeDAG());
}

Iterator State::annotate(int stage_id, const Iterator& it, IteratorAnnotation annotation) {
  int iter_id = IndexOf(get()->stages[stage_id]->iters, it);
  AppendStep(AnnotationStep(stage_id, iter_id, annotation));
  return get()->stages[stage_id]->iters[iter_id];
}

Iterator State::bind(int stage_id, const Iterator& it, IteratorAnnotation thread_type) {
  TVM_CHECK(
      thread_type >= IteratorAnnotation::kVThread && thread_type <= IteratorAnnotation::kThreadZ,
      ValueError)
      << "bind(" << it->name << "): " << AnnotationText(thread_type)
      << " is no thread axis; take one of vthread, blockIdx.x/y/z, threadIdx.x/y/z";
  return annotate(stage_id, it, thread_type);
}

Iterator State::parallel(int stage_id, const Iterator& it) {
  return annotate(stage_id, it, IteratorAnnotation::kParallel);
}

Iterator State::unroll(int stage_id, const Iterator& it, int max_unroll) {
  // A long loop written out would swamp the instruction cache, so callers may bound it.
  if (max_unroll != -1 && it.ConstExtent() > max_unroll) return it;
  return annotate(stage_id, it, IteratorAnnotation::kUnroll);
}

Iterator State::vectorize(int stage_id, const Iterator& it) {
  return annotate(stage_id, it, IteratorAnnotation::kVectorize);
}

Iterator State::fuse(int stage_id, const Array<Iterator>& iters) {
  Array<int64_t> ids;
  for (const Iterator& it : iters) {
    ids.push_back(IndexOf(get()->stages[stage_id]->iters, it));
  }
  AppendStep(FuseStep(stage_id, ids));
  int position = ids.empty() ? 0 : static_cast<int>(ids[0]);
  return get()->stages[stage_id]->iters[position];
}

void State::pragma(int stage_id, const Iterator& it, const String& pragma_type) {
  AppendStep(PragmaStep(stage_id, IndexOf(get()->stages[stage_id]->iters, it), pragma_type));
}

void State::reorder(int stage_id, const Array<Iterator>& order) {
  const Array<Iterator>& iters = get()->stages[stage_id]->iters;
  TVM_CHECK(order.size() == iters.size(), ValueError)
      << "reorder(" << get()->stages[stage_id]->op->name << "): got " << order.size()
      << " loops, but all " << iters.size() << " loops of the stage must be given";
  Array<int64_t> ids;
  for (const Iterator& it : order) ids.push_back(IndexOf(iters, it));
  AppendStep(ReorderStep(stage_id, ids));
}

Array<Iterator> State::split(int stage_id, const Iterator& it,
                             const Array<Optional<PrimExpr>>& lengths, bool inner_to_outer) {
  for (const Optional<PrimExpr>& length : lengths) {
    TVM_CHECK(!length.defined() || !tir::is_zero(length.value()), ScheduleError)
        << "split(" << it->name << "): a length must be >= 1, got 0; one that is not known yet is "
        << "None";
  }
  int iter_id = IndexOf(get()->stages[stage_id]->iters, it);
  Optional<PrimExpr> extent;
  if (it->range.defined()) extent = it->range.value()->extent;
  AppendStep(SplitStep(stage_id, iter_id, extent, lengths, inner_to_outer));
  return Slice(get()->stages[stage_id]->iters, iter_id, lengths.size() + 1);
}

Array<Iterator> State::fixed_split(int stage_id, const Iterator& it, int length) {
  int iter_id = IndexOf(get()->stages[stage_id]->iters, it);
  AppendStep(FixedSplitStep(stage_id, iter_id, length));
  return Slice(get()->stages[stage_id]->iters, iter_id, 2);
}

Array<Iterator> State::pad(int stage_id, const Iterator& it, int extent) {
  int iter_id = IndexOf(get()->stages[stage_id]->iters, it);
  AppendStep(PadLoopStep(stage_id, iter_id, extent));
  return Slice(get()->stages[stage_id]->iters, iter_id, 2);
}

Array<Iterator> State::follow_split(int stage_id, const Iterator& it, int src_step_id,
                                    int n_split) {
  int iter_id = IndexOf(get()->stages[stage_id]->iters, it);
  AppendStep(FollowSplitStep(stage_id, iter_id, src_step_id, n_split));
  return Slice(get()->stages[stage_id]->iters, iter_id, n_split + 1);
}

Array<Iterator> State::follow_fused_split(int stage_id, const Iterator& it,
                                          const Array<int64_t>& src_step_ids, int level,
                                          bool factor_or_nparts) {
  int iter_id = IndexOf(get()->stages[stage_id]->iters, it);
  AppendStep(FollowFusedSplitStep(stage_id, iter_id, src_step_ids, level, factor_or_nparts));
  return Slice(get()->stages[stage_id]->iters, iter_id, 2);
}

void State::storage_align(int stage_id, const Iterator& it, int factor, int offset) {
  int iter_id = IndexOf(get()->stages[stage_id]->iters, it);
  AppendStep(StorageAlignStep(stage_id, iter_id, factor, offset));
}

void State::follow_storage_align(int stage_id, int dim, int src_step_id) {
  AppendStep(FollowStorageAlignStep(stage_id, dim, src_step_id));
}

void State::fetch_ahead(int stage_id, const Array<int64_t>& copy_ids,
                        const Optional<PrimExpr>& length) {
  AppendStep(FetchAheadStep(stage_id, copy_ids, Array<Optional<PrimExpr>>{length}));
}

void State::compute_at(int stage_id, int target_stage_id, const Iterator& target_iter) {
  int target_iter_id = IndexOf(get()->stages[target_stage_id]->iters, target_iter);
  AppendStep(ComputeAtStep(stage_id, target_stage_id, target_iter_id));
}

void State::compute_inline(int stage_id) { AppendStep(ComputeInlineStep(stage_id)); }

void State::compute_root(int stage_id) { AppendStep(ComputeRootStep(stage_id)); }

int State::cache_read(int stage_id, const String& scope_name,
                      const Array<int64_t>& reader_stage_ids, const ComputeDAG& dag) {
  return AppendStep(CacheReadStep(stage_id, scope_name, reader_stage_ids), dag);
}

int State::pack_read(int stage_id, const String& scope_name, const Array<int64_t>& reader_stage_ids,
                     const Array<int64_t>& order, const ComputeDAG& dag) {
  return AppendStep(PackReadStep(stage_id, scope_name, reader_stage_ids, order), dag);
}

int State::pad_read(int stage_id, const Array<int64_t>& reader_stage_ids,
                    const Array<int64_t>& shape, const ComputeDAG& dag) {
  return AppendStep(PadReadStep(stage_id, reader_stage_ids, shape), dag);
}

int State::pad_axes(int stage_id, const Array<int64_t>& extents, const ComputeDAG& dag) {
  return AppendStep(PadAxesStep(stage_id, extents), dag);
}

int State::cache_write(int stage_id, const String& scope_name, const ComputeDAG& dag) {
  return AppendStep(CacheWriteStep(stage_id, scope_name), dag);
}

int State::rfactor(int stage_id, const Iterator& it, int factor_iter_id, const ComputeDAG& dag) {
  int iter_id = IndexOf(get()->stages[stage_id]->iters, it);
  return AppendStep(RfactorStep(stage_id, iter_id, factor_iter_id), dag);
}

TVM_REGISTER_GLOBAL("auto_scheduler.IteratorAnnotationText").set_body_typed([](int annotation) {
  return String(AnnotationText(static_cast<IteratorAnnotation>(annotation)));
});
TVM_REGISTER_GLOBAL("auto_scheduler.StateToStr")
    .set_body_typed([](State state, bool delete_trivial_loop) {
      return String(state.ToStr(delete_trivial_loop));
    });
TVM_REGISTER_GLOBAL("auto_scheduler.StateHash").set_body_typed([](State state) {
  return static_cast<int64_t>(state.ProgramHash());
});
TVM_REGISTER_GLOBAL("auto_scheduler.StateEqual").set_body_typed([](State a, State b) {
  return a.ProgramHash() == b.ProgramHash() && a.ToStr() == b.ToStr();
});
// A primitive changes the state, and Python wants the new loop as well, so both come back.
TVM_REGISTER_GLOBAL("auto_scheduler.StateBind")
    .set_body_typed([](State state, int stage_id, Iterator it, int thread_type) {
      Iterator result = state.bind(stage_id, it, static_cast<IteratorAnnotation>(thread_type));
      return Array<Any>{state, result};
    });
TVM_REGISTER_GLOBAL("auto_scheduler.StateParallel")
    .set_body_typed([](State state, int stage_id, Iterator it) {
      Iterator result = state.parallel(stage_id, it);
      return Array<Any>{state, result};
    });
TVM_REGISTER_GLOBAL("auto_scheduler.StateUnroll")
    .set_body_typed([](State state, int stage_id, Iterator it, int max_unroll) {
      Iterator result = state.unroll(stage_id, it, max_unroll);
      return Array<Any>{state, result};
    });
TVM_REGISTER_GLOBAL("auto_scheduler.StateVectorize")
    .set_body_typed([](State state, int stage_id, Iterator it) {
      Iterator result = state.vectorize(stage_id, it);
      return Array<Any>{state, result};
    });
TVM_REGISTER_GLOBAL("auto_scheduler.StateFuse")
    .set_body_typed([](State state, int stage_id, Array<Iterator> iters) {
      Iterator result = state.fuse(stage_id, iters);
      return Array<Any>{state, result};
    });
TVM_REGISTER_GLOBAL("auto_scheduler.StatePragma")
    .set_body_typed([](State state, int stage_id, Iterator it, String pragma_type) {
      state.pragma(stage_id, it, pragma_type);
      return state;
    });
TVM_REGISTER_GLOBAL("auto_scheduler.StateReorder")
    .set_body_typed([](State state, int stage_id, Array<Iterator> order) {
      state.reorder(stage_id, order);
      return state;
    });
TVM_REGISTER_GLOBAL("auto_scheduler.StateSplit")
    .set_body_typed([](State state, int stage_id, Iterator it, Array<Optional<PrimExpr>> lengths,
                       bool inner_to_outer) {
      Array<Iterator> result = state.split(stage_id, it, lengths, inner_to_outer);
      return Array<Any>{state, result};
    });
TVM_REGISTER_GLOBAL("auto_scheduler.StateFollowSplit")
    .set_body_typed([](State state, int stage_id, Iterator it, int src_step_id, int n_split) {
      Array<Iterator> result = state.follow_split(stage_id, it, src_step_id, n_split);
      return Array<Any>{state, result};
    });
TVM_REGISTER_GLOBAL("auto_scheduler.StateFollowFusedSplit")
    .set_body_typed([](State state, int stage_id, Iterator it, Array<int64_t> src_step_ids,
                       int level, bool factor_or_nparts) {
      Array<Iterator> result =
          state.follow_fused_split(stage_id, it, src_step_ids, level, factor_or_nparts);
      return Array<Any>{state, result};
    });
TVM_REGISTER_GLOBAL("auto_scheduler.StateStorageAlign")
    .set_body_typed([](State state, int stage_id, Iterator it, int factor, int offset) {
      state.storage_align(stage_id, it, factor, offset);
      return state;
    });
TVM_REGISTER_GLOBAL("auto_scheduler.StateComputeAt")
    .set_body_typed([](State state, int stage_id, int target_stage_id, Iterator target_iter) {
      state.compute_at(stage_id, target_stage_id, target_iter);
      return state;
    });
TVM_REGISTER_GLOBAL("auto_scheduler.StateComputeInline")
    .set_body_typed([](State state, int stage_id) {
      state.compute_inline(stage_id);
      return state;
    });
TVM_REGISTER_GLOBAL("auto_scheduler.StateComputeRoot")
    .set_body_typed([](State state, int stage_id) {
      state.compute_root(stage_id);
      return state;
    });
TVM_REGISTER_GLOBAL("auto_scheduler.StateCacheRead")
    .set_body_typed([](State state, int stage_id, String scope_name,
                       Array<int64_t> reader_stage_ids, ComputeDAG dag) {
      int new_id = state.cache_read(stage_id, scope_name, reader_stage_ids, dag);
      return Array<Any>{state, new_id};
    });
TVM_REGISTER_GLOBAL("auto_scheduler.StatePackRead")
    .set_body_typed([](State state, int stage_id, String scope_name,
                       Array<int64_t> reader_stage_ids, Array<int64_t> order, ComputeDAG dag) {
      int new_id = state.pack_read(stage_id, scope_name, reader_stage_ids, order, dag);
      return Array<Any>{state, new_id};
    });
TVM_REGISTER_GLOBAL("auto_scheduler.StatePadRead")
    .set_body_typed([](State state, int stage_id, Array<int64_t> reader_stage_ids,
                       Array<int64_t> shape, ComputeDAG dag) {
      int new_id = state.pad_read(stage_id, reader_stage_ids, shape, dag);
      return Array<Any>{state, new_id};
    });
TVM_REGISTER_GLOBAL("auto_scheduler.StatePadAxes")
    .set_body_typed([](State state, int stage_id, Array<int64_t> extents, ComputeDAG dag) {
      int new_id = state.pad_axes(stage_id, extents, dag);
      return Array<Any>{state, new_id};
    });
TVM_REGISTER_GLOBAL("auto_scheduler.StateCacheWrite")
    .set_body_typed([](State state, int stage_id, String scope_name, ComputeDAG dag) {
      int new_id = state.cache_write(stage_id, scope_name, dag);
      return Array<Any>{state, new_id};
    });
TVM_REGISTER_GLOBAL("auto_scheduler.StateRfactor")
    .set_body_typed([](State state, int stage_id, Iterator it, int factor_iter_id, ComputeDAG dag) {
      int new_id = state.rfactor(stage_id, it, factor_iter_id, dag);
      return Array<Any>{state, new_id};
    });

}  // namespace auto_scheduler
}  // namespace tvm
