/*!
 * \file dataflow.h
 * \brief Who writes and who reads which buffer, and what may run at once because of it.
 */
#ifndef TVM_SRC_TIR_SCHEDULE_DATAFLOW_H_
#define TVM_SRC_TIR_SCHEDULE_DATAFLOW_H_

#include "access.h"

namespace tvm {
namespace tir {
namespace sched {

/*!
 * \brief Blocks and statements that write and that read one buffer, in the order of the program.
 *
 * A block that only reads what it wrote itself is no reader.
 */
struct Flow {
  Buffer buffer;
  Ids writers, readers;
  /*! \brief All of them, each once. */
  Ids Users() const;
};

/*! \brief The flow of every buffer that is accessed, in the order of the program. */
class Flows {
 public:
  explicit Flows(const Tree& tree);
  /*! \brief The flow of a buffer, which is empty if nothing accesses it. */
  const Flow& operator[](const Buffer& buffer) const;
  auto begin() const { return flows_.begin(); }
  auto end() const { return flows_.end(); }

 private:
  std::vector<Flow> flows_;
  std::unordered_map<const BufferNode*, size_t> index_;
};

/*! \brief Places of nodes in the order of the program, by their numbers. */
class Order {
 public:
  explicit Order(const Tree& tree);
  bool IsBefore(Id a, Id b) const { return at_.at(a) < at_.at(b); }

 private:
  std::unordered_map<Id, size_t> at_;
};

/*! \brief Loops around both nodes, outermost first. */
Ids CommonLoops(const Tree& tree, Id a, Id b);

/*! \brief Whether a reader finds final values, written in the same iteration of common loops. */
bool SeesFinished(const Tree& tree, Id writer, Id reader, const Buffer& buffer);

/*!
 * \brief Find out, of a function as it is given, what the rest relies on: what is `given` and
 *        covered for each block, which pairs of blocks are one reduction, which buffers are pinned.
 */
void Prepare(Tree* tree);

/*! \brief Why loops whose iterations run at once cannot be shown to be independent. */
std::vector<std::string> ParallelismDoubts(const Tree& tree);

/*!
 * \brief Refuse loops whose iterations run at once but depend on each other.
 *
 * What was in doubt when the function was given is taken on its author's word.
 */
void CheckParallelism(const Tree& tree);

}  // namespace sched
}  // namespace tir
}  // namespace tvm
#endif  // TVM_SRC_TIR_SCHEDULE_DATAFLOW_H_
