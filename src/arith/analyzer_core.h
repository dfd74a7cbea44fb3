/*!
 * \file arith/analyzer_core.h
 * \brief What the parts of an Analyzer share: atoms with their facts, the normal form, the prover.
 */
#ifndef TVM_SRC_ARITH_ANALYZER_CORE_H_
#define TVM_SRC_ARITH_ANALYZER_CORE_H_

#include <tvm/arith/analyzer.h>
#include <tvm/expr/expr.h>

#include <optional>
#include <string>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "polynomial.h"

namespace tvm {
namespace arith {

/*! \brief Closed range of int64; the extreme values stand for infinity. */
struct Interval {
  int64_t lo = ConstIntBoundNode::kNegInf;
  int64_t hi = ConstIntBoundNode::kPosInf;

  bool HasLower() const { return lo != ConstIntBoundNode::kNegInf; }
  bool HasUpper() const { return hi != ConstIntBoundNode::kPosInf; }
};

Interval operator+(const Interval& a, const Interval& b);
Interval operator*(const Interval& a, const Interval& b);
Interval IntersectIntervals(const Interval& a, const Interval& b);
Interval UniteIntervals(const Interval& a, const Interval& b);
/*! \brief Floor quotients; everything if the divisor may be zero. */
Interval FloorDivInterval(const Interval& a, const Interval& b);
/*! \brief All values an integer type can hold. */
Interval IntervalOfType(DataType dtype);

/*! \brief The numbers coeff * k + base; coeff 0 is the one number `base`, 1 is every number. */
struct Congruence {
  int64_t coeff = 1;
  int64_t base = 0;
};

/*! \brief What both allow; nothing if they exclude each other. */
std::optional<Congruence> IntersectCongruences(Congruence a, Congruence b);

/*! \brief A number that polynomials do not look into. */
struct Atom {
  enum Kind {
    kVar,       // a variable; `expr` is it
    kOpaque,    // any other expression; `expr` is it
    kFloorDiv,  // floor(a / b)
    kFloorMod,  // a - b * floor(a / b)
    kMinZero,   // min(a, 0): all minima and maxima are written with it
  };
  Kind kind;
  PrimExpr expr;
  Poly a, b;

  Interval bound;  // as stated, or of the type, and tightened by the conditions that hold now
  // Symbolic bounds of a variable that runs over `range`, both included.
  bool has_range = false;
  Range range;
  Poly range_lo, range_hi;
  int range_order = 0;    // later ranges may mention the variables of earlier ones
  Congruence congruence;  // as stated, and narrowed by the conditions that hold now

  int cached_epoch = -1;
  Interval cached;
  int congruence_epoch = -1;
  Congruence cached_congruence;
};

/*! \brief Hides the assumptions of a case while something is derived that outlives the case. */
class WithoutAssumptions {
 public:
  explicit WithoutAssumptions(std::vector<Poly>* assumed) : assumed_(assumed) {
    assumed->swap(hidden_);
  }
  ~WithoutAssumptions() { assumed_->swap(hidden_); }
  WithoutAssumptions(const WithoutAssumptions&) = delete;
  WithoutAssumptions& operator=(const WithoutAssumptions&) = delete;

 private:
  std::vector<Poly>* assumed_;
  std::vector<Poly> hidden_;
};

class AnalyzerCore {
 public:
  // ---- stating facts
  AtomId AtomOfVar(const tir::Var& var);
  void StateBound(const tir::Var& var, Interval bound, bool allow_override);
  void StateRange(const tir::Var& var, const Range& range, bool allow_override);
  void StateValue(const tir::Var& var, const PrimExpr& value, bool allow_override);
  void StateModular(const tir::Var& var, int64_t coeff, int64_t base, bool allow_override);
  /*! \brief State that a product of variables equals `value`; the product is replaced by it. */
  void StateProduct(const std::vector<tir::Var>& vars, const PrimExpr& value);
  /*! \brief State a condition; returns what ends it, in any order with the ends of others. */
  std::function<void()> EnterConstraint(const PrimExpr& cond);

