/*!
 * \file op_utils.cc
 * \brief Construction of loop nests and rewriting of reads.
 */
#include "op_utils.h"

#include <tvm/expr/op.h>
#include <tvm/ir/op.h>
#include <tvm/te/schedule_pass.h>
#include <tvm/tir/stmt_functor.h>

#include <string>
#include <utility>

namespace tvm {
namespace te {

namespace {

tir::ForKind KindOfLoop(tir::IterVarType type) {
  switch (type) {
    case tir::kUnrolled:
      return tir::ForKind::kUnrolled;
    case tir::kVectorized:
      return tir::ForKind::kVectorized;
    case tir::kParallelized:
      return tir::ForKind::kParallel;
    default:
      return tir::ForKind::kSerial;
  }
}

bool IsVirtualThread(const IterVar& thread) {
  return std::string(thread->thread_tag).rfind("vthread", 0) == 0;
}

}  // namespace

LoopNest MakeLoopNest(const Stage& stage, LoweringContext* ctx, size_t begin, bool is_init,
                      const IterVarSet& skip, IterVarMap<PrimExpr>* values) {
  LoopNest nest;
  const Array<IterVar>& loops = stage->leaf_iter_vars;
  for (size_t i = begin; i < loops.size(); ++i) {
    std::vector<StmtWrapper>& level = nest.emplace_back();
    IterVar loop = loops[i];
    if (skip.count(loop)) continue;
    Range domain = ctx->domains.at(loop);
    IterVarAttr attr;
    if (auto it = stage->iter_var_attrs.find(loop); it != stage->iter_var_attrs.end()) {
      attr = (*it).second;
    }
    if (attr.defined()) {
      for (size_t k = 0; k < attr->pragma_keys.size(); ++k) {
        PrimExpr key_expr = attr->pragma_keys[k];
        String key = tir::attr::pragma_scope_prefix + key_expr.as<tir::StringImmNode>()->value;
        PrimExpr value = attr->pragma_values[k];
        level.push_back(
            [=](Stmt body) { return Stmt(tir::AttrStmt(loop, key, value, std::move(body))); });
      }
    }
    IterVar thread = attr.defined() ? attr->bind_thread : IterVar();
    if (loop->iter_type == tir::kThreadIndex) thread = loop;
    if (thread.defined()) {
      bool is_virtual = IsVirtualThread(thread);
      String key = is_virtual ? tir::attr::virtual_thread : tir::attr::thread_extent;
      level.push_back([=](Stmt body) {
        return Stmt(tir::AttrStmt(thread, key, domain->extent, std::move(body)));
      });
      (*values)[loop] = thread->var;
      if (!thread.same_as(loop)) ctx->replaced[loop->var.get()] = thread->var;
    } else if (tir::is_one(domain->extent) && !ctx->keep_trivial_loop) {
      (*values)[loop] = domain->min;
      ctx->replaced[loop->var.get()] = domain->min;
    } else {
      Var var = loop->var;
      if (is_init) {
        var = var.copy_with_suffix(".init");
        ctx->analyzer.Bind(var, domain);
      }
      tir::ForKind kind = KindOfLoop(attr.defined() ? attr->iter_type : loop->iter_type);
      level.push_back([=](Stmt body) {
        return Stmt(tir::For(var, domain->min, domain->extent, kind, std::move(body)));
      });
      (*values)[loop] = var;
    }
    if (is_init) continue;
    // A loop of one trip has nothing ahead.
    if (attr.defined() && !tir::is_one(domain->extent)) {
      for (size_t k = 0; k < attr->prefetch_data.size(); ++k) {
        Tensor tensor = attr->prefetch_data[k];
        PrimExpr offset = attr->prefetch_offset[k];
        level.push_back([=](Stmt body) {
          return Stmt(tir::AttrStmt(tensor, tir::attr::prefetch_scope, offset, std::move(body)));
        });
      }
    }
    if (auto it = ctx->attached.find(loop); it != ctx->attached.end()) {
      for (const Stage& producer : it->second) {
        level.push_back([=](Stmt body) { return MakePipeline(producer, ctx, body); });
      }
    }
  }
  return nest;
}

Stmt MergeNest(const LoopNest& nest, size_t begin, size_t end, Stmt body) {
  for (size_t i = end; i != begin; --i) {
    const std::vector<StmtWrapper>& level = nest[i - 1];
    for (size_t k = level.size(); k != 0; --k) body = level[k - 1](std::move(body));
  }
  return body;
}

Stmt GuardedBy(const std::vector<PrimExpr>& conditions, Stmt body) {
  for (size_t i = conditions.size(); i != 0; --i) {
    body = tir::IfThenElse(likely(conditions[i - 1]), std::move(body));
  }
  return body;
}

Stmt MakePipeline(const Stage& stage, LoweringContext* ctx, const Stmt& reader) {
  Stmt producer = stage->op->BuildProvide(stage, ctx);
  if (stage->double_buffer) {
    for (int i = 0; i < stage->op->num_outputs(); ++i) {
      producer = tir::AttrStmt(ctx->buffers.at(stage->op.output(i))->data,
                               tir::attr::double_buffer_scope, PrimExpr(1), producer);
    }
  }
  Stmt both = tir::is_no_op(reader) ? producer : tir::SeqStmt::Flatten({producer, reader});
  if (ctx->scan_parts.count(stage->op.get())) return both;
  return stage->op->BuildRealize(stage, ctx, both);
}

Stmt RealizeWhole(const Stage& stage, LoweringContext* ctx, const Stmt& body) {
  Stmt realize = body;
  for (int i = stage->op->num_outputs(); i != 0; --i) {
    const Buffer& buffer = ctx->buffers.at(stage->op.output(i - 1));
    Array<Range> bounds;
    for (const PrimExpr& extent : buffer->shape) {
      bounds.push_back(Range::FromMinExtent(tir::make_zero(extent.dtype()), extent));
    }
    realize = tir::BufferRealize(buffer, bounds, tir::const_true(), realize);
  }
  return realize;
}

namespace {

class TensorReplacer final : public tir::StmtExprMutator {
 public:
  explicit TensorReplacer(const TensorMap<Tensor>& rmap) : rmap_(rmap) {}

