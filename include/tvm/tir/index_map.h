/*!
 * \file tvm/tir/index_map.h
 * \brief Maps from indices to indices: layouts of buffers and of the variables of blocks.
 */
#ifndef TVM_TIR_INDEX_MAP_H_
#define TVM_TIR_INDEX_MAP_H_

#include <tvm/arith/analyzer.h>
#include <tvm/expr/expr.h>
#include <tvm/node/node.h>

#include <utility>

namespace tvm {
namespace tir {

class IndexMap;

/*! \brief `lambda initial_indices: final_indices`. */
class IndexMapNode : public Object {
 public:
  Array<Var> initial_indices;
  Array<PrimExpr> final_indices;
  /*! \brief The way back, where its author knows it better than arithmetic finds it. */
  ObjectRef inverse_index_map;

  /*! \brief Final indices of a point, in the widest integer type among its indices. */
  Array<PrimExpr> MapIndices(const Array<PrimExpr>& indices, arith::Analyzer* analyzer) const;
  /*! \brief A box that holds the images of all points of a box. */
  Array<Range> MapRanges(const Array<Range>& ranges, arith::Analyzer* analyzer) const;
  /*!
   * \brief Extents of the image of a box that begins at zero.
   *
   * A digit counts with all of its values, also where the last tile of an axis is not full.
   */
  Array<PrimExpr> MapShape(const Array<PrimExpr>& shape, arith::Analyzer* analyzer) const;

  TVM_DECLARE_NODE(IndexMapNode, Object, "tir.IndexMap", Bind(initial_indices),
                   Value(final_indices), Maybe(inverse_index_map));
  TVM_NODE_ARGS(Value(initial_indices), Value(final_indices), Default(inverse_index_map));
};

/*! \brief Reference to IndexMapNode. */
class IndexMap : public FromFields<ObjectRef, IndexMapNode> {
 public:
  /*! \brief The map back; ValueError unless every point of the image has exactly one origin. */
  IndexMap Inverse(const Array<Range>& ranges, arith::Analyzer* analyzer) const;
  /*!
   * \brief The map back, and the condition under which a point of the image has no origin.
   *
   * ValueError where two points have one image. The condition is in terms of the initial indices of
   * the map back.
   */
  std::pair<IndexMap, PrimExpr> NonSurjectiveInverse(const Array<Range>& ranges,
                                                     arith::Analyzer* analyzer) const;
  /*! \brief The same map with parameters of the type given. */
  IndexMap WithDType(DataType dtype) const;
  TVM_DEFINE_NODE_REF(IndexMap, IndexMapNode);
};

/*! \brief An expression with variables replaced and every integer constant of type `dtype`. */
PrimExpr SubstituteAs(const PrimExpr& expr,
                      const std::unordered_map<const VarNode*, PrimExpr>& values, DataType dtype);

}  // namespace tir
}  // namespace tvm
#endif  // TVM_TIR_INDEX_MAP_H_
