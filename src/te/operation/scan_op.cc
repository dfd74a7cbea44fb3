/*!
 * \file scan_op.cc
 * \brief Recurrences over the first axis: construction, bounds and loop nests.
 */
#include <tvm/arith/int_set.h>
#include <tvm/expr/op.h>
#include <tvm/node/repr_printer.h>
#include <tvm/runtime/registry.h>
#include <tvm/te/scan_op.h>

#include <string>
#include <utility>

#include "op_utils.h"

namespace tvm {
namespace te {

using arith::IntSet;

TVM_REGISTER_NODE(ScanOpNode);

TVM_REGISTER_REPR(ScanOpNode, [](const ScanOpNode* node, ReprPrinter* p) {
  p->stream << "scan(" << std::string(node->name) << ')';
});

namespace {

/*! \brief Raises ValueError unless `part` has the axes and the type of `state`. */
void CheckPart(const String& name, const char* what, const Tensor& part, const Tensor& state) {
  TVM_CHECK(part->dtype == state->dtype, ValueError)
      << "scan " << name << ": " << what << " " << part->GetNameHint() << " has dtype "
      << part->dtype << ", its state " << state->GetNameHint() << " has " << state->dtype;
  TVM_CHECK(part.ndim() == state.ndim() && state.ndim() != 0, ValueError)
      << "scan " << name << ": " << what << " " << part->GetNameHint() << " has " << part.ndim()
      << " axes, its state " << state->GetNameHint() << " has " << state.ndim()
      << "; the first axis is the one scanned";
  arith::Analyzer analyzer;
  for (size_t i = 1; i < state.ndim(); ++i) {
    TVM_CHECK(analyzer.CanProveEqual(part->shape[i], state->shape[i]), ValueError)
        << "scan " << name << ": axis " << i << " of " << what << " " << part->GetNameHint()
        << " has extent " << part->shape[i] << ", that of its state " << state->GetNameHint()
        << " has " << state->shape[i];
  }
}

TensorDom WholeDomain(const Tensor& tensor) {
  TensorDom dom;
  for (const PrimExpr& extent : tensor->shape) {
    dom.push_back({IntSet::FromMinExtent(tir::make_zero(extent.dtype()), extent)});
  }
  return dom;
}

}  // namespace

void ScanOpNode::Init() {
  TVM_CHECK(
      !init.empty() && init.size() == update.size() && init.size() == state_placeholder.size(),
      ValueError)
      << "scan " << name << ": every state needs a start and an update, got " << init.size()
      << " starts, " << update.size() << " updates and " << state_placeholder.size() << " states";
  arith::Analyzer analyzer;
  for (size_t i = 0; i < init.size(); ++i) {
    const Tensor& state = state_placeholder[i];
    CheckPart(name, "start", init[i], state);
    CheckPart(name, "update", update[i], state);
    TVM_CHECK(analyzer.CanProveEqual(update[i]->shape[0], state->shape[0]), ValueError)
        << "scan " << name << ": update " << update[i]->GetNameHint() << " has "
        << update[i]->shape[0] << " steps, its state " << state->GetNameHint() << " has "
        << state->shape[0];
    TVM_CHECK(
        analyzer.CanProveEqual(init[i]->shape[0], scan_axis->dom->min) &&
            analyzer.CanProveEqual(state->shape[0], scan_axis->dom->min + scan_axis->dom->extent),
        ValueError)
        << "scan " << name << ": steps " << scan_axis->dom << " do not follow the "
        << init[i]->shape[0] << " positions of start " << init[i]->GetNameHint()
        << " up to the end of its state";
    TVM_CHECK(!init[i]->op->IsInstance<PlaceholderOpNode>(), ValueError)
        << "scan " << name << ": start " << init[i]->GetNameHint() << " is a placeholder, but it "
        << "shares the memory of the result; copy it with a compute";
    TVM_CHECK(state->op->IsInstance<PlaceholderOpNode>(), ValueError)
        << "scan " << name << ": state " << state->GetNameHint() << " must be a placeholder";
  }
}

Array<Tensor> ScanOpNode::InputTensors() const {
  Array<Tensor> reads = init;
  for (const Tensor& tensor : update) reads.push_back(tensor);
  return reads;
}

Operation ScanOpNode::ReplaceInputs(const Operation& self, const TensorMap<Tensor>& rmap) const {
  bool changed = false;
  auto replace = [&](const Array<Tensor>& tensors) {
    Array<Tensor> result;
    for (const Tensor& tensor : tensors) {
      auto it = rmap.find(tensor);
      result.push_back(it == rmap.end() ? tensor : it->second);
      changed |= it != rmap.end();
    }
    return result;
  };
  Array<Tensor> starts = replace(init);
  Array<Tensor> updates = replace(update);
  Array<Tensor> others = replace(inputs);
  if (!changed) return self;
  return ScanOp(name, tag, attrs, scan_axis, starts, updates, state_placeholder, others);
}

void ScanOpNode::PropBoundToInputs(const Operation& self, arith::Analyzer* analyzer,
                                   const IntSetMap& dom_map, TensorMap<TensorDom>* out) const {
  auto request = [&](const Tensor& tensor, const TensorDom& dom) {
    auto it = out->find(tensor);
    if (it == out->end()) return;
    it->second.resize(tensor.ndim());
    for (size_t i = 0; i < dom.size(); ++i) it->second[i].push_back(dom[i][0]);
  };
  for (const Tensor& tensor : init) request(tensor, WholeDomain(tensor));
  for (const Tensor& tensor : update) {
    // One step at a time; which of the other positions a later step reads is not looked into.
    TensorDom dom = WholeDomain(tensor);
    dom[0][0] = dom_map.at(scan_axis->var.get());
    request(tensor, dom);
  }
}

void ScanOpNode::GatherBound(const Operation& self, arith::Analyzer* analyzer,
                             const TensorMap<TensorDom>& requests, RangeMap* out) const {
  (*out)[scan_axis] = scan_axis->dom;
}

Stmt ScanOpNode::BuildRealize(const Stage& stage, LoweringContext* ctx, const Stmt& body) const {
  return RealizeWhole(stage, ctx, body);
}

Stmt ScanOpNode::BuildProvide(const Stage& stage, LoweringContext* ctx) const {
  IterVarMap<PrimExpr> values;
  LoopNest nest = MakeLoopNest(stage, ctx, 0, false, {}, &values);
  size_t threads = 0;
  while (stage->leaf_iter_vars[threads]->iter_type == tir::kThreadIndex) ++threads;
  // The steps are the stages attached to the innermost loop.
  Stmt body = MergeNest(nest, threads, nest.size(), tir::Evaluate(0));
  const std::vector<Stage>& starts = ctx->scan_starts[this];
  for (size_t i = starts.size(); i != 0; --i) body = MakePipeline(starts[i - 1], ctx, body);
  return MergeNest(nest, 0, threads, body);
}

Array<Tensor> scan(Array<Tensor> init, Array<Tensor> update, Array<Tensor> state_placeholder,
                   Array<Tensor> inputs, String name, String tag, Map<String, ObjectRef> attrs) {
  TVM_CHECK(!init.empty() && !update.empty() && init[0].ndim() != 0 && update[0].ndim() != 0,
            ValueError)
      << "scan " << name << ": give at least one start and one update, each with an axis to scan";
  PrimExpr begin = init[0]->shape[0];
  IterVar axis(Range(begin, update[0]->shape[0]), Var(std::string(name) + ".idx", begin.dtype()),
               tir::kOrdered);
  Operation op = ScanOp(name, tag, attrs, axis, init, update, state_placeholder, inputs);
  Array<Tensor> outputs;
  for (int i = 0; i < op->num_outputs(); ++i) outputs.push_back(op.output(i));
  return outputs;
}

TVM_REGISTER_GLOBAL("te.Scan").set_body_typed(
    [](String name, String tag, Map<String, ObjectRef> attrs, Array<Tensor> init,
       Array<Tensor> update, Array<Tensor> state_placeholder, Array<Tensor> inputs) {
      return scan(init, update, state_placeholder, inputs, name, tag, attrs);
    });

}  // namespace te
}  // namespace tvm
