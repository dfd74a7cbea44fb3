/*!
 * \file schedule_lang.cc
 * \brief Schedules, stages and the primitives that record what to do with a stage's loops.
 */
#include <tvm/expr/op.h>
#include <tvm/ir/transform.h>
#include <tvm/node/repr_printer.h>
#include <tvm/runtime/registry.h>
#include <tvm/te/pack_read.h>
#include <tvm/te/scan_op.h>
#include <tvm/te/schedule.h>
#include <tvm/tir/launch.h>

#include <algorithm>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "graph.h"
#include "loop_relations.h"

namespace tvm {
namespace te {

using transform::PassContext;

TVM_REGISTER_PASS_CONFIG_OPTION("te.keep_schedule_record", bool);

TVM_REGISTER_NODE(SplitNode);
TVM_REGISTER_NODE(FuseNode);
TVM_REGISTER_NODE(RebaseNode);
TVM_REGISTER_NODE(SingletonNode);
TVM_REGISTER_NODE(IterVarAttrNode);
TVM_REGISTER_NODE(StageNode);
TVM_REGISTER_NODE(ScheduleNode);

TVM_REGISTER_REPR(StageNode, [](const StageNode* node, ReprPrinter* p) {
  if (!node->op.defined()) {
    p->stream << "group-stage()";
    return;
  }
  p->stream << "stage(" << std::string(node->origin_op->name) << ", " << node->op << ')';
});

TVM_REGISTER_REPR(ScheduleNode, [](const ScheduleNode* node, ReprPrinter* p) {
  p->stream << "schedule(" << node->stages << ')';
});

TVM_REGISTER_REPR(SplitNode, [](const SplitNode* node, ReprPrinter* p) {
  p->stream << "split(parent=" << node->parent << ", outer=" << node->outer
            << ", inner=" << node->inner << ')';
});

TVM_REGISTER_REPR(FuseNode, [](const FuseNode* node, ReprPrinter* p) {
  p->stream << "fuse(outer=" << node->outer << ", inner=" << node->inner
            << ", fused=" << node->fused << ')';
});

TVM_REGISTER_REPR(RebaseNode, [](const RebaseNode* node, ReprPrinter* p) {
  p->stream << "rebase(parent=" << node->parent << ", rebased=" << node->rebased << ')';
});

TVM_REGISTER_REPR(SingletonNode, [](const SingletonNode* node, ReprPrinter* p) {
  p->stream << "singleton(" << node->iter << ')';
});

void SplitNode::Init() {
  TVM_CHECK(factor.defined() != nparts.defined(), ValueError)
      << "te.Split: exactly one of factor and nparts must be given";
}

Stage::Stage(Operation op, bool is_output) {
  auto node = make_object<StageNode>();
  node->op = op;
  node->origin_op = op;
  node->all_iter_vars = op->root_iter_vars();
  node->leaf_iter_vars = node->all_iter_vars;
  node->is_output = is_output;
  data_ = std::move(node);
}

namespace {

std::string LoopNames(const Array<IterVar>& loops) {
  std::string names = "[";
  for (const IterVar& loop : loops) {
    if (names.size() > 1) names += ", ";
    names += loop->var->name_hint;
  }
  return names + "]";
}

/*! \brief Position of `loop` among the stage's loops, or an error in the name of `primitive`. */
size_t FindLoop(const Stage& stage, const IterVar& loop, const char* primitive) {
  TVM_CHECK(stage->op.defined(), ScheduleError)
      << primitive << ": a group has no loops; use one of its stages";
  TVM_CHECK(loop.defined(), ScheduleError)
      << primitive << "(" << stage->op->name << "): the loop is None";
  const Array<IterVar>& loops = stage->leaf_iter_vars;
  for (size_t i = 0; i < loops.size(); ++i) {
    if (loops[i].same_as(loop)) return i;
  }
  bool was_loop = std::any_of(stage->all_iter_vars.begin(), stage->all_iter_vars.end(),
                              [&](const IterVar& iv) { return iv.same_as(loop); });
  TVM_FATAL(ScheduleError) << primitive << "(" << stage->op->name << ", " << loop->var->name_hint
                           << "): " << loop->var->name_hint
                           << (was_loop ? " was already split or fused"
                                        : " is not a loop of this stage")
                           << ". Remaining loops of this stage: " << LoopNames(loops);
  return 0;
}

/*! \brief Whether a primitive said how the loop runs. Alignment is about the axis, not the loop. */
bool IsMarked(const Stage& stage, const IterVar& loop) {
  auto found = stage->iter_var_attrs.find(loop);
  if (found == stage->iter_var_attrs.end()) return false;
  const IterVarAttr& attr = (*found).second;
  return attr->iter_type != tir::kDataPar || attr->bind_thread.defined() ||
         !attr->prefetch_data.empty() || !attr->pragma_keys.empty() ||
         attr->tensor_intrin.defined();
}

/*! \brief Replaces `count` loops from `pos` on by `replacement`. */
void ReplaceLoops(const Stage& stage, size_t pos, size_t count,
                  const std::vector<IterVar>& replacement) {
  std::vector<IterVar> loops(stage->leaf_iter_vars.begin(), stage->leaf_iter_vars.end());
  for (size_t i = pos; i < pos + count; ++i) {
    // A mark says how this loop runs; which of the new loops should have it cannot be told.
    TVM_CHECK(!IsMarked(stage, loops[i]), ScheduleError)
        << (replacement.size() > count ? "split(" : "fuse(") << stage->op->name << ", "
        << loops[i]->var->name_hint
        << "): the loop is marked already (vectorize, parallel, unroll, "
        << "bind, pragma or prefetch); split and fuse first, then mark the loops that result";
  }
  loops.erase(loops.begin() + pos, loops.begin() + pos + count);
  loops.insert(loops.begin() + pos, replacement.begin(), replacement.end());
  stage->leaf_iter_vars = Array<IterVar>(loops.begin(), loops.end());
  for (const IterVar& loop : replacement) stage->all_iter_vars.push_back(loop);
}

template <typename FUpdate>
void UpdateAttr(const Stage& stage, const IterVar& loop, FUpdate update) {
  IterVarAttr attr;
  auto it = stage->iter_var_attrs.find(loop);
  if (it == stage->iter_var_attrs.end()) {
    attr = IterVarAttr(make_object<IterVarAttrNode>());
  } else {
    attr = (*it).second;
  }
  update(attr.CopyOnWrite());
  stage->iter_var_attrs.Set(loop, attr);
}

void SetIterType(const Stage& stage, const IterVar& loop, tir::IterVarType type,
                 const char* primitive) {
  FindLoop(stage, loop, primitive);
  TVM_CHECK(loop->iter_type != tir::kCommReduce || type == tir::kUnrolled, ScheduleError)
      << primitive << "(" << stage->op->name << ", " << loop->var->name_hint
      << "): a reduction loop carries its result from trip to trip; rfactor it first";
  bool in_order = loop->iter_type == tir::kOrdered || loop->iter_type == tir::kThreadIndex;
  TVM_CHECK(!in_order || (loop->iter_type == tir::kOrdered && type == tir::kUnrolled),
            ScheduleError)
      << primitive << "(" << stage->op->name << ", " << loop->var->name_hint << "): "
      << (loop->iter_type == tir::kOrdered ? "the steps of a scan run in order"
                                           : "the loop is a thread of the launch");
  IterVar thread = BoundThread(stage, loop);
  TVM_CHECK(!thread.defined(), ScheduleError)
      << primitive << "(" << stage->op->name << ", " << loop->var->name_hint
      << "): the loop is bound to " << thread->thread_tag << ", which says how its trips run";
  UpdateAttr(stage, loop, [&](IterVarAttrNode* attr) { attr->iter_type = type; });
}

void SplitLoop(const Stage& stage, const IterVar& parent, const PrimExpr& factor,
               const PrimExpr& nparts, bool disable_predication, IterVar* outer, IterVar* inner,
               bool pads = false) {
  size_t pos = FindLoop(stage, parent, "split");
  TVM_CHECK(parent->iter_type != tir::kThreadIndex, ScheduleError)
      << "split(" << stage->op->name << ", " << parent->var->name_hint
      << "): the loop is a thread of the launch";
  const PrimExpr& size = factor.defined() ? factor : nparts;
  const char* what = factor.defined() ? "factor" : "nparts";
  TVM_CHECK(size.dtype().is_int() && size.dtype().is_scalar(), ScheduleError)
      << "split(" << stage->op->name << ", " << parent->var->name_hint << "): " << what
      << " must be an integer, got " << size << " of dtype " << size.dtype()
      << ". Remaining loops of this stage: " << LoopNames(stage->leaf_iter_vars);
  if (const int64_t* value = tir::as_const_int(size)) {
    TVM_CHECK(*value >= 1, ScheduleError)
        << "split(" << stage->op->name << ", " << parent->var->name_hint << "): " << what
        << " must be >= 1, got " << *value
        << ". Remaining loops of this stage: " << LoopNames(stage->leaf_iter_vars);
  }
  *outer = IterVar(Range(), parent->var.copy_with_suffix(".outer"), parent->iter_type);
  *inner = IterVar(Range(), parent->var.copy_with_suffix(".inner"), parent->iter_type);
  ReplaceLoops(stage, pos, 1, {*outer, *inner});
  stage->relations.push_back(
      Split(parent, *outer, *inner, factor, nparts, disable_predication, pads));
}

/*! \brief `stage`, after its schedule was told that `primitive` is done. */
Stage& Noted(Stage* stage, const char* primitive) {
  if (ScheduleNode* keeper = stage->get()->keeper) keeper->Note(primitive);
  return *stage;
}

}  // namespace

Stage& Stage::set_scope(String scope) {
  TVM_CHECK(get()->op.defined(), ScheduleError)
      << "set_scope: a group stores nothing; use one of its stages";
  TVM_CHECK(!get()->is_output || scope == "global", ScheduleError)
      << "set_scope(" << get()->op->name << "): an output is the caller's memory, which is global; "
      << "use cache_write to compute in " << scope;
  get()->scope = std::move(scope);
  return Noted(this, __func__);
}

Stage Stage::attached_by() const {
  Stage place = *this;
  while (place->attach_type == kGroupRoot && place->group.defined()) place = place->group;
  return place;
}

Stage& Stage::set_store_predicate(PrimExpr predicate) {
  TVM_CHECK(get()->op.defined() && get()->op->IsInstance<ComputeOpNode>(), ScheduleError)
      << "set_store_predicate(" << StageName(*this) << "): expected a stage made by compute";
  get()->store_predicate = std::move(predicate);
  return Noted(this, __func__);
}

Stage& Stage::env_threads(const Array<IterVar>& threads) {
  StageNode* self = get();
  TVM_CHECK(self->op.defined() && self->op->IsInstance<ScanOpNode>(), ScheduleError)
      << "env_threads(" << StageName(*this) << "): expected the stage of a scan; bind the loops of "
      << "others";
  std::vector<IterVar> loops;
  for (const IterVar& thread : threads) {
    TVM_CHECK(thread->iter_type == tir::kThreadIndex && thread->dom.defined(), ScheduleError)
        << "env_threads(" << self->op->name << "): expected thread axes of given extents, got "
        << thread->var->name_hint << "; make them with thread_axis((0, extent), tag)";
    loops.push_back(thread);
    self->all_iter_vars.push_back(thread);
  }
  loops.insert(loops.end(), self->leaf_iter_vars.begin(), self->leaf_iter_vars.end());
  self->leaf_iter_vars = Array<IterVar>(loops.begin(), loops.end());
  return Noted(this, __func__);
}

namespace {

/*! \brief Whether `stage` is in `group`, directly or in a group inside of it. */
bool IsMember(const Stage& stage, const Stage& group) {
  for (Stage g = stage->group; g.defined(); g = g->group) {
    if (g.same_as(group)) return true;
  }
  return false;
}

}  // namespace

Stage& Stage::compute_at(Stage parent, IterVar scope) {
  StageNode* self = get();
  std::string name = StageName(*this);
  TVM_CHECK(!self->is_output, ScheduleError)
      << "compute_at(" << name << "): an output is computed at the root; attach its "
      << "producers to it instead";
  TVM_CHECK(!same_as(parent) && !IsMember(parent, *this), ScheduleError)
      << "compute_at(" << name << "): a stage cannot be inside itself";
  TVM_CHECK(!self->op.defined() || !self->op->IsInstance<PlaceholderOpNode>(), ScheduleError)
      << "compute_at(" << name << "): a placeholder is not computed";
  TVM_CHECK(self->attach_type != kScanUpdate, ScheduleError)
      << "compute_at(" << name
      << "): the steps of a scan are computed in its loop; attach the scan";
  TVM_CHECK(!self->group.defined() || IsMember(parent, self->group), ScheduleError)
      << "compute_at(" << name << ", " << StageName(parent) << "): " << name
      << " is in a group that " << StageName(parent) << " is not in; attach the group";
  FindLoop(parent, scope, "compute_at");
  self->attach_type = kScope;
  self->attach_stage = parent;
  self->attach_ivar = scope;
  return Noted(this, __func__);
}

Stage& Stage::compute_inline() {
  StageNode* self = get();
  TVM_CHECK(self->op.defined(), ScheduleError)
      << "compute_inline: a group has no definition of its own; inline its stages";
  TVM_CHECK(!self->is_output, ScheduleError)
      << "compute_inline(" << self->op->name << "): an output has to be stored";
  const auto* compute = self->op.as<ComputeOpNode>();
  TVM_CHECK(compute != nullptr && compute->reduce_axis.empty(), ScheduleError)
      << "compute_inline(" << self->op->name << "): only an operation without reduction axes can "
      << "be substituted into its readers; use compute_at";
  self->attach_type = kInline;
  self->attach_stage = Stage();
  self->attach_ivar = IterVar();
  return Noted(this, __func__);
}

Stage& Stage::compute_root() {
  StageNode* self = get();
  TVM_CHECK(self->attach_type != kScanUpdate, ScheduleError)
      << "compute_root: the steps of a scan are computed in its loop";
  self->attach_type = kGroupRoot;
  self->attach_stage = Stage();
  self->attach_ivar = IterVar();
  return Noted(this, __func__);
}

Stage& Stage::bind(IterVar loop, IterVar thread) {
  StageNode* self = get();
  FindLoop(*this, loop, "bind");
  TVM_CHECK(thread->iter_type == tir::kThreadIndex, ScheduleError)
      << "bind(" << self->op->name << ", " << loop->var->name_hint << "): expected a thread axis, "
      << "got " << thread->var->name_hint << "; make one with thread_axis";
  bool reduces = loop->iter_type == tir::kCommReduce &&
                 tir::ParseThreadTag(thread->thread_tag).kind == tir::ThreadKind::kThread;
  TVM_CHECK(loop->iter_type == tir::kDataPar || reduces, ScheduleError)
      << "bind(" << self->op->name << ", " << loop->var->name_hint << ", " << thread->thread_tag
      << "): blocks take data-parallel loops, threadIdx also reduction loops; rfactor a reduction "
      << "and bind the new axis";
  IterVar bound = BoundThread(*this, loop);
  TVM_CHECK(!bound.defined(), ScheduleError)
      << "bind(" << self->op->name << ", " << loop->var->name_hint << "): " << loop->var->name_hint
      << " is bound to " << bound->thread_tag << " already";
  auto marked = self->iter_var_attrs.find(loop);
  bool is_plain =
      marked == self->iter_var_attrs.end() || (*marked).second->iter_type == tir::kDataPar;
  TVM_CHECK(is_plain, ScheduleError)
      << "bind(" << self->op->name << ", " << loop->var->name_hint << "): the loop is "
      << tir::IterVarTypeToString((*marked).second->iter_type) << ", so it cannot be threads too";
  UpdateAttr(*this, loop, [&](IterVarAttrNode* attr) { attr->bind_thread = thread; });
  return Noted(this, __func__);
}

Stage& Stage::split(IterVar parent, PrimExpr factor, IterVar* outer, IterVar* inner,
                    bool disable_predication) {
  SplitLoop(*this, parent, factor, PrimExpr(), disable_predication, outer, inner);
  return Noted(this, __func__);
}

Stage& Stage::split_by_nparts(IterVar parent, PrimExpr nparts, IterVar* outer, IterVar* inner,
                              bool disable_predication) {
  SplitLoop(*this, parent, PrimExpr(), nparts, disable_predication, outer, inner);
  return Noted(this, __func__);
}

Stage& Stage::pad(IterVar loop, int64_t extent, IterVar* once, IterVar* padded) {
  // Loops that splits have made have no domain of their own; only axes can be compared.
  const int64_t* before = loop->dom.defined() ? tir::as_const_int(loop->dom->extent) : nullptr;
  TVM_CHECK(before != nullptr && extent >= *before && loop->iter_type == tir::kDataPar,
            ScheduleError)
      << "pad(" << get()->op->name << ", " << loop->var->name_hint << "): " << extent
      << " is no more than a loop over space that nothing was done to has trips; its domain is "
      << loop->dom;
  SplitLoop(*this, loop, IntImm(loop->var->dtype, extent), PrimExpr(),
            /*disable_predication=*/false, once, padded, /*pads=*/true);
  return Noted(this, __func__);
}

namespace {

/*! \brief Raises unless two loops can run as one: loops that run in order stay by themselves. */
void CheckFusible(const Stage& stage, const IterVar& a, const IterVar& b) {
  auto is_free = [](const IterVar& loop) {
    return loop->iter_type == tir::kDataPar || loop->iter_type == tir::kCommReduce;
  };
  TVM_CHECK(a->iter_type == b->iter_type || (is_free(a) && is_free(b)), ScheduleError)
      << "fuse(" << stage->op->name << ", " << a->var->name_hint << ", " << b->var->name_hint
      << "): one of them runs in order, the other does not. Remaining loops of this stage: "
      << LoopNames(stage->leaf_iter_vars);
}

}  // namespace

Stage& Stage::fuse(IterVar outer, IterVar inner, IterVar* fused) {
  StageNode* self = get();
  size_t outer_pos = FindLoop(*this, outer, "fuse");
  size_t inner_pos = FindLoop(*this, inner, "fuse");
  TVM_CHECK(outer_pos + 1 == inner_pos, ScheduleError)
      << "fuse(" << self->op->name << ", " << outer->var->name_hint << ", " << inner->var->name_hint
      << "): the second loop must be directly inside the first; reorder "
      << "first. Remaining loops of this stage: " << LoopNames(self->leaf_iter_vars);
  CheckFusible(*this, outer, inner);
  Var var(outer->var->name_hint + "." + inner->var->name_hint + ".fused", outer->var.dtype());
  const bool reduces = outer->iter_type == tir::kCommReduce || inner->iter_type == tir::kCommReduce;
  *fused = IterVar(Range(), var, reduces ? tir::kCommReduce : outer->iter_type);
  ReplaceLoops(*this, outer_pos, 2, {*fused});
  self->relations.push_back(Fuse(outer, inner, *fused));
  return Noted(this, __func__);
}

Stage& Stage::fuse(const Array<IterVar>& loops, IterVar* fused) {
  TVM_CHECK(get()->op.defined(), ScheduleError) << "fuse: a group has no loops";
  if (loops.empty()) {
    *fused = IterVar(Range::FromMinExtent(0, 1), Var("singleton"), tir::kDataPar);
    get()->relations.push_back(Singleton(*fused));
    ReplaceLoops(*this, 0, 0, {*fused});
    return Noted(this, __func__);
  }
  // Checked before the first pair is joined, so that an error leaves the stage as it was.
  for (size_t i = 0; i < loops.size(); ++i) {
    size_t pos = FindLoop(*this, loops[i], "fuse");
    TVM_CHECK(i == 0 || pos == FindLoop(*this, loops[i - 1], "fuse") + 1, ScheduleError)
        << "fuse(" << get()->op->name << ", " << LoopNames(loops) << "): the loops must be direct "
        << "neighbours in this order; reorder first. Remaining loops of this stage: "
        << LoopNames(get()->leaf_iter_vars);
    CheckFusible(*this, loops[0], loops[i]);
  }
  *fused = loops[0];
  for (size_t i = 1; i < loops.size(); ++i) {
    IterVar outer = *fused;
    fuse(outer, loops[i], fused);
  }
  return Noted(this, __func__);
}

Stage& Stage::reorder(const Array<IterVar>& order) {
  TVM_CHECK(get()->op.defined(), ScheduleError)
      << "reorder: a group stores nothing and has no loops; use one of its stages";
  StageNode* self = get();
  std::vector<size_t> places;
  for (const IterVar& loop : order) {
    size_t pos = FindLoop(*this, loop, "reorder");
    TVM_CHECK(std::find(places.begin(), places.end(), pos) == places.end(), ScheduleError)
        << "reorder(" << self->op->name << "): " << loop->var->name_hint << " is named twice";
    places.push_back(pos);
  }
  // Steps of a scan read what earlier ones wrote.
  size_t last_ordered = 0;
  for (size_t i = 0; i < places.size(); ++i) {
    if (order[i]->iter_type != tir::kOrdered && order[i]->iter_type != tir::kThreadIndex) continue;
    TVM_CHECK(places[i] >= last_ordered, ScheduleError)
        << "reorder(" << self->op->name << "): " << order[i]->var->name_hint
        << " runs in order, inside of the loops before it, and cannot be moved out of them";
    last_ordered = places[i];
  }
  std::sort(places.begin(), places.end());
  std::vector<IterVar> loops(self->leaf_iter_vars.begin(), self->leaf_iter_vars.end());
  for (size_t i = 0; i < places.size(); ++i) loops[places[i]] = order[i];
  self->leaf_iter_vars = Array<IterVar>(loops.begin(), loops.end());
  return Noted(this, __func__);
}

Stage& Stage::tile(IterVar x, IterVar y, PrimExpr x_factor, PrimExpr y_factor, IterVar* x_outer,
                   IterVar* y_outer, IterVar* x_inner, IterVar* y_inner) {
  FindLoop(*this, x, "tile");
  FindLoop(*this, y, "tile");
  split(x, x_factor, x_outer, x_inner);
  split(y, y_factor, y_outer, y_inner);
  return reorder({*x_outer, *y_outer, *x_inner, *y_inner});
}

Stage& Stage::vectorize(IterVar loop) {
  SetIterType(*this, loop, tir::kVectorized, "vectorize");
  return Noted(this, __func__);
}

Stage& Stage::unroll(IterVar loop) {
  SetIterType(*this, loop, tir::kUnrolled, "unroll");
  return Noted(this, __func__);
}

Stage& Stage::parallel(IterVar loop) {
  SetIterType(*this, loop, tir::kParallelized, "parallel");
  return Noted(this, __func__);
}

Stage& Stage::tensorize(IterVar loop, TensorIntrin intrin) {
  FindLoop(*this, loop, "tensorize");
  TVM_CHECK(intrin.defined(), ScheduleError)
      << "tensorize(" << get()->op->name << ", " << loop->var->name_hint
      << "): the intrinsic is None; make one with te.decl_tensor_intrin";
  UpdateAttr(*this, loop, [&](IterVarAttrNode* attr) { attr->tensor_intrin = intrin; });
  return Noted(this, __func__);
}

Stage& Stage::pragma(IterVar loop, const String& key, const PrimExpr& value) {
  // Kinds of loops have primitives of their own, by which later ones are checked.
  if (key == "unroll") return unroll(std::move(loop));
  if (key == "vectorize") return vectorize(std::move(loop));
  FindLoop(*this, loop, "pragma");
  UpdateAttr(*this, loop, [&](IterVarAttrNode* attr) {
    attr->pragma_keys.push_back(tir::StringImm(key));
    attr->pragma_values.push_back(value.defined() ? value : PrimExpr(1));
  });
  return Noted(this, __func__);
}

Stage& Stage::prefetch(const Tensor& tensor, IterVar loop, PrimExpr offset) {
  FindLoop(*this, loop, "prefetch");
  UpdateAttr(*this, loop, [&](IterVarAttrNode* attr) {
    attr->prefetch_data.push_back(tensor);
    attr->prefetch_offset.push_back(offset);
  });
  return Noted(this, __func__);
}

Stage& Stage::storage_align(IterVar axis, const PrimExpr& factor, const PrimExpr& offset) {
  TVM_CHECK(get()->op.defined(), ScheduleError)
      << "storage_align: a group stores nothing and has no loops; use one of its stages";
  const Array<IterVar>& roots = get()->op->root_iter_vars();
  bool found = std::any_of(roots.begin(), roots.end(),
                           [&](const IterVar& root) { return root.same_as(axis); });
  TVM_CHECK(found && axis->iter_type != tir::kCommReduce, ScheduleError)
      << "storage_align(" << get()->op->name << ", " << axis->var->name_hint
      << "): expected a spatial axis of the operation, one of " << LoopNames(roots);
  const int64_t* literal = tir::as_const_int(factor);
  TVM_CHECK(literal == nullptr || *literal >= 1, ScheduleError)
      << "storage_align(" << get()->op->name << ", " << axis->var->name_hint
      << "): factor must be >= 1, got " << factor;
  UpdateAttr(*this, axis, [&](IterVarAttrNode* attr) {
    attr->dim_align_factor = factor;
    attr->dim_align_offset = offset;
  });
  return Noted(this, __func__);
}

Stage& Stage::double_buffer() {
  TVM_CHECK(get()->op.defined(), ScheduleError)
      << "double_buffer: a group stores nothing and has no loops; use one of its stages";
  TVM_CHECK(!get()->is_output, ScheduleError)
      << "double_buffer(" << get()->op->name << "): an output has one buffer, the caller's";
  get()->double_buffer = true;
  return Noted(this, __func__);
}

bool Stage::is_scheduled() const {
  return !get()->op->IsInstance<PlaceholderOpNode>() && get()->attach_type != kInline &&
         get()->attach_type != kInlinedAlready;
}

Schedule::Schedule(Array<Operation> outputs) {
  auto node = make_object<ScheduleNode>();
  node->outputs = outputs;
  for (const Operation& op : OperationsInOrder(outputs)) {
    bool is_output = std::any_of(outputs.begin(), outputs.end(),
                                 [&](const Operation& out) { return out.same_as(op); });
    Stage stage(op, is_output);
    node->stages.push_back(stage);
    node->stage_map.Set(op, stage);
  }
  Array<Stage> stages = node->stages;
  data_ = std::move(node);
  for (const Stage& stage : stages) {
    const auto* scan = stage->op.as<ScanOpNode>();
    if (scan == nullptr) continue;
    Array<Tensor> inputs = scan->state_placeholder;
    for (const Tensor& input : scan->inputs) inputs.push_back(input);
    Stage steps = create_group(scan->update, inputs);
    steps->attach_type = kScanUpdate;
    steps->attach_stage = stage;
  }
  if (PassContext::Current()->GetConfig<bool>("te.keep_schedule_record", false)) {
    (*this)->Record("vanilla");
  }
}

Schedule Schedule::copy() const {
  const ScheduleNode* self = get();
  std::unordered_map<Stage, Stage, ObjectPtrHash, ObjectPtrEqual> copies;
  auto node = make_object<ScheduleNode>();
  node->outputs = self->outputs;
  auto copied = [&](const Array<Stage>& stages) {
    Array<Stage> twins;
    for (const Stage& stage : stages) {
      Stage twin{ObjectPtr<Object>(make_object<StageNode>(*stage.get()))};
      twin->keeper = nullptr;
      copies.emplace(stage, twin);
      twins.push_back(twin);
    }
    return twins;
  };
  node->stages = copied(self->stages);
  node->groups = copied(self->groups);
  for (const auto& [stage, twin] : copies) {
    if (twin->attach_stage.defined()) twin->attach_stage = copies.at(twin->attach_stage);
    if (twin->group.defined()) twin->group = copies.at(twin->group);
  }
  for (const auto& [op, stage] : self->stage_map) node->stage_map.Set(op, copies.at(stage));
  Schedule result;
  result.data_ = std::move(node);
  return result;
}

Stage Schedule::operator[](const Operation& op) const {
  TVM_CHECK(op.defined(), ValueError) << "schedule: got None where an operation is needed";
  auto it = get()->stage_map.find(op);
  TVM_CHECK(it != get()->stage_map.end(), KeyError)
      << "schedule: " << op->name << " is not an operation of this schedule; it has "
      << StageNames(*this);
  return (*it).second;
}

Stage Schedule::operator[](const Tensor& tensor) const { return (*this)[tensor->op]; }

TVM_REGISTER_GLOBAL("te.CreateSchedule").set_body_typed([](Array<Operation> outputs) {
  return Schedule(outputs);
});
TVM_REGISTER_GLOBAL("te.StageSetScope").set_body_typed([](Stage stage, String scope) {
  stage.set_scope(scope);
});
TVM_REGISTER_GLOBAL("te.StageSetStorePredicate").set_body_typed([](Stage stage, PrimExpr pred) {
  stage.set_store_predicate(pred);
});
TVM_REGISTER_GLOBAL("te.StageEnvThreads").set_body_typed([](Stage stage, Array<IterVar> threads) {
  stage.env_threads(threads);
});
TVM_REGISTER_GLOBAL("te.StageBind").set_body_typed([](Stage stage, IterVar loop, IterVar thread) {
  stage.bind(loop, thread);
});
TVM_REGISTER_GLOBAL("te.StageSplitByFactor")
    .set_body_typed([](Stage stage, IterVar parent, PrimExpr factor, bool disable_predication) {
      IterVar outer, inner;
      stage.split(parent, factor, &outer, &inner, disable_predication);
      return Array<IterVar>{outer, inner};
    });
TVM_REGISTER_GLOBAL("te.StageSplitByNParts")
    .set_body_typed([](Stage stage, IterVar parent, PrimExpr nparts, bool disable_predication) {
      IterVar outer, inner;
      stage.split_by_nparts(parent, nparts, &outer, &inner, disable_predication);
      return Array<IterVar>{outer, inner};
    });
TVM_REGISTER_GLOBAL("te.StagePad").set_body_typed([](Stage stage, IterVar loop, int64_t extent) {
  IterVar once, padded;
  stage.pad(loop, extent, &once, &padded);
  return Array<IterVar>{once, padded};
});
TVM_REGISTER_GLOBAL("te.StageFuse").set_body_typed([](Stage stage, Array<IterVar> loops) {
  IterVar fused;
  stage.fuse(loops, &fused);
  return fused;
});
TVM_REGISTER_GLOBAL("te.StageComputeAt")
    .set_body_typed([](Stage stage, Stage parent, IterVar scope) {
      stage.compute_at(parent, scope);
    });
TVM_REGISTER_GLOBAL("te.StageComputeInline").set_body_typed([](Stage stage) {
  stage.compute_inline();
});
TVM_REGISTER_GLOBAL("te.StageComputeRoot").set_body_typed([](Stage stage) {
  stage.compute_root();
});
TVM_REGISTER_GLOBAL("te.StageReorder").set_body_typed([](Stage stage, Array<IterVar> order) {
  stage.reorder(order);
});
TVM_REGISTER_GLOBAL("te.StageTile")
    .set_body_typed([](Stage stage, IterVar x, IterVar y, PrimExpr x_factor, PrimExpr y_factor) {
      IterVar x_outer, y_outer, x_inner, y_inner;
      stage.tile(x, y, x_factor, y_factor, &x_outer, &y_outer, &x_inner, &y_inner);
      return Array<IterVar>{x_outer, y_outer, x_inner, y_inner};
    });
TVM_REGISTER_GLOBAL("te.StageVectorize").set_body_typed([](Stage stage, IterVar loop) {
  stage.vectorize(loop);
});
TVM_REGISTER_GLOBAL("te.StageUnroll").set_body_typed([](Stage stage, IterVar loop) {
  stage.unroll(loop);
});
TVM_REGISTER_GLOBAL("te.StageParallel").set_body_typed([](Stage stage, IterVar loop) {
  stage.parallel(loop);
});
TVM_REGISTER_GLOBAL("te.StageTensorize")
    .set_body_typed([](Stage stage, IterVar loop, TensorIntrin intrin) {
      stage.tensorize(loop, intrin);
    });
TVM_REGISTER_GLOBAL("te.StagePragma")
    .set_body_typed([](Stage stage, IterVar loop, String key, PrimExpr value) {
      stage.pragma(loop, key, value);
    });
TVM_REGISTER_GLOBAL("te.StagePrefetch")
    .set_body_typed([](Stage stage, Tensor tensor, IterVar loop, PrimExpr offset) {
      stage.prefetch(tensor, loop, offset);
    });
TVM_REGISTER_GLOBAL("te.StageStorageAlign")
    .set_body_typed([](Stage stage, IterVar axis, int factor, int offset) {
      stage.storage_align(axis, factor, offset);
    });
TVM_REGISTER_GLOBAL("te.StageDoubleBuffer").set_body_typed([](Stage stage) {
  stage.double_buffer();
});
TVM_REGISTER_GLOBAL("te.StageSetLayouts")
    .set_body_typed([](Stage stage, Array<tir::IndexMap> layouts, Array<Integer> separators) {
      stage->layouts = layouts;
      stage->axis_separators = separators;
      if (stage->keeper) stage->keeper->Note("transform_layout");
    });
TVM_REGISTER_GLOBAL("te.ScheduleGetStage").set_body_typed([](Schedule sch, ObjectRef key) {
  if (key.as<TensorNode>()) return sch[Downcast<Tensor>(key)];
  return sch[Downcast<Operation>(key)];
});
TVM_REGISTER_GLOBAL("te.ScheduleCreateGroup")
    .set_body_typed([](Schedule sch, Array<Tensor> outputs, Array<Tensor> inputs,
                       bool include_inputs) {
      return sch.create_group(outputs, inputs, include_inputs);
    });
TVM_REGISTER_GLOBAL("te.ScheduleCopy").set_body_typed([](Schedule sch) { return sch.copy(); });
TVM_REGISTER_GLOBAL("te.ScheduleNormalize").set_body_typed([](Schedule sch) {
  return sch.normalize();
});
TVM_REGISTER_GLOBAL("te.ScheduleNormalizeForFeatureExtraction").set_body_typed([](Schedule sch) {
  return sch.normalize_for_feature_extraction();
});
TVM_REGISTER_GLOBAL("te.ScheduleCacheRead")
    .set_body_typed([](Schedule sch, Tensor tensor, String scope, Array<Operation> readers) {
      return sch.cache_read(tensor, scope, readers);
    });
TVM_REGISTER_GLOBAL("te.SchedulePackRead")
    .set_body_typed([](Schedule sch, Tensor tensor, String scope, Array<Operation> readers,
                       Array<int64_t> order) {
      return PackRead(sch, tensor, scope, readers, order);
    });
TVM_REGISTER_GLOBAL("te.ScheduleCacheWrite")
    .set_body_typed([](Schedule sch, Array<Tensor> tensors, String scope) {
      return sch.cache_write(tensors, scope);
    });
TVM_REGISTER_GLOBAL("te.ScheduleRFactor")
    .set_body_typed([](Schedule sch, Tensor tensor, IterVar axis, int factor_axis) {
      return sch.rfactor(tensor, axis, factor_axis);
    });

}  // namespace te
}  // namespace tvm
