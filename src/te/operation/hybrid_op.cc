/*!
 * \file hybrid_op.cc
 * \brief Loop programs as operations: construction, and their loops as a schedule wants them.
 */
#include <tvm/arith/analyzer.h>
#include <tvm/expr/op.h>
#include <tvm/node/repr_printer.h>
#include <tvm/runtime/registry.h>
#include <tvm/te/hybrid_op.h>
#include <tvm/tir/analysis.h>
#include <tvm/tir/stmt_functor.h>

#include <algorithm>
#include <functional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "../schedule/loop_relations.h"
#include "placeholder_binder.h"

namespace tvm {
namespace te {

TVM_REGISTER_NODE(HybridOpNode);

TVM_REGISTER_REPR(HybridOpNode, [](const HybridOpNode* node, ReprPrinter* p) {
  p->stream << "hybrid(" << std::string(node->name) << ')';
});

namespace {

class LoopCollector final : public tir::StmtVisitor {
 public:
  Array<IterVar> axes;

 private:
  void VisitStmt_(const tir::ForNode* op) override {
    tir::IterVarType type = tir::kDataPar;
    if (op->kind == tir::ForKind::kUnrolled) type = tir::kUnrolled;
    if (op->kind == tir::ForKind::kVectorized) type = tir::kVectorized;
    if (op->kind == tir::ForKind::kParallel) type = tir::kParallelized;
    axes.push_back(IterVar(Range::FromMinExtent(op->min, op->extent), op->loop_var, type));
    StmtVisitor::VisitStmt_(op);
  }
};

/*! \brief Looks for tensors that a body has no business with. */
class AccessChecker final : public tir::StmtExprVisitor {
 public:
  explicit AccessChecker(const HybridOpNode* op) : op_(op) {}

 private:
  void VisitExpr_(const tir::ProducerLoadNode* load) override {
    TVM_CHECK(Writable(load->producer) || Has(op_->inputs, load->producer), ValueError)
        << "hybrid " << op_->name << ": " << load->producer->GetNameHint()
        << " is read but is neither an input nor an output; list it, or realize it around the read";
    StmtExprVisitor::VisitExpr_(load);
  }
  void VisitStmt_(const tir::ProducerStoreNode* store) override {
    TVM_CHECK(Writable(store->producer), ValueError)
        << "hybrid " << op_->name << ": " << store->producer->GetNameHint()
        << " is written but is no output; list it, or realize it around the store";
    StmtExprVisitor::VisitStmt_(store);
  }
  void VisitStmt_(const tir::ProducerRealizeNode* realize) override {
    realized_.push_back(realize->producer);
    StmtExprVisitor::VisitStmt_(realize);
    realized_.pop_back();
  }

  template <typename Tensors>
  static bool Has(const Tensors& tensors, const tir::DataProducer& producer) {
    if (!producer->IsInstance<TensorNode>()) return false;
    Tensor tensor = Downcast<Tensor>(producer);
    return std::any_of(tensors.begin(), tensors.end(), [&](const tir::DataProducer& each) {
      return each->IsInstance<TensorNode>() && Downcast<Tensor>(each) == tensor;
    });
  }
  bool Writable(const tir::DataProducer& producer) const {
    return Has(op_->outputs, producer) || Has(realized_, producer);
  }

