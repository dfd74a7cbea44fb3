/*!
 * \file src/tir/analysis/thread_memory.cc
 * \brief Whether threads read what they can see.
 */
#include "thread_memory.h"

#include <tvm/arith/analyzer.h>
#include <tvm/arith/int_set.h>
#include <tvm/arith/pattern.h>
#include <tvm/expr/analysis.h>
#include <tvm/expr/builtin.h>
#include <tvm/expr/op.h>
#include <tvm/expr/substitute.h>
#include <tvm/tir/analysis.h>
#include <tvm/tir/launch.h>
#include <tvm/tir/stmt_functor.h>

#include <algorithm>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "span_evaluator.h"

namespace tvm {
namespace tir {
namespace {

/*! \brief A loop that each thread runs on its own. */
struct OwnLoop {
  Var var;
  PrimExpr min;
  PrimExpr extent;
};

/*! \brief A place of a kernel that loads or stores elements of a buffer. */
struct ThreadAccess {
  Array<PrimExpr> indices;
  /*! \brief What holds where it is done. */
  std::vector<PrimExpr> guards;
  std::vector<OwnLoop> loops;
  std::string block;
};

struct BufferUse {
  Buffer buffer;
  std::vector<ThreadAccess> reads;
  std::vector<ThreadAccess> writes;
  /*! \brief Whether it is accessed in ways that are not looked at: by pointers, views, vectors. */
  bool escapes = false;
};

/*! \brief What loops of a kernel are bound to, with one variable each. */
struct ThreadAxis {
  Var var;
  PrimExpr extent;
  bool in_block;
};

struct Kernel {
  std::map<std::string, ThreadAxis> axes;
  std::map<const VarNode*, BufferUse> buffers;
  /*! \brief Whether threads may wait for each other in it. */
  bool waits = false;
};

/*! \brief The accesses of one kernel, in terms of one variable for each axis of threads. */
class KernelReader final : public StmtExprVisitor {
 public:
  Kernel kernel;

 private:
  void VisitStmt_(const ForNode* op) final {
    VisitExpr(op->min);
    VisitExpr(op->extent);
    const bool bound = op->kind == ForKind::kThreadBinding;
    std::string tag = bound ? std::string(op->thread_binding.value()->thread_tag) : "";
    if (!bound || ParseThreadTag(tag).kind == ThreadKind::kVirtual) {
      loops_.push_back({op->loop_var, Known(op->min), Known(op->extent)});
      VisitStmt(op->body);
      loops_.pop_back();
      return;
    }
    const bool in_block = ParseThreadTag(tag).kind == ThreadKind::kThread;
    Var fresh(op->loop_var->name_hint, op->loop_var.dtype());
    auto axis = kernel.axes.emplace(tag, ThreadAxis{fresh, Known(op->extent), in_block}).first;
    known_.Set(op->loop_var, Known(op->min) + cast(op->loop_var.dtype(), axis->second.var));
    VisitStmt(op->body);
  }

  void VisitStmt_(const BlockRealizeNode* op) final {
    const Block& block = op->block;
    for (size_t i = 0; i < op->iter_values.size(); ++i) {
      known_.Set(block->iter_vars[i]->var, Known(op->iter_values[i]));
    }
    std::string outside = std::exchange(block_, std::string(block->name_hint));
    Under(op->predicate, [&] {
      for (const MatchBufferRegion& view : block->match_buffers) {
        Escape(view->source->buffer->data.get());
        Escape(view->buffer->data.get());
      }
      if (block->init.defined()) VisitStmt(block->init);
      VisitStmt(block->body);
    });
    block_ = outside;
  }

  void VisitStmt_(const LetStmtNode* op) final {
    VisitExpr(op->value);
    known_.Set(op->var, Known(op->value));
    VisitStmt(op->body);
  }
  void VisitStmt_(const IfThenElseNode* op) final {
    VisitExpr(op->condition);
    Under(op->condition, [&] { VisitStmt(op->then_case); });
    if (!op->else_case.defined()) return;
    Under(!op->condition, [&] { VisitStmt(op->else_case); });
  }
  void VisitStmt_(const WhileNode* op) final {
    VisitExpr(op->condition);
    Under(op->condition, [&] { VisitStmt(op->body); });
  }
  void VisitStmt_(const BufferStoreNode* op) final {
    Use(op->buffer, op->indices).writes.push_back(Access(op->indices));
    StmtExprVisitor::VisitStmt_(op);
  }
  void VisitExpr_(const BufferLoadNode* op) final {
    Use(op->buffer, op->indices).reads.push_back(Access(op->indices));
    StmtExprVisitor::VisitExpr_(op);
  }
  void VisitExpr_(const SelectNode* op) final {
    VisitExpr(op->condition);
    Under(op->condition, [&] { VisitExpr(op->true_value); });
    Under(!op->condition, [&] { VisitExpr(op->false_value); });
  }
  void VisitExpr_(const CallNode* op) final {
    if (op->op.same_as(builtin::if_then_else())) {
      VisitExpr(op->args[0]);
      Under(op->args[0], [&] { VisitExpr(op->args[1]); });
      Under(!op->args[0], [&] { VisitExpr(op->args[2]); });
      return;
    }
    if (op->op.same_as(builtin::address_of())) {
      if (const auto* load = op->args[0].as<BufferLoadNode>()) Escape(load->buffer->data.get());
    }
    kernel.waits |= SideEffect(GetRef<PrimExpr>(op)) > CallEffectKind::kReadState;
    StmtExprVisitor::VisitExpr_(op);
  }
  void VisitExpr_(const VarNode* op) final {
    if (op->dtype.is_handle()) Escape(op);
  }

