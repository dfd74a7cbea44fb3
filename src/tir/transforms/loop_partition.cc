/*!
 * \file src/tir/transforms/loop_partition.cc
 * \brief Loops are split where a condition starts or stops to hold.
 */
#include <tvm/arith/analyzer.h>
#include <tvm/arith/bound.h>
#include <tvm/arith/int_set.h>
#include <tvm/expr/builtin.h>
#include <tvm/expr/op.h>
#include <tvm/runtime/registry.h>
#include <tvm/tir/analysis.h>

#include <set>
#include <unordered_set>
#include <vector>

#include "pass_common.h"
#include "pass_option.h"

namespace tvm {
namespace tir {
namespace {

bool Uses(const PrimExpr& expr, const Var& var) {
  return UsesVar(expr, [&var](const VarNode* used) { return used == var.get(); });
}

struct PartitionOptions {
  bool partition_const_loop = false;
  bool no_unroll_loop_with_extent_one = false;
  bool unroll_loop_with_partition_hint_no_interval = false;

  static PartitionOptions FromContext(const transform::PassContext& ctx) {
    PartitionOptions options;
    for (const auto& [key, value] : ctx->GetConfig<Map<String, Any>>("tir.LoopPartition", {})) {
      if (key == "partition_const_loop") {
        options.partition_const_loop = OptionEntry<bool>("tir.LoopPartition", key, value);
      } else if (key == "no_unroll_loop_with_extent_one") {
        options.no_unroll_loop_with_extent_one = OptionEntry<bool>("tir.LoopPartition", key, value);
      } else if (key == "unroll_loop_with_partition_hint_no_interval") {
        options.unroll_loop_with_partition_hint_no_interval =
            OptionEntry<bool>("tir.LoopPartition", key, value);
      } else {
        TVM_FATAL(ValueError) << "tir.LoopPartition has no option " << key
                              << "; there are partition_const_loop, "
                                 "no_unroll_loop_with_extent_one and "
                                 "unroll_loop_with_partition_hint_no_interval";
      }
    }
    return options;
  }
};

/*! \brief A condition of a loop body with the loops between it and that body. */
struct SplitCondition {
  /*! \brief A likely call, or for a hinted loop any conjunct of a condition. */
  PrimExpr call;
  PrimExpr condition() const {
    const auto* op = call.as<CallNode>();
    return op != nullptr && op->op.same_as(builtin::likely()) ? op->args[0] : call;
  }
  std::unordered_map<const VarNode*, arith::IntSet> inner_loops;
};

/*! \brief Finds the conditions to split a loop at that mention its variable. */
class SplitConditionFinder final : public StmtExprVisitor {
 public:
  /*! \param all Whether conditions need not be likely. */
  SplitConditionFinder(Var var, bool all) : var_(std::move(var)), all_(all) {}
  std::vector<SplitCondition> found;

 private:
  void VisitExpr_(const CallNode* op) final {
    if (op->op.same_as(builtin::likely()) && Uses(op->args[0], var_)) {
      found.push_back({GetRef<PrimExpr>(op), loops_});
      return;
    }
    static const Op& ignored = Op::Get("tir.ignore_loop_partition");
    if (op->op.same_as(ignored)) return;
    if (op->op.same_as(builtin::if_then_else())) AddConjuncts(op->args[0]);
    StmtExprVisitor::VisitExpr_(op);
  }
  void VisitExpr_(const SelectNode* op) final {
    AddConjuncts(op->condition);
    StmtExprVisitor::VisitExpr_(op);
  }
  void VisitStmt_(const IfThenElseNode* op) final {
    AddConjuncts(op->condition);
    StmtExprVisitor::VisitStmt_(op);
  }
  void VisitStmt_(const ForNode* op) final {
    loops_.emplace(op->loop_var.get(),
                   arith::IntSet::FromRange(Range::FromMinExtent(op->min, op->extent)));
    StmtExprVisitor::VisitStmt_(op);
    loops_.erase(op->loop_var.get());
  }

  void VisitStmt_(const AttrStmtNode* op) final {
    if (op->attr_key != attr::thread_extent && op->attr_key != attr::virtual_thread) {
      return StmtExprVisitor::VisitStmt_(op);
    }
    const VarNode* thread = Downcast<IterVar>(op->node)->var.get();
    Range range = Range::FromMinExtent(make_zero(op->value.dtype()), op->value);
    bool is_new = loops_.emplace(thread, arith::IntSet::FromRange(range)).second;
    StmtExprVisitor::VisitStmt_(op);
    if (is_new) loops_.erase(thread);
  }

