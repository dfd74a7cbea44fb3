/*!
 * \file structure_rules.h
 * \brief Ansor's rules for loop structures, which spaces put together (OSDI 2020, table 1).
 */
#ifndef TVM_AUTO_SCHEDULER_SPACE_STRUCTURE_RULES_H_
#define TVM_AUTO_SCHEDULER_SPACE_STRUCTURE_RULES_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "../sketch_utils.h"

namespace tvm {
namespace auto_scheduler {

/*! \brief Attribute of an operation: its axes that index constant tensors, by name. */
constexpr const char* kConstTensorIndices = "auto_scheduler_simplify_const_tensor_indices";

/*! \brief An operand that is copied into panels before the tiles that read it are computed. */
struct PackedOperand {
  te::Operation operand;
  /*! \brief Dimension i of the panels is dimension order[i] of the operand. */
  Array<int64_t> order;
  /*! \brief Whether that is another order, without which no vector could be read. */
  bool turned = false;
  /*! \brief Axes of space, ascending, with which the operand moves; all others share it. */
  std::vector<int> space_axes;
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
  /*!
   * \brief The axis of a stage that some structures are to cut into tiles which need not divide
   *        it, see DoMultiLevelTiling; -1, or no function, for none.
   */
  std::function<int(const te::Operation&)> ragged_axis;
  /*!
   * \brief What some structures of a stage are to copy into panels, or all of them if its order is
   *        turned.
   */
  std::function<std::optional<PackedOperand>(const SearchTask&, const State&, int)> packed_operand;
};

std::shared_ptr<const SketchRule> RuleSkipStage();
/*! \brief \param also_costly Inline what is repeated or reordered by that too, as suits a GPU. */
std::shared_ptr<const SketchRule> RuleAlwaysInline(bool also_costly = false);
std::shared_ptr<const SketchRule> RuleSimplifyConstTensor();
std::shared_ptr<const SketchRule> RuleAddRfactor();
std::shared_ptr<const SketchRule> RuleAddCacheWrite(const SketchOptions& options);
std::shared_ptr<const SketchRule> RuleMultiLevelTiling(const SketchOptions& options);
std::shared_ptr<const SketchRule> RuleMultiLevelTilingWithFusion(const SketchOptions& options);

/*!
 * \brief Ansor's rules, in order, where stages are tiled for caches and registers alone.
 * \param inline_costly See RuleAlwaysInline.
 */
SketchRules RulesForCaches(const SketchOptions& options, bool inline_costly);

}  // namespace auto_scheduler
}  // namespace tvm

#endif  // TVM_AUTO_SCHEDULER_SPACE_STRUCTURE_RULES_H_