  const HybridOpNode* op_;
  std::vector<tir::DataProducer> realized_;
};

}  // namespace

void HybridOpNode::Init() {
  TVM_CHECK(!outputs.empty(), ValueError) << "hybrid " << name << ": no output";
  AccessChecker(this)(body);
  // Schedules refer to the axes of a node that was read.
  if (!axis.empty()) return;
  LoopCollector loops;
  loops(body);
  axis = std::move(loops.axes);
}

DataType HybridOpNode::output_dtype(size_t i) const { return outputs[i]->dtype; }

Array<PrimExpr> HybridOpNode::output_shape(size_t i) const { return outputs[i]->shape; }

Array<Tensor> HybridOpNode::InputTensors() const { return UniqueTensors(inputs); }

Operation HybridOpNode::ReplaceInputs(const Operation& self, const TensorMap<Tensor>& rmap) const {
  Array<Tensor> replaced = ReplaceTensors(inputs, rmap);
  if (replaced.same_as(inputs)) return self;
  // A copy keeps the axes, which schedules refer to.
  auto node = make_object<HybridOpNode>(*this);
  node->inputs = replaced;
  node->body = ReplaceTensor(body, rmap);
  return Operation(ObjectPtr<Object>(node));
}

void HybridOpNode::PropBoundToInputs(const Operation& self, arith::Analyzer* analyzer,
                                     const IntSetMap& dom_map, TensorMap<TensorDom>* out) const {
  RequestWhole(inputs, out);
}

void HybridOpNode::GatherBound(const Operation& self, arith::Analyzer* analyzer,
                               const TensorMap<TensorDom>& requests, RangeMap* out) const {
  for (const IterVar& loop : axis) (*out)[loop] = loop->dom;
}

namespace {

/*! \brief Accesses of tensors become accesses of the buffers that a lowering has for them. */
class BufferBinder final : public tir::StmtExprMutator {
 public:
  void Bind(const Tensor& tensor, const Buffer& buffer) { buffers_[tensor] = buffer; }

 private:
  PrimExpr VisitExpr_(const tir::ProducerLoadNode* op) override {
    return tir::BufferLoad(BufferOf(op->producer), op->indices.Map([this](const PrimExpr& index) {
      return VisitExpr(index);
    }));
  }
  Stmt VisitStmt_(const tir::ProducerStoreNode* op) override {
    PrimExpr value = VisitExpr(op->value);
    return tir::BufferStore(BufferOf(op->producer), value, VisitExprs(op->indices));
  }
  Stmt VisitStmt_(const tir::ProducerRealizeNode* op) override {
    Tensor tensor = Downcast<Tensor>(op->producer);
    Buffer buffer =
        tir::decl_buffer(tensor->shape, tensor->dtype, tensor->GetNameHint(), op->storage_scope);
    Bind(tensor, buffer);
    Stmt body = VisitStmt(op->body);
    return tir::BufferRealize(buffer, VisitRanges(op->bounds), VisitExpr(op->condition), body);
  }
  Buffer BufferOf(const tir::DataProducer& producer) const {
    return buffers_.at(Downcast<Tensor>(producer));
  }
  TensorMap<Buffer> buffers_;
};

}  // namespace

Stmt HybridOpNode::BuildRealize(const Stage& stage, LoweringContext* ctx, const Stmt& body) const {
  return RealizeWhole(stage, ctx, body);
}

namespace {

using LoopRewrite = std::function<Stmt(const tir::ForNode*)>;

/*! \brief Rewrites the loop over one variable. */
class LoopRewriter final : public tir::StmtMutator {
 public:
  LoopRewriter(const Var& var, LoopRewrite rewrite) : var_(var), rewrite_(std::move(rewrite)) {}

