/*!
 * \file graph.h
 * \brief The dataflow graph of operations, and where stages are attached.
 */
#ifndef TVM_TE_SCHEDULE_GRAPH_H_
#define TVM_TE_SCHEDULE_GRAPH_H_

#include <tvm/te/schedule.h>

#include <string>
#include <vector>

namespace tvm {
namespace te {

/*! \brief Everything `outputs` depend on, producers before readers; the same order every time. */
std::vector<Operation> OperationsInOrder(const Array<Operation>& outputs);

/*! \brief The stages that read each tensor, in schedule order. */
TensorMap<std::vector<Stage>> ReadersOfTensors(const Schedule& sch);

/*!
 * \brief Loops of other stages around `stage`, innermost first.
 *
 * Raises ScheduleError when an attach point is no loop any more.
 */
std::vector<IterVar> LoopsAround(const Stage& stage);

/*! \brief Make a stage or a group a member of `group`, and no longer of the one it is in. */
void JoinGroup(const Stage& stage, const Stage& group);

/*! \brief Name of the stage's operation, or what a group is called. */
std::string StageName(const Stage& stage);

/*! \brief Names of the stages' operations, for messages. */
std::string StageNames(const Schedule& sch);

}  // namespace te
}  // namespace tvm
#endif  // TVM_TE_SCHEDULE_GRAPH_H_
