/*!
 * \file tvm/felix/tape.h
 * \brief Tape: a set of scalar expressions as one flat list of operations in static single
 *        assignment form.
 *
 * Entry i applies `ops[i]` to entries `args[3*i .. 3*i+2]`, all of which come before i. Equal
 * entries are stored once, so common subexpressions are shared between all roots. This is the form
 * in which expressions are simplified, saved, evaluated and differentiated.
 */
#ifndef TVM_FELIX_TAPE_H_
#define TVM_FELIX_TAPE_H_

#include <cstdint>
#include <string>
#include <vector>

namespace tvm {
namespace felix {

/*! \brief Operations of a tape. The numbers are part of the saved format. */
enum class TapeOp : uint8_t {
  kIntConst = 0,   // payload is the value
  kRealConst = 1,  // payload is the bit pattern of a double
  kVar = 2,        // payload is the index into the variable table
  kAdd = 3,
  kSub = 4,
  kMul = 5,
  kDiv = 6,  // real quotient
  kFloorDiv = 7,
  kFloorMod = 8,
  kMin = 9,
  kMax = 10,
  kPow = 11,
  kLog = 12,  // natural logarithm
  kExp = 13,
  kSqrt = 14,
  // Booleans are the numbers 0 and 1.
  kLt = 15,
  kLe = 16,
  kEq = 17,
  kNe = 18,
  kAnd = 19,
  kOr = 20,
  kNot = 21,
  kSelect = 22,   // condition, value if true, value if false
  kSigmoid = 23,  // 1/2 + x / (2 sqrt(1 + x^2))
  kHump = 24,     // 1 / sqrt(1 + x^2)
  kAbs = 25,
  kCeil = 26,
  kFloor = 27,
};

/*! \brief Number of tape operations; valid codes are smaller. */
inline constexpr int kNumTapeOps = 28;

/*! \brief How many of the three argument slots an operation reads. */
inline constexpr int TapeArity(TapeOp op) {
  switch (op) {
    case TapeOp::kIntConst:
    case TapeOp::kRealConst:
    case TapeOp::kVar:
      return 0;
    case TapeOp::kLog:
    case TapeOp::kExp:
    case TapeOp::kSqrt:
    case TapeOp::kNot:
    case TapeOp::kSigmoid:
    case TapeOp::kHump:
    case TapeOp::kAbs:
    case TapeOp::kCeil:
    case TapeOp::kFloor:
      return 1;
    case TapeOp::kSelect:
      return 3;
    default:
      return 2;
  }
}

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

}  // namespace felix
}  // namespace tvm
#endif  // TVM_FELIX_TAPE_H_
