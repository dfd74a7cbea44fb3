/*!
 * \file loop_relations.h
 * \brief Walks over the relations between a stage's loops, and the threads that loops are bound to.
 */
#ifndef TVM_TE_SCHEDULE_LOOP_RELATIONS_H_
#define TVM_TE_SCHEDULE_LOOP_RELATIONS_H_

#include <tvm/te/schedule.h>

namespace tvm {
namespace te {

/*! \brief Thread axis that `loop` is or is bound to, or undefined. */
inline IterVar BoundThread(const Stage& stage, const IterVar& loop) {
  if (loop->iter_type == tir::kThreadIndex) return loop;
  auto it = stage->iter_var_attrs.find(loop);
  return it == stage->iter_var_attrs.end() ? IterVar() : (*it).second->bind_thread;
}

/*! \brief Functions of relations of different kinds as one; those of no case are passed over. */
template <typename... Case>
struct RelationCases : Case... {
  using Case::operator()...;
  void operator()(const Object*) const {}
};
template <typename... Case>
RelationCases(Case...) -> RelationCases<Case...>;

template <typename Cases>
void VisitRelation(const IterVarRelation& relation, const Cases& cases) {
  if (const auto* split = relation.as<SplitNode>()) return cases(split);
  if (const auto* fuse = relation.as<FuseNode>()) return cases(fuse);
  if (const auto* rebase = relation.as<RebaseNode>()) return cases(rebase);
  cases(relation.as<SingletonNode>());
}

/*! \brief Calls the case of each relation, from the axes of the operation to the generated loops.
 */
template <typename... Case>
void WalkDown(const StageNode* stage, Case... cases) {
  RelationCases all{cases...};
  for (const IterVarRelation& relation : stage->relations) VisitRelation(relation, all);
}

/*! \brief The same from the generated loops to the axes. */
template <typename... Case>
void WalkUp(const StageNode* stage, Case... cases) {
  RelationCases all{cases...};
  for (size_t i = stage->relations.size(); i != 0; --i) {
    VisitRelation(stage->relations[i - 1], all);
  }
}

}  // namespace te
}  // namespace tvm
#endif  // TVM_TE_SCHEDULE_LOOP_RELATIONS_H_
