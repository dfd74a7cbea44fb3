/*!
 * \file parallelism.cc
 * \brief Whether the iterations of loops may run at once.
 */
#include <algorithm>
#include <functional>
#include <map>

#include "../analysis/reduction_step.h"
#include "dataflow.h"
#include "facts.h"

namespace tvm {
namespace tir {
namespace sched {
namespace {

constexpr const char* kGiveScope =
    "threads share it; give it the scope \"local\" (or \"shared\" for a block of threads) with "
    "set_scope, cache_read or cache_write";

std::string ScopeOf(const Buffer& buffer) {
  std::string scope = buffer.scope();
  return scope.empty() ? "global" : scope;
}

bool StartsWith(const std::string& text, const char* prefix) { return text.rfind(prefix, 0) == 0; }

std::string MarkOf(const LoopItem& loop) {
  switch (loop.for_kind) {
    case ForKind::kThreadBinding:
      return "bound to " + loop.thread_tag();
    case ForKind::kVectorized:
      return "vectorized";
    default:
      return "parallel";
  }
}

class ParallelismCheck {
 public:
  explicit ParallelismCheck(const Tree& tree) : tree_(tree) {
    for (Id id : tree.Preorder(tree.root())) {
      if (!tree.IsLoop(id)) continue;
      ForKind kind = tree.loop(id).for_kind;
      if (kind == ForKind::kParallel || kind == ForKind::kVectorized ||
          kind == ForKind::kThreadBinding) {
        loops_.push_back(id);
      }
    }
  }

  /*! \brief Why loops may not be marked as they are, each reason once; or only the first one. */
  std::vector<std::string> Run(bool all) {
    all_ = all;
    if (loops_.empty()) return {};
    flows_.emplace(tree_);
    for (Id loop : loops_) Try([&] { CheckLoop(loop); });
    CheckKernels();
    return found_;
  }

 private:
  void Try(const std::function<void()>& check) {
    if (!all_ && !found_.empty()) return;
    try {
      check();
    } catch (const Error& error) {
      if (error.kind() != "ScheduleError") throw;
      found_.push_back(error.message());
    }
  }

  void CheckLoop(Id id) {
    const LoopItem& loop = tree_.loop(id);
    if (loop.IsUnit()) return;
    for (Id unit : tree_.UnitsBelow(id)) {
      TVM_CHECK(!tree_.IsLeaf(unit) && !(AccessOf(tree_, unit)->opaque && HasLoose(unit)),
                ScheduleError)
          << "loop " << loop.name() << " cannot be " << MarkOf(loop)
          << ": it runs statements whose accesses are not all known";
      for (Id block : tree_.BlocksBelow(unit)) {
        TVM_CHECK(!WritesPinned(tree_, block) && KindOf(tree_, block) != BlockKind::kOpaque,
                  ScheduleError)
            << "loop " << loop.name() << " cannot be " << MarkOf(loop) << ": what block "
            << tree_.NameOf(block) << " writes depends on the order of its iterations";
        CheckBlock(id, block);
      }
    }
  }

  /*! \brief Whether a block holds what no leaf block declares, or in places that memory decides. */
  bool HasLoose(Id unit) const {
    Ids nodes = tree_.Preorder(unit);
    return std::any_of(nodes.begin(), nodes.end(), [&](Id node) {
      if (tree_.IsBlock(node)) return tree_.block(node).erratic;
      Id parent = tree_[node].parent;
      return tree_.IsLeaf(node) && !(tree_.IsBlock(parent) && tree_.IsLeafBlock(parent));
    });
  }