  template <typename F>
  void Under(const PrimExpr& guard, F visit) {
    if (!is_one(guard)) guards_.push_back(Known(guard));
    visit();
    if (!is_one(guard)) guards_.pop_back();
  }
  PrimExpr Known(const PrimExpr& expr) const { return Substitute(expr, known_); }
  ThreadAccess Access(const Array<PrimExpr>& indices) const {
    return {indices.Map([&](const PrimExpr& index) { return Known(index); }), guards_, loops_,
            block_};
  }
  BufferUse& Use(const Buffer& buffer, const Array<PrimExpr>& indices) {
    BufferUse& use = kernel.buffers[buffer->data.get()];
    // Another shape of the same memory has other indices for an element.
    use.escapes |= use.buffer.defined() && !use.buffer.same_as(buffer);
    // Vectors are several elements.
    use.escapes |= std::any_of(indices.begin(), indices.end(),
                               [](const PrimExpr& index) { return !index.dtype().is_scalar(); });
    use.buffer = buffer;
    return use;
  }
  void Escape(const VarNode* data) { kernel.buffers[data].escapes = true; }

  Map<Var, PrimExpr> known_;
  std::vector<PrimExpr> guards_;
  std::vector<OwnLoop> loops_;
  std::string block_;
};

/*! \brief Tries the threads of one kernel at a number of points. */
class ThreadTrial {
 public:
  explicit ThreadTrial(const Kernel& kernel) : kernel_(kernel) {}

  void Run() {
    for (const auto& [data, use] : kernel_.buffers) {
      if (use.escapes || use.reads.empty() || use.writes.empty()) continue;
      const std::string scope = use.buffer.scope();
      const bool own = scope == "local";
      if (!own && (kernel_.waits || !(scope.empty() || scope == "global"))) continue;
      for (const ThreadAccess& read : use.reads) {
        if (!ReadsOwn(use, read)) Try(use, read, own);
      }
    }
  }

 private:
  /*! \brief How many threads, and iterations of the loops of each, are tried. */
  static constexpr size_t kThreads = 64, kIterations = 16;
  /*! \brief How many iterations are all looked at to know what a thread writes. */
  static constexpr size_t kExact = 256;
  /*! \brief As many threads as a block can have. */
  static constexpr size_t kAllThreads = 1024;

  using Element = std::vector<int64_t>;

  /*! \brief Whether a thread surely wrote all elements that it reads, by one statement. */
  static bool ReadsOwn(const BufferUse& use, const ThreadAccess& read) {
    arith::Analyzer analyzer;
    std::vector<arith::IntSet> wanted = Touched(read);
    return std::any_of(use.writes.begin(), use.writes.end(), [&](const ThreadAccess& write) {
      if (!IsDense(write)) return false;
      std::vector<arith::IntSet> made = Touched(write);
      for (size_t i = 0; i < made.size(); ++i) {
        if (!made[i].HasLowerBound() || !made[i].HasUpperBound() || !wanted[i].HasLowerBound() ||
            !wanted[i].HasUpperBound() || !analyzer.CanProve(made[i].min() <= wanted[i].min()) ||
            !analyzer.CanProve(wanted[i].max() <= made[i].max())) {
          return false;
        }
      }
      return true;
    });
  }