 private:
  Stmt VisitStmt_(const tir::ForNode* op) override {
    return op->loop_var.same_as(var_) ? rewrite_(op) : StmtMutator::VisitStmt_(op);
  }
  Var var_;
  LoopRewrite rewrite_;
};

Stmt Rewrite(const Stmt& body, const IterVar& loop, LoopRewrite rewrite) {
  return LoopRewriter(loop->var, std::move(rewrite))(body);
}

/*! \brief `body` where `condition` holds, with the loops it starts with free to be reordered. */
Stmt GuardInside(const PrimExpr& condition, const Stmt& body) {
  const auto* loop = body.as<tir::ForNode>();
  if (loop == nullptr) return tir::IfThenElse(likely(condition), body);
  return tir::For(loop->loop_var, loop->min, loop->extent, loop->kind,
                  GuardInside(condition, loop->body), loop->thread_binding, loop->annotations);
}

Stmt SplitLoop(const Stmt& body, const SplitNode* split, arith::Analyzer* analyzer) {
  return Rewrite(body, split->parent, [=](const tir::ForNode* op) {
    PrimExpr extent = op->extent;
    PrimExpr size = cast(extent.dtype(), split->factor.defined() ? split->factor : split->nparts);
    PrimExpr trips = analyzer->Simplify(floordiv(extent + (size - 1), size));
    PrimExpr outer = split->factor.defined() ? trips : size;
    PrimExpr inner = split->factor.defined() ? size : trips;
    PrimExpr position = split->outer->var * inner + split->inner->var;
    Stmt inside = tir::Substitute(op->body, Map<Var, PrimExpr>{{op->loop_var, position + op->min}});
    if (!split->disable_predication && !analyzer->CanProveEqual(outer * inner, extent)) {
      inside = GuardInside(position < extent, inside);
    }
    PrimExpr zero = tir::make_zero(extent.dtype());
    inside = tir::For(split->inner->var, zero, inner, op->kind, inside);
    return tir::For(split->outer->var, zero, outer, op->kind, inside);
  });
}

Stmt FuseLoops(const Stage& stage, const Stmt& body, const FuseNode* fuse) {
  return Rewrite(body, fuse->outer, [=](const tir::ForNode* op) {
    const auto* inner = op->body.as<tir::ForNode>();
    bool nested = inner != nullptr && inner->loop_var.same_as(fuse->inner->var) &&
                  !tir::UsesVar(inner->extent + inner->min,
                                [&](const VarNode* var) { return var == op->loop_var.get(); });
    TVM_CHECK(nested, ScheduleError)
        << "fuse(" << stage->op->name << ", " << fuse->outer->var->name_hint << ", "
        << fuse->inner->var->name_hint << "): the first loop must hold the second one and nothing "
        << "else, and not decide on its extent";
    const Var& fused = fuse->fused->var;
    Map<Var, PrimExpr> values{{op->loop_var, floordiv(fused, inner->extent) + op->min},
                              {inner->loop_var, floormod(fused, inner->extent) + inner->min}};
    return tir::For(fused, tir::make_zero(fused.dtype()), op->extent * inner->extent, op->kind,
                    tir::Substitute(inner->body, values));
  });
}

/*! \brief Puts loops into their order as leaves of the schedule, and checks that this is all. */
class LoopOrderer final : public tir::StmtMutator {
 public:
  explicit LoopOrderer(const Stage& stage) : stage_(stage) {
    for (size_t i = 0; i < stage->leaf_iter_vars.size(); ++i) {
      place_[stage->leaf_iter_vars[i]->var.get()] = i;
    }
  }

 private:
  Stmt VisitStmt_(const tir::ForNode* op) override {
    std::vector<const tir::ForNode*> chain{op};
    while (const auto* inner = chain.back()->body.as<tir::ForNode>()) chain.push_back(inner);
    std::vector<const tir::ForNode*> order = chain;
    std::stable_sort(order.begin(), order.end(),
                     [this](const auto* a, const auto* b) { return PlaceOf(a) < PlaceOf(b); });
    size_t depth = around_.size();
    for (const tir::ForNode* loop : order) {
      for (const tir::ForNode* outer : around_) {
        TVM_CHECK(PlaceOf(outer) <= PlaceOf(loop), ScheduleError)
            << Where(loop) << "loop " << outer->loop_var->name_hint
            << " around it holds other statements too, so the two cannot change places";
      }
    }
    for (size_t i = 0; i < order.size(); ++i) {
      for (size_t k = i + 1; k < order.size(); ++k) {
        bool uses = tir::UsesVar(order[i]->min + order[i]->extent, [&](const VarNode* var) {
          return var == order[k]->loop_var.get();
        });
        TVM_CHECK(!uses, ScheduleError)
            << Where(order[i]) << "its extent depends on loop " << order[k]->loop_var->name_hint
            << ", which has to stay around it";
      }
    }
    around_.insert(around_.end(), order.begin(), order.end());
    Stmt body = VisitStmt(chain.back()->body);
    around_.resize(depth);
    for (size_t i = order.size(); i != 0; --i) {
      const tir::ForNode* loop = order[i - 1];
      body = tir::For(loop->loop_var, loop->min, loop->extent, loop->kind, body,
                      loop->thread_binding, loop->annotations);
    }
    return body;
  }

