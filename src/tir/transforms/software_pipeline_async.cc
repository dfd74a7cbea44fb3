/*!
 * \file src/tir/transforms/software_pipeline_async.cc
 * \brief Groups of asynchronous copies in a pipelined loop, and who waits for how many.
 */
#include <tvm/expr/builtin.h>
#include <tvm/expr/op.h>
#include <tvm/node/structural_equal.h>
#include <tvm/tir/stmt_functor.h>

#include <algorithm>
#include <utility>

#include "block_regions.h"
#include "software_pipeline.h"

namespace tvm {
namespace tir {

/*! \brief What one of the three loops does with one queue. */
struct AsyncQueues::Loop {
  /*! \brief Indices of parts, group by group. */
  std::vector<std::vector<size_t>> groups;
  /*! \brief The group that writes a buffer. */
  std::unordered_map<const BufferNode*, size_t> group_of;
  /*! \brief The trip that is started here; undefined if none is. */
  PrimExpr started;
  /*! \brief When it is started; undefined with `started`. */
  PrimExpr predicate;
  /*! \brief A part that waits until at most `count` groups are under way. */
  struct Wait {
    size_t part;
    PrimExpr count;
  };
  std::vector<Wait> waits;
};

void NumberGroups(std::vector<PipelinePart>* parts) {
  int next = 0;
  for (size_t i = 0; i < parts->size(); ++i) {
    PipelinePart& part = (*parts)[i];
    if (!part.async) continue;
    // A group is one statement, so that any other between two parts ends it.
    bool joins = i != 0 && (*parts)[i - 1].async && (*parts)[i - 1].stage == part.stage;
    if (joins) {
      // So does a part that reads what its own queue brings.
      for (const BufferRegion& read : (*parts)[i - 1].block->reads) {
        for (const PipelinePart& other : *parts) {
          joins = joins && !(other.async && other.stage == part.stage &&
                             std::any_of(other.block->writes.begin(), other.block->writes.end(),
                                         [&](const BufferRegion& write) {
                                           return write->buffer.same_as(read->buffer);
                                         }));
        }
      }
    }
    part.group = joins ? (*parts)[i - 1].group : next++;
  }
}

int AsyncQueues::ProducerOf(const PlacedPart& part) const {
  int producer = -1;
  for (const BufferRegion& read : part.block->reads) {
    for (const auto& [stage, buffers] : written_) {
      if (stage > part.stage || !buffers.count(read->buffer.get())) continue;
      TVM_CHECK(producer == -1 || producer == stage, ValueError)
          << "InjectSoftwarePipeline: block \"" << part.block->name_hint << "\" of stage "
          << part.stage << " reads what the asynchronous stages " << producer << " and " << stage
          << " write; put both producers into one stage";
      producer = stage;
    }
  }
  return producer;
}

void AsyncQueues::Group(const std::vector<PlacedPart>& parts, arith::Analyzer* analyzer,
                        std::map<int, Loop>* loops) {
  for (size_t i = 0; i < parts.size(); ++i) {
    const PlacedPart& part = parts[i];
    if (part.group >= 0) {
      Loop& loop = (*loops)[part.stage];
      bool follows = !loop.groups.empty() && parts[loop.groups.back()[0]].group == part.group;
      if (!follows) loop.groups.emplace_back();
      loop.groups.back().push_back(i);
      for (const BufferRegion& write : part.block->writes) {
        written_[part.stage].insert(write->buffer.get());
        loop.group_of[write->buffer.get()] = loop.groups.size() - 1;
      }
      loop.started = part.index;
      if (!loop.predicate.defined() || analyzer->CanProve(loop.predicate)) {
        loop.predicate = part.predicate;
      } else if (!StructuralEqual()(loop.predicate, part.predicate)) {
        loop.predicate = analyzer->Simplify(loop.predicate && part.predicate);
      }
    }
  }
}

void AsyncQueues::FindWaits(const std::vector<PlacedPart>& parts, arith::Analyzer* analyzer,
                            std::map<int, Loop>* loops) {
  std::unordered_set<const BufferNode*> seen;
  for (size_t i = 0; i < parts.size(); ++i) {
    const PlacedPart& part = parts[i];
    if (part.group >= 0) {
      for (const BufferRegion& write : part.block->writes) seen.insert(write->buffer.get());
    }
    int producer = ProducerOf(part);
    if (producer < 0) continue;
    Loop& loop = (*loops)[producer];
    // The last trip that each group has started when this part begins.
    std::vector<PrimExpr> started;
    if (loop.groups.empty()) {
      auto it = started_.find(producer);
      started.push_back(it == started_.end() ? PrimExpr() : it->second);
    } else {
      std::vector<bool> counted(loop.groups.size(), false);
      for (const BufferRegion& read : part.block->reads) {
        auto it = loop.group_of.find(read->buffer.get());
        if (it == loop.group_of.end() || counted[it->second]) continue;
        counted[it->second] = true;
        bool before = seen.count(read->buffer.get()) != 0;
        started.push_back(before ? loop.started
                                 : loop.started - make_const(loop.started.dtype(), 1));
      }
    }
    PrimExpr count = make_zero(part.index.dtype());
    for (const PrimExpr& last : started) {
      bool known = last.defined() && analyzer->CanProve(last >= first_);
      if (!known) {
        count = make_zero(part.index.dtype());
        break;
      }
      count = count + analyzer->Simplify(last - part.index);
    }
    // One wait serves all parts that follow until something else is started.
    bool same = !loop.waits.empty() &&
                std::none_of(parts.begin() + static_cast<int64_t>(loop.waits.back().part),
                             parts.begin() + static_cast<int64_t>(i), [&](const PlacedPart& p) {
                               return p.group >= 0 && p.stage == producer;
                             });
    if (!same) {
      loop.waits.push_back({i, count});
    } else if (PrimExpr& least = loop.waits.back().count; !analyzer->CanProve(count >= least)) {
      least = analyzer->CanProve(count < least) ? count : min(count, least);
    }
  }
}

Array<Stmt> AsyncQueues::Place(std::vector<PlacedPart> parts, const PrimExpr& trips,
                               arith::Analyzer* analyzer, const Map<Var, Buffer>& buffers) {
  std::map<int, Loop> loops;
  Group(parts, analyzer, &loops);
  FindWaits(parts, analyzer, &loops);

  const PrimExpr zero = make_zero(DataType::Int(32));
  for (PlacedPart& part : parts) {
    if (part.group < 0) continue;
    BlockNode* node = part.block.CopyOnWrite();
    node->body = AttrStmt(zero, attr::async_scope, make_const(DataType::Int(32), 1), node->body);
  }
  std::unordered_map<size_t, int> group_start;
  std::unordered_map<size_t, size_t> group_size;
  for (const auto& [stage, loop] : loops) {
    for (const std::vector<size_t>& group : loop.groups) {
      group_start[group[0]] = stage;
      group_size[group[0]] = group.size();
    }
    // Fewer groups are under way in trips that start none.
    bool always = !loop.predicate.defined() || analyzer->CanProve(loop.predicate);
    for (const Loop::Wait& wait : loop.waits) {
      PrimExpr count =
          always ? wait.count
                 : if_then_else(loop.predicate, wait.count, make_zero(wait.count.dtype()));
      BlockNode* node = parts[wait.part].block.CopyOnWrite();
      node->body =
          AttrStmt(zero, attr::async_wait_queue_scope, make_const(DataType::Int(32), stage),
                   AttrStmt(zero, attr::async_wait_inflight_count, count, node->body));
    }
  }

  Array<Stmt> result;
  for (size_t i = 0; i < parts.size();) {
    auto it = group_start.find(i);
    if (it == group_start.end()) {
      result.push_back(BlockRealize({}, parts[i].predicate, parts[i].block));
      ++i;
      continue;
    }
    Array<Stmt> bodies;
    const PrimExpr predicate = parts[i].predicate;
    for (size_t end = i + group_size[i]; i < end; ++i) bodies.push_back(parts[i].block->body);
    Stmt group = AttrStmt(zero, attr::async_commit_queue_scope,
                          make_const(DataType::Int(32), it->second), SeqStmt::Flatten(bodies));
    result.push_back(BlockRealize({}, predicate, WrapInBlock(group, buffers)));
  }

  for (const auto& [stage, loop] : loops) {
    auto [it, first] = started_.try_emplace(stage, first_ - make_const(first_.dtype(), 1));
    bool all = loop.predicate.defined() && analyzer->CanProve(loop.predicate);
    it->second = all && it->second.defined() ? it->second + trips : PrimExpr();
  }
  return result;
}

}  // namespace tir
}  // namespace tvm
