/*!
 * \file codegen/large_uint.h
 * \brief Unsigned literals beyond int64, which are calls in the IR.
 */
#ifndef TVM_CODEGEN_LARGE_UINT_H_
#define TVM_CODEGEN_LARGE_UINT_H_

#include <tvm/expr/op.h>
#include <tvm/runtime/logging.h>

#include <cstdint>

namespace tvm {
namespace codegen {

/*! \brief Value of a `large_uint_imm`, whose arguments are its low and its high 32 bits. */
inline uint64_t LargeUIntValue(const tir::CallNode* op) {
  const int64_t* low = op->args.size() == 2 ? tir::as_const_int(op->args[0]) : nullptr;
  const int64_t* high = low != nullptr ? tir::as_const_int(op->args[1]) : nullptr;
  TVM_CHECK(high != nullptr, ValueError)
      << "large_uint_imm takes two constants, the low and the high 32 bits";
  return static_cast<uint64_t>(*high) << 32 | (static_cast<uint64_t>(*low) & 0xFFFFFFFFu);
}

}  // namespace codegen
}  // namespace tvm

#endif  // TVM_CODEGEN_LARGE_UINT_H_
