/*!
 * \file tvm/arith/iter_affine_map.h
 * \brief Index expressions as digits of iterators: which parts of which loops make up each index.
 *
 * `i * 16 + j` of two loops is one fused iterator, `i // 4` and `i % 4` are splits of one. Where
 * all indices are of that form and their digits do not overlap, the map from loops to indices can
 * be undone, which is what layout changes and tensor intrinsics ask for.
 */
#ifndef TVM_ARITH_ITER_AFFINE_MAP_H_
#define TVM_ARITH_ITER_AFFINE_MAP_H_

#include <tvm/arith/analyzer.h>
#include <tvm/expr/op.h>

namespace tvm {
namespace arith {

/*! \brief What is cut into digits: a loop variable, or a fused sum, with values in [0, extent). */
class IterMarkNode : public Object {
 public:
  /*! \brief A variable (minus its range's least value, which is kept outside) or IterSumExpr. */
  PrimExpr source;
  PrimExpr extent;
  TVM_DECLARE_NODE(IterMarkNode, Object, "arith.IterMark", Value(source), Value(extent));
};
class IterMark : public FromFields<ObjectRef, IterMarkNode> {
 public:
  TVM_DEFINE_NODE_REF(IterMark, IterMarkNode);
};

/*! \brief `(source // lower_factor) % extent * scale`; the numbers do not depend on iterators. */
class IterSplitExprNode : public PrimExprNode {
 public:
  IterMark source;
  PrimExpr lower_factor;
  PrimExpr extent;
  PrimExpr scale;
  void Init();
  TVM_DECLARE_NODE(IterSplitExprNode, PrimExprNode, "arith.IterSplitExpr", Value(source),
                   Value(lower_factor), Value(extent), Value(scale));
};
class IterSplitExpr : public FromFields<PrimExpr, IterSplitExprNode> {
 public:
  TVM_DEFINE_NODE_REF(IterSplitExpr, IterSplitExprNode);
};

/*! \brief A sum of splits and a base without iterators. */
class IterSumExprNode : public PrimExprNode {
 public:
  Array<IterSplitExpr> args;
  PrimExpr base;
  void Init();
  TVM_DECLARE_NODE(IterSumExprNode, PrimExprNode, "arith.IterSumExpr", Value(args), Value(base));
};
class IterSumExpr : public FromFields<PrimExpr, IterSumExprNode> {
 public:
  TVM_DEFINE_NODE_REF(IterSumExpr, IterSumExprNode);
};

/*! \brief How strict DetectIterMap is. */
enum class IterMapLevel : int {
  /*! \brief Every index is a sum of splits; splits may overlap. */
  kNoCheck = 0,
  /*! \brief Digits of one iterator do not overlap, so indices take all their values. */
  kSurjective = 1,
  /*! \brief Besides, every digit of every iterator is used, so the map can be undone. */
  kBijective = 3,
};

/*! \brief Result of DetectIterMap. */
class IterMapResultNode : public Object {
 public:
  /*! \brief One sum of at most one split for each index; empty if the indices are not of the form.
   */
  Array<IterSumExpr> indices;
  /*! \brief Why not. */
  Array<String> errors;
  /*!
   * \brief Where a lengthened iterator is outside of what runs: false for every iteration, but
   * true for points of the image without an origin once the inverse stands for the iterators.
   */
  PrimExpr padding_predicate = tir::const_false();
  /*! \brief Whether the indices are of the form and no iterator had to be lengthened. */
  bool IsExact() const { return errors.empty() && tir::is_zero(padding_predicate); }
  TVM_DECLARE_NODE(IterMapResultNode, Object, "arith.IterMapResult", Value(indices), Value(errors),
                   Default(padding_predicate));
};
class IterMapResult : public FromFields<ObjectRef, IterMapResultNode> {
 public:
  TVM_DEFINE_NODE_REF(IterMapResult, IterMapResultNode);
};

/*!
 * \brief Write `indices` by digits of `iters`.
 *
 * Extents and factors may be expressions without iterators. A divisor that leaves a partial tile
 * lengthens the iterator to whole tiles, on both sides where there is an offset
 * (`padding_predicate`); at level kBijective it is an error.
 *
 * \param predicate Which iterations run: a conjunction of bounds of iterators, which shorten them,
 * and of sums of iterators, which indices then have to take as a whole.
 * \param simplify_trivial_iterators Whether an iterator of one value is that value and no digit.
 */
TVM_DLL IterMapResult DetectIterMap(const Array<PrimExpr>& indices,
                                    const Map<tir::Var, Range>& iters,
                                    IterMapLevel level = IterMapLevel::kSurjective,
                                    const PrimExpr& predicate = tir::const_true(),
                                    bool simplify_trivial_iterators = true);

/*!
 * \brief An index as a sum of digits, the one of the largest scale first, without fusing them.
 *
 * A part that is not affine counts as an iterator of its own, from zero on, if it has bounds.
 */
TVM_DLL IterSumExpr NormalizeToIterSum(const PrimExpr& index, const Map<tir::Var, Range>& iters);

/*! \brief The plain expression that a sum of splits stands for. */
TVM_DLL PrimExpr NormalizeIterMapToExpr(const PrimExpr& expr);

/*!
 * \brief Indices written by digits, each fused iterator as it was put together; empty if they are
 * not of the form, with the predicate or, where the map need not be undone, without it.
 */
TVM_DLL Array<PrimExpr> IterMapSimplify(const Array<PrimExpr>& indices,
                                        const Map<tir::Var, Range>& iters,
                                        IterMapLevel level = IterMapLevel::kSurjective,
                                        const PrimExpr& predicate = tir::const_true(),
                                        bool simplify_trivial_iterators = true);

}  // namespace arith
}  // namespace tvm
#endif  // TVM_ARITH_ITER_AFFINE_MAP_H_
