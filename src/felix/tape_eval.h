/*!
 * \file tape_eval.h
 * \brief Values and gradients of a tape at many points at once.
 */
#ifndef TVM_FELIX_TAPE_EVAL_H_
#define TVM_FELIX_TAPE_EVAL_H_

#include <tvm/felix/tape.h>
#include <tvm/node/node.h>

#include <vector>

namespace tvm {
namespace felix {

/*!
 * \brief A tape, ready to be evaluated.
 *
 * Arithmetic is float64: tile sizes and their products are integers beyond 2^24, which float32
 * would round, so that floors and comparisons of equal sizes would go wrong.
 *
 * Where a function has no derivative, the gradient is a sub-gradient: equal operands of min and max
 * share it, and comparisons, booleans, floor, ceil and floor division have none. An operand whose
 * result does not matter (the branch a select does not take) never turns the gradient into NaN.
 */
class TapeProgramNode final : public Object {
 public:
  TVM_DECLARE_OBJECT(TapeProgramNode, Object, "felix.TapeProgram");

  /*!
   * \brief Roots at each point.
   * \param points float64[batch, num_vars], compact.
   * \param roots float64[batch, num_roots], compact, written.
   */
  void Forward(const double* points, int64_t batch, double* roots) const;

  /*!
   * \brief Gradient of sum_k cotangents[., k] * root_k with respect to the variables.
   * \param points float64[batch, num_vars], compact.
   * \param cotangents float64[batch, num_roots], compact.
   * \param gradients float64[batch, num_vars], compact, written.
   */
  void Backward(const double* points, const double* cotangents, int64_t batch,
                double* gradients) const;

  int64_t num_vars() const { return num_vars_; }
  int64_t num_roots() const { return static_cast<int64_t>(roots_.size()); }

 private:
  friend class TapeProgram;

  struct Step {
    TapeOp op;
    /*! \brief Whether a variable reaches this entry through operations with a derivative. */
    bool active;
    /*! \brief Entries; a slot without an operand repeats the first, so that it may be read. */
    int32_t args[3];
    int64_t payload;
  };

  std::vector<Step> steps_;
  std::vector<int32_t> roots_;
  int64_t num_vars_ = 0;
};

class TapeProgram : public ObjectRef {
 public:
  explicit TapeProgram(const TapeData& tape);
  TVM_DEFINE_REF(TapeProgram, ObjectRef, TapeProgramNode);
};

}  // namespace felix
}  // namespace tvm
#endif  // TVM_FELIX_TAPE_EVAL_H_
