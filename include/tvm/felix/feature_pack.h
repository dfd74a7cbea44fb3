/*!
 * \file tvm/felix/feature_pack.h
 * \brief What the gradient search evaluates for one sketch.
 */
#ifndef TVM_FELIX_FEATURE_PACK_H_
#define TVM_FELIX_FEATURE_PACK_H_

#include <tvm/arith/var_context.h>
#include <tvm/auto_scheduler/search_task.h>
#include <tvm/felix/tape.h>
#include <tvm/node/node.h>
#include <tvm/tir/function.h>

#include <string>

namespace tvm {
namespace felix {

/*! \brief constant + sum of coefficients[name] * name. */
class LinearExprNode : public Object {
 public:
  double constant = 0;
  /*! \brief Variable name to float. */
  Map<String, Any> coefficients;
  TVM_DECLARE_NODE(LinearExprNode, Object, "felix.LinearExpr", Value(constant),
                   Value(coefficients));
};

class LinearExpr : public FromFields<ObjectRef, LinearExprNode> {
 public:
  TVM_DEFINE_NODE_REF(LinearExpr, LinearExprNode);
};

/*!
 * \brief Features and constraints of one sketch as a differentiable tape over exponents.
 *
 * Every knob is a product of powers of the primes that divide its extent; the exponents are the
 * variables. Where all exponents are integers, every root has the value that the concrete program
 * gives; in between, conditions and rounding are interpolated.
 *
 * Roots are the features row by row, numeric ones as ln(1 + value), then the constraints that are
 * not linear, as ln(left / right), which is <= 0 where they hold.
 */
class FeaturePackNode : public Object {
 public:
  Array<String> feature_names;
  Array<String> constraint_names;
  /*! \brief Buffer of each row. */
  Array<String> store_names;
  int n_stores = 0;
  /*! \brief Its variables, the columns of a point, are the exponents. */
  Tape tape;
  /*! \brief Each is <= 0. */
  Array<LinearExpr> linear_cons;
  /*! \brief Knob to an array of pairs (prime, exponent variable). */
  Map<String, Any> var_factors;
  /*! \brief Knob to the part of its value that no exponent changes. */
  Map<String, Any> fixed_factors;
  /*! \brief Numbers of the buffers in the slots of each row; see ExtractFeatures. */
  Array<Any> buffer_order;
  TVM_DECLARE_NODE(FeaturePackNode, Object, "felix.FeaturePackPy", Value(feature_names),
                   Value(constraint_names), Value(store_names), Value(n_stores), Value(tape),
                   Value(linear_cons), Value(var_factors), Value(fixed_factors),
                   Value(buffer_order));
};

class FeaturePack : public ObjectRef {
 public:
  TVM_DEFINE_REF(FeaturePack, ObjectRef, FeaturePackNode);
};

/*!
 * \brief Features and constraints of a symbolic program.
 * \param func The program of a sketch before buffers are flattened.
 * \param context Its knobs; the extents of their groups must be numbers.
 * \param space Name of the search space whose constraints and features are taken.
 * \param iterations, node_limit Of equality saturation of the tape; without iterations the tape
 *        stays as smoothing leaves it.
 * \return The pack. ValueError if a constraint cannot be met at any point.
 */
FeaturePack GetFeaturePack(const auto_scheduler::SearchTask& task, const tir::PrimFunc& func,
                           const arith::VarContext& context, const std::string& space,
                           int iterations, int node_limit);

}  // namespace felix
}  // namespace tvm
#endif  // TVM_FELIX_FEATURE_PACK_H_
