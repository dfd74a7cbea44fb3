/*!
 * \file tvm/arith/iter_map_inverse.h
 * \brief Undoing maps of iterators, and padding iterators so that there is something to undo.
 */
#ifndef TVM_ARITH_ITER_MAP_INVERSE_H_
#define TVM_ARITH_ITER_MAP_INVERSE_H_

#include <tvm/arith/iter_affine_map.h>

#include <vector>

namespace tvm {
namespace arith {

/*!
 * \brief Values of the iterators at a point of the image of a map.
 * \param iter_map What DetectIterMap found at level kBijective.
 * \param outputs One expression for each index.
 * \return The iterators whose digits are used; loops of one trip are left out.
 */
TVM_DLL Map<tir::Var, PrimExpr> InverseAffineIterMap(const Array<IterSumExpr>& iter_map,
                                                     const Array<PrimExpr>& outputs);

/*! \brief Iterators lengthened on both sides, so that divisors divide their extents. */
struct PaddedIters {
  /*! \brief Iterators from zero on in the place of those that are not long enough. */
  Map<tir::Var, Range> ranges;
  /*! \brief Indices in terms of these. */
  Array<PrimExpr> indices;
  struct Pad {
    tir::Var original, padded;
    /*! \brief `padded` is `original - begin`; what is outside of the original range is padding. */
    PrimExpr begin;
  };
  std::vector<Pad> pads;
};

/*!
 * \brief Lengthen iterators that `indices` cut into digits, where their extents leave partial
 * tiles.
 *
 * Divisors of one iterator must act on the same sum with a constant.
 */
TVM_DLL PaddedIters PadIters(const Array<PrimExpr>& indices, const Map<tir::Var, Range>& iters,
                             Analyzer* analyzer);

}  // namespace arith
}  // namespace tvm
#endif  // TVM_ARITH_ITER_MAP_INVERSE_H_
