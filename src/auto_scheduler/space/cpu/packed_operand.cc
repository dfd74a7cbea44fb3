/*!
 * \file packed_operand.cc
 * \brief Operands that are worth a copy in the order in which register tiles read them.
 */
#include <tvm/expr/op.h>
#include <tvm/te/create_primfunc.h>

#include <algorithm>

#include "../../sketch_utils.h"
#include "cpu_space.h"

namespace tvm {
namespace auto_scheduler {

namespace {

// Rows that must share an operand: the copy is one pass over it, in which elements move one by one
// where it lies against the order of its readers, and each row is a pass of vectors.
constexpr int64_t kLeastRows = 8, kLeastRowsInOrder = 16;
// Rows of an operand that are this far apart fall into few sets of the first cache, and each into a
// page of its own.
constexpr int64_t kFarBytes = 1024;
// Columns below which there is no vector to be read.
constexpr int64_t kLeastColumns = 8;

/*! \brief Which axis each index is; empty unless each is an axis of its own, or a number. */
std::vector<int> AxesOf(const Array<PrimExpr>& indices, const Array<te::IterVar>& axes) {
  std::vector<int> found;
  for (const PrimExpr& index : indices) {
    const auto axis = std::find_if(axes.begin(), axes.end(), [&](const te::IterVar& candidate) {
      return candidate->var.same_as(index);
    });
    const int position = axis == axes.end() ? -1 : static_cast<int>(axis - axes.begin());
    if (position == -1 && !tir::is_const_int(index)) return {};
    if (position != -1 && std::count(found.begin(), found.end(), position) != 0) return {};
    found.push_back(position);
  }
  return found;
}

/*! \brief Whether weights are laid out as they are read already, when the network is built. */
bool IsLaidOut(const SearchTask& task, const te::ComputeOpNode* reader, const te::Tensor& operand) {
  if (task->layout_rewrite_option == LayoutRewriteOption::kNoRewrite ||
      reader->attrs.count(te::kLayoutFreePlaceholders) == 0) {
    return false;
  }
  const auto free = Downcast<Array<te::Tensor>>(reader->attrs.at(te::kLayoutFreePlaceholders));
  return std::any_of(free.begin(), free.end(),
                     [&](const te::Tensor& tensor) { return tensor.same_as(operand); });
}

}  // namespace

std::optional<PackedOperand> OperandToPack(const SearchTask& task, const State& state,
                                           int stage_id) {
  const te::Operation& op = state->stages[stage_id]->op;
  const auto* compute = op.as<te::ComputeOpNode>();
  if (compute == nullptr || compute->axis.size() < 2 || compute->reduce_axis.empty() ||
      compute->attrs.count("auto_scheduler_no_split_at_inner")) {
    return std::nullopt;
  }
  const int last = static_cast<int>(compute->axis.size()) - 1;
  Array<te::IterVar> axes = compute->axis;
  std::vector<int64_t> extents;
  for (const te::IterVar& axis : compute->reduce_axis) axes.push_back(axis);
  for (const te::IterVar& axis : axes) {
    const int64_t* extent = tir::as_const_int(axis->dom->extent);
    if (extent == nullptr) return std::nullopt;
    extents.push_back(*extent);
  }
  if (extents[last] < kLeastColumns) return std::nullopt;
  const ComputeDAG dag = CurrentDAG(task, state);
  for (const te::Tensor& operand : op->InputTensors()) {
    const std::vector<Array<PrimExpr>> reads = ReadsOf(op, operand->op);
    if (reads.size() != 1 || IsLaidOut(task, compute, operand)) continue;
    if (!operand->op->IsInstance<te::PlaceholderOpNode>() &&
        !dag->access().IsStrictlyInlineable(operand->op)) {
      continue;
    }
    const std::vector<int> read = AxesOf(reads[0], axes);
    const auto lanes = std::find(read.begin(), read.end(), last);
    if (lanes == read.end()) continue;
    int64_t rows = 1;
    bool reduces = false;
    PackedOperand found;
    found.operand = operand->op;
    for (int axis = 0; axis < static_cast<int>(axes.size()); ++axis) {
      const bool moves = std::find(read.begin(), read.end(), axis) != read.end();
      reduces = reduces || (moves && axis > last && extents[axis] > 1);
      if (axis > last) continue;
      if (moves) {
        found.space_axes.push_back(axis);
      } else {
        rows *= extents[axis];
      }
    }
    // What all of its columns share, as the input of a window is, is read in vectors of no operand.
    if (!reduces) continue;
    const auto lane_dim = static_cast<int64_t>(lanes - read.begin());
    for (int64_t dim = 0; dim < static_cast<int64_t>(read.size()); ++dim) {
      if (dim != lane_dim) found.order.push_back(dim);
    }
    found.order.push_back(lane_dim);
    found.turned = lane_dim + 1 != static_cast<int64_t>(read.size());
    const int64_t row_bytes = extents[last] * operand->dtype.bytes();
    if (found.turned ? rows >= kLeastRows : rows >= kLeastRowsInOrder && row_bytes >= kFarBytes) {
      return found;
    }
  }
  return std::nullopt;
}

}  // namespace auto_scheduler
}  // namespace tvm