  size_t PlaceOf(const tir::ForNode* loop) const { return place_.at(loop->loop_var.get()); }
  std::string Where(const tir::ForNode* loop) const {
    return "reorder(" + std::string(stage_->op->name) + ", " +
           std::string(loop->loop_var->name_hint) + "): ";
  }

  Stage stage_;
  std::unordered_map<const VarNode*, size_t> place_;
  std::vector<const tir::ForNode*> around_;
};

/*! \brief Loops marked, bound to threads and given the stages attached to them. */
Stmt MarkLoop(const Stage& stage, LoweringContext* ctx, const IterVar& loop, const Stmt& body) {
  IterVarAttr attr;
  if (auto it = stage->iter_var_attrs.find(loop); it != stage->iter_var_attrs.end()) {
    attr = (*it).second;
  }
  auto attached = ctx->attached.find(loop);
  if (!attr.defined() && attached == ctx->attached.end()) return body;
  return Rewrite(body, loop, [=](const tir::ForNode* op) {
    Stmt inside = op->body;
    if (attached != ctx->attached.end()) {
      for (size_t i = attached->second.size(); i != 0; --i) {
        inside = MakePipeline(attached->second[i - 1], ctx, inside);
      }
    }
    Stmt result;
    tir::ForKind kind = op->kind;
    if (attr.defined() && attr->bind_thread.defined()) {
      const IterVar& thread = attr->bind_thread;
      inside = tir::Substitute(inside, Map<Var, PrimExpr>{{op->loop_var, thread->var + op->min}});
      String key = std::string(thread->thread_tag).rfind("vthread", 0) == 0
                       ? tir::attr::virtual_thread
                       : tir::attr::thread_extent;
      result = tir::AttrStmt(thread, key, op->extent, inside);
    } else {
      if (attr.defined()) {
        if (attr->iter_type == tir::kUnrolled) kind = tir::ForKind::kUnrolled;
        if (attr->iter_type == tir::kVectorized) kind = tir::ForKind::kVectorized;
        if (attr->iter_type == tir::kParallelized) kind = tir::ForKind::kParallel;
      }
      result = tir::For(op->loop_var, op->min, op->extent, kind, inside);
    }
    for (size_t k = attr.defined() ? attr->pragma_keys.size() : 0; k != 0; --k) {
      PrimExpr key = attr->pragma_keys[k - 1];
      String name = tir::attr::pragma_scope_prefix + key.as<tir::StringImmNode>()->value;
      result = tir::AttrStmt(loop, name, attr->pragma_values[k - 1], result);
    }
    return result;
  });
}

}  // namespace

Stmt HybridOpNode::BuildProvide(const Stage& stage, LoweringContext* ctx) const {
  BufferBinder binder;
  for (const Tensor& input : inputs) binder.Bind(input, ctx->buffers.at(input));
  for (int i = 0; i < num_outputs(); ++i) {
    binder.Bind(outputs[i], ctx->buffers.at(stage->op.output(i)));
  }
  Stmt result = binder(body);
  WalkDown(
      stage.get(),
      [&](const SplitNode* split) { result = SplitLoop(result, split, &ctx->analyzer); },
      [&](const FuseNode* fuse) { result = FuseLoops(stage, result, fuse); },
      [&](const RebaseNode* rebase) {
        result = Rewrite(result, rebase->parent, [=](const tir::ForNode* op) {
          const Var& var = rebase->rebased->var;
          Map<Var, PrimExpr> values{
              {op->loop_var, tir::is_zero(op->min) ? PrimExpr(var) : var + op->min}};
          return tir::For(var, tir::make_zero(var.dtype()), op->extent, op->kind,
                          tir::Substitute(op->body, values));
        });
      },
      [&](const SingletonNode*) {
        TVM_FATAL(ScheduleError) << "fuse(" << stage->op->name << "): a loop program has no place "
                                 << "for a loop of one trip; fuse loops that it has";
      });
  result = LoopOrderer(stage)(result);
  for (const IterVar& loop : stage->leaf_iter_vars) result = MarkLoop(stage, ctx, loop, result);
  return result;
}

}  // namespace te
}  // namespace tvm
