/*!
 * \file src/tir/transforms/lower_blocks.cc
 * \brief From blocks to loop nests over allocated buffers.
 */
#include <tvm/arith/analyzer.h>
#include <tvm/expr/builtin.h>
#include <tvm/expr/op.h>
#include <tvm/runtime/registry.h>
#include <tvm/tir/analysis.h>
#include <tvm/tir/stmt_functor.h>

#include <map>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "pass_common.h"
#include "storage_alignment.h"

namespace tvm {
namespace tir {
namespace {

class InitLowerer final : public StmtMutator {
  Stmt VisitStmt_(const BlockNode* op) final {
    Block block = Downcast<Block>(StmtMutator::VisitStmt_(op));
    if (!block->init.defined()) return block;
    PrimExpr first;
    for (const IterVar& iv : block->iter_vars) {
      if (iv->iter_type != kCommReduce) continue;
      PrimExpr at_start = iv->var == iv->dom->min;
      first = first.defined() ? first && at_start : at_start;
    }
    Stmt init = first.defined() ? Stmt(IfThenElse(first, block->init)) : block->init;
    BlockNode* node = block.CopyOnWrite();
    node->body = SeqStmt::Flatten({init, block->body});
    node->init = Stmt();
    return block;
  }
};

class VariableRemover final : public StmtMutator {
  Stmt VisitStmt_(const BlockRealizeNode* op) final {
    TVM_CHECK(!op->block->init.defined(), ValueError)
        << "ConvertBlocksToOpaque: block " << op->block->name_hint
        << " still has an init; run LowerInitBlock before";
    for (const IterVar& iv : op->block->iter_vars) {
      bool own = UsesVar(op->predicate, [&](const VarNode* var) { return var == iv->var.get(); });
      TVM_CHECK(!own, ValueError) << "ConvertBlocksToOpaque: the predicate " << op->predicate
                                  << " of block " << op->block->name_hint
                                  << " is in terms of its variable " << iv->var
                                  << ", which only the block knows; write the value it is given";
    }
    Map<Var, PrimExpr> values;
    for (size_t i = 0; i < op->iter_values.size(); ++i) {
      values.Set(op->block->iter_vars[i]->var, op->iter_values[i]);
    }
    Block block = op->block;
    if (!values.empty()) {
      block.CopyOnWrite()->iter_vars = {};
      block = Downcast<Block>(Substitute(Stmt(block), values));
    }
    Stmt inner = VisitStmt(block);
    if (values.empty() && inner.same_as(op->block)) return GetRef<Stmt>(op);
    return BlockRealize({}, op->predicate, Downcast<Block>(inner));
  }
};

/*! \brief Accesses of views turned into accesses of what they view, inside of one block. */
class ViewReplacer final : public StmtExprMutator {
 public:
  explicit ViewReplacer(const MatchBufferRegion& match) : match_(match) {}

 private:
  bool IsView(const Buffer& buffer) const { return buffer.same_as(match_->buffer); }
  Array<PrimExpr> Map(const Array<PrimExpr>& indices) const {
    const Array<Range>& region = match_->source->region;
    size_t dropped = region.size() - indices.size();
    Array<PrimExpr> result;
    for (size_t i = 0; i < region.size(); ++i) {
      result.push_back(i < dropped ? region[i]->min : region[i]->min + indices[i - dropped]);
    }
    return result;
  }
  PrimExpr VisitExpr_(const BufferLoadNode* op) final {
    PrimExpr expr = StmtExprMutator::VisitExpr_(op);
    op = expr.as<BufferLoadNode>();
    return IsView(op->buffer) ? BufferLoad(match_->source->buffer, Map(op->indices)) : expr;
  }
  Stmt VisitStmt_(const BufferStoreNode* op) final {
    Stmt stmt = StmtExprMutator::VisitStmt_(op);
    op = stmt.as<BufferStoreNode>();
    if (!IsView(op->buffer)) return stmt;
    return BufferStore(match_->source->buffer, op->value, Map(op->indices));
  }
  Stmt VisitStmt_(const BlockNode* op) final {
    Block block = Downcast<Block>(StmtExprMutator::VisitStmt_(op));
    Array<MatchBufferRegion> matches =
        block->match_buffers.Map([this](const MatchBufferRegion& inner) {
          if (!IsView(inner->source->buffer)) return inner;
          Array<PrimExpr> begin;
          for (const Range& range : inner->source->region) begin.push_back(range->min);
          Array<Range> region;
          Array<PrimExpr> mins = Map(begin);
          size_t dropped = mins.size() - begin.size();
          for (size_t i = 0; i < mins.size(); ++i) {
            PrimExpr extent = i < dropped ? make_const(mins[i].dtype(), 1)
                                          : inner->source->region[i - dropped]->extent;
            region.push_back(Range::FromMinExtent(mins[i], extent));
          }
          return MatchBufferRegion(inner->buffer, BufferRegion(match_->source->buffer, region));
        });
    if (!matches.same_as(block->match_buffers)) block.CopyOnWrite()->match_buffers = matches;
    return block;
  }

