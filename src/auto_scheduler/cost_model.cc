/*!
 * \file cost_model.cc
 * \brief The cost models that need no training, and those that are made of functions.
 */
#include <tvm/auto_scheduler/cost_model.h>
#include <tvm/runtime/ndarray.h>
#include <tvm/runtime/registry.h>

#include <algorithm>
#include <random>
#include <string>

namespace tvm {
namespace auto_scheduler {

TVM_REGISTER_NODE(RandomModelNode);
TVM_REGISTER_NODE(PythonBasedModelNode);

namespace {

/*! \brief Copies a float32 array of one axis, of which `n` entries are expected (-1: any). */
std::vector<float> Scores(const Any& returned, int64_t n, const char* function) {
  NDArray array = returned.cast<NDArray>();
  TVM_CHECK(array.ndim() == 1 && array.dtype() == DataType::Float(32) &&
                (n == -1 || array.Shape()[0] == n),
            ValueError)
      << "cost model: " << function << " must return "
      << (n == -1 ? std::string("numbers") : std::to_string(n) + " scores")
      << " in a float32 array of one axis, got one of " << array.ndim() << " axes and "
      << array.NumElements() << " entries, dtype " << array.dtype();
  std::vector<float> scores(array.NumElements());
  array.CopyToBytes(scores.data(), array.NumBytes());
  return scores;
}

}  // namespace

std::vector<float> RandomModelNode::Predict(const SearchTask&, const Array<State>& states) {
  std::vector<float> scores;
  scores.reserve(states.size());
  for (const State& state : states) {
    // A function of the program, so that neither order nor company of the states matters.
    std::seed_seq mixed{static_cast<uint64_t>(seed), state.ProgramHash(),
                        state.ProgramHash() >> 32};
    std::mt19937 random(mixed);
    scores.push_back(std::uniform_real_distribution<float>()(random));
  }
  return scores;
}

std::vector<float> RandomModelNode::PredictStages(const SearchTask& task,
                                                  const Array<State>& states) {
  std::vector<float> packed = Predict(task, states);
  for (size_t i = 0; i < states.size(); ++i) {
    const Array<Stage>& stages = states[i]->stages;
    packed.push_back(static_cast<float>(stages.size()));
    auto computes = [](const Stage& stage) {
      return stage->op_type == StageKind::kCompute && stage->compute_at != ComputeAtKind::kInlined;
    };
    auto count = static_cast<float>(std::count_if(stages.begin(), stages.end(), computes));
    for (const Stage& stage : stages) packed.push_back(computes(stage) ? packed[i] / count : 0);
  }
  return packed;
}

PythonBasedModel::PythonBasedModel(PackedFunc update_func, PackedFunc predict_func,
                                   PackedFunc predict_stage_func) {
  auto node = make_object<PythonBasedModelNode>();
  node->update_func = std::move(update_func);
  node->predict_func = std::move(predict_func);
  node->predict_stage_func = std::move(predict_stage_func);
  data_ = std::move(node);
}

void PythonBasedModelNode::Update(const Array<MeasureInput>& inputs,
                                  const Array<MeasureResult>& results) {
  update_func(inputs, results);
}

std::vector<float> PythonBasedModelNode::Predict(const SearchTask& task,
                                                 const Array<State>& states) {
  return Scores(predict_func(task, states), static_cast<int64_t>(states.size()), "predict");
}

std::vector<float> PythonBasedModelNode::PredictStages(const SearchTask& task,
                                                       const Array<State>& states) {
  return Scores(predict_stage_func(task, states), -1, "predict_stages");
}

TVM_REGISTER_GLOBAL("auto_scheduler.PythonBasedModel")
    .set_body_typed([](PackedFunc update, PackedFunc predict, PackedFunc predict_stages) {
      return PythonBasedModel(update, predict, predict_stages);
    });
TVM_REGISTER_GLOBAL("auto_scheduler.CostModelUpdate")
    .set_body_typed([](CostModel model, Array<MeasureInput> inputs, Array<MeasureResult> results) {
      model->Update(inputs, results);
    });
TVM_REGISTER_GLOBAL("auto_scheduler.CostModelPredict")
    .set_body_typed([](CostModel model, SearchTask task, Array<State> states) {
      std::vector<float> scores = model->Predict(task, states);
      return Array<double>(scores.begin(), scores.end());
    });
TVM_REGISTER_GLOBAL("auto_scheduler.CostModelPredictStages")
    .set_body_typed([](CostModel model, SearchTask task, Array<State> states) {
      std::vector<float> scores = model->PredictStages(task, states);
      return Array<double>(scores.begin(), scores.end());
    });

}  // namespace auto_scheduler
}  // namespace tvm
