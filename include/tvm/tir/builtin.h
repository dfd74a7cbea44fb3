/*!
 * \file tvm/tir/builtin.h
 * \brief Intrinsics that passes create and code generators know, each an Op named "tir.<name>".
 */
#ifndef TVM_TIR_BUILTIN_H_
#define TVM_TIR_BUILTIN_H_

#include <tvm/ir/op.h>

namespace tvm {
namespace tir {
namespace builtin {

/*! \brief ret(value): leaves the function with this value. */
const Op& ret();
/*! \brief likely(condition): a condition that nearly always holds. */
const Op& likely();
/*! \brief if_then_else(condition, a, b): evaluates only the chosen operand; scalar condition. */
const Op& if_then_else();
/*! \brief reinterpret(value): same bits, other type. */
const Op& reinterpret();
/*! \brief fma(x, y, z): x * y + z. */
const Op& fma();
/*! \brief isnan(x). */
const Op& isnan();
const Op& bitwise_and();
const Op& bitwise_or();
const Op& bitwise_xor();
const Op& bitwise_not();
const Op& shift_left();
const Op& shift_right();
/*! \brief large_uint_imm(low32, high32): a uint64 constant that an int64 cannot hold. */
const Op& large_uint_imm();
/*! \brief address_of(BufferLoad): pointer to the element. */
const Op& address_of();
/*! \brief prefetch(address, rw, locality, cache type), as llvm.prefetch. */
const Op& prefetch();
/*! \brief call_extern(name, args...): a C function of the linked program. */
const Op& call_extern();
/*! \brief call_pure_extern: the same for a function without effects. */
const Op& call_pure_extern();
/*! \brief call_llvm_pure_intrin(name, args...): an LLVM intrinsic without effects, by full name. */
const Op& call_llvm_pure_intrin();
/*! \brief call_packed(name, args...): a global PackedFunc. */
const Op& call_packed();
/*! \brief null_handle(): the null pointer. */
const Op& null_handle();
/*! \brief isnullptr(handle). */
const Op& isnullptr();
/*!
 * \brief struct_get(handle, index, kind): field `kind` (a StructField) of element `index` of the
 * array of structs that the handle points to.
 */
const Op& struct_get();
/*! \brief error_text(format, args...): text whose "{}" are replaced by the integer arguments. */
const Op& error_text();
/*! \brief storage_sync(scope): barrier of the threads that share the scope's memory. */
const Op& storage_sync();

/*! \brief Fields that struct_get reads. */
enum StructField : int {
  /*! \brief Of a TVMAny: its type code, int32. */
  kAnyTypeCode = 0,
  /*! \brief Of a TVMAny: payload as int64, float64 or handle, by the dtype of the call. */
  kAnyValue = 1,
  /*! \brief Of a TVMAny that holds an array: pointer to its DLTensor. */
  kAnyDLTensor = 2,
  /*! \brief Of a DLTensor: data pointer, byte offset not included. */
  kArrData = 3,
  kArrNDim = 4,
  kArrDTypeCode = 5,
  kArrDTypeBits = 6,
  kArrDTypeLanes = 7,
  /*! \brief Handle to the int64 array of extents. */
  kArrShape = 8,
  /*! \brief Handle to the int64 array of strides; null for row-major. */
  kArrStrides = 9,
  kArrByteOffset = 10,
  kArrDeviceType = 11,
  kArrDeviceId = 12,
  /*! \brief Element of an int64 array. */
  kInt64Element = 13,
};

}  // namespace builtin
}  // namespace tir
}  // namespace tvm
#endif  // TVM_TIR_BUILTIN_H_