  const MatchBufferRegion& match_;
};

class MatchLowerer final : public StmtMutator {
  Stmt VisitStmt_(const BlockNode* op) final {
    Block block = GetRef<Block>(op);
    if (!op->match_buffers.empty()) {
      Stmt body = op->body;
      // Later views may be views of earlier ones.
      for (size_t i = op->match_buffers.size(); i != 0; --i) {
        const MatchBufferRegion& match = op->match_buffers[i - 1];
        Map<Var, PrimExpr> values = Bindings(match, body);
        body = Substitute(ViewReplacer(match)(body), values);
      }
      BlockNode* node = block.CopyOnWrite();
      node->body = body;
      node->match_buffers = {};
    }
    return StmtMutator::VisitStmt_(block.get());
  }

  /*!
   * \brief What the variables in a view's declaration stand for.
   *
   * ValueError where it declares what the region has not.
   */
  static Map<Var, PrimExpr> Bindings(const MatchBufferRegion& match, const Stmt& body) {
    const Buffer& view = match->buffer;
    const Buffer& of = match->source->buffer;
    const Array<Range>& region = match->source->region;
    const std::string where = "LowerMatchBuffer: " + std::string(view->name) +
                              " views a region of " + std::string(of->name);
    TVM_CHECK(view.scope() == of.scope(), ValueError)
        << where << ": it declares scope " << view.scope() << ", the region is in " << of.scope();
    size_t dropped = region.size() - view->shape.size();
    arith::Analyzer analyzer;
    Map<Var, PrimExpr> values{{view->data, of->data}};
    auto bind = [&](const PrimExpr& declared, const PrimExpr& actual, const char* what) {
      const auto* var = declared.as<VarNode>();
      PrimExpr value = cast(declared.dtype(), actual);
      PrimExpr known = declared;
      if (var != nullptr) {
        auto it = values.find(GetRef<Var>(var));
        if (it == values.end()) return values.Set(GetRef<Var>(var), value);
        known = (*it).second;
      }
      TVM_CHECK(analyzer.CanProveEqual(known, value), ValueError)
          << where << ": it declares the " << what << " " << known << ", the region has " << value
          << "; declare a variable of its own or what the region has";
    };
    for (size_t i = 0; i < view->shape.size(); ++i) {
      bind(view->shape[i], region[i + dropped]->extent, "extent");
    }
    Array<PrimExpr> begin;
    for (const Range& range : region) begin.push_back(range->min);
    PrimExpr offset = analyzer.Simplify(of.ElemOffset(begin));
    // Who only asks for elements is told where they are, whatever the view declares.
    bool by_pointer = false;
    PostOrderVisit(
        body, [&](const ObjectRef& node) { by_pointer = by_pointer || node.same_as(view->data); });
    if (by_pointer || view->elem_offset.as<VarNode>()) bind(view->elem_offset, offset, "offset");
    if (by_pointer && view->offset_factor > 1) {
      PrimExpr factor = make_const(offset.dtype(), view->offset_factor);
      TVM_CHECK(analyzer.CanProveEqual(floormod(offset, factor), 0), ValueError)
          << where << ": it declares offset_factor " << view->offset_factor
          << ", the region begins at element " << offset;
    }
    PrimExpr stride = make_const(of.IndexDType(), 1);
    for (size_t i = view->strides.size(); i != 0; --i) {
      size_t axis = i - 1 + dropped;
      const PrimExpr& declared = view->strides[i - 1];
      // The stride of an axis of one element is never used.
      if (declared.as<VarNode>() || !is_one(region[axis]->extent)) {
        bind(declared, of->strides.empty() ? stride : of->strides[axis], "stride");
      }
      stride = analyzer.Simplify(stride * of->shape[axis]);
    }
    return values;
  }
};

class OpaqueLowerer final : public StmtMutator {
 public:
  OpaqueLowerer(StorageAlignmentMap aligned, bool marks_likely)
      : aligned_(std::move(aligned)), marks_likely_(marks_likely) {}