  /*! \brief Whether loops leave out no element between the first and the last one of each axis. */
  static bool IsDense(const ThreadAccess& access) {
    std::set<const VarNode*> used;
    for (const PrimExpr& index : access.indices) {
      std::vector<std::pair<int64_t, int64_t>> digits;  // stride, extent
      for (const OwnLoop& loop : access.loops) {
        if (!UsesVar(index, [&](const VarNode* var) { return var == loop.var.get(); })) continue;
        Array<PrimExpr> linear = arith::DetectLinearEquation(index, {loop.var});
        const int64_t* stride = linear.empty() ? nullptr : as_const_int(linear[0]);
        const int64_t* extent = as_const_int(loop.extent);
        if (stride == nullptr || extent == nullptr || !used.insert(loop.var.get()).second) {
          return false;
        }
        digits.emplace_back(std::abs(*stride), *extent);
      }
      std::sort(digits.begin(), digits.end());
      int64_t reach = 0;  // of the smaller digits together
      for (const auto& [stride, extent] : digits) {
        if (stride > reach + 1) return false;
        reach += stride * (extent - 1);
      }
    }
    return true;
  }

  static std::vector<arith::IntSet> Touched(const ThreadAccess& access) {
    Map<Var, arith::IntSet> domains;
    for (const OwnLoop& loop : access.loops) {
      domains.Set(loop.var, arith::IntSet::FromRange(Range::FromMinExtent(loop.min, loop.extent)));
    }
    std::vector<arith::IntSet> sets;
    for (const PrimExpr& index : access.indices) sets.push_back(arith::EvalSet(index, domains));
    return sets;
  }

  void Try(const BufferUse& use, const ThreadAccess& read, bool own) {
    for (bool next_block : {false, true}) {
      std::vector<Spans> all = Threads(next_block, own ? kThreads : kAllThreads);
      std::map<Element, size_t> writers;
      if (!own) writers = Writers(use, all);
      const size_t stride = std::max<size_t>(1, all.size() / kThreads);
      for (size_t t = 0; t < all.size(); t += stride) {
        const Written written(use, all[t]);
        for (const Spans& at : Iterations(all[t], read.loops, kIterations).points) {
          std::optional<Element> element = ElementAt(read, at);
          if (!element || written.MayHold(*element)) continue;
          auto writer = writers.find(*element);
          if (own || (writer != writers.end() && writer->second != t)) Refuse(use, read, own);
        }
      }
    }
  }

  [[noreturn]] static void Refuse(const BufferUse& use, const ThreadAccess& read, bool own) {
    if (own) {
      TVM_FATAL(ValueError) << "LowerCrossThreadReduction: block " << read.block
                            << " reads elements of " << use.buffer->name
                            << " that other threads have written, each to memory of its own; give "
                               "the buffer the scope \"shared\", or bind the loops of both alike";
    }
    TVM_FATAL(ValueError) << "LowerCrossThreadReduction: block " << read.block
                          << " reads elements of " << use.buffer->name
                          << " that other threads of the kernel write to global memory, for which "
                             "no thread waits; give the buffer the scope \"shared\", or put the "
                             "blocks into kernels of their own";
  }

  /*! \brief Points of threads of one block: the first ones, the last one, and some between. */
  std::vector<Spans> Threads(bool next_block, size_t most) const {
    std::vector<std::pair<const VarNode*, Span>> axes;
    Spans at;
    for (const auto& [tag, axis] : kernel_.axes) {
      std::optional<Span> extent = SpanEvaluator({})(axis.extent);
      const int64_t last = extent ? std::max<int64_t>(extent->lo, 1) - 1 : 0;
      if (axis.in_block) {
        axes.push_back({axis.var.get(), {0, last}});
      } else {
        const int64_t block = next_block ? std::min<int64_t>(last, 1) : 0;
        at[axis.var.get()] = {block, block};
      }
    }
    return Points(at, axes, most).points;
  }

  struct Trial {
    std::vector<Spans> points;
    /*! \brief Whether there are no other points. */
    bool all = false;
  };

  static Trial Iterations(Spans at, const std::vector<OwnLoop>& loops, size_t most) {
    std::vector<std::pair<const VarNode*, Span>> axes;
    Trial trial;
    bool known = true;
    for (const OwnLoop& loop : loops) {
      std::optional<Span> first = SpanEvaluator(at)(loop.min), n = SpanEvaluator(at)(loop.extent);
      if (!first || !n || n->hi < 1) return trial;
      // Loops inside of it whose extents depend on this one are tried for its first iteration.
      known = known && !UsesVar(loop.extent, [&](const VarNode* var) {
                return std::any_of(axes.begin(), axes.end(),
                                   [var](const auto& axis) { return axis.first == var; });
              });
      at[loop.var.get()] = {first->lo, first->lo};
      axes.push_back({loop.var.get(), {first->lo, first->lo + n->lo - 1}});
    }
    trial = Points(at, axes, most);
    trial.all = trial.all && known;
    return trial;
  }

