/*!
 * \file src/tir/transforms/inject_software_pipeline.cc
 * \brief Loops whose parts work on different trips at the same time.
 */
#include <tvm/arith/analyzer.h>
#include <tvm/expr/op.h>
#include <tvm/runtime/registry.h>

#include <algorithm>
#include <string>
#include <utility>

#include "block_regions.h"
#include "pass_common.h"
#include "software_pipeline.h"

namespace tvm {
namespace tir {
namespace {

/*! \brief Makes the three loops of one pipeline: it fills, it runs, it empties. */
class PipelineBuilder {
 public:
  PipelineBuilder(For loop, std::vector<PipelinePart> parts, Map<Var, Buffer> buffers,
                  const std::unordered_map<const VarNode*, int64_t>& fragments)
      : loop_(std::move(loop)),
        parts_(std::move(parts)),
        buffers_(std::move(buffers)),
        fragments_(fragments),
        queues_(loop_->min) {}

  Block Build(const Array<Buffer>& allocated,
              const std::unordered_set<const BufferNode*>& doubled) {
    Array<Buffer> versioned;
    for (const Buffer& buffer : allocated) {
      int versions = CountVersions(buffer, parts_, doubled.count(buffer.get()) != 0);
      if (versions > 1) remap_.Set(buffer, AddVersions(buffer, versions));
      versioned.push_back(versions > 1 ? remap_.at(buffer) : buffer);
    }
    for (const PipelinePart& part : parts_) last_stage_ = std::max(last_stage_, part.stage);
    std::sort(parts_.begin(), parts_.end(),
              [](const PipelinePart& a, const PipelinePart& b) { return a.order < b.order; });

    NumberGroups(&parts_);

    const PrimExpr depth = make_const(loop_->extent.dtype(), last_stage_);
    const PrimExpr full = loop_->min + depth;
    const PrimExpr end = loop_->min + loop_->extent;
    // A loop shorter than the pipeline never runs full: what empties it begins where filling ends.
    const bool may_be_short =
        last_stage_ > 1 && !arith::Analyzer().CanProve(loop_->extent >= depth);
    const PrimExpr emptying = may_be_short ? max(end, full) : end;
    Stmt fill = Emit(loop_->min, full, true);
    Stmt run = Emit(full, end, false);
    Stmt empty = Emit(emptying, end + depth, true);
    // The loops bind the same variables inside; each gets its own.
    Stmt body = SeqStmt({RenewBindings(fill), run, RenewBindings(empty)});
    for (const Buffer& buffer : allocated) buffers_.erase(buffer->data);
    AccessRegions regions = RegionsOutside(body, versioned);
    return Block({}, regions.reads, regions.writes, "", body, Stmt(), versioned);
  }

 private:
  /*! \brief What the pipeline accesses of buffers that are not its own. */
  AccessRegions RegionsOutside(const Stmt& body, const Array<Buffer>& own) const {
    AccessRegions all = DeclaredRegions(body, buffers_);
    auto drop = [&own](const Array<BufferRegion>& regions) {
      Array<BufferRegion> kept;
      for (const BufferRegion& region : regions) {
        bool is_own = std::any_of(own.begin(), own.end(), [&](const Buffer& buffer) {
          return buffer.same_as(region->buffer);
        });
        if (!is_own) kept.push_back(region);
      }
      return kept;
    };
    return {drop(all.reads), drop(all.writes)};
  }

