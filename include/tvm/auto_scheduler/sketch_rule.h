/*!
 * \file tvm/auto_scheduler/sketch_rule.h
 * \brief Derivation of sketches: loop structures whose tile sizes are still open.
 *
 * Rules are values, so any search takes the lists below, its own, or a mixture. A derivation walks
 * the stages from the last to the first and asks each rule in turn (Ansor, OSDI 2020, section 4.1).
 */
#ifndef TVM_AUTO_SCHEDULER_SKETCH_RULE_H_
#define TVM_AUTO_SCHEDULER_SKETCH_RULE_H_

#include <tvm/auto_scheduler/search_task.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace tvm {
namespace auto_scheduler {

/*! \brief One rule of a derivation. */
class SketchRule {
 public:
  enum class Condition : int {
    kSkip = 0,
    kApply = 1,
    /*! \brief Apply, and ask no later rule about this stage. */
    kApplyAndSkipRest = 2,
  };
  /*! \brief A derived state and the stage to look at next. */
  using Result = std::vector<std::pair<State, int>>;

  virtual ~SketchRule() = default;
  virtual const char* Name() const = 0;
  virtual Condition MeetCondition(const SearchTask& task, const State& state,
                                  int stage_id) const = 0;
  virtual Result Apply(const SearchTask& task, const State& state, int stage_id) const = 0;
};

using SketchRules = std::vector<std::shared_ptr<const SketchRule>>;

/*! \brief All states that `rules` derive from the task's initial state, in a fixed order. */
std::vector<State> DeriveSketches(const SearchTask& task, const SketchRules& rules);

}  // namespace auto_scheduler
}  // namespace tvm

#endif  // TVM_AUTO_SCHEDULER_SKETCH_RULE_H_
