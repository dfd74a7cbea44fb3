/*!
 * \file tvm/arith/var_context.h
 * \brief The schedule variables of one symbolic program, what they mean, and which divisions
 *        between them leave no remainder.
 */
#ifndef TVM_ARITH_VAR_CONTEXT_H_
#define TVM_ARITH_VAR_CONTEXT_H_

#include <tvm/expr/var.h>
#include <tvm/ir/expr.h>
#include <tvm/node/node.h>

#include <utility>

namespace tvm {
namespace arith {

class Analyzer;

/*! \brief A definition `var = value`. */
class VarDefNode : public Object {
 public:
  tir::SizeVar var;
  PrimExpr value;
  TVM_DECLARE_NODE(VarDefNode, Object, "arith.VarDef", Value(var), Value(value));
};

class VarDef : public FromFields<ObjectRef, VarDefNode> {
 public:
  TVM_DEFINE_NODE_REF(VarDef, VarDefNode);
};

/*!
 * \brief One loop extent cut into tiles: `extent == quotient * product(vars)`, exactly.
 *
 * `extent` is the shorthand variable `E{g}`, `quotient` the variable `q{g}`, and `vars` the tile
 * sizes `sp_{g}_{j}`, outermost first.
 */
class SplitGroupNode : public Object {
 public:
  tir::SizeVar extent;
  tir::SizeVar quotient;
  Array<tir::SizeVar> vars;
  /*! \brief The extent before it was given a name. */
  PrimExpr extent_expr;
  TVM_DECLARE_NODE(SplitGroupNode, Object, "arith.SplitGroup", Value(extent), Value(quotient),
                   Value(vars), Value(extent_expr));
};

class SplitGroup : public FromFields<ObjectRef, SplitGroupNode> {
 public:
  TVM_DEFINE_NODE_REF(SplitGroup, SplitGroupNode);
};

/*!
 * \brief Owner of the schedule variables of one symbolic program.
 *
 * A reference type: copies of a VarContext see each other's definitions. `Copy` makes an
 * independent one.
 */
class VarContextNode : public Object {
 public:
  /*! \brief Definitions in the order they were made; later ones may use earlier ones. */
  Array<VarDef> var_defs;
  Array<SplitGroup> split_groups;
  /*! \brief Number of the next split. */
  int64_t split_counter = 0;

  TVM_DECLARE_NODE(VarContextNode, Object, "arith.VarContext", Value(var_defs), Value(split_groups),
                   Value(split_counter));
  TVM_NODE_ARGS();
};

class VarContext : public ObjectRef {
 public:
  /*! \brief An empty context. */
  static VarContext Make();
  VarContext Copy() const;

  /*!
   * \brief Cut `extent` into `num_parts` tile sizes whose product divides it.
   * \return The group, with new variables named after the number of the split.
   */
  SplitGroup DefineSplitGroup(const PrimExpr& extent, int num_parts) const;

  /*!
   * \brief Give a large expression without loop variables a name.
   * \return A variable `v{n}`, the same one for an equal expression; `expr` itself if it is small
   *         or mentions a loop variable.
   */
  PrimExpr DefineShorthand(const PrimExpr& expr) const;

  /*!
   * \brief Extents of the outer and inner loop when a loop of `extent` trips is split.
   *
   * Exact where the factor is known to divide the extent; otherwise
   * `(ceil(extent / factor), min(extent, factor))`.
   *
   * \param no_tighten Keep the inner extent at `factor` even where that is more than `extent`.
   */
  std::pair<PrimExpr, PrimExpr> SplitSizes(const PrimExpr& extent, const PrimExpr& factor,
                                           bool no_tighten = false) const;
  /*! \brief The same for a split given by its number of outer trips. */
  std::pair<PrimExpr, PrimExpr> SplitSizesByParts(const PrimExpr& extent,
                                                  const PrimExpr& nparts) const;

  /*! \brief Replace shorthands, and extents `E{g}` by their expressions, until none is left. */
  PrimExpr ExpandDefs(const PrimExpr& expr) const;
  /*!
   * \brief Tell an analyzer what the groups say: products of all variables of a group are its
   *        extent, and no variable exceeds it.
   */
  void BindTo(Analyzer* analyzer) const;

  TVM_DEFINE_MUTABLE_REF(VarContext, ObjectRef, VarContextNode);
};

/*! \brief Whether all variables of `expr` are size variables, so that it has no loop variable. */
bool IsSizeConstant(const PrimExpr& expr);
/*! \brief Whether all variables of `expr` are shape variables. */
bool IsShapeConstant(const PrimExpr& expr);

}  // namespace arith
}  // namespace tvm
#endif  // TVM_ARITH_VAR_CONTEXT_H_