  void CheckBlock(Id id, Id block) {
    const LoopItem& loop = tree_.loop(id);
    Feeds fed = FeedsOf(tree_, block);
    bool adds = fed.reducing.Contains(loop.var) ||
                (fed.mixed && KindOf(tree_, block) != BlockKind::kComplete);
    bool threads_add = adds && StartsWith(loop.thread_tag(), "threadIdx") && !fed.mixed;
    std::string apart = threads_add ? WhyApart(block, fed) : "";
    TVM_CHECK(apart.empty(), ScheduleError)
        << "loop " << loop.name() << " of the reduction of block " << tree_.NameOf(block)
        << " cannot be " << MarkOf(loop) << ": " << apart;
    TVM_CHECK(!adds || threads_add, ScheduleError)
        << "loop " << loop.name() << " cannot be " << MarkOf(loop)
        << ": its iterations add to the same elements of block " << tree_.NameOf(block)
        << "; mark a loop of a spatial variable, or split the reduction with rfactor and mark the "
           "loop of the factor";
    VarSet below;
    for (Id node : tree_.Preorder(id)) {
      if (tree_.IsLoop(node)) below.Add(tree_.loop(node).var);
    }
    VarSet again = tree_.block(block).given & below, used;
    for (const auto* exprs : {&tree_.block(block).iter_values, &tree_.block(block).predicate}) {
      for (const PrimExpr& expr : *exprs) used.Add(VarsOf(expr));
    }
    // Then different iterations write different elements, if they write some again or not.
    if (!again.Contains(loop.var) && !again.Intersects(used)) return;
    bool by_threads =
        StartsWith(loop.thread_tag(), "threadIdx") || StartsWith(loop.thread_tag(), "vthread");
    for (const Buffer& buffer : WrittenBy(tree_, block)) {
      std::string why = "all cores see it; compute the block outside of the loop";
      // A copy that the threads of a block make together, each of them all of it.
      bool together = by_threads && ScopeOf(buffer) == "global" &&
                      KindOf(tree_, block) == BlockKind::kComplete &&
                      (HasLoops(block) || ReadsShared(block));
      if (together) {
        why = "";
      } else if (!tree_.IsParam(buffer)) {
        why = SharedByIterations(id, block, buffer);
      }
      TVM_CHECK(why.empty(), ScheduleError)
          << "loop " << loop.name() << " cannot be " << MarkOf(loop)
          << ": several iterations of it write the same elements of " << buffer->name
          << " in block " << tree_.NameOf(block) << ", and " << why;
    }
  }

  /*! \brief Why threads cannot each add up a part and then combine these; empty if they can. */
  std::string WhyApart(Id block, const Feeds& fed) {
    if (fed.mixed) return "a loop around it feeds spatial and reducing variables alike";
    if (KindOf(tree_, block) != BlockKind::kReduction || !tree_.IsLeafBlock(block)) {
      return "threads combine the results of one block with an init; bind before the reduction is "
             "decomposed or tensorized, or split it with rfactor";
    }
    ReductionStep step = MatchReductionStep(tree_.Body(block), tree_.block(block).init);
    if (!step.error.empty()) return step.error;
    bool inside = false;
    VarSet threads;
    for (Id at : tree_.LoopsAbove(block)) {
      const LoopItem& loop = tree_.loop(at);
      if (VarsOf(loop.extent).Intersects(threads) && !fed.reducing.Contains(loop.var)) {
        return "the threads run loop " + loop.name() +
               " differently often, in which they would have to meet";
      }
      if (IsThread(at)) {
        threads.Add(loop.var);
      } else {
        inside = inside || fed.reducing.Contains(loop.var);
        if (inside && fed.spatial.Contains(loop.var)) {
          return "loop " + loop.name() +
                 " of a spatial variable is inside of what each thread adds up; reorder it to the "
                 "outside";
        }
      }
      if (inside && tree_[at].children.size() != 1 && !OnlyServes(at, block)) {
        return "loop " + loop.name() +
               " of the reduction is around other blocks too, which would see parts of it";
      }
    }
    for (const BufferStore& result : step.results) {
      const Buffer& buffer = result->buffer;
      std::string scope = ScopeOf(buffer);
      if (scope == "local" || StartsWith(scope, "shared")) continue;
      // One thread writes; others that read in the same launch would not wait for it.
      Id kernel = tree_.LoopsAbove(block).front();
      for (Id user : (*flows_)[buffer].Users()) {
        if (user != block && tree_.IsUnder(user, kernel)) {
          return "other blocks of the kernel use its result " + std::string(buffer->name) +
                 "; give it the scope \"shared\" or \"local\"";
        }
      }
    }
    return "";
  }