  Stmt Emit(const PrimExpr& begin, const PrimExpr& end, bool unroll) {
    const PrimExpr trips = analyzer_.Simplify(end - begin);
    Stmt nothing = BlockRealize({}, const_true(), Block({}, {}, {}, "", Evaluate(0)));
    if (analyzer_.CanProve(trips <= make_zero(trips.dtype()))) return nothing;
    const bool once = is_one(trips);
    // In the first form the variable counts from `begin`, in the result from the loop's own start.
    Var var = loop_->loop_var.copy_with_suffix("");
    const PrimExpr at = once ? begin : PrimExpr(var);
    const PrimExpr shift = analyzer_.Simplify(begin - loop_->min);
    arith::Analyzer counted;
    if (!once) {
      analyzer_.Bind(var, Range::FromMinExtent(begin, trips));
      counted.Bind(var, Range::FromMinExtent(loop_->min, trips));
    }

    std::vector<PlacedPart> placed;
    for (const PipelinePart& part : parts_) {
      PrimExpr skewed = at - make_const(at.dtype(), part.stage);
      // Where only one trip is late enough, the condition says which.
      PrimExpr late =
          analyzer_.CanProve(skewed <= loop_->min) ? skewed == loop_->min : skewed >= loop_->min;
      PrimExpr inside = analyzer_.Simplify(late) && skewed < loop_->min + loop_->extent;
      if (analyzer_.CanProve(!inside)) continue;
      Block block =
          AccessVersions(part.block, remap_, buffers_, fragments_, loop_->loop_var - loop_->min,
                         last_stage_ == 1 ? VersionRegion::kOne : VersionRegion::kAll);
      PrimExpr index = once ? skewed : skewed + shift;
      if (!once) inside = Substitute(inside, Map<Var, PrimExpr>{{var, var + shift}});
      block = Downcast<Block>(Substitute(block, Map<Var, PrimExpr>{{loop_->loop_var, index}}));
      placed.push_back({block, part.stage, part.group, inside, index});
    }
    Map<Var, Buffer> buffers = buffers_;
    for (const auto& [old, versioned] : remap_) buffers.Set(versioned->data, versioned);
    Array<Stmt> stmts = queues_.Place(std::move(placed), trips, &counted, buffers);
    if (stmts.empty()) return nothing;
    Stmt body = SeqStmt::Flatten(stmts);
    if (!once) {
      body = For(var, loop_->min, trips, unroll ? ForKind::kUnrolled : loop_->kind, body, NullOpt,
                 OtherAnnotations());
    }
    return BlockRealize({}, const_true(), WrapInBlock(body, buffers));
  }

  Map<String, ObjectRef> OtherAnnotations() const {
    Map<String, ObjectRef> rest;
    for (const auto& [key, value] : loop_->annotations) {
      if (key != attr::software_pipeline_stage && key != attr::software_pipeline_order &&
          key != attr::software_pipeline_async_stages) {
        rest.Set(key, value);
      }
    }
    return rest;
  }

  For loop_;
  std::vector<PipelinePart> parts_;
  Map<Var, Buffer> buffers_;
  const std::unordered_map<const VarNode*, int64_t>& fragments_;
  AsyncQueues queues_;
  arith::Analyzer analyzer_;
  Map<Buffer, Buffer> remap_;
  int last_stage_ = 0;
};

class PipelineInjector final : public StmtMutator {
 public:
  explicit PipelineInjector(const PrimFunc& func) : fragments_(FragmentSizes(func->body)) {
    for (const auto& [param, buffer] : func->buffer_map) buffers_.Set(buffer->data, buffer);
  }

 private:
  Stmt VisitStmt_(const BlockNode* op) final {
    for (const Buffer& buffer : op->alloc_buffers) buffers_.Set(buffer->data, buffer);
    auto it = op->annotations.find(attr::double_buffer_scope);
    if (it != op->annotations.end()) {
      const auto* number = (*it).second.as<IntImmNode>();
      TVM_CHECK(number != nullptr && number->value >= 0 &&
                    number->value < static_cast<int64_t>(op->writes.size()),
                ValueError)
          << "InjectSoftwarePipeline: annotation " << attr::double_buffer_scope << " of block \""
          << op->name_hint << "\" is the number of one of its " << op->writes.size()
          << " writes, got " << (*it).second;
      doubled_.insert(op->writes[number->value]->buffer.get());
    }
    Stmt result = StmtMutator::VisitStmt_(op);
    for (const Buffer& buffer : op->alloc_buffers) buffers_.erase(buffer->data);
    return result;
  }

