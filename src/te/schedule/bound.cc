/*!
 * \file bound.cc
 * \brief Domains of all loops, from the outputs towards the inputs.
 */
#include <tvm/arith/analyzer.h>
#include <tvm/arith/var_context.h>
#include <tvm/expr/op.h>
#include <tvm/runtime/registry.h>
#include <tvm/te/schedule_pass.h>
#include <tvm/tir/stmt_functor.h>

#include <algorithm>
#include <string>
#include <unordered_map>
#include <vector>

#include "graph.h"
#include "loop_relations.h"
#include "message_passing.h"

namespace tvm {
namespace te {

using arith::IntSet;

namespace {

/*! \brief How widely threads share something; a smaller rank is shared by more of them. */
int ThreadRank(const IterVar& thread) {
  return std::string(thread->thread_tag).rfind("blockIdx", 0) == 0 ? 0 : 1;
}

int StorageRank(const std::string& scope) {
  if (scope.rfind("global", 0) == 0) return 0;
  if (scope.rfind("shared", 0) == 0) return 1;
  return 2;
}

class BoundInference {
 public:
  BoundInference(const Schedule& sch, const arith::VarContext* var_context)
      : sch_(sch), var_context_(var_context), readers_(ReadersOfTensors(sch)) {}

  Map<IterVar, Range> Run() {
    for (size_t i = sch_->stages.size(); i != 0; --i) {
      Stage stage = sch_->stages[i - 1];
      TVM_CHECK(stage->attach_type != kInline, ScheduleError)
          << "InferBound: stage " << stage->op->name
          << " is still to be inlined; call normalize() first";
      if (!stage.is_scheduled()) continue;
      for (const IterVar& loop : stage->leaf_iter_vars) {
        if (loop->iter_type == tir::kThreadIndex) domains_[loop] = loop->dom;
      }
      InferRoots(stage);
      PassDownDomain(stage, &domains_, &analyzer_, var_context_);
      for (const IterVar& loop : stage->leaf_iter_vars) {
        analyzer_.Bind(loop->var, domains_.at(loop), true);
        IterVar thread = BoundThread(stage, loop);
        if (thread.defined()) analyzer_.Bind(thread->var, domains_.at(thread), true);
      }
    }
    Map<IterVar, Range> result;
    for (const Stage& stage : sch_->stages) {
      if (!stage.is_scheduled()) continue;
      for (const IterVar& loop : stage->all_iter_vars) result.Set(loop, domains_.at(loop));
      for (const IterVar& loop : stage->leaf_iter_vars) {
        IterVar thread = BoundThread(stage, loop);
        if (thread.defined()) result.Set(thread, domains_.at(thread));
      }
    }
    return result;
  }

 private:
  /*! \brief Thread axis of a loop in whatever stage it is, or undefined. */
  IterVar ThreadOf(const IterVar& loop) const {
    auto it = thread_of_.find(loop);
    return it == thread_of_.end() ? IterVar() : it->second;
  }

  /*! \brief Storage rank of a stage; without a scope it follows from the threads around it. */
  int RankOf(const Stage& stage, const std::vector<IterVar>& around) const {
    if (stage->scope.size() != 0) return StorageRank(stage->scope);
    int rank = 0;
    for (const IterVar& loop : around) {
      IterVar thread = ThreadOf(loop);
      if (thread.defined()) rank = std::max(rank, ThreadRank(thread) + 1);
    }
    return rank;
  }

  /*! \brief Loops around `stage` that compute one copy of it each, so that they stay symbolic. */
  IterVarSet FixedLoops(const Stage& stage, const std::vector<IterVar>& around) const {
    int rank = RankOf(stage, around);
    IterVarSet fixed;
    for (const IterVar& loop : around) {
      // Threads that share the storage fill it together: it must hold what all of them read.
      IterVar thread = ThreadOf(loop);
      if (thread.defined() && rank <= ThreadRank(thread)) continue;
      // A warp's memory is shared by the threads along x.
      if (thread.defined() && stage->scope == "warp" && thread->thread_tag == "threadIdx.x") {
        continue;
      }
      fixed.insert(loop);
    }
    return fixed;
  }