 private:
  PrimExpr VisitExpr_(const tir::ProducerLoadNode* op) override {
    PrimExpr load = StmtExprMutator::VisitExpr_(op);
    op = load.as<tir::ProducerLoadNode>();
    if (!op->producer->IsInstance<TensorNode>()) return load;
    auto it = rmap_.find(Downcast<Tensor>(op->producer));
    return it == rmap_.end() ? load : it->second(op->indices);
  }
  const TensorMap<Tensor>& rmap_;
};

}  // namespace

PrimExpr ReplaceTensor(const PrimExpr& expr, const TensorMap<Tensor>& rmap) {
  return TensorReplacer(rmap)(expr);
}
Stmt ReplaceTensor(const Stmt& stmt, const TensorMap<Tensor>& rmap) {
  return TensorReplacer(rmap)(stmt);
}

void CollectReads(const PrimExpr& expr, std::vector<Tensor>* reads) {
  tir::PostOrderVisit(expr, [reads](const ObjectRef& node) {
    const auto* load = node.as<tir::ProducerLoadNode>();
    if (load == nullptr || !load->producer->IsInstance<TensorNode>()) return;
    Tensor tensor = Downcast<Tensor>(load->producer);
    for (const Tensor& seen : *reads) {
      if (seen == tensor) return;
    }
    reads->push_back(tensor);
  });
}

TVM_REGISTER_OP("te.storage_align")
    .describe("(axis, factor, offset): the stride of the axis is k * factor + offset elements");

PrimExpr StorageAlignment(int axis, const PrimExpr& factor, const PrimExpr& offset) {
  static const Op& op = Op::Get("te.storage_align");
  return tir::Call(DataType::Handle(), op, {PrimExpr(axis), factor, offset});
}

Map<Var, PrimExpr> VarValues(const Array<IterVar>& axes, const IterVarMap<PrimExpr>& values) {
  Map<Var, PrimExpr> result;
  for (const IterVar& axis : axes) {
    if (auto it = values.find(axis); it != values.end()) result.Set(axis->var, it->second);
  }
  return result;
}

}  // namespace te
}  // namespace tvm
