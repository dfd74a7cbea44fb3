/*!
 * \file primitive_table.h
 * \brief Primitives as rows: arguments, what they return, and what they do.
 */
#ifndef TVM_SRC_TIR_SCHEDULE_PRIMITIVE_TABLE_H_
#define TVM_SRC_TIR_SCHEDULE_PRIMITIVE_TABLE_H_

#include <tvm/tir/index_map.h>
#include <tvm/tir/schedule/schedule.h>

#include <string>
#include <vector>

#include "random.h"
#include "tree.h"

namespace tvm {
namespace tir {
namespace sched {

/*! \brief What an argument has to be. */
enum class ArgumentKind {
  kBlock,
  kLoop,
  /*! \brief A loop, or a place that sample_compute_location returned. */
  kPlace,
  kBlockOrLoop,
  /*! \brief A loop, a block, or a list of blocks. */
  kBlocksOrLoop,
  kLoops,
  /*! \brief A list of blocks, or None. */
  kBlocks,
  /*! \brief A whole number, or an expression of sampled ones. */
  kInt,
  /*! \brief A list of extents, of which None is to be inferred. */
  kSizes,
  kInts,
  kReals,
  kBool,
  kText,
  /*! \brief A text, or None. */
  kOptionalText,
  /*! \brief A thread axis: its tag, or an IterVar that has one. */
  kThread,
  /*! \brief Anything that an annotation can be. */
  kValue,
  /*! \brief One of the buffers of a block: a list of "read" or "write" and a position. */
  kBufferOf,
  kIndexMap,
  /*! \brief A number, an index map with one result, or None. */
  kPadValue,
};

struct Argument {
  const char* name;
  ArgumentKind kind;
  /*! \brief Whether it need not be given, and what it is then. */
  bool optional = false;
  Any otherwise = Any();
};

/*! \brief One result: a node of the tree, a number, or a place that is no loop. */
struct Result {
  enum Kind { kNode, kNumber, kPlace } kind;
  int64_t value;
};

/*! \brief A primitive in the course of being applied: its arguments, resolved, and its results. */
class Call {
 public:
  virtual ~Call() = default;
  /*! \brief The function that the nodes among the arguments are in. */
  virtual Tree* tree() = 0;
  /*! \brief The same for one that the primitive changes. */
  virtual Tree* Change() = 0;
  /*! \brief The function of that name. */
  virtual Tree* TreeOf(const String& function) = 0;
  virtual RandomState* random() = 0;
  virtual int64_t Number(const Any& value) const = 0;
  /*! \brief An index map with the numbers that were sampled in the place of their variables. */
  virtual IndexMap MapOf(size_t i) const = 0;

  /*! \brief A node, or the only one of a list. */
  Id node(size_t i) const { return nodes_[i].at(0); }
  const Ids& nodes(size_t i) const { return nodes_[i]; }
  const Any& value(size_t i) const { return values_[i]; }
  template <typename T>
  T get(size_t i) const {
    return values_[i].cast<T>();
  }
  /*! \brief Have another value in the trace. */
  void Record(size_t i, Any value) { values_[i] = std::move(value); }

  void Give(Id id) { results.push_back({Result::kNode, id}); }
  void Give(const Ids& ids) {
    for (Id id : ids) Give(id);
  }
  void GiveNumber(int64_t number) { results.push_back({Result::kNumber, number}); }
  void GivePlace(int64_t place) { results.push_back({Result::kPlace, place}); }

  std::vector<Result> results;
  /*! \brief Of a primitive that samples: what to draw, and then what was drawn. */
  Any decision;

 protected:
  std::vector<Any> values_;
  std::vector<Ids> nodes_;
};

struct Primitive {
  InstructionKind kind;
  std::vector<Argument> arguments;
  void (*apply)(Call* call);
};

/*! \brief The primitive of a kind; ValueError if there is none. */
const Primitive& PrimitiveOf(const InstructionKind& kind);
/*! \brief Position of an argument; ValueError that lists those there are. */
size_t ArgumentNamed(const InstructionKind& kind, const std::string& name);

}  // namespace sched
}  // namespace tir
}  // namespace tvm
#endif  // TVM_SRC_TIR_SCHEDULE_PRIMITIVE_TABLE_H_
