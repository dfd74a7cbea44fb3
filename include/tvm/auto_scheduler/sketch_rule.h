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

/*! \brief Loop order at the outermost level of a tiled nest. */
enum class OuterOrder : int {
  kNatural = 0,
  /*! \brief The last axis, the channels of a channels-last tensor, outside the others. */
  kLastAxisFirst = 1,
};

/*! \brief Choices of a derivation, with the defaults of Ansor. */
struct SketchOptions {
  /*! \brief Levels of a tiled stage, outermost first: S for space axes, R for reduction axes. */
  std::string tiling_structure = "SSRSRS";
  /*! \brief Counts of outer levels after which a fused consumer may hold the tiled stage. */
  std::vector<int> fusion_levels = {1, 2};
  /*! \brief One fused state for each of these; a lone tiled stage is in natural order. */
  std::vector<OuterOrder> outer_orders = {OuterOrder::kNatural};
  /*! \brief Leave out a tiled stage that is not held by a consumer or a copy-out stage. */
  bool always_fuse = false;
};

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

/*! \brief The rules of Ansor for a CPU: inline, simplify const, rfactor, cache write, tiling. */
SketchRules DefaultCPUSketchRules(const SketchOptions& options = {});

/*! \brief The single rules, for mixing. */
std::shared_ptr<const SketchRule> RuleSkipStage();
std::shared_ptr<const SketchRule> RuleAlwaysInline();
std::shared_ptr<const SketchRule> RuleSimplifyConstTensor();
std::shared_ptr<const SketchRule> RuleAddRfactor();
std::shared_ptr<const SketchRule> RuleAddCacheWrite(const SketchOptions& options);
std::shared_ptr<const SketchRule> RuleMultiLevelTiling(const SketchOptions& options);
std::shared_ptr<const SketchRule> RuleMultiLevelTilingWithFusion(const SketchOptions& options);

/*! \brief All states that `rules` derive from the task's initial state, in a fixed order. */
std::vector<State> DeriveSketches(const SearchTask& task, const SketchRules& rules);

}  // namespace auto_scheduler
}  // namespace tvm

#endif  // TVM_AUTO_SCHEDULER_SKETCH_RULE_H_
