/*!
 * \file schedule_ops.cc
 * \brief Loop nests of all stages, put where the stages are attached.
 */
#include <tvm/expr/op.h>
#include <tvm/runtime/registry.h>
#include <tvm/te/scan_op.h>
#include <tvm/te/schedule_pass.h>
#include <tvm/tir/launch.h>
#include <tvm/tir/stmt_functor.h>

#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

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
    op = stmt.as<tir::AttrStmtNode>();
    if (op->attr_key != tir::attr::prefetch_scope) return stmt;
    return tir::AttrStmt(BufferOf(Downcast<Tensor>(op->node)), op->attr_key, op->value, op->body);
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

/*! \brief From tensors that live in the memory of a scan to the scan's results. */
TensorMap<Tensor> PartsOfScans(const Schedule& sch, LoweringContext* ctx) {
  TensorMap<Tensor> shared;
  for (const Stage& stage : sch->stages) {
    const auto* scan = stage->op.as<ScanOpNode>();
    if (scan == nullptr) continue;
    for (int i = 0; i < scan->num_outputs(); ++i) {
      for (const Tensor& part : {scan->init[i], scan->update[i], scan->state_placeholder[i]}) {
        TVM_CHECK(shared.emplace(part, stage->op.output(i)).second, ScheduleError)
            << "scan " << scan->name << ": " << part->GetNameHint()
            << " belongs to two states, which share no memory; make one for each";
      }
    }
    for (const Array<Tensor>& parts : {scan->init, scan->update}) {
      for (const Tensor& part : parts) {
        ctx->scan_parts.insert(part->op.get());
        for (int k = 0; k < part->op->num_outputs(); ++k) {
          TVM_CHECK(shared.count(part->op.output(k)), ScheduleError)
              << "scan " << scan->name << ": " << part->op->name << " computes "
              << part->op.output(k)->GetNameHint() << " too, which is no state";
        }
        TVM_CHECK(!sch[part]->is_output, ScheduleError)
            << "scan " << scan->name << ": " << part->op->name << " is a part of it and cannot be "
            << "an output of the schedule as well; use the scan's result";
      }
    }
  }
  return shared;
}

/*! \brief Puts the stage where it is attached; false for one that is computed at the root. */
bool Attach(const Stage& stage, const std::unordered_map<const Object*, const Object*>& scan_of,
            LoweringContext* ctx) {
  Stage place = stage.attached_by();
  auto start = scan_of.find(stage->op.get());
  if (start != scan_of.end()) {
    TVM_CHECK(place->attach_type == kGroupRoot, ScheduleError)
        << "compute_at(" << stage->op->name << "): the start of a scan is computed where the scan "
        << "begins; attach the scan instead";
    ctx->scan_starts[start->second].push_back(stage);
  } else if (place->attach_type == kScope) {
    ctx->attached[place->attach_ivar].push_back(stage);
  } else if (place->attach_type == kScanUpdate) {
    const Array<IterVar>& loops = place->attach_stage->leaf_iter_vars;
    ctx->attached[loops[loops.size() - 1]].push_back(stage);
  } else {
    return false;
  }
  return true;
}

/*! \brief Memory of a stage without a scope: what the threads around it share, at the widest. */
String ScopeOf(const Stage& stage, const IterVarMap<IterVar>& thread_of) {
  if (stage->is_output) return "";
  if (!stage->scope.empty()) return stage->scope;
  String scope = "";
  for (const IterVar& loop : LoopsAround(stage)) {
    auto it = thread_of.find(loop);
    if (it == thread_of.end()) continue;
    bool block = tir::ParseThreadTag(it->second->thread_tag).kind == tir::ThreadKind::kBlock;
    if (!block) return "local";
    scope = "shared";
  }
  return scope;
}

void DeclareBuffers(const Schedule& sch, LoweringContext* ctx, std::vector<Tensor>* tensors) {
  TensorMap<Tensor> shared = PartsOfScans(sch, ctx);
  IterVarMap<IterVar> thread_of;
  for (const Stage& stage : sch->stages) {
    for (const auto& [loop, attr] : stage->iter_var_attrs) {
      if (attr->bind_thread.defined()) thread_of[loop] = attr->bind_thread;
    }
  }
  for (const Stage& stage : sch->stages) {
    if (stage->attach_type == kInlinedAlready) continue;
    for (int i = 0; i < stage->op->num_outputs(); ++i) {
      Tensor tensor = stage->op.output(i);
      if (shared.count(tensor)) continue;
      Tensor origin = stage->origin_op.output(i);
      Buffer buffer = tir::decl_buffer(tensor->shape, tensor->dtype, origin->GetNameHint(),
                                       ScopeOf(stage, thread_of));
      ctx->buffers[tensor] = buffer;
      ctx->buffers[origin] = buffer;
      tensors->push_back(origin);
    }
  }
  for (const auto& [part, whole] : shared) ctx->buffers[part] = ctx->buffers.at(whole);
}

}  // namespace

Stmt ScheduleOps(const Schedule& sch, const Map<IterVar, Range>& bounds, bool keep_trivial_loop) {
  LoweringContext ctx;
  ctx.keep_trivial_loop = keep_trivial_loop;
  for (const auto& [loop, domain] : bounds) ctx.domains.emplace(loop, domain);
  std::vector<Tensor> tensors;
  DeclareBuffers(sch, &ctx, &tensors);
  std::unordered_map<const Object*, const Object*> scan_of;
  for (const Stage& stage : sch->stages) {
    const auto* scan = stage->op.as<ScanOpNode>();
    if (scan == nullptr) continue;
    for (const Tensor& start : scan->init) scan_of.emplace(start->op.get(), scan);
  }
  std::vector<Stage> roots;
  for (const Stage& stage : sch->stages) {
    TVM_CHECK(stage->attach_type != kInline, ScheduleError)
        << "ScheduleOps: stage " << stage->op->name
        << " is still to be inlined; call normalize() first";
    if (!stage.is_scheduled()) continue;
    LoopsAround(stage);  // raises for a stale attach point
    if (!Attach(stage, scan_of, &ctx)) roots.push_back(stage);
    for (const IterVar& loop : stage->leaf_iter_vars) {
      auto it = ctx.domains.find(loop);
      TVM_CHECK(it != ctx.domains.end(), ScheduleError)
          << "ScheduleOps: no bound for loop " << loop->var->name_hint << " of stage "
          << stage->op->name << "; pass the result of InferBound for this very schedule";
      ctx.analyzer.Bind(loop->var, it->second, true);
    }
  }
  Stmt body = tir::Evaluate(PrimExpr(0));
  for (size_t i = roots.size(); i != 0; --i) body = MakePipeline(roots[i - 1], &ctx, body);
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
