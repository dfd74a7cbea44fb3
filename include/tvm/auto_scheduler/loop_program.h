/*!
 * \file tvm/auto_scheduler/loop_program.h
 * \brief A lowered program as features and constraints see it: loops with one extent each, the
 *        stores below them, and the accesses of each store.
 */
#ifndef TVM_AUTO_SCHEDULER_LOOP_PROGRAM_H_
#define TVM_AUTO_SCHEDULER_LOOP_PROGRAM_H_

#include <tvm/arith/analyzer.h>
#include <tvm/arith/var_context.h>
#include <tvm/tir/function.h>
#include <tvm/tir/stmt.h>

#include <memory>
#include <string>
#include <vector>

namespace tvm {
namespace auto_scheduler {

enum class AccessType { kRead, kWrite, kReadWrite };

/*!
 * \brief One loop, or one thread axis, which acts as a parallel loop.
 *
 * `extent` is the greatest number of trips over all values of the outer loops.
 */
struct LoopInfo {
  tir::Var var;
  PrimExpr min;
  PrimExpr extent;
  tir::ForKind kind = tir::ForKind::kSerial;
  std::string thread_tag;  // empty unless it is a thread axis; "vthread" for a virtual thread

  bool is_thread() const { return !thread_tag.empty(); }
};
using LoopRef = std::shared_ptr<LoopInfo>;

/*! \brief All places where one store touches one buffer. */
struct AccessInfo {
  int buffer;  // number of the buffer in order of first mention
  AccessType type;
  std::vector<Array<PrimExpr>> indices;
  /*!
   * \brief extents[i][d]: how many values the hull of dimension d has while loops i and those
   *        inside it run; extents[loops.size()] is one body.
   */
  std::vector<std::vector<PrimExpr>> extents;
  /*! \brief touched[i]: product of extents[i], float64. */
  std::vector<PrimExpr> touched;
  /*!
   * \brief thread_steps[d]: how far the first index moves in dimension d from the first thread of
   *        a warp to the second, in the first trips of all loops: those are neighbours of
   *        threadIdx.x, or of threadIdx.y where that has one thread; empty outside of kernels.
   */
  std::vector<PrimExpr> thread_steps;
};

/*! \brief An axis whose tiles need not divide it: the guard of a store cuts the last one. */
struct CutAxis {
  PrimExpr index;
  /*! \brief Steps of the axis, and of all its tiles, int. */
  PrimExpr extent, covered;
};

/*! \brief One store with everything around it. */
struct StoreInfo {
  int buffer;
  PrimExpr value;
  std::vector<LoopRef> loops;  // outermost first
  std::vector<AccessInfo> accesses;
  PrimExpr auto_unroll_max_step;
  /*! \brief Part of the trips of all loops, float64, in which guards of the last tiles let it run;
   *         undefined where none is around it. */
  PrimExpr share;
  /*! \brief The axes that those guards cut, outermost guard first. */
  std::vector<CutAxis> cut_axes;
  /*! \brief Number of the kernel that it belongs to, -1 on the host. */
  int kernel = -1;
  /*! \brief Whether a warp computes it on tensor cores: the product of a loop marked so. */
  bool on_tensor_cores = false;
};

/*! \brief Memory that exists inside some loops. */
struct RealizeInfo {
  int buffer;
  std::vector<LoopRef> loops;
  std::vector<PrimExpr> extents;
  int kernel = -1;
  /*!
   * \brief strides[d]: elements from one of dimension d to the next, with the padding of rows that
   *        storage_align asks for; int64.
   */
  std::vector<PrimExpr> strides;

  /*!
   * \brief How many trips of the innermost loop around that has several are between the filling of
   *        a copy and its use, int64; 0 where it is filled when it is needed.
   */
  PrimExpr trips_ahead = IntImm(DataType::Int(64), 0);
  /*! \brief Whether asynchronous copies fill it ahead, rather than threads through registers. */
  bool is_async = false;

  /*! \brief Elements of one copy, padding included; int64. */
  PrimExpr size() const;
  /*! \brief Trips of the innermost loop around that has several, which are 1 if none has; int64.
   */
  PrimExpr inner_trips() const;
  /*! \brief How many copies there are: of those in flight and the one in use, as many as the loop
   *         has trips; int64. */
  PrimExpr copies() const;
};

/*! \brief How often a store runs that binds a thread axis which is bound outside of it too. */
enum class ReboundThreads {
  /*! \brief As the axis is one, its threads count once, and of virtual threads only those that a
   *         copy into shared memory depends on. */
  kOnce,
  /*! \brief Every binding counts, as in Ansor's features. */
  kMultiply,
};

struct LoopProgram {
  std::vector<tir::Buffer> buffers;
  std::vector<StoreInfo> stores;
  std::vector<RealizeInfo> realizes;
  /*! \brief Knows the knobs and the ranges of all loops. */
  std::shared_ptr<arith::Analyzer> analyzer;

  int element_bytes(int buffer) const {
    return (buffers[buffer]->dtype.bits() * buffers[buffer]->dtype.lanes() + 7) / 8;
  }
};

/*! \brief Read a program whose buffers are not flattened yet. */
LoopProgram ReadLoopProgram(const tir::PrimFunc& func, const arith::VarContext& context,
                            ReboundThreads rebound = ReboundThreads::kOnce);

/*! \brief Whether an index is without quotients, remainders, minima and choices. */
bool IsLinearIndex(const PrimExpr& index);
/*!
 * \brief How many values an index takes while `loops` run and all others stand still, int.
 *
 * Quotients and remainders count as if their operand started at a multiple of the divisor. That is
 * exact where tiles divide evenly, and elsewhere the same for a program lowered with symbols and
 * with numbers, which a sharper bound, taken where the numbers happen to allow it, would not be.
 */
PrimExpr IndexExtent(const PrimExpr& index, const std::vector<LoopRef>& loops);

// Numbers of a feature are float64: products of extents pass the range of the index type.
PrimExpr ToReal(const PrimExpr& e);
PrimExpr RealConst(double value);
/*! \brief `cond ? a : b`, decided where the condition is a constant. */
PrimExpr Choose(const PrimExpr& cond, const PrimExpr& a, const PrimExpr& b);

}  // namespace auto_scheduler
}  // namespace tvm
#endif  // TVM_AUTO_SCHEDULER_LOOP_PROGRAM_H_
