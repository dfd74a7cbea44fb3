/*!
 * \file access_analyzer.cc
 * \brief Who reads whom and how, in a ComputeDAG.
 */
#include <tvm/auto_scheduler/compute_dag.h>
#include <tvm/expr/builtin.h>
#include <tvm/expr/op.h>
#include <tvm/tir/stmt_functor.h>

#include <algorithm>
#include <functional>

namespace tvm {
namespace auto_scheduler {

namespace {

using Reads = std::vector<std::pair<te::Operation, std::vector<Array<PrimExpr>>>>;

Reads CollectReads(const te::ComputeOpNode* compute) {
  Reads reads;
  auto visit = [&reads](const ObjectRef& node) {
    const auto* load = node.as<tir::ProducerLoadNode>();
    if (load == nullptr) return;
    te::Operation producer = Downcast<te::Tensor>(load->producer)->op;
    auto found = std::find_if(reads.begin(), reads.end(), [&](const Reads::value_type& read) {
      return read.first.same_as(producer);
    });
    if (found == reads.end()) found = reads.insert(reads.end(), {producer, {}});
    found->second.push_back(load->indices);
  };
  for (const PrimExpr& body : compute->body) tir::PostOrderVisit(body, visit);
  return reads;
}

/*! \brief Whether `expr` is `var`, or `var` plus or minus a literal. */
bool IsShiftOf(const te::Var& var, const PrimExpr& expr) {
  if (expr.same_as(var)) return true;
  if (const auto* add = expr.as<tir::AddNode>()) {
    return (add->a.same_as(var) && tir::is_const_int(add->b)) ||
           (add->b.same_as(var) && tir::is_const_int(add->a));
  }
  if (const auto* sub = expr.as<tir::SubNode>()) {
    return sub->a.same_as(var) && tir::is_const_int(sub->b);
  }
  return false;
}

/*! \brief How one read of a tensor relates to the axes of the reader. */
struct ReadShape {
  /*! \brief Every index is a literal or an own space axis shifted by a literal. */
  bool simple{true};
  bool axis_missing{false};
  bool axis_duplicated{false};
  bool same_order{true};
};

ReadShape Classify(const te::ComputeOpNode* compute, const Array<PrimExpr>& indices) {
  ReadShape shape;
  std::vector<int> uses(compute->axis.size(), 0);
  int last = -1;
  for (const PrimExpr& index : indices) {
    if (tir::is_const_int(index)) continue;
    int axis = -1;
    for (size_t i = 0; i < compute->axis.size(); ++i) {
      if (IsShiftOf(compute->axis[i]->var, index)) axis = static_cast<int>(i);
    }
    if (axis == -1) {
      shape.simple = false;
      continue;
    }
    if (axis < last) shape.same_order = false;
    last = axis;
    ++uses[axis];
  }
  for (int count : uses) {
    if (count == 0) shape.axis_missing = true;
    if (count > 1) shape.axis_duplicated = true;
  }
  return shape;
}

/*! \brief An exp costs too much to repeat; a branch would be evaluated once per reader's element.
 */
bool HasExpOrBranch(const te::ComputeOpNode* compute) {
  static const Op& exp_op = Op::Get("tir.exp");
  static const Op& branch_op = Op::Get("tir.if_then_else");
  bool found = false;
  auto visit = [&](const ObjectRef& node) {
    if (node->IsInstance<tir::SelectNode>()) found = true;
    if (const auto* call = node.as<tir::CallNode>()) {
      found = found || call->op.same_as(exp_op) || call->op.same_as(branch_op);
    }
  };
  for (const PrimExpr& body : compute->body) tir::PostOrderVisit(body, visit);
  return found;
}

/*! \brief Whether some space axis that runs more than once is used by none of the reads. */
bool LacksSpaceAxis(const te::ComputeOpNode* compute, const std::vector<Array<PrimExpr>>& reads) {
  std::unordered_set<const Object*> used;
  for (const Array<PrimExpr>& indices : reads) {
    for (const PrimExpr& index : indices) {
      tir::PostOrderVisit(index, [&used](const ObjectRef& node) { used.insert(node.get()); });
    }
  }
  for (const te::IterVar& axis : compute->axis) {
    // A symbolic extent counts as more than one.
    if (!tir::is_one(axis->dom->extent) && used.count(axis->var.get()) == 0) return true;
  }
  return false;
}

bool SameShape(const Array<PrimExpr>& a, const Array<PrimExpr>& b, size_t dims) {
  for (size_t i = 0; i < dims; ++i) {
    const int64_t* left = tir::as_const_int(a[i]);
    const int64_t* right = tir::as_const_int(b[i]);
    bool equal = left != nullptr && right != nullptr ? *left == *right : a[i].same_as(b[i]);
    if (!equal) return false;
  }
  return true;
}

}  // namespace

AccessAnalyzer::AccessAnalyzer(const Array<te::Operation>& ops, const Array<te::Operation>& outputs)
    : ops_(ops) {
  for (const te::Operation& op : ops) info_[op.get()];
  for (const te::Operation& op : outputs) info_.at(op.get()).is_output = true;
  for (const te::Operation& op : ops) {
    if (op->IsInstance<te::ComputeOpNode>()) AnalyzeCompute(op);
  }
}

void AccessAnalyzer::AnalyzeCompute(const te::Operation& op) {
  const auto* compute = op.as<te::ComputeOpNode>();
  OpInfo& info = info_.at(op.get());
  info.reads = CollectReads(compute);
  int lacking_producers = 0;
  for (const auto& [producer, reads] : info.reads) {
    info_.at(producer.get()).readers.push_back(op);
    for (const Array<PrimExpr>& indices : reads) {
      ReadShape shape = Classify(compute, indices);
      info.simple_access = info.simple_access && shape.simple;
      info.strictly_inlineable =
          info.strictly_inlineable && shape.simple && shape.same_order && !shape.axis_duplicated;
    }
    if (LacksSpaceAxis(compute, reads)) ++lacking_producers;
  }
  if (!info.reads.empty() && HasExpOrBranch(compute)) info.strictly_inlineable = false;
  bool reduces = !compute->reduce_axis.empty();
  info.needs_multi_level_tiling = (lacking_producers >= 2 || (lacking_producers >= 1 && reduces)) &&
                                  compute->attrs.count(
                                      "auto_scheduler_simplify_const_tensor_"
                                      "indices") == 0;
}

const AccessAnalyzer::OpInfo& AccessAnalyzer::Info(const te::Operation& op) const {
  auto found = info_.find(op.get());
  ICHECK(found != info_.end()) << "operation " << op->name << " is not in the analyzed DAG";
  return found->second;
}

bool AccessAnalyzer::IsSimpleAccess(const te::Operation& op) const {
  return Info(op).simple_access;
}

bool AccessAnalyzer::IsStrictlyInlineable(const te::Operation& op) const {
  return Info(op).strictly_inlineable;
}

bool AccessAnalyzer::NeedsMultiLevelTiling(const te::Operation& op) const {
  return Info(op).needs_multi_level_tiling;
}

bool AccessAnalyzer::IsOutput(const te::Operation& op) const { return Info(op).is_output; }

AccessAnalyzer::OperationSet AccessAnalyzer::GetDirectProducers(const te::Operation& op) const {
  OperationSet producers;
  for (const auto& read : Info(op).reads) producers.push_back(read.first);
  return producers;
}

AccessAnalyzer::OperationSet AccessAnalyzer::GetDirectConsumers(const te::Operation& op) const {
  return Info(op).readers;
}

namespace {

/*! \brief Neighbours of `op`, with those of an inlined neighbour in place of it, each once. */
AccessAnalyzer::OperationSet ThroughInlined(
    const State& state, const te::Operation& op,
    const std::function<AccessAnalyzer::OperationSet(const te::Operation&)>& neighbours) {
  std::unordered_set<const Object*> inlined;
  for (const Stage& stage : state->stages) {
    if (stage->compute_at == ComputeAtKind::kInlined) inlined.insert(stage->op.get());
  }
  AccessAnalyzer::OperationSet result;
  std::unordered_set<const Object*> seen;
  std::function<void(const te::Operation&)> collect = [&](const te::Operation& from) {
    for (const te::Operation& neighbour : neighbours(from)) {
      if (!seen.insert(neighbour.get()).second) continue;
      if (inlined.count(neighbour.get())) {
        collect(neighbour);
      } else {
        result.push_back(neighbour);
      }
    }
  };
  collect(op);
  return result;
}

}  // namespace

AccessAnalyzer::OperationSet AccessAnalyzer::GetConsumers(const State& state,
                                                          const te::Operation& op) const {
  return ThroughInlined(state, op,
                        [this](const te::Operation& from) { return GetDirectConsumers(from); });
}

AccessAnalyzer::OperationSet AccessAnalyzer::GetProducers(const State& state,
                                                          const te::Operation& op) const {
  return ThroughInlined(state, op,
                        [this](const te::Operation& from) { return GetDirectProducers(from); });
}

int AccessAnalyzer::GetNumCommonOuterIterator(const te::Operation& op,
                                              const te::Operation& target_op) const {
  auto common_with_reader = [this](const te::Operation& producer, const te::Operation& reader) {
    const auto* compute = reader.as<te::ComputeOpNode>();
    Array<PrimExpr> shape = producer->output_shape(0);
    size_t common = std::min(shape.size(), compute->axis.size());
    while (common > 0 && !SameShape(shape, compute->output_shape(0), common)) --common;
    for (const auto& [read_op, reads] : Info(reader).reads) {
      if (!read_op.same_as(producer)) continue;
      for (const Array<PrimExpr>& indices : reads) {
        size_t equal = 0;
        while (equal < common && IsShiftOf(compute->axis[equal]->var, indices[equal])) ++equal;
        common = equal;
      }
    }
    return static_cast<int>(common);
  };
  // The smallest value along a path; over several paths to the target, the smallest of all.
  int result = -1;
  std::function<void(const te::Operation&, int)> walk = [&](const te::Operation& at, int common) {
    if (at.same_as(target_op)) {
      result = result == -1 ? common : std::min(result, common);
      return;
    }
    for (const te::Operation& reader : GetDirectConsumers(at)) {
      int here = common_with_reader(at, reader);
      walk(reader, common == -1 ? here : std::min(common, here));
    }
  };
  walk(op, -1);
  return std::max(result, 0);
}

bool AccessAnalyzer::ElementWiseMatch(const te::Operation& op,
                                      const te::Operation& target_op) const {
  te::Operation current = op;
  while (!current.same_as(target_op)) {
    const OperationSet& readers = Info(current).readers;
    if (readers.size() != 1 || current->num_outputs() != 1) return false;
    const te::Operation& next = readers[0];
    const auto* compute = next.as<te::ComputeOpNode>();
    Array<PrimExpr> shape = current->output_shape(0);
    Array<PrimExpr> next_shape = next->output_shape(0);
    if (shape.size() != next_shape.size() || !SameShape(shape, next_shape, shape.size())) {
      return false;
    }
    for (const auto& [read_op, reads] : Info(next).reads) {
      if (!read_op.same_as(current)) continue;
      for (const Array<PrimExpr>& indices : reads) {
        ReadShape read = Classify(compute, indices);
        if (!read.simple || read.axis_missing || read.axis_duplicated || !read.same_order) {
          return false;
        }
      }
    }
    current = next;
  }
  return true;
}

}  // namespace auto_scheduler
}  // namespace tvm
