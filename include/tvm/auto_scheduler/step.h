/*!
 * \file tvm/auto_scheduler/step.h
 * \brief What all schedule primitives have in common: a stage, an effect, a record form.
 */
#ifndef TVM_AUTO_SCHEDULER_STEP_H_
#define TVM_AUTO_SCHEDULER_STEP_H_

#include <tvm/node/node.h>

#include <optional>

namespace tvm {
namespace auto_scheduler {

class ComputeDAG;
class State;
class ScheduleReplay;

/*! \brief Base of the steps. `stage_id` counts the stages of the state it is applied to. */
class StepNode : public Object {
 public:
  int stage_id{0};
  /*! \brief Tag of the record form, such as "SP". */
  virtual const char* Tag() const = 0;
  /*! \brief Change the loops of `state`. `dag` is the DAG without added stages. */
  virtual void ApplyToState(State* state, const ComputeDAG& dag) const = 0;
  virtual void ApplyToSchedule(ScheduleReplay* replay) const = 0;
  /*!
   * \brief Of a step that adds a stage, and so another DAG: its position, of which later ones
   * shift.
   *
   * It lies behind `stage_id`, or takes its place; then the stage that was there has plain loops.
   */
  virtual std::optional<int> AddedStage() const { return std::nullopt; }
  bool AddsStage() const { return AddedStage().has_value(); }
  TVM_DECLARE_ABSTRACT_NODE(StepNode, Object, "auto_scheduler.Step", Value(stage_id));
};

class Step : public ObjectRef {
 public:
  /*!
   * \brief The record form `[tag, stage_id, field, ...]`: what the step's constructor takes.
   *
   * A field is an integer, a text or a list of these. An expression that is a number is the number,
   * and one that is unknown is 0. A variable in a list is its name; a variable or expression that
   * stands alone is 0 as well: what comes before it in the history says what it is.
   */
  Array<Any> ToRecord() const;
  /*! \brief Inverse of ToRecord; a ValueError names the tag and what is wrong with it. */
  static Step FromRecord(const Array<Any>& record);
  TVM_DEFINE_REF(Step, ObjectRef, StepNode);
};

}  // namespace auto_scheduler
}  // namespace tvm

#endif  // TVM_AUTO_SCHEDULER_STEP_H_
