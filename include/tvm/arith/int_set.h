/*!
 * \file tvm/arith/int_set.h
 * \brief Sets of integers whose ends are expressions.
 */
#ifndef TVM_ARITH_INT_SET_H_
#define TVM_ARITH_INT_SET_H_

#include <tvm/expr/var.h>
#include <tvm/ir/expr.h>
#include <tvm/node/node.h>

#include <unordered_map>

namespace tvm {
namespace arith {

class Analyzer;

/*! \brief Base of integer sets. */
class IntSetNode : public Object {
 public:
  TVM_DECLARE_ABSTRACT_NODE(IntSetNode, Object, "arith.IntSet");
};

/*! \brief A set of integers. Sets are values; operations return new ones. */
class IntSet : public ObjectRef {
 public:
  TVM_DEFINE_REF(IntSet, ObjectRef, IntSetNode);

  /*! \brief As a range, or `max_range` where an end is unbounded. */
  Range CoverRange(Range max_range) const;
  /*! \brief Least member; the handle value NegInf() if unbounded. */
  PrimExpr min() const;
  /*! \brief Greatest member; the handle value PosInf() if unbounded. */
  PrimExpr max() const;
  bool IsNothing() const;
  bool IsEverything() const;
  bool HasLowerBound() const;
  bool HasUpperBound() const;
  /*! \brief Whether the set has exactly one member, as far as its ends show. */
  bool IsSinglePoint() const;
  bool CanProvePositive() const;
  bool CanProveNegative() const;
  bool CanProveNonPositive() const;
  bool CanProveNonNegative() const;
  /*! \brief The one member of a single point. */
  PrimExpr PointValue() const;
  /*! \brief Whether this is `range`, by proof. */
  bool MatchRange(const Range& range) const;

  static IntSet Nothing();
  static IntSet Everything();
  static IntSet SinglePoint(PrimExpr point);
  static IntSet Interval(PrimExpr min, PrimExpr max);
  static IntSet FromMinExtent(PrimExpr min, PrimExpr extent);
  static IntSet FromRange(const Range& range);
};

/*! \brief All integers from `min_value` to `max_value`, both included. */
class IntervalSetNode : public IntSetNode {
 public:
  PrimExpr min_value;
  PrimExpr max_value;
  TVM_DECLARE_NODE(IntervalSetNode, IntSetNode, "arith.IntervalSet", Value(min_value),
                   Value(max_value));
};

/*! \brief Reference to IntervalSetNode. */
class IntervalSet : public FromFields<IntSet, IntervalSetNode> {
 public:
  static IntervalSet SinglePoint(PrimExpr value) { return IntervalSet(value, value); }
  static IntervalSet Everything();
  static IntervalSet Empty();
  TVM_DEFINE_NODE_REF(IntervalSet, IntervalSetNode);
};

/*! \brief Symbols for missing ends. They are variables of handle type, so no sum can hold them. */
tir::Var PosInf();
tir::Var NegInf();
bool IsPosInf(const PrimExpr& value);
bool IsNegInf(const PrimExpr& value);

/*! \brief Values of `expr` while the variables of `dom_map` run over their sets. */
IntSet EvalSet(const PrimExpr& expr, const Map<tir::Var, IntSet>& dom_map,
               Analyzer* analyzer = nullptr);
IntSet EvalSet(const PrimExpr& expr, const Map<tir::IterVar, IntSet>& dom_map,
               Analyzer* analyzer = nullptr);
IntSet EvalSet(const PrimExpr& expr, const std::unordered_map<const tir::VarNode*, IntSet>& dom_map,
               Analyzer* analyzer = nullptr);
/*! \brief The union of the members of `range` over all values of its variables. */
IntSet EvalSet(const Range& range, const Map<tir::Var, IntSet>& dom_map,
               Analyzer* analyzer = nullptr);
IntSet EvalSet(const Range& range, const Map<tir::IterVar, IntSet>& dom_map,
               Analyzer* analyzer = nullptr);
IntSet EvalSet(const Range& range, const std::unordered_map<const tir::VarNode*, IntSet>& dom_map,
               Analyzer* analyzer = nullptr);
IntSet EvalSet(const IntSet& set, const std::unordered_map<const tir::VarNode*, IntSet>& dom_map,
               Analyzer* analyzer = nullptr);

/*! \brief The smallest interval that holds all sets. Ends that no proof orders become min or max.
 */
IntSet Union(const Array<IntSet>& sets, Analyzer* analyzer = nullptr);
/*! \brief What all sets share. */
IntSet Intersect(const Array<IntSet>& sets, Analyzer* analyzer = nullptr);

}  // namespace arith
}  // namespace tvm
#endif  // TVM_ARITH_INT_SET_H_
