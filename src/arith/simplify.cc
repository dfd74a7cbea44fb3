/*!
 * \file arith/simplify.cc
 * \brief Simplification of whole expressions: integers through the normal form, conditions by
 *        proof, vectors lane-wise, everything else by its operands.
 */
#include <tvm/expr/analysis.h>
#include <tvm/expr/builtin.h>
#include <tvm/expr/expr_functor.h>
#include <tvm/expr/lanes.h>
#include <tvm/expr/op.h>
#include <tvm/expr/substitute.h>

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <utility>

#include "analyzer_core.h"
#include "expr/const_fold.h"

namespace tvm {
namespace arith {

using namespace tir;

namespace {

constexpr int64_t kLargestNumber = std::numeric_limits<int64_t>::max();

/*! \brief Rebuilds one node from simplified operands. */
class OperandSimplifier : public ExprMutator {
 public:
  OperandSimplifier(AnalyzerCore* core, const Object* root) : core_(core), root_(root) {}

  PrimExpr VisitExpr(const PrimExpr& e) override {
    if (e.get() == root_) {
      root_ = nullptr;
      return ExprMutator::VisitExpr(e);
    }
    return core_->Simplify(e);
  }

 private:
  using ExprMutator::VisitExpr_;

  PrimExpr VisitExpr_(const VarNode* op) override {
    const PrimExpr* value = core_->ValueOf(op);
    return value ? core_->Simplify(cast(op->dtype, *value)) : GetRef<PrimExpr>(op);
  }
  PrimExpr VisitExpr_(const SizeVarNode* op) override {
    return VisitExpr_(static_cast<const VarNode*>(op));
  }

  PrimExpr VisitExpr_(const LetNode* op) override {
    PrimExpr value = core_->Simplify(op->value);
    if (is_const_int(value) || value.as<FloatImmNode>() || value.as<VarNode>()) {
      return core_->Simplify(Substitute(op->body, Map<Var, PrimExpr>{{op->var, value}}));
    }
    return ExprMutator::VisitExpr_(op);
  }

  PrimExpr VisitExpr_(const SelectNode* op) override {
    PrimExpr cond = core_->Simplify(op->condition);
    if (is_one(cond)) return core_->Simplify(op->true_value);
    if (is_zero(cond)) return core_->Simplify(op->false_value);
    auto [t, f] = EagerBranches(cond, op);
    if (SameExpr(t, f)) return t;
    if (op->dtype == cond.dtype() && is_const_int(t) && is_const_int(f)) {
      return is_one(t) ? cond : core_->Simplify(Not(cond));
    }
    if (cond.same_as(op->condition) && t.same_as(op->true_value) && f.same_as(op->false_value)) {
      return GetRef<PrimExpr>(op);
    }
    return Select(cond, t, f);
  }

  PrimExpr VisitExpr_(const CallNode* op) override {
    if (op->op.same_as(builtin::likely())) {
      PrimExpr cond = core_->Simplify(op->args[0]);
      if (is_const_int(cond)) return cond;
      return cond.same_as(op->args[0]) ? GetRef<PrimExpr>(op) : likely(cond);
    }
    if (op->op.same_as(builtin::if_then_else())) {
      PrimExpr cond = core_->Simplify(op->args[0]);
      if (is_one(cond)) return core_->Simplify(op->args[1]);
      if (is_zero(cond)) return core_->Simplify(op->args[2]);
      auto [t, f] = Branches(cond, op->args[1], op->args[2]);
      if (SameExpr(t, f)) return t;
      if (op->dtype.is_bool() && op->dtype.is_scalar() && cond.dtype().is_scalar()) {
        // One branch is a constant: what is left is a conjunction or an alternative.
        if (is_one(t) && IsHarmless(f)) return core_->Simplify(Or(cond, f));
        if (is_zero(t) && IsHarmless(f)) return core_->Simplify(And(Not(cond), f));
        if (is_zero(f) && IsHarmless(t)) return core_->Simplify(And(cond, t));
        if (is_one(f) && IsHarmless(t)) return core_->Simplify(Or(Not(cond), t));
      }
      // One choice for two where the inner one falls back to the same value.
      if (const auto* inner = t.as<CallNode>();
          inner && inner->op.same_as(op->op) && inner->args[0].dtype() == cond.dtype() &&
          IsHarmless(inner->args[0]) && SameExpr(inner->args[2], f)) {
        return Call(op->dtype, op->op,
                    {core_->Simplify(And(cond, inner->args[0])), inner->args[1], f});
      }
      if (cond.same_as(op->args[0]) && t.same_as(op->args[1]) && f.same_as(op->args[2])) {
        return GetRef<PrimExpr>(op);
      }
      return Call(op->dtype, op->op, {cond, t, f});
    }
    PrimExpr out = ExprMutator::VisitExpr_(op);
    static const Op& clz = Op::Get("tir.clz");
    if (op->op.same_as(clz)) return FoldLeadingZeros(out);
    if (const auto* call = out.as<CallNode>()) {
      if (PrimExpr folded = FoldMath(call); folded.defined()) return folded;
    }
    return FoldBits(out);
  }