  /*!
   * \brief Whether conditions are multiplied out, as far as that is short: `(a && b) || c` becomes
   *        `(a || c) && (b || c)`.
   */
  void SetAndOfOrs(bool enabled) { and_of_ors_ = enabled; }

  // ---- the normal form
  PrimExpr Simplify(const PrimExpr& e);
  /*!
   * \brief Simplify, and write sums as rewriting by rules would leave them: terms as they were met,
   *        a negative number added, and what all terms are multiples of in front.
   */
  PrimExpr SimplifyAsMet(const PrimExpr& e);
  /*! \brief Simplify, and write what is added before what is subtracted, numbers last of either.
   */
  PrimExpr SimplifyCanonical(const PrimExpr& e);
  /*! \brief Simplify where `cond` holds. */
  PrimExpr SimplifyUnder(const PrimExpr& cond, const PrimExpr& e);
  /*! \brief What rules would make of `e`, whose shortest form is `simple`. */
  PrimExpr WrittenForm(const PrimExpr& e, const PrimExpr& simple);
  /*!
   * \brief Simplify what matters only where `cond` holds but may be computed anyway, as in
   *        `cond && e`. Guards of reads inside of it stay, even those that `cond` implies.
   */
  PrimExpr SimplifyBesides(const PrimExpr& cond, const PrimExpr& e);
  /*! \brief Polynomial of a scalar signed integer expression. */
  Poly Normalize(const PrimExpr& e);
  PrimExpr Emit(const Poly& p, DataType dtype);
  Poly FloorDiv(const Poly& a, const Poly& b);
  Poly FloorMod(const Poly& a, const Poly& b);
  /*! \brief floor(r / b) of a sum with a minimum, if dividing inside of it is as short. */
  std::optional<Poly> DivideMinimum(const Poly& r, const Poly& b);
  /*! \brief floor(r / b) of a sum with one other quotient, which becomes part of the dividend. */
  std::optional<Poly> DivideSumWithQuotient(const Poly& r, const Poly& b);
  /*! \brief min(d, 0). */
  Poly MinZero(const Poly& d);
  /*! \brief min(a, b); of nested ones each operand once, and what they share in front. */
  Poly Least(const Poly& a, const Poly& b);
  /*! \brief Apply the stated products, and join quotients with their remainders. */
  Poly Reduce(Poly p);
  /*! \brief Whether a polynomial is written in fewer nodes than another. */
  bool IsShorter(const Poly& a, const Poly& b);

  // ---- questions
  Interval Bound(const Poly& p);
  Interval BoundOfAtom(AtomId atom);
  Interval BoundOfExpr(const PrimExpr& e);
  Congruence Modular(const Poly& p);
  Congruence ModularOfExpr(const PrimExpr& e);
  bool ProveNonNeg(const Poly& p);
  /*! \brief Whether p is at least 1 everywhere. */
  bool ProvePositive(const Poly& p) { return ProveNonNeg(PolyRing::AddConst(p, -1)); }

  const Atom& atom(AtomId id) const { return atoms_[id]; }
  PolyRing& ring() { return ring_; }
  const std::vector<AtomId>& ranged_atoms() const { return ranged_; }
  /*! \brief Value that simplification puts in place of `var`, if one was stated. */
  const PrimExpr* ValueOf(const tir::VarNode* var) const;

