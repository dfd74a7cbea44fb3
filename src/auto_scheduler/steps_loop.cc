/*!
 * \file steps_loop.cc
 * \brief Steps that change the loops within one stage: AN FU PR RE SP FXS PDL FSP FFSP SA FSA FA.
 */
#include <tvm/arith/analyzer.h>
#include <tvm/auto_scheduler/compute_dag.h>
#include <tvm/auto_scheduler/transform_step.h>
#include <tvm/expr/op.h>
#include <tvm/runtime/registry.h>

#include <functional>
#include <numeric>

#include "schedule_replay.h"
#include "step_utils.h"
#include "utils.h"

namespace tvm {
namespace auto_scheduler {

TVM_REGISTER_NODE(AnnotationStepNode);
TVM_REGISTER_NODE(FuseStepNode);
TVM_REGISTER_NODE(PragmaStepNode);
TVM_REGISTER_NODE(ReorderStepNode);
TVM_REGISTER_NODE(SplitStepNode);
TVM_REGISTER_NODE(FixedSplitStepNode);
TVM_REGISTER_NODE(PadLoopStepNode);
TVM_REGISTER_NODE(FollowSplitStepNode);
TVM_REGISTER_NODE(FollowFusedSplitStepNode);
TVM_REGISTER_NODE(StorageAlignStepNode);
TVM_REGISTER_NODE(FollowStorageAlignStepNode);
TVM_REGISTER_NODE(FetchAheadStepNode);

namespace {

using Lengths = Array<Optional<PrimExpr>>;

/*! \brief Move the attach points at loops of `stage_id` to where `new_iter_id` says. */
void MoveAttachPoints(State* state, int stage_id, const std::function<int(int)>& new_iter_id) {
  const int host = (*state)->stages[stage_id]->id;
  for (int i = 0; i < static_cast<int>((*state)->stages.size()); ++i) {
    const Stage& attached = (*state)->stages[i];
    if (attached->attach_stage != host) continue;
    int moved = new_iter_id(attached->attach_iter);
    if (moved == attached->attach_iter) continue;
    EditStage(state, i, [&](StageNode* stage) { stage->attach_iter = moved; });
  }
}

void EditIter(State* state, int stage_id, int iter_id,
              const std::function<void(IteratorNode*)>& edit) {
  EditStage(state, stage_id, [&](StageNode* stage) {
    Iterator iter = stage->iters[iter_id];
    edit(iter.CopyOnWrite());
    stage->iters.Set(iter_id, iter);
  });
}

bool AllLiteral(const Lengths& lengths) {
  for (const Optional<PrimExpr>& length : lengths) {
    if (!length.defined() || tir::as_const_int(length.value()) == nullptr) return false;
  }
  return true;
}

bool AllDefined(const Lengths& lengths) {
  for (const Optional<PrimExpr>& length : lengths) {
    if (!length.defined()) return false;
  }
  return true;
}

/*!
 * \brief Extents of the parts when `extent` is split, outermost first; undefined where open.
 *
 * Symbolic lengths count as knobs of an exact split group, whose parts multiply to `extent`.
 */
Array<Optional<PrimExpr>> PartExtents(const Optional<PrimExpr>& extent, const Lengths& lengths,
                                      bool inner_to_outer) {
  Optional<PrimExpr> rest;
  if (extent.defined() && AllDefined(lengths)) {
    arith::Analyzer analyzer;
    PrimExpr product = Integer(1);
    for (const Optional<PrimExpr>& length : lengths) product = product * length.value();
    if (AllLiteral(lengths) && tir::as_const_int(extent.value()) != nullptr) {
      rest = ceildiv(extent.value(), product);
    } else {
      rest = analyzer.Simplify(floordiv(extent.value(), product));
    }
  }
  Array<Optional<PrimExpr>> parts = lengths;
  parts.insert(inner_to_outer ? parts.begin() : parts.end(), rest);
  return parts;
}

/*! \brief Effect of any split on the loops: `lengths.size() + 1` loops in place of one. */
void SplitIter(State* state, int stage_id, int iter_id, const Lengths& lengths,
               bool inner_to_outer) {
  const Iterator it = CheckedIter(*state, stage_id, iter_id);
  TVM_CHECK(it->annotation == IteratorAnnotation::kNone, ScheduleError)
      << "split(" << it->name << "): the loop is marked " << AnnotationText(it->annotation)
      << " already; split it before marking its parts";
  Optional<PrimExpr> extent;
  if (it->range.defined()) extent = it->range.value()->extent;
  // A stage computed elsewhere has no range, but its axes still have their whole extent.
  Optional<PrimExpr> whole;
  if (it->parts.size() == 1) whole = it->parts[0]->extent;

  Array<Optional<PrimExpr>> extents = PartExtents(extent, lengths, inner_to_outer);
  Array<Optional<PrimExpr>> wholes = PartExtents(whole, lengths, inner_to_outer);

  std::vector<Array<LoopPart>> parts(extents.size());
  if (whole.defined() && AllDefined(lengths)) {
    arith::Analyzer analyzer;
    PrimExpr stride = it->parts[0]->stride;
    for (size_t i = extents.size(); i-- > 0;) {
      parts[i] = {LoopPart(it->parts[0]->axis, wholes[i].value(), stride)};
      stride = analyzer.Simplify(stride * wholes[i].value());
    }
  }
  Array<Iterator> made;
  for (size_t i = 0; i < extents.size(); ++i) {
    Optional<Range> range;
    if (extents[i].defined()) {
      range = Range::FromMinExtent(Integer(0), extents[i].value());
    }
    Iterator part(it->name + "." + std::to_string(i), range, it->iter_kind,
                  IteratorAnnotation::kNone, {}, parts[i]);
    part.CopyOnWrite()->split_part = static_cast<int>(i);
    made.push_back(part);
  }
  const auto this_step = static_cast<int64_t>((*state)->transform_steps.size()) - 1;
  EditStage(state, stage_id, [&](StageNode* stage) {
    stage->iters = Replace(stage->iters, iter_id, 1, made);
    stage->split_steps.push_back(this_step);
  });
  int added = static_cast<int>(lengths.size());
  // What was attached at the loop needs the whole loop's position, hence the innermost part.
  MoveAttachPoints(state, stage_id, [=](int id) { return id >= iter_id ? id + added : id; });
  if (!AllDefined(lengths)) state->CopyOnWrite()->concrete = false;
}

void SplitAxis(ScheduleReplay* replay, int stage_id, int iter_id, const Lengths& lengths,
               bool inner_to_outer) {
  te::Stage stage = replay->stage(stage_id);
  te::IterVar rest = replay->axis(stage_id, iter_id);
  for (const Optional<PrimExpr>& length : lengths) {
    TVM_CHECK(length.defined(), ValueError)
        << "apply steps: stage " << stage->op->name << " is split at loop " << rest->var->name_hint
        << " by a length that is still open; fill in the tile sizes first";
  }
  Array<te::IterVar> parts;
  if (inner_to_outer) {
    for (size_t i = lengths.size(); i-- > 0;) {
      te::IterVar outer, inner;
      stage.split(rest, lengths[i].value(), &outer, &inner);
      parts.insert(parts.begin(), inner);
      rest = outer;
    }
    parts.insert(parts.begin(), rest);
  } else {
    for (const Optional<PrimExpr>& length : lengths) {
      te::IterVar outer, inner;
      stage.split_by_nparts(rest, length.value(), &outer, &inner);
      parts.push_back(outer);
      rest = inner;
    }
    parts.push_back(rest);
  }
  replay->ReplaceLoops(stage_id, iter_id, 1, parts);
}

}  // namespace

void AnnotationStepNode::ApplyToState(State* state, const ComputeDAG& dag) const {
  const Iterator it = CheckedIter(*state, stage_id, iter_id);
  TVM_CHECK(it->annotation == IteratorAnnotation::kNone, ScheduleError)
      << "annotate(" << it->name << "): the loop is marked " << AnnotationText(it->annotation)
      << " already, so it cannot be marked " << AnnotationText(annotation);
  EditIter(state, stage_id, iter_id, [this](IteratorNode* iter) { iter->annotation = annotation; });
}

void AnnotationStepNode::ApplyToSchedule(ScheduleReplay* replay) const {
  te::Stage stage = replay->stage(stage_id);
  te::IterVar axis = replay->axis(stage_id, iter_id);
  switch (annotation) {
    case IteratorAnnotation::kNone:
      return;
    case IteratorAnnotation::kUnroll:
      stage.unroll(axis);
      return;
    case IteratorAnnotation::kVectorize:
      stage.vectorize(axis);
      return;
    case IteratorAnnotation::kParallel:
      stage.parallel(axis);
      return;
    case IteratorAnnotation::kTensorize:
      TVM_FATAL(ScheduleError) << "apply steps: stage " << stage->op->name
                               << " asks for tensorize, which needs an intrinsic that a step "
                                  "cannot name; use te.Stage.tensorize";
    default:
      stage.bind(axis, te::thread_axis(Range(), AnnotationText(annotation)));
  }
}

void FuseStepNode::Init() {
  for (size_t i = 1; i < fused_ids.size(); ++i) {
    TVM_CHECK(fused_ids[i] == fused_ids[i - 1] + 1, ScheduleError)
        << "fuse: loops must be neighbours, outermost first, but ids are " << fused_ids
        << "; reorder the stage first";
  }
}

void FuseStepNode::ApplyToState(State* state, const ComputeDAG& dag) const {
  const int count = static_cast<int>(fused_ids.size());
  const int first = count == 0 ? 0 : static_cast<int>(fused_ids[0]);
  std::string name = count == 0 ? "@" : "";
  IteratorKind kind = IteratorKind::kSpecial;
  Optional<PrimExpr> extent = PrimExpr(Integer(1));
  PrimExpr min = Integer(0);
  Array<ObjectRef> orig_iters;
  Array<LoopPart> parts;
  bool parts_known = true;
  for (int i = 0; i < count; ++i) {
    const Iterator it = CheckedIter(*state, stage_id, first + i);
    if (i + 1 < count) {
      std::vector<int> attached = state->AttachedStages(stage_id, first + i);
      TVM_CHECK(attached.empty(), ScheduleError)
          << "fuse: stage " << (*state)->stages[attached[0]]->op->name << " is computed at loop "
          << it->name
          << ", which would vanish inside the fused loop; compute it at the last of them";
    }
    name += std::string(it->name) + "@";
    kind = i == 0 || kind == it->iter_kind ? it->iter_kind : IteratorKind::kMixed;
    if (it->range.defined() && extent.defined()) {
      extent = extent.value() * it->range.value()->extent;
      if (count == 1) min = it->range.value()->min;
    } else {
      extent = NullOpt;
    }
    if (it->orig_iters.empty()) {
      orig_iters.push_back(it);
    } else {
      for (const ObjectRef& orig : it->orig_iters) orig_iters.push_back(orig);
    }
    parts_known = parts_known && !it->parts.empty();
    for (const LoopPart& part : it->parts) parts.push_back(part);
  }
  Optional<Range> range;
  if (extent.defined()) {
    range = Range::FromMinExtent(min, arith::Analyzer().Simplify(extent.value()));
  }
  if (count == 0) kind = IteratorKind::kSpatial;
  Iterator fused(name, range, kind, IteratorAnnotation::kNone, orig_iters,
                 parts_known ? parts : Array<LoopPart>());
  EditStage(state, stage_id, [&](StageNode* stage) {
    stage->iters = Replace(stage->iters, first, count, Array<Iterator>{fused});
  });
  MoveAttachPoints(state, stage_id, [=](int id) {
    if (id < first) return id;
    return id < first + count ? first : id - count + 1;
  });
}

void FuseStepNode::ApplyToSchedule(ScheduleReplay* replay) const {
  te::Stage stage = replay->stage(stage_id);
  Array<te::IterVar> loops;
  for (int64_t id : fused_ids) {
    loops.push_back(replay->axis(stage_id, static_cast<int>(id)));
  }
  te::IterVar fused;
  stage.fuse(loops, &fused);
  size_t first = fused_ids.empty() ? 0 : static_cast<size_t>(fused_ids[0]);
  replay->ReplaceLoops(stage_id, first, loops.size(), {fused});
}

namespace {

/*! \brief What a pragma asks for: its name and the numbers behind it, each after a "$". */
struct PragmaText {
  std::string name;
  std::vector<int> numbers;