  PrimExpr VisitExpr_(const ReduceNode* op) override {
    for (const IterVar& axis : op->axis) {
      if (axis->dom.defined()) core_->StateRange(axis->var, axis->dom, /*allow_override=*/true);
    }
    return ExprMutator::VisitExpr_(op);
  }

  std::pair<PrimExpr, PrimExpr> Branches(const PrimExpr& cond, const PrimExpr& t,
                                         const PrimExpr& f) {
    if (!cond.dtype().is_scalar()) return {core_->Simplify(t), core_->Simplify(f)};
    PrimExpr true_value = core_->SimplifyUnder(cond, t);
    return {true_value, core_->SimplifyUnder(Not(cond), f)};
  }

  std::pair<PrimExpr, PrimExpr> EagerBranches(const PrimExpr& cond, const SelectNode* op) {
    if (!cond.dtype().is_scalar()) return Branches(cond, op->true_value, op->false_value);
    return {core_->SimplifyBesides(cond, op->true_value),
            core_->SimplifyBesides(Not(cond), op->false_value)};
  }

  /*! \brief Whether an expression may be computed where no condition guards it any more. */
  static bool IsHarmless(const PrimExpr& e) {
    if (SideEffect(e) > CallEffectKind::kPure) return false;
    bool harmless = true;
    auto divides = [](const PrimExpr& divisor) {
      return !is_const_int(divisor) || is_zero(divisor);
    };
    PostOrderVisit(e, [&](const ObjectRef& node) {
      if (node.as<CallNode>() || node.as<BufferLoadNode>() || node.as<ProducerLoadNode>()) {
        harmless = false;
      }
#define TVM_DIVISION(Node) \
  if (const auto* op = node.as<Node>()) harmless = harmless && !divides(op->b);
      TVM_DIVISION(DivNode)
      TVM_DIVISION(ModNode)
      TVM_DIVISION(FloorDivNode)
      TVM_DIVISION(FloorModNode)
#undef TVM_DIVISION
    });
    return harmless;
  }

  static PrimExpr FoldLeadingZeros(const PrimExpr& e) {
    const auto* call = e.as<CallNode>();
    const int64_t* value = call ? as_const_int(call->args[0]) : nullptr;
    if (!value) return e;
    const int bits = call->args[0].dtype().bits();
    uint64_t number = static_cast<uint64_t>(*value);
    if (bits < 64) number &= (uint64_t{1} << bits) - 1;
    int zeros = bits;
    for (; number != 0; number >>= 1) --zeros;
    return make_const(e.dtype(), zeros);
  }

  /*! \brief Whether leaving an expression out changes nothing but the time it takes. */
  static bool IsDroppable(const PrimExpr& e) { return SideEffect(e) <= CallEffectKind::kReadState; }

  static PrimExpr FoldBits(const PrimExpr& e) {
    const auto* call = e.as<CallNode>();
    if (!call) return e;
    if (call->op.same_as(builtin::bitwise_not()) && call->args.size() == 1) {
      const auto* inner = call->args[0].as<CallNode>();
      return inner && inner->op.same_as(call->op) ? inner->args[0] : e;
    }
    if (call->args.size() != 2) return e;
    const int64_t* a = as_const_int(call->args[0]);
    const int64_t* b = as_const_int(call->args[1]);
    const bool shift =
        call->op.same_as(builtin::shift_right()) || call->op.same_as(builtin::shift_left());
    if (call->args[0].dtype() != e.dtype()) return e;
    if (shift && b && *b == 0) return call->args[0];
    if (shift && a && *a == 0 && IsDroppable(call->args[1])) return call->args[0];
    if (!a || !b) return shift ? e : FoldMask(call);
    if (call->op.same_as(builtin::shift_right())) return right_shift(call->args[0], call->args[1]);
    if (call->op.same_as(builtin::shift_left())) return left_shift(call->args[0], call->args[1]);
    if (call->op.same_as(builtin::bitwise_and())) return bitwise_and(call->args[0], call->args[1]);
    if (call->op.same_as(builtin::bitwise_or())) return bitwise_or(call->args[0], call->args[1]);
    if (call->op.same_as(builtin::bitwise_xor())) return bitwise_xor(call->args[0], call->args[1]);
    return e;
  }

  /*! \brief "and", "or" and "xor" of a number with itself, with no bits, and with all bits. */
  static PrimExpr FoldMask(const CallNode* call) {
    const PrimExpr e = GetRef<PrimExpr>(call);
    const bool conj = call->op.same_as(builtin::bitwise_and());
    const bool alt = call->op.same_as(builtin::bitwise_or());
    if (!conj && !alt && !call->op.same_as(builtin::bitwise_xor())) return e;
    PrimExpr x = call->args[0], mask = call->args[1];
    if (x.dtype() != e.dtype() || mask.dtype() != e.dtype()) return e;
    if (SameExpr(x, mask)) {
      if (!IsDroppable(x)) return e;
      return conj || alt ? x : make_zero(e.dtype());
    }
    if (as_const_int(x)) std::swap(x, mask);
    const int64_t* bits = as_const_int(mask);
    if (!bits) return e;
    if (*bits == 0) return conj ? (IsDroppable(x) ? mask : e) : x;
    const int width = e.dtype().bits();
    const bool is_all =
        e.dtype().is_uint() ? width < 64 && *bits == (int64_t{1} << width) - 1 : *bits == -1;
    if (!is_all) return e;
    if (conj) return x;
    return alt && IsDroppable(x) ? mask : e;
  }

