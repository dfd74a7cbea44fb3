/*!
 * \file kernel_facts.h
 * \brief What a kernel asks of a multiprocessor, and what its stores move, as expressions in knobs.
 */
#ifndef TVM_AUTO_SCHEDULER_SPACE_GPU_KERNEL_FACTS_H_
#define TVM_AUTO_SCHEDULER_SPACE_GPU_KERNEL_FACTS_H_

#include <tvm/auto_scheduler/loop_program.h>
#include <tvm/target/machine.h>

#include <set>
#include <vector>

namespace tvm {
namespace auto_scheduler {

/*! \brief One kernel of a program. All expressions are int64 and >= 1 unless said otherwise. */
struct KernelFacts {
  PrimExpr blocks, threads, virtual_threads;
  /*! \brief Bytes of shared memory of a block, >= 0. */
  PrimExpr shared_bytes;
  /*!
   * \brief Registers of one thread: accumulators, operands of one step of the reduction, indices.
   *
   * An estimate; what a compiler takes is in the resources of the built kernel.
   */
  PrimExpr registers;
  /*! \brief Statements that are written out in the longest loop body. */
  PrimExpr body;
  /*! \brief Blocks that fit one multiprocessor at a time; 0 where not even one does. */
  PrimExpr resident_blocks;
};

/*!
 * \brief Buffers that a warp holds in fragments of tensor cores: the sums of products marked so and
 *        their operands. A store that touches one is carried out by a warp, not by a thread.
 */
std::set<int> FragmentBuffers(const LoopProgram& program);

/*! \brief Whether a store moves elements between fragments and memory, or fills fragments. */
bool MovesFragments(const std::set<int>& fragments, const StoreInfo& store);

/*! \brief How many kernels a program has. */
int CountKernels(const LoopProgram& program);
/*! \brief The kernel of the stores with this StoreInfo::kernel. */
KernelFacts KernelOf(const LoopProgram& program, int kernel, const MachineFacts& machine);
/*! \brief KernelFacts::resident_blocks of a kernel whose other facts are known. */
PrimExpr ResidentBlocks(const KernelFacts& facts, const MachineFacts& machine);

/*! \brief How one store moves data of one buffer. All float64. */
struct Movement {
  /*! \brief Bytes that all threads load or store, each element once per pass of the loops that are
   *         written out. */
  PrimExpr bytes;
  /*! \brief Bytes that the buffer has under the whole store. */
  PrimExpr unique_bytes;
  /*! \brief Bytes moved for each byte asked for: sectors of global memory, of which a warp that
   *         reads one element needs one; banks of shared memory. */
  PrimExpr waste;
};

/*! \brief Which memory an access is to. */
enum class Memory { kGlobal, kShared, kRegisters };
Memory MemoryOf(const LoopProgram& program, const AccessInfo& access);

Movement MovementOf(const LoopProgram& program, const StoreInfo& store, const AccessInfo& access,
                    const MachineFacts& machine);

/*! \brief Bytes that cross a level of memory, and how much more than was asked for. float64. */
struct Traffic {
  PrimExpr memory, cache, shared;
  /*! \brief The waste of the worst access, 1 where none wastes. */
  PrimExpr uncoalesced, bank_conflicts;
};

/*! \brief What the stores with these numbers move together. */
Traffic TrafficOf(const LoopProgram& program, const std::vector<size_t>& stores,
                  const MachineFacts& machine);

}  // namespace auto_scheduler
}  // namespace tvm

#endif  // TVM_AUTO_SCHEDULER_SPACE_GPU_KERNEL_FACTS_H_