 private:
  Stmt Allocated(const Buffer& buffer, Stmt body) const {
    Map<String, ObjectRef> annotations;
    auto it = aligned_.find(buffer.get());
    if (it != aligned_.end()) annotations.Set(kBufferDimAlign, AlignmentRows(it->second));
    body = DeclBuffer(buffer, body);
    return Allocate(buffer->data, buffer->dtype, AllocatedExtents(buffer), const_true(), body,
                    annotations);
  }
  Stmt VisitStmt_(const BlockRealizeNode* op) final {
    const Block& block = op->block;
    TVM_CHECK(block->iter_vars.empty() && block->match_buffers.empty() && !block->init.defined(),
              ValueError)
        << "LowerOpaqueBlock: block " << block->name_hint
        << " is not opaque yet; run the passes that lower its init, variables and views before";
    Stmt body = VisitStmt(block->body);
    for (size_t i = block->alloc_buffers.size(); i != 0; --i) {
      body = Allocated(block->alloc_buffers[i - 1], body);
    }
    body = WithPragmas(ObjectRef(), block->annotations, body);
    if (is_one(op->predicate)) return body;
    return IfThenElse(marks_likely_ ? likely(op->predicate) : op->predicate, body);
  }
  Stmt VisitStmt_(const ForNode* op) final {
    // Held, because `stmt` becomes another statement below.
    const For loop = Downcast<For>(StmtMutator::VisitStmt_(op));
    op = loop.get();
    const bool threads = op->kind == ForKind::kThreadBinding;
    if (!threads && is_one(op->extent) && op->annotations.empty()) {
      return Substitute(op->body, Map<Var, PrimExpr>{{op->loop_var, op->min}});
    }
    Stmt stmt = loop;
    Map<String, ObjectRef> rest;
    for (const auto& [key, value] : op->annotations) {
      if (!PragmaValue(key, value).defined()) rest.Set(key, value);
    }
    if (threads) {
      stmt = Launched(op);
    } else if (rest.size() != op->annotations.size()) {
      stmt = For(op->loop_var, op->min, op->extent, op->kind, op->body, op->thread_binding, rest);
    }
    Range dom = Range::FromMinExtent(op->min, op->extent);
    return WithPragmas(IterVar(dom, op->loop_var, kDataPar), op->annotations, stmt);
  }

  /*! \brief The value of an annotation that is a pragma and can be one of an attribute. */
  static PrimExpr PragmaValue(const String& key, const ObjectRef& value) {
    if (std::string(key).rfind(attr::pragma_scope_prefix, 0) != 0) return PrimExpr();
    if (const auto* text = value.as<runtime::StringObj>()) return StringImm(GetRef<String>(text));
    return value.as<PrimExprNode>() ? Downcast<PrimExpr>(value) : PrimExpr();
  }
  /*! \brief Attributes for the pragmas among annotations, the first by name outermost. */
  static Stmt WithPragmas(const ObjectRef& node, const Map<String, ObjectRef>& annotations,
                          Stmt body) {
    std::map<std::string, PrimExpr> pragmas;
    for (const auto& [key, value] : annotations) {
      // What no pass reads stays behind.
      PrimExpr pragma = PragmaValue(key, value);
      if (pragma.defined()) pragmas.emplace(key, pragma);
    }
    for (auto it = pragmas.rbegin(); it != pragmas.rend(); ++it) {
      body = AttrStmt(node, it->first, it->second, body);
    }
    return body;
  }

  /*! \brief A loop over threads as the attribute that launches read. */
  static Stmt Launched(const ForNode* op) {
    String tag = op->thread_binding->thread_tag;
    Var thread(tag, op->loop_var->dtype);
    Stmt body = Substitute(op->body, Map<Var, PrimExpr>{{op->loop_var, op->min + thread}});
    IterVar axis(Range(), thread, kThreadIndex, tag);
    bool is_virtual = std::string(tag).rfind("vthread", 0) == 0;
    return AttrStmt(axis, is_virtual ? attr::virtual_thread : attr::thread_extent, op->extent,
                    body);
  }