  void InferRoots(const Stage& stage) {
    for (const IterVar& loop : stage->leaf_iter_vars) {
      IterVar thread = BoundThread(stage, loop);
      if (thread.defined()) thread_of_[loop] = thread;
    }
    if (stage->is_output) {
      for (const IterVar& root : stage->op->root_iter_vars()) domains_[root] = root->dom;
      return;
    }
    std::vector<IterVar> around = LoopsAround(stage);
    IterVarSet fixed = FixedLoops(stage, around);
    TensorMap<TensorDom> requests;
    std::vector<Stage> readers;
    for (int i = 0; i < stage->op->num_outputs(); ++i) {
      Tensor output = stage->op.output(i);
      requests[output];
      auto it = readers_.find(output);
      if (it == readers_.end()) continue;
      for (const Stage& reader : it->second) {
        bool seen = false;
        for (const Stage& other : readers) seen |= other.same_as(reader);
        if (!seen) readers.push_back(reader);
      }
    }
    for (const Stage& reader : readers) {
      std::vector<IterVar> reader_around = LoopsAround(reader);
      CheckInScope(stage, reader, reader_around);
      reader->op->PropBoundToInputs(reader->op, &analyzer_, ReadSets(reader, reader_around, fixed),
                                    &requests);
    }
    stage->op->GatherBound(stage->op, &analyzer_, requests, &domains_);
    const Array<IterVar> roots = stage->op->root_iter_vars();
    for (size_t d = 0; d < roots.size(); ++d) {
      const Range& part = domains_.at(roots[d]);
      const bool is_whole = around.empty() && IsOpenPartOf(part, roots[d]->dom) &&
                            IsReadByLoops(stage->op, d, readers);
      domains_[roots[d]] = is_whole ? roots[d]->dom : WithoutLoopsInExtent(part);
    }
  }

  /*!
   * \brief Whether a part of a domain of known size has an extent that follows from knobs.
   *
   * It is what tiles that leave a remainder read. Left as it is, it would be in the extents of all
   * stages before, and theirs in those before them.
   */
  bool IsOpenPartOf(const Range& part, const Range& domain) const {
    return var_context_ != nullptr && domain.defined() &&
           tir::as_const_int(part->extent) == nullptr &&
           tir::as_const_int(domain->min) != nullptr &&
           tir::as_const_int(domain->extent) != nullptr;
  }

  /*!
   * \brief Whether an axis is read by loops of its own extent alone, so that all tiles together
   * read all of it.
   */
  static bool IsReadByLoops(const Operation& op, size_t axis, const std::vector<Stage>& readers) {
    const int64_t extent = *tir::as_const_int(op->root_iter_vars()[axis]->dom->extent);
    for (const Stage& reader : readers) {
      const auto* compute = reader->op.as<ComputeOpNode>();
      if (compute == nullptr) return false;
      std::unordered_map<const tir::VarNode*, int64_t> trips;
      for (const IterVar& root : reader->op->root_iter_vars()) {
        const int64_t* known = root->dom.defined() ? tir::as_const_int(root->dom->extent) : nullptr;
        if (known != nullptr) trips[root->var.get()] = *known;
      }
      bool by_loops = true;
      for (const PrimExpr& value : compute->body) {
        tir::PostOrderVisit(value, [&](const ObjectRef& node) {
          const auto* load = node.as<tir::ProducerLoadNode>();
          if (load == nullptr || !Downcast<Tensor>(load->producer)->op.same_as(op)) return;
          const auto* index =
              axis < load->indices.size() ? load->indices[axis].as<tir::VarNode>() : nullptr;
          auto loop = trips.find(index);
          by_loops = by_loops && loop != trips.end() && loop->second == extent;
        });
      }
      if (!by_loops) return false;
    }
    return true;
  }

