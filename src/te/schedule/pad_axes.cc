/*!
 * \file pad_axes.cc
 * \brief pad_read and pad_axes: sums over more elements than there are.
 */
#include <tvm/arith/analyzer.h>
#include <tvm/expr/op.h>
#include <tvm/expr/substitute.h>
#include <tvm/runtime/registry.h>
#include <tvm/te/pad_axes.h>
#include <tvm/tir/analysis.h>
#include <tvm/tir/stmt_functor.h>

#include <string>
#include <unordered_set>
#include <vector>

#include "dataflow_rewrite.h"

namespace tvm {
namespace te {

namespace {

/*! \brief Attribute of a copy made by PadRead: the shape of what it is a copy of. */
constexpr const char* kUnpaddedShape = "unpadded_shape";

int64_t ExtentOf(const PrimExpr& extent, const std::string& where) {
  const int64_t* literal = tir::as_const_int(extent);
  TVM_CHECK(literal != nullptr, ScheduleError)
      << where << ": extents must be numbers, but one is " << extent;
  return *literal;
}

/*! \brief The sum that an operation with one result is; null for other operations. */
const tir::ReduceNode* SumOf(const Operation& op) {
  const auto* compute = op.as<ComputeOpNode>();
  if (compute == nullptr || compute->body.size() != 1) return nullptr;
  const auto* reduce = compute->body[0].as<tir::ReduceNode>();
  const bool is_sum = reduce != nullptr && reduce->init.empty() && tir::is_one(reduce->condition) &&
                      tir::IsSum(reduce->combiner);
  return is_sum ? reduce : nullptr;
}

/*! \brief The two loads of a product, cast or not; empty for other terms. */
std::vector<const tir::ProducerLoadNode*> FactorsOf(const PrimExpr& term) {
  const auto* product = term.as<tir::MulNode>();
  if (product == nullptr) return {};
  std::vector<const tir::ProducerLoadNode*> loads;
  for (const PrimExpr& factor : {product->a, product->b}) {
    const auto* cast = factor.as<tir::CastNode>();
    const auto* load = (cast == nullptr ? factor : cast->value).as<tir::ProducerLoadNode>();
    if (load == nullptr) return {};
    loads.push_back(load);
  }
  return loads;
}

/*! \brief Whether a load is of zeros wherever `axis` is `extent` or more. */
bool EndsWith(const tir::ProducerLoadNode& load, const tir::Var& axis, int64_t extent) {
  const Operation& op = Downcast<Tensor>(load.producer)->op;
  if (!op->attrs.count(kUnpaddedShape)) return false;
  const auto shape = Downcast<Array<PrimExpr>>(op->attrs.at(kUnpaddedShape));
  for (size_t d = 0; d < load.indices.size(); ++d) {
    if (load.indices[d].same_as(axis)) return *tir::as_const_int(shape[d]) <= extent;
  }
  return false;
}

}  // namespace

std::vector<const tir::ProducerLoadNode*> FactorsOfSum(const Operation& op) {
  const tir::ReduceNode* sum = SumOf(op);
  if (sum == nullptr) return {};
  return FactorsOf(sum->source[0]);
}

Tensor PadRead(Schedule schedule, const Tensor& tensor, const Array<Operation>& readers,
               const Array<int64_t>& shape) {
  const std::string where = "pad_read(" + std::string(tensor->op->name) + ")";
  const Tensor original = ReadTensor(schedule, tensor, readers, "pad_read");
  TVM_CHECK(shape.size() == original->shape.size(), ScheduleError)
      << where << ": expected an extent for each of " << original->shape.size()
      << " dimensions, got " << shape;
  Array<PrimExpr> padded;
  for (size_t d = 0; d < shape.size(); ++d) {
    TVM_CHECK(shape[d] >= ExtentOf(original->shape[d], where), ScheduleError)
        << where << ": dimension " << d << " has " << original->shape[d]
        << " elements, and a copy of " << shape[d] << " would lose some";
    padded.push_back(IntImm(original->shape[d].dtype(), shape[d]));
  }
  const Tensor copy =
      compute(padded,
              [&](const Array<tir::Var>& at) {
                PrimExpr inside = tir::const_true();
                for (size_t d = 0; d < shape.size(); ++d) {
                  if (shape[d] != *tir::as_const_int(original->shape[d])) {
                    inside = inside && at[d] < original->shape[d];
                  }
                }
                const PrimExpr value = original(Array<PrimExpr>(at.begin(), at.end()));
                if (tir::is_one(inside)) return value;
                return if_then_else(inside, value, tir::make_zero(value.dtype()));
              },
              UniqueName(schedule, std::string(original->GetNameHint()) + ".padded"), "",
              {{kUnpaddedShape, original->shape}});
  ReadFromCopy(schedule, original, copy, "", readers);
  schedule->Note("pad_read");
  return copy;
}

Tensor PadAxes(Schedule schedule, const Tensor& tensor, const Array<int64_t>& extents) {
  const std::string where = "pad_axes(" + std::string(tensor->op->name) + ")";
  Stage stage = schedule[tensor];
  const std::vector<const tir::ProducerLoadNode*> factors = FactorsOfSum(stage->op);
  TVM_CHECK(!factors.empty(), ScheduleError)
      << where << ": expected a sum of products of two operands";
  const auto* compute = stage->op.as<ComputeOpNode>();
  const tir::ReduceNode* reduce = SumOf(stage->op);
  TVM_CHECK(stage->relations.empty(), ScheduleError)
      << where << ": the axes have been split or fused; pad them before";
  const size_t n_space = compute->axis.size();
  TVM_CHECK(extents.size() == n_space + compute->reduce_axis.size(), ScheduleError)
      << where << ": expected an extent for each of " << n_space + compute->reduce_axis.size()
      << " axes, got " << extents;

  arith::Analyzer analyzer;
  Map<tir::Var, PrimExpr> longer;
  std::unordered_set<const tir::VarNode*> grown;
  Array<IterVar> space, reductions;
  for (size_t i = 0; i < extents.size(); ++i) {
    const bool reduces = i >= n_space;
    const IterVar& axis = reduces ? compute->reduce_axis[i - n_space] : compute->axis[i];
    const int64_t extent = ExtentOf(axis->dom->extent, where);
    TVM_CHECK(extents[i] >= extent && tir::is_zero(axis->dom->min), ScheduleError)
        << where << ": axis " << axis->var->name_hint << " runs over " << axis->dom
        << " and cannot end at " << extents[i];
    if (reduces && extents[i] > extent) {
      for (const tir::ProducerLoadNode* load : factors) {
        TVM_CHECK(EndsWith(*load, axis->var, extent), ScheduleError)
            << where << ": " << GetRef<PrimExpr>(load) << " is not known to be zero where "
            << axis->var->name_hint << " is " << extent << " or more; read a copy made by pad_read";
      }
    }
    const DataType type = axis->var->dtype;
    IterVar padded(Range::FromMinExtent(tir::make_zero(type), IntImm(type, extents[i])),
                   axis->var.copy_with_suffix(""), axis->iter_type);
    analyzer.Bind(padded->var, padded->dom);
    if (extents[i] > extent) grown.insert(padded->var.get());
    longer.Set(axis->var, padded->var);
    (reduces ? reductions : space).push_back(padded);
  }
  const PrimExpr term = tir::Substitute(reduce->source[0], longer);
  for (const tir::ProducerLoadNode* load : FactorsOf(term)) {
    const Tensor operand = Downcast<Tensor>(load->producer);
    for (size_t d = 0; d < load->indices.size(); ++d) {
      const bool reads_more = tir::UsesVar(
          load->indices[d], [&grown](const tir::VarNode* used) { return grown.count(used) != 0; });
      TVM_CHECK(!reads_more || analyzer.CanProve(load->indices[d] < operand->shape[d]),
                ScheduleError)
          << where << ": the longer axes read " << GetRef<PrimExpr>(load) << " beyond the "
          << operand->shape[d] << " elements of dimension " << d
          << "; read a longer copy, made by pad_read";
    }
  }
  const Operation padded = ComputeOp(
      UniqueName(schedule, std::string(compute->name) + ".padded"), compute->tag, compute->attrs,
      space, {tir::Reduce(reduce->combiner, {term}, reductions, tir::const_true(), 0, {})});
  const Array<PrimExpr> same =
      compute->axis.Map([](const IterVar& axis) { return PrimExpr(axis->var); });
  const Tensor sums = CopyOut(schedule, stage, padded, compute->axis, same, "")[0];
  schedule->Note("pad_axes");
  return sums;
}

TVM_REGISTER_GLOBAL("te.SchedulePadRead").set_body_typed(PadRead);
TVM_REGISTER_GLOBAL("te.SchedulePadAxes").set_body_typed(PadAxes);

}  // namespace te
}  // namespace tvm
