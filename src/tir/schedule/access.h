/*!
 * \file access.h
 * \brief What a block reads and writes, and what kind of computation that makes it.
 */
#ifndef TVM_SRC_TIR_SCHEDULE_ACCESS_H_
#define TVM_SRC_TIR_SCHEDULE_ACCESS_H_

#include <memory>
#include <vector>

#include "tree.h"

namespace tvm {
namespace tir {
namespace sched {

/*! \brief One access of a buffer, in terms of the block's variables. */
struct Touch {
  Buffer buffer;
  Array<PrimExpr> indices;
};

bool Has(const std::vector<Buffer>& buffers, const Buffer& buffer);

/*! \brief Accesses of a statement. */
struct Access {
  std::vector<Touch> reads, writes;
  /*! \brief Buffers, each once, in order. */
  std::vector<Buffer> read, written;
  /*! \brief Whether there may be accesses that are not listed. */
  bool opaque = false;
  bool conditional = false;

  bool Reads(const Buffer& buffer) const { return Has(read, buffer); }
  bool Writes(const Buffer& buffer) const { return Has(written, buffer); }
};

/*! \brief Computations by what may be done to them. */
enum class BlockKind {
  /*! \brief Writes every element once, from others. */
  kComplete,
  /*! \brief Sets elements to their first values and combines more into them in any order. */
  kReduction,
  /*! \brief A reduction whose first values another block wrote. */
  kUpdate,
  /*! \brief All else. */
  kOpaque,
};

/*! \brief What a leaf block (or a statement) accesses; for other nodes all that is below. */
std::shared_ptr<const Access> AccessOf(const Tree& tree, Id id);
/*! \brief Buffers that AccessOf finds written, and those it finds read. */
std::vector<Buffer> WrittenBy(const Tree& tree, Id id);
std::vector<Buffer> ReadBy(const Tree& tree, Id id);
/*! \brief The kind of a leaf block, judged by its body and not by what it declares. */
BlockKind KindOf(const Tree& tree, Id block);
/*! \brief Whether what a block of a known kind accesses is what it declares, not what it holds. */
bool IsSealed(const Tree& tree, Id block);
/*! \brief Whether the order in which a block runs decides on what it writes. */
bool WritesPinned(const Tree& tree, Id block);
/*! \brief Whether an expression loads from a buffer. */
bool ReadsMemory(const PrimExpr& expr);
/*! \brief Whether a statement may leave out some of the reads it holds. */
bool Chooses(const Stmt& stmt);
bool SameIndices(const Array<PrimExpr>& a, const Array<PrimExpr>& b);
/*! \brief Whether the instances of a block of a known kind write all of `buffer`. */
bool WritesEveryElement(const Tree& tree, Id block, const Buffer& buffer);

}  // namespace sched
}  // namespace tir
}  // namespace tvm
#endif  // TVM_SRC_TIR_SCHEDULE_ACCESS_H_
