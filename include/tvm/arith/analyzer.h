/*!
 * \file tvm/arith/analyzer.h
 * \brief Facts about integer expressions: bounds, congruences, a normal form, and proofs.
 *
 * Integer expressions are normalised to polynomials: sums of an integer coefficient times a
 * product of atoms, where an atom is a variable, a floor quotient or remainder, a minimum, or
 * anything the arithmetic does not look into. Products of variables are therefore first class:
 * `(a - 1) * b + (b - 1) + 1` becomes `a * b`, and `(q * a * b) // b` becomes `q * a` when `b` is
 * known to be positive. A SizeVar is always at least 1.
 *
 * As everywhere in the compiler, signed index arithmetic is taken not to overflow.
 */
#ifndef TVM_ARITH_ANALYZER_H_
#define TVM_ARITH_ANALYZER_H_

#include <tvm/arith/int_set.h>
#include <tvm/expr/var.h>
#include <tvm/ir/expr.h>
#include <tvm/node/node.h>

#include <functional>
#include <limits>
#include <memory>

namespace tvm {
namespace arith {

class Analyzer;
class AnalyzerCore;

/*! \brief Closed range of int64 values. The two extreme int64 values stand for no bound. */
class ConstIntBoundNode : public Object {
 public:
  int64_t min_value;
  int64_t max_value;

  static constexpr int64_t kPosInf = std::numeric_limits<int64_t>::max();
  static constexpr int64_t kNegInf = std::numeric_limits<int64_t>::min();

  TVM_DECLARE_NODE(ConstIntBoundNode, Object, "arith.ConstIntBound", Value(min_value),
                   Value(max_value));
};

/*! \brief Reference to ConstIntBoundNode. */
class ConstIntBound : public FromFields<ObjectRef, ConstIntBoundNode> {
 public:
  TVM_DEFINE_NODE_REF(ConstIntBound, ConstIntBoundNode);
};

/*!
 * \brief The values `coeff * k + base` for integer k.
 *
 * `coeff` 0 means the single value `base`; `coeff` 1 means nothing is known.
 */
class ModularSetNode : public Object {
 public:
  int64_t coeff;
  int64_t base;
  TVM_DECLARE_NODE(ModularSetNode, Object, "arith.ModularSet", Value(coeff), Value(base));
};

/*! \brief Reference to ModularSetNode. */
class ModularSet : public FromFields<ObjectRef, ModularSetNode> {
 public:
  TVM_DEFINE_NODE_REF(ModularSet, ModularSetNode);
};

/*! \brief Bounds by numbers. */
class ConstIntBoundAnalyzer {
 public:
  /*! \brief A range that holds all values of `expr`; never too small, sometimes too large. */
  ConstIntBound operator()(const PrimExpr& expr) const;
  /*!
   * \brief State that `var` lies in `bound`.
   * \param allow_override Whether a bound stated before is replaced rather than an error.
   */
  void Update(const tir::Var& var, const ConstIntBound& bound, bool allow_override = false);
  /*! \brief State that `var` lies in `range`. */
  void Bind(const tir::Var& var, const Range& range, bool allow_override = false);

 private:
  friend class Analyzer;
  explicit ConstIntBoundAnalyzer(AnalyzerCore* core) : core_(core) {}
  AnalyzerCore* core_;
};

/*! \brief Congruences. */
class ModularSetAnalyzer {
 public:
  /*! \brief A congruence that all values of `expr` satisfy. */
  ModularSet operator()(const PrimExpr& expr) const;
  /*! \brief State a congruence of `var`. */
  void Update(const tir::Var& var, const ModularSet& info, bool allow_override = false);

 private:
  friend class Analyzer;
  explicit ModularSetAnalyzer(AnalyzerCore* core) : core_(core) {}
  AnalyzerCore* core_;
};

/*!
 * \brief The normal form. Both simplifiers of an Analyzer use it; two names are kept because
 *        callers ask for either.
 */
class Simplifier {
 public:
  /*! \brief Equal value in normal form; the same object when it already is. */
  PrimExpr operator()(const PrimExpr& expr) const;
  /*! \brief Replace `var` by `value` from now on. */
  void Update(const tir::Var& var, const PrimExpr& value, bool allow_override = false);

 private:
  friend class Analyzer;
  explicit Simplifier(AnalyzerCore* core) : core_(core) {}
  AnalyzerCore* core_;
};

/*! \brief Bounds by expressions. */
class IntSetAnalyzer {
 public:
  /*! \brief Values of `expr` while each variable of `dom_map` runs over its set. */
  IntSet operator()(const PrimExpr& expr, const Map<tir::Var, IntSet>& dom_map) const;
  /*! \brief Values of `expr` while every bound variable runs over its range. */
  IntSet operator()(const PrimExpr& expr) const;

 private:
  friend class Analyzer;
  explicit IntSetAnalyzer(Analyzer* parent) : parent_(parent) {}
  Analyzer* parent_;
};

/*!
 * \brief Holds what is known about variables, and answers questions with it.
 *
 * Not safe to use from two threads at once. Facts stay for the life of the object, except those of
 * a ConstraintContext.
 */
class Analyzer {
 public:
  Analyzer();
  ~Analyzer();
  Analyzer(const Analyzer&) = delete;
  Analyzer& operator=(const Analyzer&) = delete;

 private:
  std::unique_ptr<AnalyzerCore> core_;

 public:
  ConstIntBoundAnalyzer const_int_bound;
  ModularSetAnalyzer modular_set;
  Simplifier rewrite_simplify;
  Simplifier canonical_simplify;
  IntSetAnalyzer int_set;

  /*! \brief State that `var` equals `value`; simplification replaces it. */
  void Bind(const tir::Var& var, const PrimExpr& value, bool allow_override = false);
  /*! \brief State that `var` lies in `range`, whose ends may mention variables. */
  void Bind(const tir::Var& var, const Range& range, bool allow_override = false);
  /*! \brief The same for every entry. */
  void Bind(const Map<tir::Var, Range>& ranges, bool allow_override = false);
  /*! \brief State that `var` is positive, as a shape or a tile size is. */
  void MarkPositive(const tir::Var& var);

  /*! \brief Equal value in normal form. Floats and booleans are simplified too. */
  PrimExpr Simplify(const PrimExpr& expr, int steps = 2);
  /*! \brief Whether `cond` holds for all values; false also means unknown. */
  bool CanProve(const PrimExpr& cond);
  bool CanProveEqual(const PrimExpr& lhs, const PrimExpr& rhs);
  bool CanProveGreaterEqual(const PrimExpr& expr, int64_t lower_bound);

  /*! \brief State that `cond` holds until the returned function is called. */
  std::function<void()> EnterConstraint(const PrimExpr& cond);

  AnalyzerCore* core() const { return core_.get(); }
};

/*! \brief A condition that holds while this object lives, such as inside the branch of an if. */
class ConstraintContext {
 public:
  ConstraintContext(Analyzer* analyzer, const PrimExpr& constraint)
      : exit_(analyzer->EnterConstraint(constraint)) {}
  ~ConstraintContext() { exit_(); }
  ConstraintContext(const ConstraintContext&) = delete;
  ConstraintContext& operator=(const ConstraintContext&) = delete;

 private:
  std::function<void()> exit_;
};

}  // namespace arith
}  // namespace tvm
#endif  // TVM_ARITH_ANALYZER_H_