  // A value bound inside is not known where the loop is split.
  void VisitStmt_(const LetStmtNode* op) final {
    loops_.emplace(op->var.get(), arith::IntSet::Everything());
    StmtExprVisitor::VisitStmt_(op);
  }
  void VisitExpr_(const LetNode* op) final {
    loops_.emplace(op->var.get(), arith::IntSet::Everything());
    StmtExprVisitor::VisitExpr_(op);
  }

  void AddConjuncts(const PrimExpr& condition) {
    if (!all_) return;
    if (const auto* both = condition.as<AndNode>()) {
      AddConjuncts(both->a);
      AddConjuncts(both->b);
    } else if (condition.as<CallNode>() == nullptr && Uses(condition, var_)) {
      found.push_back({condition, loops_});
    }
  }

  Var var_;
  bool all_;
  std::unordered_map<const VarNode*, arith::IntSet> loops_;
};

/*! \brief Drops the given conditions, which hold. */
class ConditionRemover final : public StmtExprMutator {
 public:
  explicit ConditionRemover(const std::unordered_set<const Object*>& calls) : calls_(calls) {}

 private:
  PrimExpr VisitExpr(const PrimExpr& expr) final {
    return calls_.count(expr.get()) != 0 ? const_true() : StmtExprMutator::VisitExpr(expr);
  }
  PrimExpr VisitExpr_(const CallNode* op) final {
    PrimExpr expr = StmtExprMutator::VisitExpr_(op);
    const auto* call = expr.as<CallNode>();
    if (call->op.same_as(builtin::if_then_else())) {
      if (const int64_t* known = as_const_int(call->args[0])) return call->args[*known ? 1 : 2];
    }
    return expr;
  }
  PrimExpr VisitExpr_(const AndNode* op) final { return VisitExpr(op->a) && VisitExpr(op->b); }
  PrimExpr VisitExpr_(const OrNode* op) final { return VisitExpr(op->a) || VisitExpr(op->b); }
  PrimExpr VisitExpr_(const SelectNode* op) final {
    PrimExpr expr = StmtExprMutator::VisitExpr_(op);
    const auto* select = expr.as<SelectNode>();
    const int64_t* known = as_const_int(select->condition);
    if (known == nullptr) return expr;
    return *known ? select->true_value : select->false_value;
  }
  Stmt VisitStmt_(const IfThenElseNode* op) final {
    Stmt stmt = StmtExprMutator::VisitStmt_(op);
    const auto* branch = stmt.as<IfThenElseNode>();
    const int64_t* known = as_const_int(branch->condition);
    if (known == nullptr) return stmt;
    if (*known) return branch->then_case;
    return branch->else_case.defined() ? branch->else_case : Evaluate(0);
  }

  const std::unordered_set<const Object*>& calls_;
};

class LoopPartitioner final : public StmtMutator {
 public:
  explicit LoopPartitioner(PartitionOptions options) : options_(options) {}

 private:
  Stmt VisitStmt_(const AttrStmtNode* op) final {
    const auto* iv = op->node.as<IterVarNode>();
    if (op->attr_key != attr::pragma_loop_partition_hint || iv == nullptr) {
      return StmtMutator::VisitStmt_(op);
    }
    hinted_.insert(iv->var.get());
    return VisitStmt(op->body);
  }

  Stmt VisitStmt_(const ForNode* op) final {
    bool hinted = hinted_.count(op->loop_var.get()) != 0 ||
                  op->annotations.count(attr::pragma_loop_partition_hint) != 0;
    bool constant = is_const_int(op->min) && is_const_int(op->extent);
    // A split inside of a tail has constants where the whole loop has variables; those follow the
    // decision taken for the outer loop.
    bool allowed = options_.partition_const_loop || in_tail_ || hinted || !constant;
    if (op->kind != ForKind::kThreadBinding && allowed) {
      if (Stmt split = TryPartition(op, hinted); split.defined()) return split;
    }
    Range range = Range::FromMinExtent(op->min, op->extent);
    analyzer_.Bind(op->loop_var, range, true);
    Stmt stmt = StmtMutator::VisitStmt_(op);
    if (!hinted) return stmt;
    For loop = Downcast<For>(stmt);
    if (op->annotations.count(attr::pragma_loop_partition_hint)) {
      loop.CopyOnWrite()->annotations.erase(attr::pragma_loop_partition_hint);
    }
    return UnrolledOnRequest(loop);
  }