  explicit PragmaText(const std::string& text) {
    const size_t end = text.find('$');
    name = text.substr(0, end);
    constexpr size_t kMostDigits = 9;
    bool known = true;
    for (size_t at = end; at != std::string::npos;) {
      const size_t next = text.find('$', at + 1);
      const std::string digits = text.substr(at + 1, next - at - 1);
      known = known && !digits.empty() && digits.size() <= kMostDigits &&
              digits.find_first_not_of("0123456789") == std::string::npos;
      if (!known) break;
      numbers.push_back(std::stoi(digits));
      at = next;
    }
    known = known &&
            ((IsAutoUnroll() && numbers.size() == 1) || (IsReadAhead() && numbers.size() == 2) ||
             ((name == "debug_skip_region" || name == "tensor_core" || IsNextTile()) &&
              numbers.empty()));
    TVM_CHECK(known, ValueError) << "pragma: \"" << text
                                 << "\" is unknown; use auto_unroll_max_step$N, "
                                    "read_ahead$OPERAND$TRIPS, tensor_core, double_buffer, "
                                    "async_copy or debug_skip_region";
  }

  bool IsAutoUnroll() const { return name == "auto_unroll_max_step"; }
  /*! \brief Fill memory for the next trip of the loop around while the present one is in use. */
  bool IsNextTile() const { return name == "double_buffer" || name == "async_copy"; }
  /*! \brief Prefetch what the loop reads of an operand so many trips later. */
  bool IsReadAhead() const { return name == "read_ahead"; }
};

}  // namespace

void PragmaStepNode::ApplyToState(State* state, const ComputeDAG& dag) const {
  CheckedIter(*state, stage_id, iter_id);
  const PragmaText pragma(pragma_type);
  if (!pragma.IsAutoUnroll()) return;
  EditStage(state, stage_id,
            [&](StageNode* stage) { stage->auto_unroll_max_step = pragma.numbers[0]; });
}

void PragmaStepNode::ApplyToSchedule(ScheduleReplay* replay) const {
  te::Stage stage = replay->stage(stage_id);
  te::IterVar axis = replay->axis(stage_id, iter_id);
  const PragmaText pragma(pragma_type);
  if (pragma.IsAutoUnroll()) {
    stage.pragma(axis, "auto_unroll_max_step", Integer(pragma.numbers[0]));
    stage.pragma(axis, "unroll_explicit", tir::const_true());
  } else if (pragma.IsNextTile()) {
    stage.double_buffer();
    if (pragma.name == "async_copy") stage.pragma(axis, pragma.name, tir::const_true());
  } else if (pragma.IsReadAhead()) {
    const Array<te::Tensor> operands = stage->op->InputTensors();
    const int operand = pragma.numbers[0];
    TVM_CHECK(operand < static_cast<int>(operands.size()), ScheduleError)
        << "pragma: \"" << pragma_type << "\" names operand " << operand << " of "
        << stage->op->name << ", which has " << operands.size();
    stage.prefetch(operands[operand], axis, Integer(pragma.numbers[1]));
  } else {
    stage.pragma(axis, pragma.name, tir::const_true());
  }
}

void ReorderStepNode::ApplyToState(State* state, const ComputeDAG& dag) const {
  const Array<Iterator> iters = CheckedStage(*state, stage_id)->iters;
  std::vector<int> new_position(iters.size(), -1);
  Array<Iterator> ordered;
  for (size_t i = 0; i < after_ids.size(); ++i) {
    int64_t id = after_ids[i];
    TVM_CHECK(id >= 0 && id < static_cast<int64_t>(iters.size()) && new_position[id] == -1 &&
                  after_ids.size() == iters.size(),
              ScheduleError)
        << "reorder: " << after_ids << " is no order of the " << iters.size() << " loops of "
        << (*state)->stages[stage_id]->op->name;
    new_position[id] = static_cast<int>(i);
    ordered.push_back(iters[id]);
  }
  EditStage(state, stage_id, [&](StageNode* stage) { stage->iters = ordered; });
  MoveAttachPoints(state, stage_id, [&](int id) { return new_position[id]; });
}

void ReorderStepNode::ApplyToSchedule(ScheduleReplay* replay) const {
  Array<te::IterVar> order;
  for (int64_t id : after_ids) {
    order.push_back(replay->axis(stage_id, static_cast<int>(id)));
  }
  te::Stage stage = replay->stage(stage_id);
  stage.reorder(order);
  replay->SetOrder(stage_id, order);
}

namespace {

/*! \brief `lengths` where 0 stands for an open one. */
Lengths OpenWhereZero(const Lengths& lengths, const char* step) {
  Lengths known;
  for (const Optional<PrimExpr>& length : lengths) {
    const int64_t* literal = length.defined() ? tir::as_const_int(length.value()) : nullptr;
    TVM_CHECK(literal == nullptr || *literal >= 0, ScheduleError)
        << step << ": a length must be >= 1, or 0 while it is open, got " << *literal;
    known.push_back(literal != nullptr && *literal == 0 ? Optional<PrimExpr>() : length);
  }
  return known;
}

}  // namespace

void SplitStepNode::Init() {
  lengths = OpenWhereZero(lengths, "split");
  if (extent.defined() && tir::is_zero(extent.value())) extent = NullOpt;
}

void SplitStepNode::ApplyToState(State* state, const ComputeDAG& dag) const {
  SplitIter(state, stage_id, iter_id, lengths, inner_to_outer);
}

void SplitStepNode::ApplyToSchedule(ScheduleReplay* replay) const {
  SplitAxis(replay, stage_id, iter_id, lengths, inner_to_outer);
}

void FixedSplitStepNode::Init() {
  TVM_CHECK(length >= 1, ScheduleError) << "fixed split: the length must be >= 1, got " << length;
}

void FixedSplitStepNode::ApplyToState(State* state, const ComputeDAG& dag) const {
  SplitIter(state, stage_id, iter_id, {Optional<PrimExpr>(PrimExpr(Integer(length)))},
            /*inner_to_outer=*/true);
}

void FixedSplitStepNode::ApplyToSchedule(ScheduleReplay* replay) const {
  SplitAxis(replay, stage_id, iter_id, {Optional<PrimExpr>(PrimExpr(Integer(length)))},
            /*inner_to_outer=*/true);
}

void PadLoopStepNode::ApplyToState(State* state, const ComputeDAG& dag) const {
  const Iterator it = CheckedIter(*state, stage_id, iter_id);
  const bool is_shorter = it->range.defined() && it.ConstExtent() > extent;
  TVM_CHECK(extent >= 1 && !is_shorter, ScheduleError)
      << "pad(" << it->name << "): " << extent << " is less than the loop has trips";
  SplitIter(state, stage_id, iter_id, {Optional<PrimExpr>(PrimExpr(Integer(extent)))},
            /*inner_to_outer=*/true);
}

void PadLoopStepNode::ApplyToSchedule(ScheduleReplay* replay) const {
  te::Stage stage = replay->stage(stage_id);
  te::IterVar once, padded;
  stage.pad(replay->axis(stage_id, iter_id), extent, &once, &padded);
  replay->ReplaceLoops(stage_id, iter_id, 1, {once, padded});
}

namespace {

const SplitStepNode* SourceSplit(const Array<Step>& steps, int64_t src_step_id) {
  const SplitStepNode* split = nullptr;
  if (src_step_id >= 0 && src_step_id < static_cast<int64_t>(steps.size())) {
    split = steps[src_step_id].as<SplitStepNode>();
  }
  TVM_CHECK(split != nullptr, ScheduleError)
      << "follow split: step " << src_step_id << " of the history is not a split";
  return split;
}

}  // namespace

Array<Optional<PrimExpr>> FollowSplitStepNode::ExtractSplitLengths(
    const Array<Step>& transform_steps) const {
  const SplitStepNode* source = SourceSplit(transform_steps, src_step_id);
  // With one more than there are lengths, the innermost part has one trip.
  TVM_CHECK(n_split >= 1 && n_split <= static_cast<int>(source->lengths.size()) + 1, ScheduleError)
      << "follow split: n_split is " << n_split << ", but the source split has "
      << source->lengths.size() << " lengths, so it must be between 1 and one more than that";
  Lengths lengths = Slice(source->lengths, 0, n_split - 1);
  Optional<PrimExpr> rest = PrimExpr(Integer(1));
  for (size_t i = n_split - 1; i < source->lengths.size(); ++i) {
    if (rest.defined() && source->lengths[i].defined()) {
      rest = rest.value() * source->lengths[i].value();
    } else {
      rest = NullOpt;
    }
  }
  lengths.push_back(rest);
  return lengths;
}

void FollowSplitStepNode::ApplyToState(State* state, const ComputeDAG& dag) const {
  bool inner_to_outer = SourceSplit((*state)->transform_steps, src_step_id)->inner_to_outer;
  SplitIter(state, stage_id, iter_id, ExtractSplitLengths((*state)->transform_steps),
            inner_to_outer);
}

void FollowSplitStepNode::ApplyToSchedule(ScheduleReplay* replay) const {
  bool inner_to_outer = SourceSplit(replay->steps(), src_step_id)->inner_to_outer;
  SplitAxis(replay, stage_id, iter_id, ExtractSplitLengths(replay->steps()), inner_to_outer);
}

Optional<PrimExpr> FollowFusedSplitStepNode::ExtractSplitLength(
    const Array<Step>& transform_steps) const {
  PrimExpr product = Integer(1);
  for (int64_t id : src_step_ids) {
    const SplitStepNode* source = SourceSplit(transform_steps, id);
    TVM_CHECK(level >= 0 && level < static_cast<int>(source->lengths.size()), ScheduleError)
        << "follow fused split: level is " << level << ", but the source split has "
        << source->lengths.size() << " lengths";
    if (!source->lengths[level].defined()) return NullOpt;
    product = product * source->lengths[level].value();
  }
  return product;
}

void FollowFusedSplitStepNode::ApplyToState(State* state, const ComputeDAG& dag) const {
  SplitIter(state, stage_id, iter_id, {ExtractSplitLength((*state)->transform_steps)},
            factor_or_nparts);
}

void FollowFusedSplitStepNode::ApplyToSchedule(ScheduleReplay* replay) const {
  SplitAxis(replay, stage_id, iter_id, {ExtractSplitLength(replay->steps())}, factor_or_nparts);
}

void StorageAlignStepNode::ApplyToState(State* state, const ComputeDAG& dag) const {
  CheckedIter(*state, stage_id, iter_id);
  EditStage(state, stage_id, [this](StageNode* stage) { stage->storage_offset = offset; });
}

void StorageAlignStepNode::ApplyToSchedule(ScheduleReplay* replay) const {
  te::IterVar axis = replay->axis(stage_id, iter_id);
  // A result has no dimension of a loop that it sums over, so there is no stride to pad.
  if (axis->iter_type == tir::kCommReduce) return;
  te::Stage stage = replay->stage(stage_id);
  stage.storage_align(axis, factor, offset);
}

void FollowStorageAlignStepNode::ApplyToState(State* state, const ComputeDAG& dag) const {
  const auto* op = CheckedStage(*state, stage_id)->op.as<te::ComputeOpNode>();
  const int n_dims = op == nullptr ? 0 : static_cast<int>(op->axis.size());
  TVM_CHECK(dim >= 0 && dim < n_dims, ScheduleError)
      << "follow storage align: dimension " << dim << " is none of the " << n_dims << " of "
      << (*state)->stages[stage_id]->op->name;
  TVM_CHECK(!SourceSplit((*state)->transform_steps, src_step_id)->lengths.empty(), ScheduleError)
      << "follow storage align: step " << src_step_id << " has no lengths to follow";
}

void FollowStorageAlignStepNode::ApplyToSchedule(ScheduleReplay* replay) const {
  // An open length is refused where it splits.
  const PrimExpr length = SourceSplit(replay->steps(), src_step_id)->lengths.back().value();
  te::Stage stage = replay->stage(stage_id);
  stage.storage_align(stage->op->root_iter_vars()[dim], length * 2, length);
}

void FetchAheadStepNode::Init() {
  TVM_CHECK(!copy_ids.empty() && lengths.size() == 1, ValueError)
      << "fetch ahead: needs copies and one length, got " << copy_ids.size() << " copies and "
      << lengths.size() << " lengths";
  lengths = OpenWhereZero(lengths, "fetch ahead");
}

void FetchAheadStepNode::ApplyToState(State* state, const ComputeDAG& dag) const {
  const Stage reader = CheckedStage(*state, stage_id);
  for (int64_t copy : copy_ids) {
    const Stage tile = CheckedStage(*state, static_cast<int>(copy));
    TVM_CHECK(tile->compute_at == ComputeAtKind::kIter && tile->attach_stage == reader->id &&
                  !tile->iters.empty(),
              ScheduleError)
        << "fetch ahead: " << tile->op->name << " is not computed in a loop of "
        << reader->op->name;
  }
}

void FetchAheadStepNode::ApplyToSchedule(ScheduleReplay* replay) const {
  TVM_CHECK(lengths[0].defined(), ScheduleError)
      << "fetch ahead: how many trips is still open; fill in the lengths first";
  for (int64_t copy : copy_ids) {
    const auto id = static_cast<int>(copy);
    te::IterVar axis = replay->axis(id, 0);
    te::Stage stage = replay->stage(id);
    stage.double_buffer();
    stage.pragma(axis, "async_copy", lengths[0].value());
  }
}

}  // namespace auto_scheduler
}  // namespace tvm