  /*! \brief All points of axes where these are few; else corners and random ones. */
  static Trial Points(const Spans& at, const std::vector<std::pair<const VarNode*, Span>>& axes,
                      size_t most) {
    double count = 1;
    for (const auto& [var, span] : axes) {
      if (span.hi < span.lo) return {};
      count *= static_cast<double>(span.hi - span.lo + 1);
    }
    const bool all = count <= static_cast<double>(most);
    std::vector<Spans> points(all ? static_cast<size_t>(count) : most, at);
    // The same points each time, so that what is refused once is refused again.
    std::minstd_rand random(1);
    for (size_t i = 0; i < points.size(); ++i) {
      size_t rest = i;
      for (const auto& [var, span] : axes) {
        const auto size = static_cast<size_t>(span.hi - span.lo + 1);
        size_t step = 0;
        if (all) {
          step = rest % size;
          rest /= size;
        } else if (i == 1) {
          step = size - 1;
        } else if (i > 1) {
          step = random() % size;
        }
        const int64_t value = span.lo + static_cast<int64_t>(step);
        points[i][var] = {value, value};
      }
    }
    return {points, all};
  }

  /*! \brief The element of an access that is surely made at a point. */
  static std::optional<Element> ElementAt(const ThreadAccess& access, const Spans& at) {
    SpanEvaluator evaluate(at);
    for (const PrimExpr& guard : access.guards) {
      std::optional<Span> truth = evaluate(guard);
      if (!truth || truth->lo != 1) return std::nullopt;
    }
    return IndicesAt(access, at);
  }

  static std::optional<Element> IndicesAt(const ThreadAccess& access, const Spans& at) {
    SpanEvaluator evaluate(at);
    Element element;
    for (const PrimExpr& index : access.indices) {
      std::optional<Span> value = evaluate(index);
      if (!value || value->lo != value->hi) return std::nullopt;
      element.push_back(value->lo);
    }
    return element;
  }

  /*! \brief What one thread may write in all iterations of its loops. */
  class Written {
   public:
    Written(const BufferUse& use, const Spans& thread) {
      for (const ThreadAccess& write : use.writes) {
        Trial trial = Iterations(thread, write.loops, kExact);
        std::set<Element> elements;
        for (const Spans& at : trial.points) {
          std::optional<Element> element = IndicesAt(write, at);
          trial.all = trial.all && element;
          if (element) elements.insert(*element);
        }
        if (trial.all) {
          elements_.merge(elements);
        } else {
          boxes_.push_back(Box(write, thread));
        }
      }
    }

    bool MayHold(const Element& element) const {
      return elements_.count(element) ||
             std::any_of(boxes_.begin(), boxes_.end(), [&](const auto& box) {
               for (size_t i = 0; i < box.size(); ++i) {
                 if (box[i] && (element[i] < box[i]->lo || element[i] > box[i]->hi)) return false;
               }
               return true;
             });
    }

   private:
    static std::vector<std::optional<Span>> Box(const ThreadAccess& write, Spans at) {
      bool known = true;
      for (const OwnLoop& loop : write.loops) {
        std::optional<Span> first = SpanEvaluator(at)(loop.min), n = SpanEvaluator(at)(loop.extent);
        known = known && first && n;
        if (known) at[loop.var.get()] = {first->lo, first->hi + n->hi - 1};
      }
      std::vector<std::optional<Span>> box;
      for (const PrimExpr& index : write.indices) {
        box.push_back(known ? SpanEvaluator(at)(index) : std::nullopt);
      }
      return box;
    }

    std::set<Element> elements_;
    std::vector<std::vector<std::optional<Span>>> boxes_;
  };

  /*! \brief The threads that write elements, one for each of those that were tried. */
  static std::map<Element, size_t> Writers(const BufferUse& use,
                                           const std::vector<Spans>& threads) {
    std::map<Element, size_t> writers;
    for (size_t t = 0; t < threads.size(); ++t) {
      for (const ThreadAccess& write : use.writes) {
        for (const Spans& at : Iterations(threads[t], write.loops, kIterations).points) {
          std::optional<Element> element = ElementAt(write, at);
          if (element) writers.emplace(*element, t);
        }
      }
    }
    return writers;
  }

  const Kernel& kernel_;
};

class KernelFinder final : public StmtVisitor {
 private:
  void VisitStmt_(const ForNode* op) final {
    if (op->kind != ForKind::kThreadBinding) return StmtVisitor::VisitStmt_(op);
    KernelReader reader;
    reader(GetRef<Stmt>(op));
    ThreadTrial(reader.kernel).Run();
  }
};

}  // namespace

void CheckThreadMemory(const Stmt& body) { KernelFinder()(body); }

}  // namespace tir
}  // namespace tvm
