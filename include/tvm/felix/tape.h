/*!
 * \file tvm/felix/tape.h
 * \brief Tape: a set of scalar expressions as one flat list of operations in static single
 *        assignment form.
 *
 * Entry i applies `ops[i]` to entries `args[3*i .. 3*i+2]`, all of which come before i. Equal
 * entries are stored once, so common subexpressions are shared between all roots. This is the form
 * in which expressions are simplified, saved, evaluated and differentiated. What an operation is
 * says tape_ops.def.
 */
#ifndef TVM_FELIX_TAPE_H_
#define TVM_FELIX_TAPE_H_

#include <tvm/node/node.h>
#include <tvm/runtime/ndarray.h>

#include <cstdint>
#include <string>
#include <vector>

namespace tvm {
namespace felix {

/*! \brief Operations of a tape, kIntConst to kMix. */
enum class TapeOp : uint8_t {
#define TVM_TAPE_LEAF(code, Name) k##Name = code,
#define TVM_TAPE_OP(code, Name, ...) k##Name = code,
#include <tvm/felix/tape_ops.def>
};

/*! \brief A row of tape_ops.def; the formulas are their text. */
struct TapeOpInfo {
  TapeOp op;
  const char* name;
  int arity = 0;
  bool commutes = false;
  int cost = 0;
  const char* value = "";
  const char* derivatives[3] = {"0.0", "0.0", "0.0"};
};

/*! \brief All rows, in the order of the table. */
const std::vector<TapeOpInfo>& TapeOps();
/*! \brief The row of a code, null if there is none. */
const TapeOpInfo* FindTapeOp(uint8_t code);

/*! \brief How many of the three argument slots an operation reads. */
inline int TapeArity(TapeOp op) { return FindTapeOp(static_cast<uint8_t>(op))->arity; }

/*! \brief A variable of a tape. The range is closed; an end may be infinite. */
struct TapeVar {
  std::string name;
  bool is_integer = true;
  double lower = 0;
  double upper = 0;
};

/*! \brief The flat arrays. `args` holds three indices per entry, -1 where a slot is unused. */
struct TapeData {
  std::vector<uint8_t> ops;
  std::vector<int32_t> args;
  std::vector<int64_t> payload;
  std::vector<int32_t> roots;
  std::vector<TapeVar> vars;

  int32_t size() const { return static_cast<int32_t>(ops.size()); }
};

/*! \brief A tape as an object: what crosses languages and is saved. */
class TapeNode : public Object {
 public:
  runtime::NDArray ops;      // uint8[n]
  runtime::NDArray args;     // int32[n, 3]
  runtime::NDArray payload;  // int64[n]
  runtime::NDArray roots;    // int32[m]
  Array<String> var_names;
  runtime::NDArray var_lower;    // float64[v]
  runtime::NDArray var_upper;    // float64[v]
  runtime::NDArray var_integer;  // uint8[v], 0 or 1
  /*! \brief ValueError or TypeError that names what is malformed. */
  void Init();
  TVM_DECLARE_NODE(TapeNode, Object, "felix.Tape", Value(ops), Value(args), Value(payload),
                   Value(roots), Value(var_names), Value(var_lower), Value(var_upper),
                   Value(var_integer));
};

class Tape : public ObjectRef {
 public:
  explicit Tape(const TapeData& data);
  /*! \brief The arrays, checked; ValueError or TypeError names what is malformed. */
  TapeData Data() const;
  TVM_DEFINE_REF(Tape, ObjectRef, TapeNode);
};

}  // namespace felix
}  // namespace tvm
#endif  // TVM_FELIX_TAPE_H_