  StorageAlignmentMap aligned_;
  bool marks_likely_;
};

/*! \brief What functions have of blocks, and what these ask for. */
class BlockFinder final : public StmtVisitor {
 public:
  bool found = false;
  /*! \brief Whether a block has the annotation, or a buffer is in a scope that begins like this. */
  bool Has(const std::string& request) const { return requests_.count(request) != 0; }

 private:
  void VisitStmt_(const BlockNode* op) final {
    found = true;
    for (const auto& [key, value] : op->annotations) requests_.insert(key);
    for (const Buffer& buffer : op->alloc_buffers) {
      const std::string scope = buffer.scope();
      requests_.insert(scope.substr(0, scope.find('.')));
    }
    StmtVisitor::VisitStmt_(op);
  }
  // Loops over threads become launches together with blocks.
  void VisitStmt_(const ForNode* op) final {
    found = found || op->kind == ForKind::kThreadBinding;
    StmtVisitor::VisitStmt_(op);
  }

  std::unordered_set<std::string> requests_;
};

}  // namespace

namespace transform {

Pass LowerInitBlock() {
  return BodyPass("tir.LowerInitBlock", [](const PrimFunc& func, const PassContext&) {
    return InitLowerer()(func->body);
  });
}
Pass ConvertBlocksToOpaque() {
  return BodyPass("tir.ConvertBlocksToOpaque", [](const PrimFunc& func, const PassContext&) {
    return VariableRemover()(func->body);
  });
}
Pass LowerMatchBuffer() {
  return BodyPass("tir.LowerMatchBuffer", [](const PrimFunc& func, const PassContext&) {
    return MatchLowerer()(func->body);
  });
}
Pass LowerOpaqueBlock(bool marks_likely) {
  return BodyPass("tir.LowerOpaqueBlock", [marks_likely](const PrimFunc& func, const PassContext&) {
    return OpaqueLowerer(StorageAlignments(func->body), marks_likely)(func->body);
  });
}

Array<Pass> LowerBlockPasses(const IRModule& mod) {
  BlockFinder blocks;
  for (const auto& [var, func] : mod->functions) {
    if (const auto* prim_func = func.as<PrimFuncNode>()) blocks(prim_func->body);
  }
  if (!blocks.found) return {};
  Array<Pass> passes{LowerCrossThreadReduction(), LowerInitBlock(),
                     PlanAndUpdateBufferAllocationLocation(), ConvertBlocksToOpaque()};
  // Passes that few programs ask for are written in Python, and looked for where one does.
  auto on_request = [&](const char* request, const char* pass) {
    if (!blocks.Has(request)) return;
    passes.push_back(runtime::Registry::Require(std::string("tir.transform.") + pass)());
  };
  // A copy and what it goes through are two statements only if no loop of threads is around both.
  on_request("tir.manifest_shared_memory_local_stage", "LiftThreadBinding");
  on_request("tir.manifest_shared_memory_local_stage", "ManifestSharedMemoryLocalStage");
  passes.push_back(CompactBufferAllocation());
  on_request("auto_copy", "LowerAutoCopy");
  passes.push_back(LowerMatchBuffer());
  on_request("permuted_layout", "InjectPermutedLayout");
  passes.push_back(InjectSoftwarePipeline());
  on_request("m16n8k8", "TransformMmaBufferLayout");
  passes.push_back(LowerOpaqueBlock(/*marks_likely=*/true));
  return passes;
}

TVM_REGISTER_GLOBAL("tir.transform.LowerInitBlock").set_body_typed(LowerInitBlock);
TVM_REGISTER_GLOBAL("tir.transform.ConvertBlocksToOpaque").set_body_typed(ConvertBlocksToOpaque);
TVM_REGISTER_GLOBAL("tir.transform.LowerMatchBuffer").set_body_typed(LowerMatchBuffer);
TVM_REGISTER_GLOBAL("tir.transform.LowerOpaqueBlock").set_body_typed([]() {
  return LowerOpaqueBlock();
});

}  // namespace transform
}  // namespace tir
}  // namespace tvm