 private:
  AtomId NewAtom(Atom atom);
  // Rules of WrittenForm; undefined where none applies.
  /*! \brief A sum, difference or quotient of a minimum or maximum as one of its operands. */
  PrimExpr OfExtreme(const PrimExpr& e);
  /*! \brief What the operands of a minimum or maximum share in front of it. */
  PrimExpr FromExtreme(const PrimExpr& e);
  PrimExpr OfQuotients(const PrimExpr& e);
  /*! \brief An order of quotients rounded towards zero, or of a number's whole part and it. */
  PrimExpr OfTruncatedOrder(const PrimExpr& e);
  /*! \brief Orders of extremes, conditions on digits, and conjunctions from the left. */
  PrimExpr OfConditions(const PrimExpr& e, const PrimExpr& simple);
  /*! \brief What `p` is the least of; `p` itself where it is no minimum. */
  std::vector<Poly> OperandsOfMinimum(const Poly& p);
  /*! \brief The least of several numbers, in one form for each set of them. */
  Poly LeastOf(std::vector<Poly> operands);
  /*! \brief min(max(x, y), max(x, z)) as max(x, min(y, z)). */
  std::optional<Poly> LeastOfMaxima(const Poly& a, const Poly& b);
  /*! \brief min(x // c, y // c) as min(x, y) // c. */
  std::optional<Poly> LeastOfQuotients(const Poly& a, const Poly& b);
  /*! \brief Shifts by a number, and masks of low bits, of what is no data. */
  std::optional<Poly> NormalizeBits(const tir::CallNode* call);
  /*! \brief Two digits side by side as one, where the atom is the lower one and the whole is
   * shorter. */
  std::optional<Poly> JoinRemainders(const Poly& p, AtomId id);
  /*! \brief a - b * floor(a / b), which is the remainder. */
  Poly WithoutQuotient(const Poly& a, const Poly& b);
  /*!
   * \brief p == rest + k * mod, joined with a quotient of another number of the same remainder.
   *
   * (i mod 4) + j and i + j have one remainder modulo 4, but their quotients differ.
   */
  std::optional<Poly> JoinWithOther(const Poly& p, const Poly& rest, const Poly& k,
                                    const Atom& mod);
  AtomId OpaqueAtom(const PrimExpr& e);
  Poly CompoundAtom(Atom::Kind kind, const Poly& a, const Poly& b);
  Poly NormalizeUncached(const PrimExpr& e);
  PrimExpr SimplifyInt(const PrimExpr& e);
  PrimExpr SimplifyBool(const PrimExpr& e);
  PrimExpr SimplifyCompare(const PrimExpr& e);
  /*! \brief Whether a number is a multiple of one remainder of indices. */
  bool IsRemainder(const Poly& p);
  /*! \brief `x == 0 || y == 0` where the number is a product of those; undefined otherwise. */
  PrimExpr AnyFactorIsZero(const Poly& p, DataType dtype);
  /*!
   * \brief A polynomial that is not negative where `p` is not: 16 i + j - 64 with j in [0, 16) has
   * the sign of i - 4.
   */
  Poly WithoutRemainder(Poly p);
  /*!
   * \brief `min(x, y) < z` and its kin where one of the operands decides or drops out, and a
   * minimum compared with an operand of its own; undefined for others.
   */
  PrimExpr CompareWithMinimum(const PrimExpr& e);
  /*! \brief A comparison of indices as a number against zero. */
  struct Claim {
    enum Kind { kNonNeg, kZero, kNonZero };
    Kind kind;
    Poly number;
    DataType dtype;
  };
  /*! \brief The claim that a comparison makes; none if its numbers may wrap around. */
  std::optional<Claim> ClaimOf(const PrimExpr& e);
  /*!
   * \brief One condition for `a && b`, or `a || b`, of two comparisons of the same numbers, as
   *        `x == y` for `x <= y && y <= x`; undefined for others.
   */
  PrimExpr JoinConditions(const PrimExpr& a, const PrimExpr& b, bool both);
  /*! \brief Sums, differences and extremes that meet in the branches of a selection; undefined for
   *  others. */
  PrimExpr SumOfSelects(const PrimExpr& e);
  /*! \brief A condition as a conjunction of alternatives; undefined if that is long. */
  PrimExpr AndOfOrs(const PrimExpr& e);
  /*! \brief Whether an atom is read from memory, or of a type too narrow for an index. */
  bool HoldsData(const Poly& p);
  /*!
   * \brief Whether `after` computes what `before` does although its type wraps around.
   *
   * Sums and products come out right whatever happens on the way. Minima and quotients do not:
   * where data is in their operands, those must be operands in `before` too, or fit the type.
   */
  bool KeepsData(const PrimExpr& before, const PrimExpr& after);
  /*! \brief Operands of minima and quotients that are computed from data. */
  std::vector<std::pair<Poly, DataType>> OperandsWithData(const PrimExpr& e);
  /*! \brief Whether no value of `sum` leaves the type. */
  bool Fits(const Poly& sum, DataType dtype);
  PrimExpr SimplifyOther(const PrimExpr& e);
  PrimExpr SimplifyVector(const PrimExpr& e);
  /*! \brief The same operator on simplified operands. */
  PrimExpr SimplifyOperands(const PrimExpr& e);
  /*! \brief Order of operands: as their variables were met, numbers last. */
  bool IsEmittedFirst(const Poly& x, const Poly& y);
  PrimExpr EmitAtom(AtomId id, DataType dtype);
  /*! \brief The digit of a number that an atom is: (number / weight) % base. */
  struct Digit {
    Poly number;
    int64_t weight, base;
  };
  std::optional<Digit> DigitOf(AtomId id) const;
  void RememberOffset(const Poly& numerator, const Poly& divisor, const Poly& quotient);
  /*! \brief A sum without the part of its constant that is written within its quotients. */
  Poly WithInnerOffsets(const Poly& p);
  PrimExpr EmitTerm(const Term& term, DataType dtype, bool inner_offsets);
  PrimExpr EmitSum(const Poly& p, DataType dtype);
  /*! \brief `x * (y + 10)` for `x * y + x * 10`; undefined unless all terms share a factor. */
  PrimExpr EmitWithFactor(const Poly& p, DataType dtype);
  /*! \brief Emit with `a minimum` written over the terms it shares with the rest. */
  bool EmitWithMin(const Poly& p, DataType dtype, PrimExpr* out);
  bool ReduceFloorDiv(const Poly& r, const Poly& b, Poly* quotient, Poly* rest);
  Interval BoundOfOpaque(const PrimExpr& e);
  /*! \brief Bound of a sum with quotients by numbers, as one quotient. */
  Interval BoundOverCommonDivisor(const Poly& p);
  /*! \brief Bound of a sum, a product or a minimum from those of its operands. */
  Interval BoundByOperands(const PrimExpr& e);
  bool MentionsMinimum(const Poly& p);
  Congruence ModularOfAtom(AtomId id);
  Congruence ModularOfOpaque(const PrimExpr& e);
  Congruence ModularOfCast(const tir::CastNode* cast);
  bool Prove(const Poly& p, int depth);
  bool ProveFromFact(const Poly& p, const Poly& fact, int depth);
  bool ProveCompound(const Poly& p, AtomId id, const Poly& coef, const Poly& rest, int depth);
  /*!
   * \brief Prove coef * e + rest for both values of a selection, each where it is selected; false
   *        for what is no selection.
   */
  bool ProveBothBranches(const PrimExpr& e, const Poly& coef, const Poly& rest, int depth);
  /*! \brief Numbers that a conjunction says are not negative. */
  void CollectClaims(const PrimExpr& cond, std::vector<Poly>* facts);
  bool ProveByDomination(const Poly& p);
  bool ProveByShift(const Poly& p);
  int SignOf(const Poly& p, int depth);
  /*! \brief Read `range` of a variable with what holds now; it has none if that is of no use. */
  void DeriveRange(AtomId id);
  void DeriveRanges(const std::vector<AtomId>& ids);
  /*! \brief Bound of a variable without the conditions that hold now. */
  Interval StatedBound(AtomId id) const;
  /*!
   * \brief Change what is stated.
   * \param replaces Whether something stated before is no longer so; then all that may have built
   *        on it is derived again.
   */
  template <typename F>
  void Restate(bool replaces, F change);
  /*! \brief Whether `value` needs the value of `var`, itself or through other stated values. */
  bool LeadsTo(const PrimExpr& value, const tir::VarNode* var) const;
  void LeaveScope(int id);
  void ApplyConditions();
  /*! \brief Forget the conditions of the scopes from `first` on, innermost first. */
  void DropConditionsFrom(size_t first);
  void AddCondition(const PrimExpr& cond);
  void AddFacts(const PrimExpr& cond, bool negate);
  void AddFact(Poly nonneg);
  /*! \brief State what either of two conditions says. */
  void AddSharedFacts(const PrimExpr& a, const PrimExpr& b, bool negate);
  /*! \brief Bounds that move by one because a condition excludes their end. */
  void AddExcluded();
  /*! \brief State what `remainder == value` says, where the former is x mod c of a variable x. */
  void AddCongruence(const PrimExpr& remainder, const PrimExpr& value);
  bool KnownTrue(const PrimExpr& cond) const;
  /*! \brief True or false where a condition that holds says so, otherwise `cond`. */
  PrimExpr Known(const PrimExpr& cond) const;

