/*!
 * \file sketch_rules.h
 * \brief Rules that complete a structural sketch: where stages run and what each loop is run as.
 */
#ifndef TVM_FELIX_SKETCH_RULES_H_
#define TVM_FELIX_SKETCH_RULES_H_

#include <tvm/auto_scheduler/sketch_rule.h>

#include <vector>

namespace tvm {
namespace felix {

using auto_scheduler::SearchTask;
using auto_scheduler::SketchRules;
using auto_scheduler::State;

/*! \brief How many alternatives a derivation spells out. */
struct SketchBreadth {
  bool both_outer_orders = true;
  bool both_fusion_levels = true;
  bool rfactor = true;
  bool producer_locations = true;
};

/*! \brief Structure rules for a CPU: Ansor's, with tiled stages always held by a consumer. */
SketchRules StructureRules(const SearchTask& task, const SketchBreadth& breadth);

/*! \brief The states that complete `sketch`, with open lengths. */
std::vector<State> CompleteSketch(const SearchTask& task, const State& sketch,
                                  const SketchBreadth& breadth);

}  // namespace felix
}  // namespace tvm

#endif  // TVM_FELIX_SKETCH_RULES_H_