  For UnrolledOnRequest(For loop) const {
    bool constant = is_const_int(loop->min) && is_const_int(loop->extent);
    bool unroll = options_.unroll_loop_with_partition_hint_no_interval && constant;
    if (unroll && loop->kind == ForKind::kSerial) loop.CopyOnWrite()->kind = ForKind::kUnrolled;
    return loop;
  }

  /*! \brief The loop in up to three segments, or undefined when no condition can be hoisted. */
  Stmt TryPartition(const ForNode* op, bool hinted) {
    SplitConditionFinder finder(op->loop_var, hinted);
    finder(op->body);
    if (finder.found.empty()) return Stmt();
    PrimExpr begin = op->min;
    PrimExpr end = analyzer_.Simplify(op->min + op->extent);
    PrimExpr main_begin = begin;
    PrimExpr main_end = end;
    std::unordered_set<const Object*> hoisted, kept;
    std::set<int64_t> changes;
    for (const SplitCondition& candidate : finder.found) {
      PrimExpr condition = candidate.condition();
      // Outer variables keep their value: the bound is an expression over them.
      arith::IntSet holds = arith::DeduceBound(op->loop_var, condition,
                                               std::unordered_map<const VarNode*, arith::IntSet>{},
                                               candidate.inner_loops);
      if (!IsUsable(holds, op->loop_var, candidate)) {
        kept.insert(candidate.call.get());
        continue;
      }
      hoisted.insert(candidate.call.get());
      DataType index = begin.dtype();
      if (holds.HasLowerBound()) {
        PrimExpr first = cast(index, holds.min());
        main_begin = max(main_begin, first);
        Note(first, &changes);
      }
      if (holds.HasUpperBound()) {
        PrimExpr past = cast(index, holds.max()) + 1;
        main_end = min(main_end, past);
        Note(past, &changes);
      }
    }
    // A condition that stands in several places goes only if it can go everywhere.
    for (const Object* call : kept) hoisted.erase(call);
    if (hoisted.empty()) return Stmt();
    // Segments lie inside of the loop and in order, whatever the bounds turn out to be.
    main_begin = analyzer_.Simplify(min(main_begin, end));
    main_end = analyzer_.Simplify(max(main_end, main_begin));
    if (analyzer_.CanProveEqual(main_begin, main_end)) {
      // Nowhere do all conditions hold for every inner iteration. On request the loop is split
      // wherever one of them changes; else inner loops are split instead.
      return hinted ? SplitAt(op, begin, end, changes) : Stmt();
    }
    // On request, also where a condition changes that the main segment does not begin or end with.
    std::set<int64_t> rest = changes;
    for (const PrimExpr& edge : {begin, end, main_begin, main_end}) {
      if (const int64_t* known = as_const_int(edge)) rest.erase(*known);
    }
    if (hinted && !rest.empty()) {
      if (Stmt split = SplitAt(op, begin, end, changes); split.defined()) return split;
    }
    bool needs_constants = op->kind == ForKind::kUnrolled || op->kind == ForKind::kVectorized;
    if (needs_constants && !(is_const_int(main_begin) && is_const_int(main_end))) return Stmt();
    Array<Stmt> segments;
    segments.push_back(Tail(op, begin, main_begin, hinted));
    segments.push_back(Main(op, main_begin, main_end, hoisted));
    segments.push_back(Tail(op, main_end, end, hinted));
    return SeqStmt::Flatten(segments);
  }

  void Note(const PrimExpr& value, std::set<int64_t>* values) {
    PrimExpr simple = analyzer_.Simplify(value);
    if (const int64_t* known = as_const_int(simple)) values->insert(*known);
  }

  /*! \brief The loop cut at constants; its conditions stay, and are decided in each segment. */
  Stmt SplitAt(const ForNode* op, const PrimExpr& begin, const PrimExpr& end,
               const std::set<int64_t>& at) {
    const int64_t *first = as_const_int(begin), *last = as_const_int(end);
    if (first == nullptr || last == nullptr) return Stmt();
    std::vector<int64_t> ends;
    for (int64_t value : at) {
      if (*first < value && value < *last) ends.push_back(value);
    }
    if (ends.empty()) return Stmt();
    ends.push_back(*last);
    Array<Stmt> segments;
    int64_t from = *first;
    for (int64_t to : ends) {
      const DataType index = begin.dtype();
      segments.push_back(Segment(op, make_const(index, from), make_const(index, to),
                                 from == *first ? op->body : RenewBindings(op->body),
                                 SegmentKind::kTail));
      from = to;
    }
    return SeqStmt::Flatten(segments);
  }