  AnalyzerCore* core_;
  const Object* root_;
};

/*! \brief Applies the folding constructor of an operator to simplified operands. */
PrimExpr FoldBinary(const PrimExpr& e) {
#define TVM_FOLD(Node, fold) \
  if (const auto* op = e.as<Node>()) return fold(op->a, op->b);
  // Code that never runs may divide by zero; it stays as it is.
#define TVM_FOLD_DIVISION(Node, fold) \
  if (const auto* op = e.as<Node>()) return is_zero(op->b) ? e : fold(op->a, op->b);
  TVM_FOLD(AddNode, add)
  TVM_FOLD(SubNode, sub)
  TVM_FOLD(MulNode, mul)
  TVM_FOLD_DIVISION(DivNode, div)
  TVM_FOLD_DIVISION(ModNode, truncmod)
  TVM_FOLD_DIVISION(FloorDivNode, floordiv)
  TVM_FOLD_DIVISION(FloorModNode, floormod)
  TVM_FOLD(MinNode, min)
  TVM_FOLD(MaxNode, max)
  TVM_FOLD(LTNode, less)
  TVM_FOLD(LENode, less_equal)
  TVM_FOLD(GTNode, greater)
  TVM_FOLD(GENode, greater_equal)
  TVM_FOLD(EQNode, equal)
  TVM_FOLD(NENode, not_equal)
#undef TVM_FOLD_DIVISION
#undef TVM_FOLD
  if (const auto* op = e.as<CastNode>()) {
    // There and back, by a type that holds every value.
    const auto* inner = op->value.as<CastNode>();
    const bool integers = op->dtype.is_int() || op->dtype.is_uint();
    if (inner && integers && inner->value.dtype() == op->dtype &&
        inner->dtype.code() == op->dtype.code() && inner->dtype.bits() >= op->dtype.bits()) {
      return inner->value;
    }
    return cast(op->dtype, op->value);
  }
  return e;
}

/*! \brief Quotients that are rounded towards zero, one of another, are one quotient. */
PrimExpr JoinQuotients(const PrimExpr& e) {
  const auto* outer = e.as<DivNode>();
  const auto* inner = outer ? outer->a.as<DivNode>() : nullptr;
  if (!inner || !IsIndex(e)) return e;
  const int64_t* x = as_const_int(inner->b);
  const int64_t* y = as_const_int(outer->b);
  const int64_t largest = int64_t{1} << (std::min(e.dtype().bits(), 63) - 1);
  int64_t product;
  if (!x || !y || *x <= 0 || *y <= 0 || __builtin_mul_overflow(*x, *y, &product) ||
      product >= largest) {
    return e;
  }
  return Div(inner->a, make_const(e.dtype(), product));
}

/*! \brief Keeps the node itself where folding built an equal one. */
PrimExpr KeepIfSame(const PrimExpr& before, const PrimExpr& after) {
  return SameExpr(before, after) ? before : after;
}

}  // namespace

PrimExpr AnalyzerCore::Simplify(const PrimExpr& e) {
  if (e.as<IntImmNode>() || e.as<FloatImmNode>() || e.as<StringImmNode>()) return e;
  struct Scope {
    explicit Scope(AnalyzerCore* core) : core(core) { ++core->memo_depth_; }
    ~Scope() {
      if (--core->memo_depth_ > 0) return;
      core->memo_.clear();
      core->divided_rests_.clear();
      core->inner_offsets_.clear();
    }
    AnalyzerCore* core;
  } scope(this);
  try {
    if (IsIndex(e)) return SimplifyInt(e);
    if (e.dtype().is_bool() && e.dtype().is_scalar()) return SimplifyBool(e);
    if (!e.dtype().is_scalar() && !e.dtype().is_handle()) return SimplifyVector(e);
    return SimplifyOther(e);
  } catch (const PolyOverflow&) {
    // Too large as a whole; its parts may still get simpler.
    return IsIndex(e) ? SimplifyOther(e) : e;
  }
}

namespace {

/*! \brief Another value of a variable, until the end of the scope. */
template <typename T>
struct Temporarily {
  Temporarily(T* place, T value) : place(place), before(std::exchange(*place, value)) {}
  ~Temporarily() { *place = before; }
  Temporarily(const Temporarily&) = delete;
  Temporarily& operator=(const Temporarily&) = delete;
  T* place;
  T before;
};

}  // namespace

PrimExpr AnalyzerCore::SimplifyCanonical(const PrimExpr& e) {
  Temporarily order(&sum_order_, SumOrder::kCanonical);
  return Simplify(e);
}

PrimExpr AnalyzerCore::SimplifyAsMet(const PrimExpr& e) {
  Temporarily order(&sum_order_, SumOrder::kAsMet);
  try {
    return WrittenForm(e, Simplify(e));
  } catch (const PolyOverflow&) {
    return Simplify(e);
  }
}

PrimExpr AnalyzerCore::SimplifyInt(const PrimExpr& e) {
  if (PrimExpr selection = SumOfSelects(e); selection.defined()) return selection;
  Poly p = Reduce(Normalize(e));
  PrimExpr normal = Emit(p, e.dtype());
  if (SameExpr(normal, e)) return e;
  const bool compound = std::any_of(p.terms.begin(), p.terms.end(), [this](const Term& t) {
    const std::vector<AtomId>& ids = ring_.Atoms(t.mono);
    return std::any_of(ids.begin(), ids.end(), [this](AtomId id) {
      return atoms_[id].kind != Atom::kVar && atoms_[id].kind != Atom::kOpaque;
    });
  });
  if (compound && HoldsData(p) && !KeepsData(e, normal)) return SimplifyOther(e);
  int size = ExprSize(normal);
  if (size <= ExprSize(e, size)) return normal;
  // Multiplying out made it longer. What is inside may still get simpler.
  PrimExpr other = SimplifyOperands(e);
  return ExprSize(other, size) < size ? other : normal;
}

PrimExpr AnalyzerCore::SimplifyUnder(const PrimExpr& cond, const PrimExpr& e) {
  struct Scope {
    std::function<void()> leave;
    ~Scope() { leave(); }
  } scope{EnterConstraint(cond)};
  return Simplify(e);
}

namespace {

/*! \brief Whether an index is held inside of an array, as min(i, n - 1) or i % n are. */
bool IsClamped(const Array<PrimExpr>& indices) {
  bool clamped = false;
  for (const PrimExpr& index : indices) {
    PostOrderVisit(index, [&clamped](const ObjectRef& node) {
      clamped = clamped || node.as<MinNode>() || node.as<MaxNode>() || node.as<SelectNode>() ||
                node.as<FloorModNode>() || node.as<ModNode>();
    });
  }
  return clamped;
}

bool HoldsGuards(const PrimExpr& e) {
  bool guarded = false;
  PostOrderVisit(e, [&guarded](const ObjectRef& node) {
    if (const auto* call = node.as<CallNode>()) {
      guarded = guarded || call->op.same_as(builtin::if_then_else());
    } else if (const auto* load = node.as<BufferLoadNode>()) {
      guarded = guarded || IsClamped(load->indices);
    } else if (const auto* read = node.as<ProducerLoadNode>()) {
      guarded = guarded || IsClamped(read->indices);
    }
  });
  return guarded;
}

}  // namespace

PrimExpr AnalyzerCore::SimplifyBesides(const PrimExpr& cond, const PrimExpr& e) {
  return HoldsGuards(e) ? Simplify(e) : SimplifyUnder(cond, e);
}

PrimExpr AnalyzerCore::SimplifyOperands(const PrimExpr& e) {
  return OperandSimplifier(this, e.get())(e);
}

PrimExpr AnalyzerCore::SimplifyOther(const PrimExpr& e) {
  PrimExpr out = SimplifyOperands(e);
  return KeepIfSame(out, JoinQuotients(FoldBinary(out)));
}

namespace {

// Alternatives that multiplying out may give; more are no simplification.
constexpr size_t kMaxClauses = 16;

using Clause = std::vector<PrimExpr>;

/*! \brief Clauses that hold together; none if there are too many. */
std::vector<Clause> ClausesOf(const PrimExpr& e) {
  if (const auto* op = e.as<AndNode>()) {
    std::vector<Clause> clauses = ClausesOf(op->a), more = ClausesOf(op->b);
    if (clauses.empty() || more.empty()) return {};
    clauses.insert(clauses.end(), more.begin(), more.end());
    return clauses.size() > kMaxClauses ? std::vector<Clause>() : clauses;
  }
  if (const auto* op = e.as<OrNode>()) {
    const std::vector<Clause> left = ClausesOf(op->a), right = ClausesOf(op->b);
    if (left.size() * right.size() > kMaxClauses) return {};
    std::vector<Clause> clauses;
    for (const Clause& a : left) {
      for (const Clause& b : right) {
        clauses.push_back(a);
        clauses.back().insert(clauses.back().end(), b.begin(), b.end());
      }
    }
    return clauses;
  }
  return {{e}};
}

}  // namespace

namespace {

/*! \brief Whether a condition may be computed where those before it would have prevented that. */
bool NeedsNoGuard(const PrimExpr& e) {
  bool safe = true;
  PostOrderVisit(e, [&safe](const ObjectRef& node) {
    safe = safe && !node.as<CallNode>() && !node.as<BufferLoadNode>() && !node.as<DivNode>() &&
           !node.as<ModNode>() && !node.as<FloorDivNode>() && !node.as<FloorModNode>() &&
           !node.as<ProducerLoadNode>();
  });
  return safe;
}

}  // namespace

PrimExpr AnalyzerCore::AndOfOrs(const PrimExpr& e) {
  const std::vector<Clause> clauses = ClausesOf(e);
  if (clauses.size() < 2) return PrimExpr();
  PrimExpr all;
  for (const Clause& clause : clauses) {
    PrimExpr any = clause[0];
    for (size_t i = 1; i < clause.size(); ++i) any = Or(any, clause[i]);
    all = all.defined() ? And(all, any) : any;
  }
  return all;
}

PrimExpr AnalyzerCore::SimplifyBool(const PrimExpr& e) {
  if (and_of_ors_ && (e.as<AndNode>() || e.as<OrNode>())) {
    if (PrimExpr whole = AndOfOrs(e); whole.defined() && !SameExpr(whole, e)) {
      return SimplifyBool(whole);
    }
  }
  if (const auto* op = e.as<AndNode>()) {
    PrimExpr a = Simplify(op->a);
    if (is_zero(a)) return a;
    PrimExpr b = SimplifyBesides(a, op->b);
    if (is_zero(b) || is_one(a)) return b;
    if (is_one(b) || SameExpr(a, b)) return a;
    if (NeedsNoGuard(b)) {
      if (is_one(SimplifyUnder(b, a))) return b;
      if (PrimExpr one = JoinConditions(a, b, /*both=*/true); one.defined()) return one;
    }
    return a.same_as(op->a) && b.same_as(op->b) ? e : PrimExpr(And(a, b));
  }
  if (const auto* op = e.as<OrNode>()) {
    PrimExpr a = Simplify(op->a);
    if (is_one(a)) return a;
    PrimExpr b = SimplifyBesides(Not(a), op->b);
    if (is_one(b) || is_zero(a)) return b;
    if (is_zero(b) || SameExpr(a, b)) return a;
    if (NeedsNoGuard(b)) {
      if (is_zero(SimplifyUnder(Not(b), a))) return b;
      if (PrimExpr one = JoinConditions(a, b, /*both=*/false); one.defined()) return one;
    }
    return a.same_as(op->a) && b.same_as(op->b) ? e : PrimExpr(Or(a, b));
  }
  if (const auto* op = e.as<NotNode>()) {
    PrimExpr a = Simplify(op->a);
    if (is_const_int(a)) return make_const(e.dtype(), is_zero(a) ? 1 : 0);
    if (const auto* inner = a.as<NotNode>()) return inner->a;
    auto index = [](const auto* node) { return node && IsIndex(node->a); };
    if (const auto* lt = a.as<LTNode>(); index(lt)) return Simplify(LE(lt->b, lt->a));
    if (const auto* le = a.as<LENode>(); index(le)) return Simplify(LT(le->b, le->a));
    if (const auto* eq = a.as<EQNode>(); index(eq)) return NE(eq->a, eq->b);
    if (const auto* ne = a.as<NENode>(); index(ne)) return EQ(ne->a, ne->b);
    if (const auto* both = a.as<AndNode>()) return Simplify(Or(Not(both->a), Not(both->b)));
    if (const auto* either = a.as<OrNode>()) return Simplify(And(Not(either->a), Not(either->b)));
    return Known(a.same_as(op->a) ? e : PrimExpr(Not(a)));
  }
  PrimExpr out = CompareWithMinimum(e);
  if (!out.defined()) out = SimplifyCompare(e);
  if (!out.defined()) out = SimplifyOther(e);
  return Known(out);
}

PrimExpr AnalyzerCore::Known(const PrimExpr& cond) const {
  if (true_conds_.empty() || is_const_int(cond)) return cond;
  if (KnownTrue(cond)) return const_true();
  PrimExpr opposite = Not(cond);
  if (const auto* eq = cond.as<EQNode>()) opposite = NE(eq->a, eq->b);
  if (const auto* ne = cond.as<NENode>()) opposite = EQ(ne->a, ne->b);
  if (const auto* no = cond.as<NotNode>()) opposite = no->a;
  return KnownTrue(opposite) ? const_false() : cond;
}

namespace {

/*!
 * \brief `floor(x / c) < n` as `x < n * c`, and its kin: the division goes to the number.
 * \param lesser, greater The operands of `<` (strict) or `<=`; one of them is the division.
 */
void DropDivisions(PrimExpr* lesser, PrimExpr* greater, bool strict) {
  for (;;) {
    const bool on_left = lesser->as<FloorDivNode>() != nullptr;
    const auto* division = (on_left ? *lesser : *greater).as<FloorDivNode>();
    const auto* number = (on_left ? *greater : *lesser).as<IntImmNode>();
    if (division == nullptr || number == nullptr) return;
    const auto* divisor = division->b.as<IntImmNode>();
    if (divisor == nullptr || divisor->value <= 0) return;
    const int64_t largest = int64_t{1} << (std::min(number->dtype.bits(), 32) - 1);
    if (std::abs(number->value) >= largest || divisor->value >= largest) return;
    // q < n is x < n c, and n <= q is n c <= x;
    // q <= n is x <= (n + 1) c - 1, and n < q is (n + 1) c - 1 < x.
    const int64_t one = on_left == strict ? 0 : 1;
    const int64_t bound = (number->value + one) * divisor->value - one;
    if (std::abs(bound) >= largest) return;
    PrimExpr limit = make_const(number->dtype, bound);
    PrimExpr dividend = division->a;
    (on_left ? *lesser : *greater) = dividend;
    (on_left ? *greater : *lesser) = limit;
  }
}

}  // namespace

namespace {

/*!
 * \brief The number c with which `low <= high + number` is written `low < high + c`, or with `<=`.
 *
 * An order stays as strict as it was written, unless without a number it is shorter.
 */
int64_t AddedTo(const Poly& low, const Poly& high, int64_t number, bool* strict) {
  if (!low.IsZero() && !high.IsZero() && (number == 0 || number == -1)) *strict = number == -1;
  return number + (*strict ? 1 : 0);
}

}  // namespace

Poly AnalyzerCore::WithoutRemainder(Poly p) {
  for (const Term& step : std::vector<Term>(p.terms)) {
    const int64_t g = std::abs(step.coef);
    if (step.mono == kUnitMono || g <= 1) continue;
    Poly whole, rest;
    for (const Term& t : p.terms) {
      const bool counts_periods = t.mono != kUnitMono && t.coef % g == 0;
      (counts_periods ? whole : rest).terms.push_back(t);
    }
    if (whole.IsZero() || rest.IsConst()) continue;
    const Interval reach = Bound(rest);
    if (!reach.HasLower() || !reach.HasUpper()) continue;
    const int64_t periods = FloorDivInt(reach.lo, g);
    if (periods != FloorDivInt(reach.hi, g)) continue;
    for (Term& t : whole.terms) t.coef /= g;
    p = PolyRing::AddConst(whole, periods);
  }
  return p;
}

bool AnalyzerCore::IsRemainder(const Poly& p) {
  if (p.terms.size() != 1 || HoldsData(p)) return false;
  const std::vector<AtomId>& factors = ring_.Atoms(p.terms[0].mono);
  return factors.size() == 1 && atoms_[factors[0]].kind == Atom::kFloorMod;
}

PrimExpr AnalyzerCore::AnyFactorIsZero(const Poly& p, DataType dtype) {
  if (p.terms.size() != 1 || HoldsData(p)) return PrimExpr();
  std::vector<AtomId> factors = ring_.Atoms(p.terms[0].mono);
  if (factors.size() < 2) return PrimExpr();
  factors.erase(std::unique(factors.begin(), factors.end()), factors.end());
  PrimExpr any;
  for (AtomId id : factors) {
    PrimExpr zero = EQ(EmitAtom(id, dtype), make_zero(dtype));
    any = any.defined() ? PrimExpr(Or(any, zero)) : zero;
  }
  return any;
}

PrimExpr AnalyzerCore::SimplifyCompare(const PrimExpr& e) {
  PrimExpr left, right;
  bool strict = false, equality = false, negated = false;
  if (const auto* op = e.as<LTNode>()) {
    left = op->a, right = op->b, strict = true;
  } else if (const auto* op = e.as<LENode>()) {
    left = op->a, right = op->b;
  } else if (const auto* op = e.as<GTNode>()) {
    left = op->b, right = op->a, strict = true;
  } else if (const auto* op = e.as<GENode>()) {
    left = op->b, right = op->a;
  } else if (const auto* op = e.as<EQNode>()) {
    left = op->a, right = op->b, equality = true;
  } else if (const auto* op = e.as<NENode>()) {
    left = op->a, right = op->b, equality = true, negated = true;
  } else {
    return PrimExpr();
  }
  if (!IsIndex(left)) return PrimExpr();
  if (!equality) DropDivisions(&left, &right, strict);
  DataType dtype = left.dtype();
  // left < right is p >= 0 with p = right - left - 1.
  Poly lesser = Normalize(left);
  Poly p = PolyRing::Sub(Normalize(right), lesser);
  if (strict) p = PolyRing::AddConst(p, -1);
  p = Reduce(p);
  auto constant = [](bool value) { return make_const(DataType::Bool(), value ? 1 : 0); };
  if (equality) {
    if (p.IsZero()) return constant(!negated);
    int64_t g = PolyRing::Content(p, /*with_const=*/false);
    if (g == 0 || p.ConstTerm() % g != 0) return constant(negated);
    auto [m, base] = Modular(p);
    if (m > 1 && base % m != 0) return constant(negated);
    if (ProvePositive(p) || ProvePositive(PolyRing::Negate(p))) return constant(negated);
    if (ProveNonNeg(p) && ProveNonNeg(PolyRing::Negate(p))) return constant(!negated);
    for (Term& t : p.terms) t.coef /= g;
    if (PrimExpr any = AnyFactorIsZero(p, dtype); any.defined()) {
      return Simplify(negated ? PrimExpr(Not(any)) : any);
    }
  } else {
    if (ProveNonNeg(p)) return constant(true);
    if (ProvePositive(PolyRing::Negate(p))) return constant(false);
    if (IsRemainder(p) && Bound(p).hi == 0) return Simplify(EQ(Emit(p, dtype), make_zero(dtype)));
    int64_t g = PolyRing::Content(p, /*with_const=*/false);
    if (g > 1) {
      int64_t number = p.ConstTerm();
      p = PolyRing::AddConst(p, -number);
      for (Term& t : p.terms) t.coef /= g;
      p = PolyRing::AddConst(p, FloorDivInt(number, g));
    }
    if (!HoldsData(p)) p = WithoutRemainder(std::move(p));
  }
  // Terms go to the side where they are positive. Indices leave room for that in their type, but
  // what memory holds may be anything: the least number is where a maximum starts.
  Poly high, low;
  for (const Term& t : p.terms) {
    if (t.mono == kUnitMono) continue;
    if (t.coef > 0) {
      high.terms.push_back(t);
    } else {
      low.terms.push_back({t.mono, CheckedMul(t.coef, -1)});
    }
  }
  int64_t number = p.ConstTerm();
  // Its neighbours and its negative are needed below.
  if (number <= -kLargestNumber || number >= kLargestNumber) throw PolyOverflow();
  const bool data = HoldsData(p);
  if (data) {
    // What is added to the greater side below.
    int64_t added = equality ? number : AddedTo(low, high, number, &strict);
    if (!Fits(PolyRing::AddConst(high, std::max<int64_t>(added, 0)), dtype) ||
        !Fits(PolyRing::AddConst(low, std::max<int64_t>(-added, 0)), dtype)) {
      return PrimExpr();
    }
  }
  PrimExpr out;
  if (equality) {
    // The term met first stays on the left; equality has no direction.
    if (low.IsZero() || (!high.IsZero() && high.terms[0].mono < low.terms[0].mono)) {
      std::swap(high, low);
      number = -number;
    }
    // Now low == high + number.
    if (number < 0 && !high.IsZero()) {
      low = PolyRing::AddConst(low, -number);
    } else {
      high = PolyRing::AddConst(high, number);
    }
    PrimExpr a = Emit(low, dtype), b = Emit(high, dtype);
    out = negated ? PrimExpr(NE(a, b)) : PrimExpr(EQ(a, b));
  } else {
    int64_t added = AddedTo(low, high, number, &strict);
    if (low.IsZero() || (added < 0 && !high.IsZero())) {
      low = PolyRing::AddConst(low, -added);
    } else {
      high = PolyRing::AddConst(high, added);
    }
    PrimExpr a = Emit(low, dtype), b = Emit(high, dtype);
    out = strict ? PrimExpr(LT(a, b)) : PrimExpr(LE(a, b));
  }
  if (data && !KeepsData(e, out)) return PrimExpr();
  // Minima may come apart on their way to the other side.
  if (MentionsMinimum(p) && ExprSize(out) > ExprSize(left) + ExprSize(right) + 1) {
    return PrimExpr();
  }
  return KeepIfSame(e, out);
}

PrimExpr AnalyzerCore::SimplifyVector(const PrimExpr& e) {
  PrimExpr simple = SimplifyOperands(e);
  PrimExpr a, b;
#define TVM_OPERANDS(Node) \
  if (const auto* op = simple.as<Node>()) a = op->a, b = op->b;
  TVM_OPERANDS(AddNode)
  TVM_OPERANDS(SubNode)
  TVM_OPERANDS(MulNode)
  TVM_OPERANDS(FloorDivNode)
  TVM_OPERANDS(FloorModNode)
  TVM_OPERANDS(MinNode)
  TVM_OPERANDS(MaxNode)
  TVM_OPERANDS(DivNode)
  TVM_OPERANDS(ModNode)
  TVM_OPERANDS(LTNode)
  TVM_OPERANDS(LENode)
  TVM_OPERANDS(EQNode)
  TVM_OPERANDS(NENode)
#undef TVM_OPERANDS
  if (const auto* op = simple.as<GTNode>()) return SimplifyVector(LT(op->b, op->a));
  if (const auto* op = simple.as<GENode>()) return SimplifyVector(LE(op->b, op->a));
  if (!a.defined()) return simple;
  const auto* ra = a.as<RampNode>();
  const auto* rb = b.as<RampNode>();
  const auto* ba = a.as<BroadcastNode>();
  const auto* bb = b.as<BroadcastNode>();
  int lanes = simple.dtype().lanes();
  if (ba && bb) {
    const bool division = simple.as<FloorDivNode>() || simple.as<FloorModNode>() ||
                          simple.as<DivNode>() || simple.as<ModNode>();
    if (division && is_zero(bb->value)) return simple;
    PrimExpr scalar;
#define TVM_SCALAR(Node, build) \
  if (simple.as<Node>()) scalar = build(ba->value, bb->value);
    TVM_SCALAR(AddNode, add)
    TVM_SCALAR(SubNode, sub)
    TVM_SCALAR(MulNode, mul)
    TVM_SCALAR(FloorDivNode, floordiv)
    TVM_SCALAR(FloorModNode, floormod)
    TVM_SCALAR(DivNode, div)
    TVM_SCALAR(ModNode, truncmod)
    TVM_SCALAR(MinNode, min)
    TVM_SCALAR(MaxNode, max)
    TVM_SCALAR(LTNode, less)
    TVM_SCALAR(LENode, less_equal)
    TVM_SCALAR(EQNode, equal)
    TVM_SCALAR(NENode, not_equal)
#undef TVM_SCALAR
    return Broadcast(Simplify(scalar), lanes);
  }
  auto ramp = [&](PrimExpr base, PrimExpr stride) -> PrimExpr {
    base = Simplify(base);
    stride = Simplify(stride);
    if (is_zero(stride)) return Broadcast(base, lanes);
    return Ramp(base, stride, lanes);
  };
  if (simple.as<AddNode>()) {
    if (ra && bb) return ramp(ra->base + bb->value, ra->stride);
    if (ba && rb) return ramp(ba->value + rb->base, rb->stride);
    if (ra && rb) return ramp(ra->base + rb->base, ra->stride + rb->stride);
  } else if (simple.as<SubNode>()) {
    if (ra && bb) return ramp(ra->base - bb->value, ra->stride);
    if (ba && rb) return ramp(ba->value - rb->base, make_zero(rb->stride.dtype()) - rb->stride);
    if (ra && rb) return ramp(ra->base - rb->base, ra->stride - rb->stride);
  } else if (simple.as<MulNode>()) {
    if (ra && bb) return ramp(ra->base * bb->value, ra->stride * bb->value);
    if (ba && rb) return ramp(ba->value * rb->base, ba->value * rb->stride);
  } else if ((simple.as<DivNode>() || simple.as<ModNode>()) && ra && bb && IsIndex(ra->base)) {
    // Rounding down and towards zero is the same where nothing is negative.
    const int64_t* stride = as_const_int(ra->stride);
    if (stride && *stride >= 0 && ProveNonNeg(Normalize(ra->base)) &&
        ProveNonNeg(Normalize(bb->value))) {
      const PrimExpr floored =
          simple.as<DivNode>() ? PrimExpr(tir::FloorDiv(a, b)) : tir::FloorMod(a, b);
      const PrimExpr result = SimplifyVector(floored);
      if (!result.as<FloorDivNode>() && !result.as<FloorModNode>()) return result;
    }
  } else if ((simple.as<FloorDivNode>() || simple.as<FloorModNode>()) && ra && bb &&
             IsIndex(ra->base)) {
    // base + i * stride = high * d + (low + i * stride) with 0 <= low; as long as the last lane
    // stays below d, all lanes have the quotient `high`.
    const int64_t* divisor = as_const_int(bb->value);
    const int64_t* stride = as_const_int(ra->stride);
    if (divisor && stride && *divisor > 0 && *stride >= 0) {
      Poly base = Normalize(ra->base), d = PolyRing::Const(*divisor);
      Poly low = FloorMod(base, d);
      bool div = simple.as<FloorDivNode>() != nullptr;
      if (*stride % *divisor == 0) {
        if (div) return ramp(floordiv(ra->base, bb->value), floordiv(ra->stride, bb->value));
        return Broadcast(Simplify(floormod(ra->base, bb->value)), lanes);
      }
      const DataType index = ra->stride.dtype();
      Poly reach = Normalize(ra->stride * (LaneCount(lanes, index) - make_const(index, 1)));
      if (ProvePositive(PolyRing::Sub(PolyRing::Sub(d, reach), low))) {
        if (div) return Broadcast(Simplify(floordiv(ra->base, bb->value)), lanes);
        return ramp(floormod(ra->base, bb->value), ra->stride);
      }
      // The part of the base that is the same in all lanes is left out.
      if (!div && low.IsConst()) {
        return tir::FloorMod(Ramp(Emit(low, index), ra->stride, lanes), b);
      }
    }
  } else if ((simple.as<LTNode>() || simple.as<LENode>()) && (ra || rb) && (ra || ba) &&
             (rb || bb)) {
    PrimExpr stride = ra ? ra->stride : rb->stride;
    if (IsIndex(stride)) {
      // The difference is linear in the lane, so its two ends decide.
      auto value = [](const PrimExpr& v, bool last) {
        const auto* r = v.as<RampNode>();
        if (r == nullptr) return v.as<BroadcastNode>()->value;
        return last ? LastOfRamp(r) : r->base;
      };
      auto at = [&](bool last) {
        PrimExpr x = value(a, last), y = value(b, last);
        return Simplify(simple.as<LTNode>() ? x < y : x <= y);
      };
      PrimExpr first = at(false), last = at(true);
      if (SameExpr(first, last)) return Broadcast(first, lanes);
    }
  } else if ((simple.as<MinNode>() || simple.as<MaxNode>()) && (ra || rb)) {
    const bool least = simple.as<MinNode>() != nullptr;
    auto everywhere = [this](const PrimExpr& lesser, const PrimExpr& greater) {
      const PrimExpr order = SimplifyVector(LE(lesser, greater));
      const auto* all = order.as<BroadcastNode>();
      return all != nullptr && is_one(all->value);
    };
    if (everywhere(a, b)) return least ? a : b;
    if (everywhere(b, a)) return least ? b : a;
  }
  return simple;
}

}  // namespace arith
}  // namespace tvm
