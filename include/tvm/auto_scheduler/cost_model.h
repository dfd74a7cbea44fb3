/*!
 * \file tvm/auto_scheduler/cost_model.h
 * \brief What a search asks instead of measuring: scores of programs, learned from measurements.
 */
#ifndef TVM_AUTO_SCHEDULER_COST_MODEL_H_
#define TVM_AUTO_SCHEDULER_COST_MODEL_H_

#include <tvm/auto_scheduler/measure.h>
#include <tvm/runtime/packed_func.h>

#include <vector>

namespace tvm {
namespace auto_scheduler {

/*! \brief Base of cost models. A higher score means a faster program of the same task. */
class CostModelNode : public Object {
 public:
  /*! \brief Learn from measurements; inputs[i] gave results[i]. */
  virtual void Update(const Array<MeasureInput>& inputs, const Array<MeasureResult>& results) = 0;
  /*! \brief One score for each state; negative infinity for one that cannot be compiled. */
  virtual std::vector<float> Predict(const SearchTask& task, const Array<State>& states) = 0;
  /*!
   * \brief Scores with their shares: one score a state, then for each state the number of its
   *        stages and their scores, 0 for placeholders and inlined stages.
   */
  virtual std::vector<float> PredictStages(const SearchTask& task, const Array<State>& states) = 0;
  TVM_DECLARE_ABSTRACT_NODE(CostModelNode, Object, "auto_scheduler.CostModel");
};

class CostModel : public ObjectRef {
 public:
  TVM_DEFINE_MUTABLE_REF(CostModel, ObjectRef, CostModelNode);
};

/*! \brief Knows nothing: the score of a program is a hash of it and the seed, uniform in [0, 1). */
class RandomModelNode : public CostModelNode {
 public:
  int64_t seed{0};
  void Update(const Array<MeasureInput>& inputs, const Array<MeasureResult>& results) final {}
  std::vector<float> Predict(const SearchTask& task, const Array<State>& states) final;
  std::vector<float> PredictStages(const SearchTask& task, const Array<State>& states) final;
  TVM_DECLARE_NODE(RandomModelNode, CostModelNode, "auto_scheduler.RandomModel", Value(seed));
};

class RandomModel : public FromFields<CostModel, RandomModelNode> {
 public:
  TVM_DEFINE_MUTABLE_REF(RandomModel, Constructors, RandomModelNode);
  using Constructors::Constructors;
};

/*! \brief A model made of three functions, which return float32 arrays of one axis. */
class PythonBasedModelNode : public CostModelNode {
 public:
  /*! \brief (inputs, results) */
  PackedFunc update_func;
  /*! \brief (task, states) -> one score for each state. */
  PackedFunc predict_func;
  /*! \brief (task, states) -> what PredictStages returns. */
  PackedFunc predict_stage_func;
  void Update(const Array<MeasureInput>& inputs, const Array<MeasureResult>& results) final;
  std::vector<float> Predict(const SearchTask& task, const Array<State>& states) final;
  std::vector<float> PredictStages(const SearchTask& task, const Array<State>& states) final;
  TVM_DECLARE_NODE(PythonBasedModelNode, CostModelNode, "auto_scheduler.PythonBasedModel");
};

class PythonBasedModel : public CostModel {
 public:
  PythonBasedModel(PackedFunc update_func, PackedFunc predict_func, PackedFunc predict_stage_func);
  TVM_DEFINE_MUTABLE_REF(PythonBasedModel, CostModel, PythonBasedModelNode);
};

}  // namespace auto_scheduler
}  // namespace tvm

#endif  // TVM_AUTO_SCHEDULER_COST_MODEL_H_
