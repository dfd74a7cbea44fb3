/*!
 * \file src/te/schedule/init_schedule.cc
 * \brief What holds of every schedule, for those that do not come from the primitives.
 */
#include <tvm/te/operation.h>
#include <tvm/te/scan_op.h>
#include <tvm/te/schedule.h>

#include <initializer_list>
#include <string>
#include <unordered_set>

#include "loop_relations.h"

namespace tvm {
namespace te {
namespace {

/*! \brief The loops of a stage as its relations make them, in their order. */
class LoopReplay {
 public:
  explicit LoopReplay(const StageNode* stage) : stage_(stage) {
    for (const IterVar& iv : stage->all_iter_vars) known_.insert(iv);
    for (const IterVar& root : stage->op->root_iter_vars()) Make(root);
  }

  void Run() {
    WalkDown(
        stage_,
        [this](const SplitNode* split) { Replace({split->parent}, {split->outer, split->inner}); },
        [this](const FuseNode* fuse) { Replace({fuse->outer, fuse->inner}, {fuse->fused}); },
        [this](const RebaseNode* rebase) { Replace({rebase->parent}, {rebase->rebased}); },
        [this](const SingletonNode* singleton) { Replace({}, {singleton->iter}); });
    for (const IterVar& leaf : stage_->leaf_iter_vars) {
      ExpectKnown(leaf);
      // Threads that a scan launches are loops that stem from no axis.
      bool launched = leaf->iter_type == tir::kThreadIndex && !made_.count(leaf);
      TVM_CHECK(launched || loops_.erase(leaf) != 0, ValueError)
          << Name() << leaf << " is no loop any more, or is listed twice";
    }
    TVM_CHECK(loops_.empty(), ValueError) << Name() << *loops_.begin() << " is not listed";
  }

 private:
  using Loops = std::unordered_set<IterVar, ObjectPtrHash, ObjectPtrEqual>;

  void Replace(std::initializer_list<IterVar> parents, std::initializer_list<IterVar> children) {
    for (const IterVar& parent : parents) {
      ExpectKnown(parent);
      TVM_CHECK(loops_.erase(parent) != 0, ValueError)
          << Name() << parent << " is split, fused or rebased where it is no loop";
    }
    for (const IterVar& child : children) Make(child);
  }
  void Make(const IterVar& loop) {
    ExpectKnown(loop);
    TVM_CHECK(made_.insert(loop).second, ValueError) << Name() << loop << " is made twice";
    loops_.insert(loop);
  }
  void ExpectKnown(const IterVar& loop) {
    TVM_CHECK(known_.count(loop) != 0, ValueError)
        << "te.Stage: the loop " << loop << " is not among those of the stage";
  }
  std::string Name() const { return "te.Stage " + stage_->op->name.str() + ": the loop "; }

  const StageNode* stage_;
  Loops known_, made_, loops_;
};

/*! \brief What a stage reads is computed by stages before it. */
void ExpectProducersFirst(const ScheduleNode* schedule) {
  std::unordered_set<Operation, ObjectPtrHash, ObjectPtrEqual> computed;
  for (const Stage& stage : schedule->stages) {
    // What is written into its readers keeps the operations it was written with.
    bool inlined = stage->attach_type == kInline || stage->attach_type == kInlinedAlready;
    for (const Tensor& input : inlined ? Array<Tensor>() : stage->op->InputTensors()) {
      TVM_CHECK(computed.count(input->op) != 0, ValueError)
          << "te.Schedule: the stage " << stage->op->name << " reads " << input->op->name
          << ", which no stage before it computes";
    }
    computed.insert(stage->op);
  }
}

}  // namespace

void IterVarAttrNode::Init() {
  for (const PrimExpr& key : pragma_keys) {
    TVM_CHECK(key.as<tir::StringImmNode>() != nullptr, ValueError)
        << "te.IterVarAttr: the name of a pragma must be a text, got " << key;
  }
  TVM_CHECK(
      prefetch_data.size() == prefetch_offset.size() && pragma_keys.size() == pragma_values.size(),
      ValueError)
      << "te.IterVarAttr: lists that belong together differ in length";
}

void StageNode::Init() {
  if (op.defined()) LoopReplay(this).Run();
}

void ScheduleNode::Init() {
  for (const Stage& stage : stages) {
    TVM_CHECK(stage->op.defined() && stage->origin_op.defined(), ValueError)
        << "te.Schedule: a stage has no operation";
  }
  std::unordered_set<const Object*> own;
  for (const Array<Stage>& members : {stages, groups}) {
    for (const Stage& stage : members) own.insert(stage.get());
  }
  auto expect_own = [&](const Stage& stage, const char* what) {
    TVM_CHECK(own.count(stage.get()) != 0, ValueError)
        << "te.Schedule: " << what << " is not among the stages and groups of the schedule";
  };
  for (const Array<Stage>& members : {stages, groups}) {
    for (const Stage& stage : members) {
      if (stage->group.defined()) expect_own(stage->group, "the group of a stage");
      if (stage->attach_type != kScope) continue;
      TVM_CHECK(stage->attach_stage.defined() && stage->attach_ivar.defined(), ValueError)
          << "te.Schedule: a stage is attached to no loop";
      expect_own(stage->attach_stage, "the place of a stage");
    }
  }
  for (const auto& [op, stage] : stage_map) {
    expect_own(stage, "a stage of the stage map");
  }
  ExpectProducersFirst(this);
}

}  // namespace te
}  // namespace tvm
