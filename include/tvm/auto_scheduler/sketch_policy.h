/*!
 * \file tvm/auto_scheduler/sketch_policy.h
 * \brief Search by sketches, random programs and evolution (Ansor, OSDI 2020).
 */
#ifndef TVM_AUTO_SCHEDULER_SKETCH_POLICY_H_
#define TVM_AUTO_SCHEDULER_SKETCH_POLICY_H_

#include <tvm/auto_scheduler/cost_model.h>
#include <tvm/auto_scheduler/search_policy.h>
#include <tvm/auto_scheduler/search_space.h>

#include <random>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

namespace tvm {
namespace auto_scheduler {

/*! \brief Parameters of a SketchPolicy by name, with the values they have unless given. */
Map<String, Any> SketchPolicyDefaults();

/*!
 * \brief A policy that keeps a population of programs and lets a cost model choose among them.
 *
 * A round draws programs from the sketches, adds the best ones measured so far, and lets those of
 * high scores have mutated offspring for some generations. What is proposed are the best of all
 * generations and a few of the drawn ones. Equal seeds give equal proposals, whatever the number of
 * threads: each program is drawn with a generator of its own.
 */
class SketchPolicyNode : public SearchPolicyNode {
 public:
  CostModel program_cost_model;
  /*! \brief The values of all parameters, see SketchPolicyDefaults. */
  Map<String, Any> params;
  /*! \brief Rules that are asked before those of the space. Add none once there are sketches. */
  SketchRules custom_rules;
  std::mt19937 random;

  Array<Candidate> Propose(int n) final;
  void Observe(const Array<Candidate>& candidates, const Array<MeasureResult>& results) final;
  /*! \brief Take in measurements without showing them to the cost model. */
  void Remember(const Array<Candidate>& candidates, const Array<MeasureResult>& results);

  /*! \brief The search space, by the parameter of that name. */
  const SearchSpace& Space() const;
  /*! \brief The sketches of the task, made on first use. */
  const std::vector<State>& GenerateSketches();
  /*!
   * \brief Distinct valid programs, drawn from the sketches until there are enough or, as new ones
   *        become rare, fewer.
   * \throws ValueError if no program is valid.
   */
  Array<State> SampleInitialPopulation();
  /*!
   * \brief Where more good programs are likely: `population` and the best ones measured or, in the
   *        mode "potential-space" once something ran, these and mutants of them alone.
   */
  Array<State> GeneratePotentialSpaceStates(const Array<State>& population);
  /*! \brief `n` states of `population`, drawn with repetition. */
  Array<State> RandomSampleStates(const Array<State>& population, int n);
  /*! \brief The `out_size` programs of highest score, best first, that evolve of `population`. */
  Array<State> EvolutionarySearch(const Array<State>& population, int out_size);

  TVM_DECLARE_NODE(SketchPolicyNode, SearchPolicyNode, "auto_scheduler.SketchPolicy",
                   Value(program_cost_model), Value(params));

 private:
  SpaceOptions Options() const;
  template <typename T>
  T Param(const char* name) const {
    return params.at(name).template cast<T>();
  }
  /*! \brief Best and random states of one round, in that order. */
  std::pair<Array<State>, Array<State>> SearchOneRound(int n, int n_random);
  Array<Candidate> PickStatesWithEpsGreedy(const Array<State>& best, const Array<State>& drawn,
                                           int n, int n_random);
  std::vector<uint32_t> Seeds(size_t n);
  /*! \brief Children of `parents`, which are in order of merit: copies or mutants; some may fail.
   *  \param refused Receives how many attempts to mutate failed.
   */
  std::vector<State> Offspring(const std::vector<State>& parents, int* refused);

  std::vector<State> sketches_;
  /*! \brief Hashes of the programs that were proposed or observed. */
  std::unordered_set<uint64_t> known_;
  /*! \brief Programs with their throughputs in runs per second, 0 for failed ones. */
  std::vector<std::pair<double, State>> measured_;
};

class SketchPolicy : public SearchPolicy {
 public:
  /*!
   * \brief A policy for a task.
   * \param params Values of parameters that are to differ from SketchPolicyDefaults.
   * \throws ValueError for a parameter that does not exist or is out of range, and TypeError for
   *         one of the wrong type.
   */
  SketchPolicy(SearchTask task, CostModel model, const Map<String, Any>& params, int64_t seed,
               int verbose);
  TVM_DEFINE_MUTABLE_REF(SketchPolicy, SearchPolicy, SketchPolicyNode);
};

/*! \brief A policy that proposes the unscheduled program, once. */
class EmptyPolicyNode : public SearchPolicyNode {
 public:
  Array<Candidate> Propose(int n) final;
  void Observe(const Array<Candidate>& candidates, const Array<MeasureResult>& results) final;
  TVM_DECLARE_NODE(EmptyPolicyNode, SearchPolicyNode, "auto_scheduler.EmptyPolicy");

 private:
  bool proposed_{false};
};

/*! \brief Prepares a policy before it searches. */
class SearchCallbackNode : public Object {
 public:
  virtual void Callback(const SearchPolicy& policy) const = 0;
  TVM_DECLARE_ABSTRACT_NODE(SearchCallbackNode, Object, "auto_scheduler.SearchCallback");
};

class SearchCallback : public ObjectRef {
 public:
  TVM_DEFINE_REF(SearchCallback, ObjectRef, SearchCallbackNode);
};

/*! \brief Tells a SketchPolicy what a record file says about its task, so as not to repeat it. */
class PreloadMeasuredStatesNode : public SearchCallbackNode {
 public:
  String filename;
  void Callback(const SearchPolicy& policy) const final;
  TVM_DECLARE_NODE(PreloadMeasuredStatesNode, SearchCallbackNode,
                   "auto_scheduler.PreloadMeasuredStates", Value(filename));
};

/*! \brief Gives a SketchPolicy a rule that is asked before those of the space. */
class PreloadCustomSketchRuleNode : public SearchCallbackNode {
 public:
  String rule_name;
  /*! \brief (task, state, stage id) -> SketchRule::Condition as a number. */
  PackedFunc meet_condition_func;
  /*! \brief (task, state, stage id) -> list of [state, id of the stage to look at next]. */
  PackedFunc apply_func;
  void Callback(const SearchPolicy& policy) const final;
  TVM_DECLARE_NODE(PreloadCustomSketchRuleNode, SearchCallbackNode,
                   "auto_scheduler.PreloadCustomSketchRule", Value(rule_name));
};

}  // namespace auto_scheduler
}  // namespace tvm

#endif  // TVM_AUTO_SCHEDULER_SKETCH_POLICY_H_