  Stmt VisitStmt_(const ForNode* op) final {
    const bool has_stage = op->annotations.count(attr::software_pipeline_stage) != 0;
    const bool has_order = op->annotations.count(attr::software_pipeline_order) != 0;
    TVM_CHECK(has_stage == has_order, ValueError)
        << "InjectSoftwarePipeline: loop " << op->loop_var << " has the annotation "
        << (has_stage ? attr::software_pipeline_stage : attr::software_pipeline_order)
        << " but not "
        << (has_stage ? attr::software_pipeline_order : attr::software_pipeline_stage);
    For loop = Downcast<For>(StmtMutator::VisitStmt_(op));
    if (!has_stage) return loop;
    TVM_CHECK(loop->kind != ForKind::kThreadBinding && loop->kind != ForKind::kParallel &&
                  loop->kind != ForKind::kVectorized,
              ValueError)
        << "InjectSoftwarePipeline: the trips of loop " << loop->loop_var
        << " run at once; annotate a serial loop";

    Array<Buffer> allocated;
    std::vector<PipelinePart> parts = Parts(loop, &allocated);
    PipelineBuilder builder(loop, parts, buffers_, fragments_);
    Block pipeline = builder.Build(allocated, doubled_);
    for (const Buffer& buffer : allocated) buffers_.erase(buffer->data);
    return BlockRealize({}, const_true(), pipeline);
  }

  /*! \brief The statements of the loop's body, those of blocks that hold several one by one. */
  std::vector<PipelinePart> Parts(const For& loop, Array<Buffer>* allocated) {
    std::vector<Block> blocks;
    auto open = [&](const Stmt& stmt) {
      // An always-running block around several statements is no part of its own.
      const auto* realize = stmt.as<BlockRealizeNode>();
      if (realize == nullptr || !is_one(realize->predicate) || !realize->iter_values.empty() ||
          realize->block->body.as<SeqStmtNode>() == nullptr) {
        return Stmt();
      }
      TVM_CHECK(realize->block->match_buffers.empty(), ValueError)
          << "InjectSoftwarePipeline: block \"" << realize->block->name_hint << "\" in loop "
          << loop->loop_var << " has views of regions; run LowerMatchBuffer before";
      for (const Buffer& buffer : realize->block->alloc_buffers) {
        allocated->push_back(buffer);
        buffers_.Set(buffer->data, buffer);
      }
      return realize->block->body;
    };
    Stmt body = open(loop->body);
    if (!body.defined()) body = loop->body;
    const auto* seq = body.as<SeqStmtNode>();
    TVM_CHECK(seq != nullptr, ValueError) << "InjectSoftwarePipeline: loop " << loop->loop_var
                                          << " has one statement, and a pipeline needs several";
    for (const Stmt& child : seq->seq) {
      Stmt inner = open(child);
      if (!inner.defined()) {
        blocks.push_back(WrapInBlock(child, buffers_));
        continue;
      }
      for (const Stmt& part : inner.as<SeqStmtNode>()->seq) {
        blocks.push_back(WrapInBlock(part, buffers_));
      }
    }

    std::vector<int64_t> stages = Numbers(loop, attr::software_pipeline_stage);
    std::vector<int64_t> orders = Numbers(loop, attr::software_pipeline_order);
    for (const auto& [key, numbers] : {std::pair{attr::software_pipeline_stage, &stages},
                                       std::pair{attr::software_pipeline_order, &orders}}) {
      TVM_CHECK(numbers->size() == blocks.size(), ValueError)
          << "InjectSoftwarePipeline: annotation " << key << " of loop " << loop->loop_var
          << " has " << numbers->size() << " numbers for " << blocks.size() << " statements";
    }
    std::vector<int64_t> async;
    if (loop->annotations.count(attr::software_pipeline_async_stages)) {
      async = Numbers(loop, attr::software_pipeline_async_stages);
    }
    std::vector<PipelinePart> parts;
    for (size_t i = 0; i < blocks.size(); ++i) {
      bool is_async = std::find(async.begin(), async.end(), stages[i]) != async.end();
      parts.push_back(
          {blocks[i], static_cast<int>(stages[i]), static_cast<int>(orders[i]), is_async});
    }
    CheckOrders(loop, parts);
    return parts;
  }