  /*!
   * \brief Whether all else in a loop only makes, anew in each iteration, what the loop itself
   *        reads, and nothing of it reads what the block has summed up so far.
   */
  bool OnlyServes(Id loop, Id block) {
    for (const Buffer& result : WrittenBy(tree_, block)) {
      for (Id user : (*flows_)[result].Users()) {
        if (user != block && tree_.IsUnder(user, loop)) return false;
      }
    }
    for (Id other : tree_.BlocksBelow(loop)) {
      if (other == block) continue;
      for (const Buffer& made : WrittenBy(tree_, other)) {
        Ids users = (*flows_)[made].Users();
        bool here = std::all_of(users.begin(), users.end(),
                                [&](Id user) { return tree_.IsUnder(user, loop); });
        if (!here || tree_.IsParam(made)) return false;
      }
    }
    return true;
  }

  /*! \brief Whether a leaf block is made of loops that no other loop can be exchanged with. */
  bool HasLoops(Id block) const {
    return tree_.IsLeafBlock(block) && Holds<ForNode>(tree_.Body(block));
  }

  /*! \brief Whether a block reads what the threads of a block have in common. */
  bool ReadsShared(Id block) const {
    const std::vector<Buffer>& read = AccessOf(tree_, block)->read;
    return std::any_of(read.begin(), read.end(),
                       [](const Buffer& buffer) { return StartsWith(ScopeOf(buffer), "shared"); });
  }

  /*! \brief Why it matters that iterations write the same elements; empty if each has its own. */
  std::string SharedByIterations(Id id, Id block, const Buffer& buffer) {
    const LoopItem& loop = tree_.loop(id);
    const Flow& flow = (*flows_)[buffer];
    for (Id user : flow.Users()) {
      if (!tree_.IsUnder(user, id)) {
        return "what is behind the loop reads them; compute the block outside of the loop";
      }
    }
    std::string scope = ScopeOf(buffer);
    if (loop.for_kind == ForKind::kVectorized) {
      return "the lanes of a vector share a buffer; compute the block outside of the loop";
    }
    if (loop.for_kind == ForKind::kParallel) {
      // Allocated in the loop; a buffer that is accumulated into would be outside of the sum.
      VarSet above = tree_.VarsOfLoops(tree_.LoopsAbove(id));
      for (Id writer : flow.writers) {
        if (!tree_.IsBlock(writer)) continue;
        for (const IterVar& iv : tree_.block(writer).Reducing()) {
          if (VarsOf(tree_.block(writer).ValueOf(iv->var)).Intersects(above)) {
            return "the buffer stays outside of a reduction around the loop";
          }
        }
      }
      return "";
    }
    if (scope == "local" || IsFragment(scope)) return "";
    bool shared = StartsWith(scope, "shared");
    if (StartsWith(loop.thread_tag(), "blockIdx")) return shared ? "" : kGiveScope;
    if (!shared) return kGiveScope;
    // All threads write the same value.
    if (KindOf(tree_, block) == BlockKind::kComplete) return "";
    return "the threads would disturb each other; bind a loop of the block itself";
  }

