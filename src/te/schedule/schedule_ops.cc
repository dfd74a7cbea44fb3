/*!
 * \file schedule_ops.cc
 * \brief Loop nests of all stages, put where the stages are attached.
 */
#include <tvm/arith/bound.h>
#include <tvm/runtime/registry.h>
#include <tvm/te/schedule_pass.h>
#include <tvm/tir/op.h>
#include <tvm/tir/stmt_functor.h>

#include <string>
#include <unordered_set>

#include "../operation/op_utils.h"
#include "graph.h"

namespace tvm {
namespace te {

namespace {

/*! \brief Reads of tensors become reads of buffers; loops that were not generated get values. */
class TensorResolver final : public tir::StmtExprMutator {
 public:
  explicit TensorResolver(const LoweringContext& ctx) : ctx_(ctx) {}

 private:
  PrimExpr VisitExpr_(const tir::ProducerLoadNode* op) override {
    PrimExpr load = StmtExprMutator::VisitExpr_(op);
    op = load.as<tir::ProducerLoadNode>();
    if (!op->producer->IsInstance<TensorNode>()) return load;
    return tir::BufferLoad(BufferOf(Downcast<Tensor>(op->producer)), op->indices);
  }

  PrimExpr VisitExpr_(const VarNode* op) override {
    auto it = ctx_.replaced.find(op);
    return it == ctx_.replaced.end() ? GetRef<PrimExpr>(op) : VisitExpr(it->second);
  }

  Stmt VisitStmt_(const tir::AttrStmtNode* op) override {
    bool is_thread =
        op->attr_key == tir::attr::thread_extent || op->attr_key == tir::attr::virtual_thread;
    if (is_thread) {
      const VarNode* thread = op->node.as<IterVarNode>()->var.get();
      // An attached stage may use the threads of the stage around it, which are launched once.
      if (!launched_.insert(thread).second) return VisitStmt(op->body);
      Stmt stmt = StmtExprMutator::VisitStmt_(op);
      launched_.erase(thread);
      return stmt;
    }
    Stmt stmt = StmtExprMutator::VisitStmt_(op);
    return op->attr_key == tir::attr::prefetch_scope ? Prefetched(stmt.as<tir::AttrStmtNode>())
                                                     : stmt;
  }

  /*! \brief The body after a prefetch of what it will read `value` trips later. */
  Stmt Prefetched(const tir::AttrStmtNode* op) const {
    Array<ObjectRef> what = Downcast<Array<ObjectRef>>(op->node);
    IterVar loop = Downcast<IterVar>(what[0]);
    Buffer buffer = BufferOf(Downcast<Tensor>(what[1]));
    Map<Var, PrimExpr> ahead{{loop->var, loop->var + op->value}};
    Array<Range> bounds;
    for (const Range& range : arith::DomainTouched(op->body, buffer, true, false)) {
      bounds.push_back(tir::Substitute(range, ahead));
    }
    return tir::SeqStmt::Flatten({tir::Prefetch(buffer, bounds), op->body});
  }

  Buffer BufferOf(const Tensor& tensor) const {
    auto it = ctx_.buffers.find(tensor);
    TVM_CHECK(it != ctx_.buffers.end(), ScheduleError)
        << "tensor " << tensor->GetNameHint() << " is read but belongs to no stage of the schedule";
    return it->second;
  }

  const LoweringContext& ctx_;
  std::unordered_set<const VarNode*> launched_;
};

void DeclareBuffers(const Schedule& sch, LoweringContext* ctx, std::vector<Tensor>* tensors) {
  for (const Stage& stage : sch->stages) {
    if (stage->attach_type == kInlinedAlready) continue;
    for (int i = 0; i < stage->op->num_outputs(); ++i) {
      Tensor tensor = stage->op.output(i);
      Tensor origin = stage->origin_op.output(i);
      Buffer buffer = tir::decl_buffer(tensor->shape, tensor->dtype, origin->GetNameHint(),
                                       stage->is_output ? String("") : stage->scope);
      ctx->buffers[tensor] = buffer;
      ctx->buffers[origin] = buffer;
      tensors->push_back(origin);
    }
  }
}

}  // namespace

Stmt ScheduleOps(const Schedule& sch, const Map<IterVar, Range>& bounds, bool keep_trivial_loop) {
  LoweringContext ctx;
  ctx.keep_trivial_loop = keep_trivial_loop;
  for (const auto& [loop, domain] : bounds) ctx.domains.emplace(loop, domain);
  std::vector<Tensor> tensors;
  DeclareBuffers(sch, &ctx, &tensors);
  for (const Stage& stage : sch->stages) {
    TVM_CHECK(stage->attach_type != kInline, ScheduleError)
        << "ScheduleOps: stage " << stage->op->name
        << " is still to be inlined; call normalize() first";
    if (!stage.is_scheduled()) continue;
    LoopsAround(stage);  // raises for a stale attach point
    if (stage->attach_type == kScope) ctx.attached[stage->attach_ivar].push_back(stage);
    for (const IterVar& loop : stage->leaf_iter_vars) {
      auto it = ctx.domains.find(loop);
      TVM_CHECK(it != ctx.domains.end(), ScheduleError)
          << "ScheduleOps: no bound for loop " << loop->var->name_hint << " of stage "
          << stage->op->name << "; pass the result of InferBound for this very schedule";
      ctx.analyzer.Bind(loop->var, it->second, true);
    }
  }
  Stmt body = tir::Evaluate(PrimExpr(0));
  for (size_t i = sch->stages.size(); i != 0; --i) {
    Stage stage = sch->stages[i - 1];
    if (!stage.is_scheduled() || stage->attach_type == kScope) continue;
    body = MakePipeline(stage, &ctx, body);
  }
  body = TensorResolver(ctx)(body);
  for (size_t i = tensors.size(); i != 0; --i) {
    Array<ObjectRef> bound{tensors[i - 1], ctx.buffers.at(tensors[i - 1])};
    body = tir::AttrStmt(bound, attr::tensor_buffer, PrimExpr(1), body);
  }
  return body;
}

TVM_REGISTER_GLOBAL("te.ScheduleOps")
    .set_body_typed([](Schedule sch, Map<IterVar, Range> bounds, bool keep_trivial_loop) {
      return ScheduleOps(sch, bounds, keep_trivial_loop);
    });

}  // namespace te
}  // namespace tvm
