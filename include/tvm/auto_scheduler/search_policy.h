/*!
 * \file tvm/auto_scheduler/search_policy.h
 * \brief Who decides what to measure next.
 *
 * A policy proposes candidates and observes what became of them. It measures nothing itself and
 * writes no files, so that any policy runs under any task scheduler and any measurer.
 */
#ifndef TVM_AUTO_SCHEDULER_SEARCH_POLICY_H_
#define TVM_AUTO_SCHEDULER_SEARCH_POLICY_H_

#include <tvm/auto_scheduler/measure.h>

#include <utility>

namespace tvm {
namespace auto_scheduler {

class SearchPolicyNode : public Object {
 public:
  SearchTask search_task;
  /*! \brief 0: silent, 1: a paragraph a round. */
  int verbose{1};

  /*!
   * \brief Up to `n` candidates worth measuring, best first, none of them proposed or observed
   *        before. None at all says that nothing is left.
   */
  virtual Array<Candidate> Propose(int n) = 0;
  /*!
   * \brief Take in measurements: those of its own candidates after each round, and at the start
   *        those of earlier runs.
   */
  virtual void Observe(const Array<Candidate>& candidates, const Array<MeasureResult>& results) = 0;

  /*! \brief Propose up to `n` candidates, measure and observe them. */
  virtual std::pair<Array<Candidate>, Array<MeasureResult>> ContinueSearchOneRound(
      int n, ProgramMeasurer measurer);
  /*!
   * \brief Rounds until `n_trials` candidates are measured, nothing is left to measure, or the last
   *        `early_stopping` of them brought nothing better (negative: never).
   * \return The best candidate that the measurer knows of this task, or null. With one trial at
   *         most, the first proposal, unmeasured.
   */
  virtual Optional<Candidate> Search(int n_trials, int early_stopping, int measures_per_round,
                                     ProgramMeasurer measurer);

  TVM_DECLARE_ABSTRACT_NODE(SearchPolicyNode, Object, "auto_scheduler.SearchPolicy",
                            Value(search_task), Value(verbose));
};

class SearchPolicy : public ObjectRef {
 public:
  TVM_DEFINE_MUTABLE_REF(SearchPolicy, ObjectRef, SearchPolicyNode);
};

/*! \brief Budget of a tuning run, who measures, and who hears of it. */
class TuningOptionsNode : public Object {
 public:
  /*! \brief Programs to measure; with one at most nothing is measured. */
  int num_measure_trials{0};
  /*! \brief Measurements without improvement after which the search ends; negative for never. */
  int early_stopping{-1};
  int num_measures_per_round{64};
  int verbose{1};
  ProgramBuilder builder;
  ProgramRunner runner;
  Array<MeasureCallback> measure_callbacks;
  /*! \brief ValueError for a number out of range. */
  void Init();
  TVM_DECLARE_NODE(TuningOptionsNode, Object, "auto_scheduler.TuningOptions",
                   Value(num_measure_trials), Value(early_stopping), Value(num_measures_per_round),
                   Value(verbose), Value(builder), Value(runner), Value(measure_callbacks));
};

class TuningOptions : public FromFields<ObjectRef, TuningOptionsNode> {
 public:
  TVM_DEFINE_NODE_REF(TuningOptions, TuningOptionsNode);
};

/*! \brief The best of SearchPolicyNode::Search with a measurer made of the options; RuntimeError if
 *         no program could be measured. */
TVM_DLL Candidate AutoSchedule(SearchPolicy policy, const TuningOptions& options);

}  // namespace auto_scheduler
}  // namespace tvm

#endif  // TVM_AUTO_SCHEDULER_SEARCH_POLICY_H_