  PolyRing ring_;
  std::vector<Atom> atoms_;
  std::unordered_map<const Object*, AtomId> var_atoms_;
  std::unordered_map<Poly, std::vector<AtomId>, PolyHash> compound_atoms_;  // by operand a
  std::unordered_map<size_t, std::vector<AtomId>> opaque_atoms_;            // by structural hash
  std::vector<AtomId> ranged_;
  struct RangeInScope {
    AtomId atom;
    size_t num_scopes;
  };
  std::vector<RangeInScope> ranged_in_scopes_;  // those derived while conditions held
  std::unordered_map<const Object*, PrimExpr> values_;
  std::vector<tir::Var> value_owners_;
  struct Product {
    MonoId mono;
    Poly value;
  };
  std::vector<Product> products_;
  /*! \brief How much is stated of each kind of fact. */
  struct FactCounts {
    size_t facts, conditions, tightened, congruent;
  };
  FactCounts CountFacts() const;
  /*! \brief Forget the facts beyond `before`. */
  void ForgetFacts(const FactCounts& before);
  /*! \brief A condition that holds now, and how much was stated before it. */
  struct ConditionScope {
    int id;
    PrimExpr cond;
    FactCounts before;
  };
  std::vector<ConditionScope> scopes_;
  int num_scopes_made_ = 0;
  std::vector<Poly> facts_;           // each known to be >= 0
  std::vector<PrimExpr> true_conds_;  // conditions that are no comparison of integers
  struct Tightened {
    AtomId atom;
    Interval before;
  };
  std::vector<Tightened> tightened_;
  struct Congruent {
    AtomId atom;
    Congruence before;
  };
  std::vector<Congruent> congruent_;
  // Each >= 0 in the case that a proof looks into. Nothing derived from them outlives the case.
  std::vector<Poly> assumed_;
  // The expression is kept along: a temporary that is freed would leave its address to another one.
  struct Remembered {
    PrimExpr expr;
    Poly poly;
  };
  std::unordered_map<const Object*, Remembered> memo_;
  int memo_depth_ = 0;
  int epoch_ = 0;  // changes with every fact, so that cached bounds are not kept too long
  // Outcomes of the outermost proofs since the last fact: nested minima ask for the same ones.
  std::unordered_map<Poly, bool, PolyHash> proofs_;
  int proofs_epoch_ = -1;
  bool and_of_ors_ = false;
  enum class SumOrder { kByStride, kAsMet, kCanonical };
  /*! \brief How sums are written at present. */
  SumOrder sum_order_ = SumOrder::kByStride;
  /*!
   * \brief Digits (a / b) % n that the expression being simplified has as a % (b * n) / b, and that
   * are written as they were: neither form is simpler, and programs look for the one they wrote.
   */
  std::unordered_set<AtomId> divided_rests_;
  /*!
   * \brief What the expression being simplified has within quotients (x + c) / d beside them in the
   * normal form, floor(c / d), where d does not divide c; it is written where it was.
   */
  std::unordered_map<AtomId, int64_t> inner_offsets_;
  int order_ = 0;
  int budget_ = 0;
  int fact_depth_ = 0;
  /*! \brief Whether more facts are being derived, which simplifying their parts must not start. */
  bool deriving_ = false;
  int proof_nesting_ = 0;
};

/*! \brief Structural equality that is quick on the common arithmetic nodes. */
bool SameExpr(const PrimExpr& a, const PrimExpr& b);

/*! \brief Whether it is a signed scalar integer, of which the analyzers reason. */
inline bool IsIndex(const PrimExpr& e) { return e.dtype().is_int() && e.dtype().is_scalar(); }

/*! \brief Number of nodes, counted up to a limit. */
int ExprSize(const PrimExpr& e, int limit = 10000);

}  // namespace arith
}  // namespace tvm
#endif  // TVM_SRC_ARITH_ANALYZER_CORE_H_