  static std::vector<int64_t> Numbers(const For& loop, const char* key) {
    const ObjectRef annotation = loop->annotations.at(key);
    const auto* list = annotation.as<ArrayNode>();
    std::vector<int64_t> numbers;
    bool fits = list != nullptr;
    if (fits) {
      for (const Integer& number : Downcast<Array<Integer>>(annotation)) {
        numbers.push_back(number->value);
        fits = fits && number->value >= 0;
      }
    }
    TVM_CHECK(fits, ValueError) << "InjectSoftwarePipeline: annotation " << key << " of loop "
                                << loop->loop_var
                                << " is a list of numbers that are not negative, got "
                                << annotation;
    return numbers;
  }

  /*! \brief Each part has a place of its own, and reads after what it reads is written. */
  static void CheckOrders(const For& loop, const std::vector<PipelinePart>& parts) {
    std::map<int, size_t> place;
    for (size_t i = 0; i < parts.size(); ++i) {
      auto [it, is_new] = place.try_emplace(parts[i].order, i);
      TVM_CHECK(is_new, ValueError)
          << "InjectSoftwarePipeline: statements " << it->second << " and " << i << " of loop "
          << loop->loop_var << " both have order " << parts[i].order << "; each needs its own";
    }
    for (size_t i = 0; i < parts.size(); ++i) {
      for (const BufferRegion& write : parts[i].block->writes) {
        for (size_t j = i + 1; j < parts.size(); ++j) CheckReader(loop, write->buffer, parts, i, j);
      }
    }
  }
  static void CheckReader(const For& loop, const Buffer& buffer,
                          const std::vector<PipelinePart>& parts, size_t writer, size_t reader) {
    const Array<BufferRegion>& reads = parts[reader].block->reads;
    bool depends = std::any_of(reads.begin(), reads.end(), [&](const BufferRegion& read) {
      return read->buffer.same_as(buffer);
    });
    if (!depends) return;
    const PipelinePart& first = parts[writer];
    const PipelinePart& then = parts[reader];
    TVM_CHECK(first.stage < then.stage || (first.stage == then.stage && first.order < then.order),
              ValueError)
        << "InjectSoftwarePipeline: in loop " << loop->loop_var << " statement " << reader
        << " reads what statement " << writer << " writes to " << buffer->name << ", but has stage "
        << then.stage << " and order " << then.order << " where the other "
        << "has stage " << first.stage << " and order " << first.order
        << "; it needs a later stage, or a later order in the same one";
  }

  std::unordered_map<const VarNode*, int64_t> fragments_;
  Map<Var, Buffer> buffers_;
  std::unordered_set<const BufferNode*> doubled_;
};

bool HasPipeline(const Stmt& body) {
  bool found = false;
  PostOrderVisit(body, [&found](const ObjectRef& node) {
    const auto* loop = node.as<ForNode>();
    found =
        found || (loop != nullptr && (loop->annotations.count(attr::software_pipeline_stage) != 0 ||
                                      loop->annotations.count(attr::software_pipeline_order) != 0));
  });
  return found;
}

}  // namespace

namespace transform {

Pass InjectSoftwarePipeline() {
  return BodyPass("tir.InjectSoftwarePipeline", [](const PrimFunc& func, const PassContext&) {
    return HasPipeline(func->body) ? PipelineInjector(func)(func->body) : func->body;
  });
}

TVM_REGISTER_GLOBAL("tir.transform.InjectSoftwarePipeline").set_body_typed(InjectSoftwarePipeline);

}  // namespace transform
}  // namespace tir
}  // namespace tvm
