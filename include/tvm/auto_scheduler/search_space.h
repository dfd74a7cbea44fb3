/*!
 * \file tvm/auto_scheduler/search_space.h
 * \brief A target's way of making programs, as the tuners of every kind see it.
 *
 * A space is registered under a name and a key of targets. "ansor" is the space of Ansor (OSDI
 * 2020), "felix" the one whose tiled stages are always fused and whose loop marks and locations
 * follow by rule (Felix, ASPLOS 2024). Tuners that work on concrete programs fill what a sketch
 * leaves open at random and mutate it; those that work on symbols complete the sketch, so that only
 * split lengths are left.
 */
#ifndef TVM_AUTO_SCHEDULER_SEARCH_SPACE_H_
#define TVM_AUTO_SCHEDULER_SEARCH_SPACE_H_

#include <tvm/auto_scheduler/loop_features.h>
#include <tvm/auto_scheduler/loop_program.h>
#include <tvm/auto_scheduler/sketch_rule.h>
#include <tvm/target/target.h>

#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace tvm {
namespace auto_scheduler {

/*! \brief What a tuner asks of a space, with the defaults of Ansor. */
struct SpaceOptions {
  /*!
   * \brief Levels of a tiled stage, outermost first: S for space axes, R for reduction axes. Empty
   *        for what is usual on the target.
   */
  std::string tiling_structure;
  /*! \brief Greatest length of the innermost part of a split. */
  int max_innermost_split_factor = 64;
  /*! \brief Greatest number of elements in a vectorized loop. */
  int max_vectorize_size = 16;
  /*! \brief Whether untiled stages may move into the loops of their readers. */
  bool change_compute_location = true;
  /*! \brief Rules that are asked before those of the space. */
  SketchRules custom_rules;
  /*! \brief How many kinds of alternatives to leave out, those that matter least first. */
  int narrowing = 0;
};

/*!
 * \brief One random decision: made where a sketch leaves it open, or made anew in a program.
 *
 * A mutation leaves the extents of all loops known.
 */
class RandomRule {
 public:
  virtual ~RandomRule() = default;
  virtual const char* Name() const = 0;
  /*!
   * \brief Decide, and change `state` accordingly.
   * \return Whether the decision could be made; if not, `state` is of no use any more.
   */
  virtual bool Apply(const SearchTask& task, State* state, std::mt19937* random) const = 0;
};

/*! \brief Rules that make a program of a sketch, in this order. */
using InitPopulationRules = std::vector<std::shared_ptr<const RandomRule>>;

/*! \brief A rule that makes another program of one, drawn in proportion to its weight. */
struct MutationRule {
  std::shared_ptr<const RandomRule> rule;
  double weight;
};
using MutationRules = std::vector<MutationRule>;

/*! \brief lhs <= rhs, both float64 and positive where they do not fold. */
struct Constraint {
  std::string name;
  PrimExpr lhs, rhs;
};

/*!
 * \brief Everything that a tuner needs to know about making programs for a target.
 *
 * What a space does not define, its members refuse with a ValueError that names the space.
 */
class SearchSpace {
 public:
  virtual ~SearchSpace() = default;

  /*! \brief The rules that derive sketches, without `options.custom_rules`. */
  virtual SketchRules StructureRules(const SearchTask& task, const SpaceOptions& options) const = 0;
  /*! \brief Rules that fill what a sketch leaves open. */
  virtual InitPopulationRules InitRules(const SearchTask& task, const SpaceOptions& options) const;
  /*! \brief Rules that change one decision of a program. */
  virtual MutationRules Mutations(const SearchTask& task, const SpaceOptions& options) const;
  /*!
   * \brief Whether the lengths of splits leave a program a chance to be valid: a quick look at
   *        states whose loops have no extents yet, which spares finding them.
   */
  virtual bool LengthsFit(const SearchTask& task, const State& state) const { return true; }
  /*! \brief Whether the target can run a program, as far as its loops tell. */
  virtual bool IsValid(const SearchTask& task, const State& state) const { return true; }
  /*!
   * \brief The states in which only split lengths are open: all loops marked, all stages placed.
   * \param sketch A derived state whose lengths are variables.
   */
  virtual std::vector<State> Complete(const SearchTask& task, const State& sketch,
                                      const SpaceOptions& options) const;
  /*!
   * \brief The number whose divisors are the lengths of a step that divide no loop: of a split
   * whose last trips may be fewer, or of tiles in flight.
   * \param steps The history of a completed state; `step` is the position of one with lengths in
   * it.
   * \return 0 for a split whose lengths divide the loop.
   */
  virtual int64_t FreeLengths(const SearchTask& task, const Array<Step>& steps, size_t step) const {
    return 0;
  }
  /*! \brief What the knobs of a program must respect, besides dividing their extents. */
  virtual std::vector<Constraint> Constraints(const LoopProgram& program,
                                              const MachineFacts& machine,
                                              const arith::VarContext& context) const;
  /*! \brief The columns that models see, in order; those of every target unless overridden. */
  virtual std::vector<FeatureGroup> FeatureGroups() const { return CommonFeatureGroups(); }
  /*! \brief Columns behind those, which only the bound of a machine reads. */
  virtual std::vector<FeatureGroup> BoundGroups() const { return {}; }
  /*! \brief The sketches that `InitRules` make programs of. */
  virtual std::vector<State> OpenSketches(const SearchTask& task,
                                          const SpaceOptions& options) const {
    return Sketches(task, options);
  }
  /*! \brief The greatest value of `SpaceOptions::narrowing` that changes something. */
  virtual int MaxNarrowing() const { return 0; }

  /*! \brief What the custom rules and those of the space derive from a task, in a fixed order. */
  std::vector<State> Sketches(const SearchTask& task, const SpaceOptions& options) const;

  /*! \brief The table of FeatureGroups and BoundGroups. */
  const FeatureTable& features() const { return features_; }
  const std::string& name() const { return name_; }
  const std::string& target_key() const { return target_key_; }

  /*!
   * \brief The space of this name for the first of the target's keys that has one.
   * \throws ValueError naming what is registered when there is none.
   */
  static const SearchSpace& Get(const Target& target, const std::string& name);
  /*! \brief All (name, target key), sorted. */
  static std::vector<std::pair<std::string, std::string>> List();
  /*! \brief Add a space. \throws ValueError if there is one already. */
  static void Register(const std::string& name, const std::string& target_key,
                       std::unique_ptr<SearchSpace> space);

 private:
  [[noreturn]] void Refuse(const char* what) const;

  std::string name_, target_key_;
  FeatureTable features_;
};

/*! \brief At namespace scope of a .cc: `TVM_REGISTER_SEARCH_SPACE("ansor", "gpu", AnsorGpuSpace);`
 */
#define TVM_REGISTER_SEARCH_SPACE(Name, TargetKey, Space)                                     \
  [[maybe_unused]] static const bool TVM_CONCAT(search_space_, __COUNTER__) = [] {            \
    ::tvm::auto_scheduler::SearchSpace::Register(Name, TargetKey, std::make_unique<Space>()); \
    return true;                                                                              \
  }()

}  // namespace auto_scheduler
}  // namespace tvm

#endif  // TVM_AUTO_SCHEDULER_SEARCH_SPACE_H_
