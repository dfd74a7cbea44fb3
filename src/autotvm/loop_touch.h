/*!
 * \file loop_touch.h
 * \brief What each loop of a program does to memory, as the cost models of templates see it.
 *
 * Chen et al., "Learning to Optimize Tensor Programs" (NeurIPS 2018), section 3.2: the context of a
 * loop is its length, its place in the nest, how often it runs, and for each access below it how
 * far one step moves, how many elements the loop touches and how often it touches each of them.
 */
#ifndef TVM_AUTOTVM_LOOP_TOUCH_H_
#define TVM_AUTOTVM_LOOP_TOUCH_H_

#include <tvm/tir/stmt.h>

#include <map>
#include <string>
#include <vector>

namespace tvm {
namespace autotvm {

/*! \brief How a loop runs; the order is that of the columns. */
enum class LoopKind : int {
  kBlockX,
  kBlockY,
  kBlockZ,
  kThreadX,
  kThreadY,
  kThreadZ,
  kUnrolled,
  kVectorized,
  kParallel,
  kSerial,
  kVirtualThread,
  kCount,
};

/*! \brief One access to a buffer, seen from one loop around it. */
struct Touch {
  /*! \brief Elements that one step of the loop moves the access by. */
  int64_t stride{0};
  /*! \brief Modulus of the index in the loop's variable, -1 if there is none. */
  int64_t mod{-1};
  /*! \brief Elements that the whole loop touches, and how often each. */
  int64_t count{1};
  int64_t reuse{1};
  /*! \brief The same of the threads in this loop, 0 if none of the loops in it is a thread. */
  int64_t thread_count{0};
  int64_t thread_reuse{0};
};

/*! \brief A loop, in the order in which the program enters loops. */
struct LoopTouch {
  tir::Var var;
  LoopKind kind{LoopKind::kSerial};
  int64_t length{1};
  /*! \brief 1 for an outermost loop. */
  int64_t nest_level{1};
  /*! \brief Iterations of this loop and all around it; of this loop and the deepest nest in it. */
  int64_t topdown{1};
  int64_t bottomup{1};
  /*! \brief Operations written directly below this loop. */
  int64_t add{0};
  int64_t mul{0};
  int64_t div{0};
  /*! \brief By name of the access: the buffer's name and its number among the buffer's accesses. */
  std::map<std::string, Touch> touches;
};

/*!
 * \brief All loops of a program, threads and virtual threads included.
 * \param body Loops over buffers of constant shape, before any of them is flattened.
 */
std::vector<LoopTouch> AnalyzeLoops(const tir::Stmt& body);

}  // namespace autotvm
}  // namespace tvm

#endif  // TVM_AUTOTVM_LOOP_TOUCH_H_