  void CheckKernels() {
    Ids threads = loops_;
    std::erase_if(threads, [&](Id id) { return !IsThread(id); });
    for (Id kernel : threads) {
      Ids outer = tree_.LoopsAbove(kernel);
      if (std::any_of(outer.begin(), outer.end(), [&](Id id) { return IsThread(id); })) continue;
      std::map<std::string, Id> axes;
      for (Id id : threads) {
        const LoopItem& loop = tree_.loop(id);
        if (!tree_.IsUnder(id, kernel) || StartsWith(loop.thread_tag(), "vthread")) continue;
        const LoopItem& first = tree_.loop(axes.emplace(loop.thread_tag(), id).first->second);
        Try([&] {
          TVM_CHECK(ExprDeepEqual()(first.extent, loop.extent), ScheduleError)
              << "loops " << first.name() << " and " << loop.name()
              << " of one kernel are bound to " << loop.thread_tag() << " with extents "
              << first.extent << " and " << loop.extent
              << "; a launch has one extent per axis, so split both alike";
          CheckNested(id);
        });
      }
      for (const Flow& flow : *flows_) Try([&] { CheckSharing(kernel, flow); });
    }
  }

  /*! \brief Whether memory is the registers of a warp, of which each warp has its own. */
  static bool IsFragment(const std::string& scope) {
    return scope == "warp" || StartsWith(scope, "wmma.") || StartsWith(scope, "m16n8k8.");
  }

  bool IsThread(Id id) const { return tree_.loop(id).for_kind == ForKind::kThreadBinding; }

  /*! \brief A loop inside of one bound to the same threads runs one iteration per thread. */
  void CheckNested(Id id) {
    const LoopItem& loop = tree_.loop(id);
    for (Id around : tree_.LoopsAbove(id)) {
      const LoopItem& outer = tree_.loop(around);
      if (outer.thread_tag() != loop.thread_tag()) continue;
      for (Id block : tree_.BlocksBelow(id)) {
        bool used = false;
        for (const auto* exprs : {&tree_.block(block).iter_values, &tree_.block(block).predicate}) {
          for (const PrimExpr& expr : *exprs) used |= VarsOf(expr).Contains(outer.var);
        }
        TVM_CHECK(!used || outer.IsUnit(), ScheduleError)
            << "loops " << outer.name() << " and " << loop.name() << " around block "
            << tree_.NameOf(block) << " are both bound to " << loop.thread_tag()
            << ", so a thread would run only the iterations in which both are equal; bind one of "
               "them to another axis";
      }
    }
  }

  /*!
   * \brief Blocks of threads pass no values on, in whatever memory.
   *
   * What threads of one block pass on lies in shared memory in the end, but schedules say so step
   * by step: how a block reads what threads have is checked when it is lowered.
   */
  void CheckSharing(Id kernel, const Flow& flow) {
    std::string scope = ScopeOf(flow.buffer);
    for (Id writer : flow.writers) {
      if (!tree_.IsBlock(writer) || !tree_.IsUnder(writer, kernel)) continue;
      Ids around = tree_.LoopsAbove(writer);
      for (Id user : flow.Users()) {
        if (user == writer || !tree_.IsUnder(user, kernel)) continue;
        // A writer that no other blocks run than its user is run by all of them alike.
        auto apart = std::find_if(around.begin(), around.end(), [&](Id id) {
          return StartsWith(tree_.loop(id).thread_tag(), "blockIdx") && !tree_.IsUnder(user, id);
        });
        TVM_CHECK(apart == around.end(), ScheduleError)
            << "buffer " << flow.buffer->name << " of scope " << scope
            << " passes values between blocks of threads: block " << tree_.NameOf(writer)
            << " and what uses them are under different loops bound to "
            << tree_.loop(*apart).thread_tag() << "; compute both under one loop";
      }
    }
  }

  const Tree& tree_;
  Ids loops_;
  std::optional<Flows> flows_;
  bool all_ = false;
  std::vector<std::string> found_;
};

}  // namespace

std::vector<std::string> ParallelismDoubts(const Tree& tree) {
  return ParallelismCheck(tree).Run(/*all=*/true);
}

void CheckParallelism(const Tree& tree) {
  for (const std::string& why : ParallelismCheck(tree).Run(!tree.doubts.empty())) {
    bool given = std::find(tree.doubts.begin(), tree.doubts.end(), why) != tree.doubts.end();
    TVM_CHECK(given, ScheduleError) << why;
  }
}

}  // namespace sched
}  // namespace tir
}  // namespace tvm