  /*! \brief Whether a deduced set bounds the loop by what is known outside of it. */
  static bool IsUsable(const arith::IntSet& holds, const Var& var,
                       const SplitCondition& candidate) {
    if (holds.IsNothing() || (!holds.HasLowerBound() && !holds.HasUpperBound())) return false;
    auto inside = [&](const VarNode* used) {
      return used == var.get() || candidate.inner_loops.count(used) != 0;
    };
    if (holds.HasLowerBound() && UsesVar(holds.min(), inside)) return false;
    return !holds.HasUpperBound() || !UsesVar(holds.max(), inside);
  }

  /*!
   * \brief Which part of a loop a segment is.
   *
   * The main one may be split again. The conditions of a tail hold in some iterations only, as in a
   * loop that cannot be split, so it is unrolled where that is asked for such loops.
   */
  enum class SegmentKind { kMain, kTail, kHintedTail };

  /*! \brief Iterations [begin, end) of `body`; what is inside has still to be visited. */
  Stmt Segment(const ForNode* op, const PrimExpr& begin, const PrimExpr& end, const Stmt& body,
               SegmentKind kind) {
    PrimExpr extent = analyzer_.Simplify(end - begin);
    if (is_zero(extent) || is_negative_const(extent)) return Evaluate(0);
    if (is_one(extent) && !options_.no_unroll_loop_with_extent_one) {
      return VisitStmt(Substitute(body, Map<Var, PrimExpr>{{op->loop_var, begin}}));
    }
    Map<String, ObjectRef> annotations = op->annotations;
    if (annotations.count(attr::pragma_loop_partition_hint)) {
      annotations.erase(attr::pragma_loop_partition_hint);
    }
    // A segment counts from zero; bounds that are expressions tell more about what is inside.
    bool shifted = is_const_int(begin);
    Var var = op->loop_var.copy_with_suffix("");
    Stmt inner = Substitute(body, Map<Var, PrimExpr>{{op->loop_var, shifted ? var + begin : var}});
    PrimExpr first = shifted ? make_zero(begin.dtype()) : begin;
    if (kind == SegmentKind::kMain) {
      return VisitStmt(For(var, first, extent, op->kind, inner, op->thread_binding, annotations));
    }
    analyzer_.Bind(var, Range::FromMinExtent(first, extent), true);
    For loop(var, first, extent, op->kind, VisitStmt(inner), op->thread_binding, annotations);
    return kind == SegmentKind::kHintedTail ? UnrolledOnRequest(loop) : loop;
  }

  Stmt Main(const ForNode* op, const PrimExpr& begin, const PrimExpr& end,
            const std::unordered_set<const Object*>& hoisted) {
    return Segment(op, begin, end, ConditionRemover(hoisted)(op->body), SegmentKind::kMain);
  }

  Stmt Tail(const ForNode* op, const PrimExpr& begin, const PrimExpr& end, bool hinted) {
    bool outer = in_tail_;
    in_tail_ = true;
    // The same split would be found again, so only what is inside is split further.
    Stmt segment = Segment(op, begin, end, RenewBindings(op->body),
                           hinted ? SegmentKind::kHintedTail : SegmentKind::kTail);
    in_tail_ = outer;
    return segment;
  }

  PartitionOptions options_;
  std::unordered_set<const VarNode*> hinted_;
  bool in_tail_ = false;
  arith::Analyzer analyzer_;
};

}  // namespace

namespace transform {

Pass LoopPartition() {
  return BodyPass("tir.LoopPartition", [](const PrimFunc& func, const PassContext& ctx) {
    return LoopPartitioner(PartitionOptions::FromContext(ctx))(func->body);
  });
}

using Options = Map<String, Any>;
TVM_REGISTER_PASS_CONFIG_OPTION("tir.LoopPartition", Options);
TVM_REGISTER_GLOBAL("tir.transform.LoopPartition").set_body_typed(LoopPartition);

}  // namespace transform
}  // namespace tir
}  // namespace tvm
