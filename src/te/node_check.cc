/*!
 * \file src/te/node_check.cc
 * \brief Programs that are put together field by field pass through the checks of constructors.
 */
#include <tvm/te/operation.h>
#include <tvm/te/scan_op.h>
#include <tvm/te/schedule.h>

#include <initializer_list>
#include <string>
#include <unordered_set>

namespace tvm {
namespace te {
namespace {

template <typename T>
void ExpectAllDefined(const char* what, const Array<T>& values) {
  for (const T& value : values) {
    TVM_CHECK(value.defined(), ValueError) << what << " is missing";
  }
}

/*! \brief The loops of a stage as its relations make them, in their order. */
class LoopReplay {
 public:
  explicit LoopReplay(const StageNode* stage) : stage_(stage) {
    for (const IterVar& iv : stage->all_iter_vars) known_.insert(iv);
    for (const IterVar& root : stage->op->root_iter_vars()) Make(root);
  }

  void Run() {
    for (const IterVarRelation& relation : stage_->relations) {
      if (const auto* split = relation.as<SplitNode>()) {
        TVM_CHECK(split->factor.defined() != split->nparts.defined(), ValueError)
            << "te.Split: exactly one of factor and nparts must be given";
        Replace({split->parent}, {split->outer, split->inner});
      } else if (const auto* fuse = relation.as<FuseNode>()) {
        Replace({fuse->outer, fuse->inner}, {fuse->fused});
      } else if (const auto* rebase = relation.as<RebaseNode>()) {
        Replace({rebase->parent}, {rebase->rebased});
      } else if (const auto* singleton = relation.as<SingletonNode>()) {
        Replace({}, {singleton->iter});
      }
    }
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
    TVM_CHECK(loop.defined(), ValueError) << "te.Stage: a loop is missing";
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

TVM_REGISTER_NODE_CHECK(PlaceholderOpNode, [](const PlaceholderOpNode* op) {
  ExpectAllDefined("te.PlaceholderOp: an extent", op->shape);
});
TVM_REGISTER_NODE_CHECK(ComputeOpNode, [](const ComputeOpNode* op) {
  ExpectAllDefined("te.ComputeOp: an axis", op->axis);
  for (const IterVar& axis : op->axis) {
    TVM_CHECK(axis->dom.defined(), ValueError)
        << "te.ComputeOp: the axis " << axis << " has no range";
  }
  ExpectAllDefined("te.ComputeOp: an expression", op->body);
  // The constructor finds the reduction axes in the expressions.
  ComputeOp rebuilt(op->name, op->tag, op->attrs, op->axis, op->body);
  bool same = rebuilt->reduce_axis.size() == op->reduce_axis.size();
  for (size_t i = 0; same && i < op->reduce_axis.size(); ++i) {
    same = rebuilt->reduce_axis[i].same_as(op->reduce_axis[i]);
  }
  TVM_CHECK(same, ValueError) << "te.ComputeOp " << op->name << ": the expressions reduce over "
                              << rebuilt->reduce_axis << ", the node says " << op->reduce_axis;
});
TVM_REGISTER_NODE_CHECK(ExternOpNode, [](const ExternOpNode* op) {
  ExpectAllDefined("te.ExternOp: an input", op->inputs);
  ExpectAllDefined("te.ExternOp: a buffer", op->input_placeholders);
  ExpectAllDefined("te.ExternOp: a buffer", op->output_placeholders);
  ExternOp(op->name, op->tag, op->attrs, op->inputs, op->input_placeholders,
           op->output_placeholders, op->body);
});
TVM_REGISTER_NODE_CHECK(ScanOpNode, [](const ScanOpNode* op) {
  ExpectAllDefined("te.ScanOp: a start", op->init);
  ExpectAllDefined("te.ScanOp: an update", op->update);
  ExpectAllDefined("te.ScanOp: a state", op->state_placeholder);
  ExpectAllDefined("te.ScanOp: an input", op->inputs);
  ScanOp(op->name, op->tag, op->attrs, op->scan_axis, op->init, op->update, op->state_placeholder,
         op->inputs);
});
TVM_REGISTER_NODE_CHECK(TensorNode, [](const TensorNode* tensor) {
  ExpectAllDefined("te.Tensor: an extent", tensor->shape);
  int index = tensor->value_index;
  TVM_CHECK(index >= 0 && index < tensor->op->num_outputs(), ValueError)
      << "te.Tensor: result " << index << " of " << tensor->op->name << ", which has "
      << tensor->op->num_outputs();
  TVM_CHECK(tensor->dtype == tensor->op->output_dtype(index) &&
                tensor->shape.size() == tensor->op->output_shape(index).size(),
            ValueError)
      << "te.Tensor: " << tensor->op->name << " gives another type or number of axes";
});

TVM_REGISTER_NODE_CHECK(IterVarAttrNode, [](const IterVarAttrNode* attr) {
  ExpectAllDefined("te.IterVarAttr: a tensor", attr->prefetch_data);
  ExpectAllDefined("te.IterVarAttr: an offset", attr->prefetch_offset);
  ExpectAllDefined("te.IterVarAttr: the value of a pragma", attr->pragma_values);
  for (const PrimExpr& key : attr->pragma_keys) {
    TVM_CHECK(key.as<tir::StringImmNode>() != nullptr, ValueError)
        << "te.IterVarAttr: the name of a pragma must be a text, got " << key;
  }
  TVM_CHECK(attr->prefetch_data.size() == attr->prefetch_offset.size() &&
                attr->pragma_keys.size() == attr->pragma_values.size(),
            ValueError)
      << "te.IterVarAttr: lists that belong together differ in length";
});
TVM_REGISTER_NODE_CHECK(StageNode, [](const StageNode* stage) {
  ExpectAllDefined("te.Stage: a loop", stage->all_iter_vars);
  ExpectAllDefined("te.Stage: a relation", stage->relations);
  if (stage->op.defined()) LoopReplay(stage).Run();
  for (const auto& [iv, attr] : stage->iter_var_attrs) {
    TVM_CHECK(iv.defined() && attr.defined(), ValueError) << "te.Stage: an attribute is missing";
  }
});
TVM_REGISTER_NODE_CHECK(ScheduleNode, [](const ScheduleNode* schedule) {
  ExpectAllDefined("te.Schedule: an output", schedule->outputs);
  ExpectAllDefined("te.Schedule: a stage", schedule->stages);
  ExpectAllDefined("te.Schedule: a group", schedule->groups);
  for (const Stage& stage : schedule->stages) {
    TVM_CHECK(stage->op.defined() && stage->origin_op.defined(), ValueError)
        << "te.Schedule: a stage has no operation";
  }
  std::unordered_set<const Object*> own;
  for (const Array<Stage>& members : {schedule->stages, schedule->groups}) {
    for (const Stage& stage : members) own.insert(stage.get());
  }
  auto expect_own = [&](const Stage& stage, const char* what) {
    TVM_CHECK(own.count(stage.get()) != 0, ValueError)
        << "te.Schedule: " << what << " is not among the stages and groups of the schedule";
  };
  for (const Array<Stage>& members : {schedule->stages, schedule->groups}) {
    for (const Stage& stage : members) {
      if (stage->group.defined()) expect_own(stage->group, "the group of a stage");
      if (stage->attach_type != kScope) continue;
      TVM_CHECK(stage->attach_stage.defined() && stage->attach_ivar.defined(), ValueError)
          << "te.Schedule: a stage is attached to no loop";
      expect_own(stage->attach_stage, "the place of a stage");
    }
  }
  for (const auto& [op, stage] : schedule->stage_map) {
    TVM_CHECK(op.defined() && stage.defined(), ValueError)
        << "te.Schedule: an entry of the stage map is missing";
    expect_own(stage, "a stage of the stage map");
  }
  ExpectProducersFirst(schedule);
});

}  // namespace te
}  // namespace tvm
