/*!
 * \file tvm/expr/builtin.h
 * \brief Intrinsics that passes create and code generators know, each an Op named "tir.<name>".
 */
#ifndef TVM_EXPR_BUILTIN_H_
#define TVM_EXPR_BUILTIN_H_

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
/*!
 * \brief vscale(): by what the processor multiplies the lanes of scalable vectors, at least 1; one
 * number for the whole run.
 */
const Op& vscale();
/*!
 * \brief get_active_lane_mask(base, limit): for each lane of the vector of booleans that the call
 * is, whether base plus its number is below the limit.
 */
const Op& get_active_lane_mask();
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
/*!
 * \brief tvm_access_ptr(type, data, offset, extent, mask): pointer to `extent` elements from
 * `offset` on, which the callee reads (mask bit 1) or writes (mask bit 2). The element type is that
 * of the first argument, a type_annotation. StorageFlatten turns it into address_of.
 */
const Op& tvm_access_ptr();
/*! \brief type_annotation(): no value, carries the dtype of the call. */
const Op& type_annotation();
/*! \brief tvm_tuple(args...): several values as the value of an attribute. */
const Op& tvm_tuple();
/*! \brief prefetch(address, rw, locality, cache type), as llvm.prefetch. */
const Op& prefetch();
/*! \brief call_extern(name, args...): a C function of the linked program. */
const Op& call_extern();
/*! \brief call_pure_extern: the same for a function without effects. */
const Op& call_pure_extern();
/*! \brief call_llvm_pure_intrin(name, args...): an LLVM intrinsic without effects, by full name. */
const Op& call_llvm_pure_intrin();
/*! \brief call_llvm_intrin: the same for an intrinsic with effects. */
const Op& call_llvm_intrin();
/*!
 * \brief tvm_call_packed(name, args...): a PackedFunc of an imported module, else a global one.
 *
 * Arguments: numbers, StringImm, and handles (data pointers, passed as opaque handles).
 */
const Op& tvm_call_packed();
/*!
 * \brief tvm_call_packed_lowered(name, stack, begin, end): the same with arguments
 * [begin, end) of an array of TVMAny; element `end` receives the result.
 */
const Op& tvm_call_packed_lowered();
/*!
 * \brief tvm_stack_alloca(kind, count): handle to memory that lasts until the function returns.
 * `kind` is the StringImm "tvm_any" for an array of TVMAny.
 */
const Op& tvm_stack_alloca();
/*! \brief null_handle(): the null pointer. */
const Op& null_handle();
/*! \brief isnullptr(handle). */
const Op& isnullptr();
/*!
 * \brief tvm_struct_get(handle, index, kind): field `kind` (a StructField) of element `index` of
 * the array of structs that the handle points to.
 */
const Op& tvm_struct_get();
/*! \brief tvm_struct_set(handle, index, kind, value): writes what tvm_struct_get reads. */
const Op& tvm_struct_set();
/*! \brief error_text(format, args...): text whose "{}" are replaced by the integer arguments. */
const Op& error_text();
/*! \brief tvm_storage_sync(scope): barrier of the threads that share the scope's memory. */
const Op& tvm_storage_sync();
/*!
 * \brief tvm_thread_allreduce(count, source_1.., condition, result_1.., thread_1..): reduces
 * `count` values over the threads of the block that differ in the given thread variables only.
 *
 * Sources are expressions that count where `condition` holds; results are loads of the one-element
 * buffers that receive the values, in every thread. The combiner is the node of an enclosing
 * attribute `reduce_scope`. LowerThreadAllreduce replaces it.
 */
const Op& tvm_thread_allreduce();
/*! \brief tvm_warp_activemask(): one bit per thread of the warp that is here, uint32. */
const Op& tvm_warp_activemask();
/*!
 * \brief tvm_warp_shuffle(mask, value, lane, width, warp_size): `value` of thread `lane` of the
 * group of `width` neighbouring threads. For `_up` and `_down` the third argument is a distance,
 * and threads without a partner keep their own value.
 */
const Op& tvm_warp_shuffle();
const Op& tvm_warp_shuffle_up();
const Op& tvm_warp_shuffle_down();
/*! \brief tvm_fill_fragment(data, m, n, k, index, value): fragment `index` of array `data`. */
const Op& tvm_fill_fragment();
/*!
 * \brief tvm_load_matrix_sync(data, m, n, k, index, address, stride, layout): fragment from memory
 * whose rows (layout "row_major") or columns ("col_major") are `stride` elements apart.
 */
const Op& tvm_load_matrix_sync();
/*! \brief tvm_mma_sync(d, id, a, ia, b, ib, c, ic): d[id] = a[ia] * b[ib] + c[ic]. */
const Op& tvm_mma_sync();
/*! \brief tvm_store_matrix_sync(data, m, n, k, index, address, stride, layout). */
const Op& tvm_store_matrix_sync();

/*! \brief Fields that tvm_struct_get reads and tvm_struct_set writes. */
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

namespace attr {
/*!
 * \brief Key of an AttrStmt whose node is the array [block, buffer]: in the body `block` is the
 * region of `buffer` that the value names, a tvm_tuple of minimum and extent per axis. Variables
 * that `block` declares as its data, offset, shape or strides get the values of that region.
 */
constexpr const char* buffer_bind_scope = "buffer_bind_scope";
}  // namespace attr
}  // namespace tir
}  // namespace tvm
#endif  // TVM_EXPR_BUILTIN_H_