  void CheckInScope(const Stage& stage, const Stage& reader,
                    const std::vector<IterVar>& reader_around) const {
    Stage place = stage.attached_by();
    if (place->attach_type != kScope || reader.same_as(place->attach_stage)) return;
    for (const IterVar& loop : reader_around) {
      if (loop.same_as(place->attach_ivar)) return;
    }
    TVM_FATAL(ScheduleError) << "compute_at(" << StageName(place) << ", "
                             << place->attach_stage->op->name << ", "
                             << place->attach_ivar->var->name_hint << "): stage "
                             << reader->op->name << " reads it outside of that loop; attach "
                             << reader->op->name << " inside the loop too, or compute "
                             << stage->op->name << " further out";
  }

  /*! \brief Values of the reader's root axes while one copy of the producer is in use. */
  const IntSetMap& ReadSets(const Stage& reader, const std::vector<IterVar>& reader_around,
                            const IterVarSet& fixed) {
    // Producers side by side inside of one reader need the same.
    KnownSets& known = read_sets_[reader.get()];
    const bool same = known.fixed.size() == fixed.size() &&
                      std::all_of(fixed.begin(), fixed.end(), [&known](const IterVar& loop) {
                        return known.fixed.count(loop) > 0;
                      });
    if (!same || known.sets.empty()) {
      known = {fixed, FindReadSets(reader, reader_around, fixed)};
    }
    return known.sets;
  }

  IntSetMap FindReadSets(const Stage& reader, const std::vector<IterVar>& reader_around,
                         const IterVarSet& fixed) {
    IterVarMap<IntSet> sets;
    for (const IterVar& loop : reader->leaf_iter_vars) {
      const Range& domain = domains_.at(loop);
      if (tir::is_one(domain->extent)) {
        sets[loop] = IntSet::SinglePoint(domain->min);
      } else if (fixed.count(loop)) {
        sets[loop] = IntSet::SinglePoint(loop->var);
      } else {
        sets[loop] = IntSet::FromRange(domain);
      }
    }
    PassUpDomain(reader, domains_, &sets, &analyzer_);
    IntSetMap relaxed;
    for (const IterVar& loop : reader_around) {
      if (fixed.count(loop)) continue;
      relaxed.emplace(loop->var.get(), IntSet::FromRange(domains_.at(loop)));
    }
    IntSetMap result;
    for (const IterVar& root : reader->op->root_iter_vars()) {
      IntSet set = sets.at(root);
      if (!relaxed.empty()) set = arith::EvalSet(set, relaxed, &analyzer_);
      result.emplace(root->var.get(), set);
    }
    return result;
  }

  /*!
   * \brief Loop variables in an extent are replaced by the bound they give.
   *
   * A region may grow by that, never shrink. Loops and buffers of one size for all trips are what
   * later passes can unroll, vectorise and keep in registers.
   */
  Range WithoutLoopsInExtent(const Range& domain) {
    if (arith::IsSizeConstant(domain->extent)) return domain;
    IntSet extents = analyzer_.int_set(domain->extent);
    if (!extents.HasUpperBound()) return domain;
    return Range::FromMinExtent(domain->min, analyzer_.Simplify(extents.max()));
  }

  Schedule sch_;
  const arith::VarContext* var_context_;
  TensorMap<std::vector<Stage>> readers_;
  IterVarMap<IterVar> thread_of_;
  RangeMap domains_;
  struct KnownSets {
    IterVarSet fixed;
    IntSetMap sets;
  };
  std::unordered_map<const StageNode*, KnownSets> read_sets_;
  arith::Analyzer analyzer_;
};

}  // namespace

Map<IterVar, Range> InferBound(const Schedule& sch) { return BoundInference(sch, nullptr).Run(); }

Map<IterVar, Range> InferBound(const Schedule& sch, const arith::VarContext& var_context) {
  return BoundInference(sch, &var_context).Run();
}

TVM_REGISTER_GLOBAL("te.InferBound")
    .set_body_typed([](Schedule sch, Optional<arith::VarContext> var_context) {
      return var_context.defined() ? InferBound(sch, var_context.value()) : InferBound(sch);
    });

}  // namespace te
}  // namespace tvm
