/*!
 * \file flop_count.cc
 * \brief Arithmetic work of a list of operations.
 */
#include "flop_count.h"

#include <tvm/expr/expr_functor.h>
#include <tvm/expr/op.h>

#include <algorithm>

namespace tvm {
namespace auto_scheduler {

namespace {

/*! \brief Operations per element; `unknown` is set by a kind of expression it cannot judge. */
class ElementCounter : public tir::ExprFunctor<double(const PrimExpr&)> {
 public:
  double Count(const te::ComputeOpNode* compute) {
    double total = 0;
    for (size_t i = 0; i < compute->body.size(); ++i) {
      type_code_ = compute->output_dtype(i).code();
      total += VisitExpr(compute->body[i]);
      // All bodies of a reduction share one loop nest, and the first one lists all its work.
      if (compute->body[i]->IsInstance<tir::ReduceNode>()) break;
    }
    return total;
  }

  bool unknown{false};

 private:
  double VisitExprDefault_(const Object*) final {
    unknown = true;
    return 0;
  }
  double VisitExpr_(const tir::VarNode*) final { return 0; }
  double VisitExpr_(const tir::IntImmNode*) final { return 0; }
  double VisitExpr_(const tir::FloatImmNode*) final { return 0; }
  double VisitExpr_(const tir::StringImmNode*) final { return 0; }
  double VisitExpr_(const tir::ProducerLoadNode*) final { return 0; }
  double VisitExpr_(const tir::CastNode* op) final { return VisitExpr(op->value); }

  double Operation(const PrimExpr& operand) const {
    return operand.dtype().code() == type_code_ ? 1 : 0;
  }
#define TVM_COUNT_BINARY(Node)                                     \
  double VisitExpr_(const tir::Node* op) final {                   \
    return Operation(op->a) + VisitExpr(op->a) + VisitExpr(op->b); \
  }
  TVM_COUNT_BINARY(AddNode)
  TVM_COUNT_BINARY(SubNode)
  TVM_COUNT_BINARY(MulNode)
  TVM_COUNT_BINARY(DivNode)
  TVM_COUNT_BINARY(ModNode)
  TVM_COUNT_BINARY(FloorDivNode)
  TVM_COUNT_BINARY(FloorModNode)
  TVM_COUNT_BINARY(MinNode)
  TVM_COUNT_BINARY(MaxNode)
  TVM_COUNT_BINARY(EQNode)
  TVM_COUNT_BINARY(NENode)
  TVM_COUNT_BINARY(LTNode)
  TVM_COUNT_BINARY(LENode)
  TVM_COUNT_BINARY(GTNode)
  TVM_COUNT_BINARY(GENode)
  TVM_COUNT_BINARY(AndNode)
  TVM_COUNT_BINARY(OrNode)
#undef TVM_COUNT_BINARY
  double VisitExpr_(const tir::NotNode* op) final { return Operation(op->a) + VisitExpr(op->a); }
  double VisitExpr_(const tir::CallNode* op) final {
    double total = 0;
    for (const PrimExpr& arg : op->args) total += VisitExpr(arg);
    return total;
  }
  double VisitExpr_(const tir::SelectNode* op) final {
    return VisitExpr(op->condition) +
           std::max(VisitExpr(op->true_value), VisitExpr(op->false_value));
  }
  double VisitExpr_(const tir::ReduceNode* op) final {
    double trips = 1;
    for (const te::IterVar& axis : op->axis) {
      const int64_t* extent = tir::as_const_int(axis->dom->extent);
      if (extent == nullptr) unknown = true;
      trips *= extent == nullptr ? 1 : static_cast<double>(*extent);
    }
    double work = 0;
    for (const PrimExpr& result : op->combiner->result) work += VisitExpr(result);
    for (const PrimExpr& source : op->source) work += VisitExpr(source);
    return trips * work;
  }

  uint8_t type_code_{0};
};

}  // namespace

double CountFlop(const Array<te::Operation>& ops) {
  double total = 0;
  for (const te::Operation& op : ops) {
    if (op->attrs.count("FLOP")) {
      ObjectRef given = op->attrs.at("FLOP");
      const auto* integer = given.as<IntImmNode>();
      total += integer != nullptr ? static_cast<double>(integer->value)
                                  : Downcast<FloatImm>(given)->value;
      continue;
    }
    const auto* compute = op.as<te::ComputeOpNode>();
    if (compute == nullptr) continue;
    ElementCounter counter;
    double work = counter.Count(compute);
    for (const te::IterVar& axis : compute->axis) {
      const int64_t* extent = tir::as_const_int(axis->dom->extent);
      if (extent == nullptr) return -1;
      work *= static_cast<double>(*extent);
    }
    if (counter.unknown) return -1;
    total += work;
  }
  return total;
}

}  // namespace auto_scheduler
}  // namespace tvm
