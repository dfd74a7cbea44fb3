"""Calls that lowered programs are made of: argument tuples, structs, threads, fragments."""

from __future__ import annotations

from typing import Any

from tvm.runtime import DataType, convert

from .buffer import Buffer
from .expr import Call, Cast, StringImm
from .op import call_intrin

__all__ = [
    "TVMBackendAllocWorkspace",
    "TVMBackendFreeWorkspace",
    "assume",
    "end_profile_intrinsic",
    "get_active_lane_mask",
    "get_vscale_expr",
    "ignore_loop_partition",
    "is_vscale",
    "lookup_param",
    "start_profile_intrinsic",
    "tvm_access_ptr",
    "tvm_bmma_sync",
    "tvm_check_return",
    "tvm_fill_fragment",
    "tvm_load_matrix_sync",
    "tvm_mma_sync",
    "tvm_stack_alloca",
    "tvm_stack_make_array",
    "tvm_stack_make_shape",
    "tvm_storage_sync",
    "tvm_store_matrix_sync",
    "tvm_struct_get",
    "tvm_struct_set",
    "tvm_thread_allreduce",
    "tvm_thread_invariant",
    "tvm_throw_last_error",
    "tvm_tuple",
    "tvm_warp_activemask",
    "tvm_warp_shuffle",
    "tvm_warp_shuffle_down",
    "tvm_warp_shuffle_up",
    "type_annotation",
    "undef",
    "vectorcombine",
    "vectorhigh",
    "vectorlow",
    "vscale",
]


def vscale(dtype: str = "int32") -> Call:
    """By what the processor multiplies the lanes of scalable vectors, at least 1.

    ``4 * vscale()`` lanes of float32 fill a vector of ARM's SVE, of whatever length it is. Machines
    without scalable vectors take it for 1.
    """
    return call_intrin(dtype, "tir.vscale")


def is_vscale(expr: Any) -> bool:
    """Whether an expression is a call of ``vscale()``."""
    return isinstance(expr, Call) and getattr(expr.op, "name", "") == "tir.vscale"


def get_vscale_expr(dtype: Any, min_size: int = 128) -> Any:
    """How many elements of a type fill a scalable vector of at least `min_size` bits.

    >>> from tvm import tir
    >>> tir.get_vscale_expr("float32")
    T.vscale() * 4
    """
    return vscale() * (min_size // DataType(str(dtype)).bits)


def get_active_lane_mask(dtype: str, base: Any, limit: Any) -> Call:
    """For each lane of the vector type `dtype`, whether `base` plus its number is below `limit`."""
    return call_intrin(dtype, "tir.get_active_lane_mask", base, limit)


def assume(cond: Any) -> Call:
    """States that a condition holds here."""
    return call_intrin("bool", "tir.assume", cond)


def undef() -> Call:
    """No value in particular: a store of it may leave the element as it is."""
    return call_intrin("int32", "tir.undef")


def start_profile_intrinsic(id: int) -> Call:
    """Begin of the part of a program that a profile calls `id`."""
    return call_intrin("handle", "tir.start_profile_intrinsic", id)


def end_profile_intrinsic(id: int) -> Call:
    """End of the part of a program that a profile calls `id`."""
    return call_intrin("handle", "tir.end_profile_intrinsic", id)


def vectorlow(dtype: str, vec: Any) -> Call:
    """The lower half of the lanes of `vec`, of type `dtype`."""
    return call_intrin(_half_of(dtype, vec), "tir.vectorlow", vec)


def vectorhigh(dtype: str, vec: Any) -> Call:
    """The upper half of the lanes of `vec`, of type `dtype`."""
    return call_intrin(_half_of(dtype, vec), "tir.vectorhigh", vec)


def vectorcombine(dtype: str, vec1: Any, vec2: Any) -> Call:
    """The lanes of `vec1`, then those of `vec2`, as a vector of type `dtype`."""
    _half_of(vec1.dtype, vec1, dtype)
    _half_of(vec2.dtype, vec2, dtype)
    return call_intrin(dtype, "tir.vectorcombine", vec1, vec2)


def _half_of(dtype: str, vec: Any, whole: str | None = None) -> str:
    """`dtype`, which must have half as many lanes as `whole`, by default the type of `vec`."""
    half, full = DataType(dtype), DataType(whole or vec.dtype)
    if half.with_lanes(1) != full.with_lanes(1) or 2 * half.lanes != full.lanes:
        raise TypeError(f"{half} is not half of a vector of {full}")
    return dtype


def type_annotation(dtype: str) -> Call:
    """An element type as an argument; its value is never computed."""
    return call_intrin(dtype, "tir.type_annotation")


def tvm_access_ptr(ptype: Any, data: Any, offset: Any, extent: Any, rw_mask: int) -> Call:
    """The address of an element of a buffer, and what is accessed from there.

    Parameters
    ----------
    ptype : element type, or `type_annotation` of it.
    data : the buffer's pointer.
    offset, extent : the first element, and the number of elements.
    rw_mask : 1 for reading, 2 for writing, 3 for both.
    """
    kind = type_annotation(ptype) if isinstance(ptype, str) else ptype
    return call_intrin("handle", "tir.tvm_access_ptr", kind, data, offset, extent, rw_mask)


def tvm_tuple(*value: Any) -> Call:
    """Several values as one, in the value of an attribute."""
    return call_intrin("handle", "tir.tvm_tuple", *value)


def tvm_struct_get(arr: Any, index: Any, field: int, dtype: str) -> Call:
    """Field number `field` of struct `index` in an array of structs."""
    return call_intrin(dtype, "tir.tvm_struct_get", arr, index, field)


def tvm_struct_set(arr: Any, index: Any, field: int, value: Any) -> Call:
    """Store `value` in a field of struct `index` in an array of structs."""
    return call_intrin("int32", "tir.tvm_struct_set", arr, index, field, value)


def tvm_stack_alloca(dtype_str: str, num: int) -> Call:
    """Room on the stack for `num` items of a kind: "shape", "array", "arg_value", "arg_tcode"."""
    return call_intrin("handle", "tir.tvm_stack_alloca", StringImm(dtype_str), num)


def tvm_stack_make_shape(*args: Any) -> Call:
    """Extents, or strides, of `tvm_stack_make_array`."""
    return call_intrin("handle", "tir.tvm_stack_make_shape", *args)


def tvm_stack_make_array(
    data: Any, shape: Any, strides: Any, ndim: Any, arr_dtype: Any, elem_offset: Any
) -> Call:
    """A DLTensor on the stack, as an argument of `call_packed`.

    Parameters
    ----------
    data : pointer to the elements.
    shape : `tvm_stack_make_shape` of `ndim` extents.
    strides : the same of strides, in elements, or 0 for an array without gaps.
    ndim : number of axes, constant.
    arr_dtype : a value of the element type, such as ``tir.const(0, "float32")``.
    elem_offset : element of `data` at which the array begins.
    """
    return call_intrin(
        "handle", "tir.tvm_stack_make_array", data, shape, strides, ndim, arr_dtype, elem_offset
    )


def lookup_param(param_name: str, span: Any = None) -> Call:
    """Pointer to the constant ``__tvm_param__name`` of the program that is linked."""
    return call_intrin("handle", "tir.lookup_param", StringImm(param_name), span=span)


def tvm_check_return(expected: int, return_unexpected: int, nested_call: Any) -> Call:
    """Leave the function with `return_unexpected` unless `nested_call` gives `expected`."""
    return call_intrin("int32", "tir.tvm_check_return", expected, return_unexpected, nested_call)


def tvm_throw_last_error() -> Call:
    """Leave the function with the error that the runtime kept last."""
    return call_intrin("handle", "tir.tvm_throw_last_error")


def tvm_thread_invariant(cond: Any) -> Call:
    """A condition that is the same for all threads of a block."""
    return call_intrin(cond.dtype, "tir.tvm_thread_invariant", cond)


def ignore_loop_partition(predicate: Any) -> Call:
    """A condition at which loops are not split (`LoopPartition`)."""
    return call_intrin("bool", "tir.ignore_loop_partition", predicate)


def TVMBackendAllocWorkspace(
    device_type: int, device_id: int, nbytes: Any, dtype_code_hint: int, dtype_bits_hint: int
) -> Call:
    """Memory of a device for the time of a call; null where there is none.

    The hints say what the memory is for, and may change its alignment on some devices.
    """
    return call_intrin(
        "handle",
        "tir.TVMBackendAllocWorkspace",
        device_type,
        device_id,
        Cast("uint64", convert(nbytes)),
        dtype_code_hint,
        dtype_bits_hint,
    )


def TVMBackendFreeWorkspace(device_type: int, device_id: int, ptr: Any) -> Call:
    """Give back what `TVMBackendAllocWorkspace` gave; not 0 if that failed."""
    return call_intrin("int32", "tir.TVMBackendFreeWorkspace", device_type, device_id, ptr)


def tvm_thread_allreduce(*freduce_args: Any) -> Call:
    """Reduction over threads: size, values, condition, results, thread variables."""
    return call_intrin("handle", "tir.tvm_thread_allreduce", *freduce_args)


def tvm_storage_sync(storage_scope: str) -> Call:
    """Wait until the threads that share memory of a scope are all here."""
    return call_intrin("int32", "tir.tvm_storage_sync", StringImm(storage_scope))


def tvm_warp_shuffle(mask: Any, value: Any, warp_id: Any, width: Any, warp_size: Any) -> Call:
    """`value` of thread `warp_id` of the warp."""
    args = (mask, value, warp_id, width, warp_size)
    return call_intrin(value.dtype, "tir.tvm_warp_shuffle", *args)


def tvm_warp_shuffle_up(mask: Any, value: Any, offset: Any, width: Any, warp_size: Any) -> Call:
    """`value` of the thread `offset` places before this one."""
    args = (mask, value, offset, width, warp_size)
    return call_intrin(value.dtype, "tir.tvm_warp_shuffle_up", *args)


def tvm_warp_shuffle_down(mask: Any, value: Any, offset: Any, width: Any, warp_size: Any) -> Call:
    """`value` of the thread `offset` places behind this one."""
    args = (mask, value, offset, width, warp_size)
    return call_intrin(value.dtype, "tir.tvm_warp_shuffle_down", *args)


def tvm_warp_activemask() -> Call:
    """One bit for each thread of the warp that runs now."""
    return call_intrin("uint32", "tir.tvm_warp_activemask")


def _pointer(fragment: Any) -> Any:
    return fragment.data if isinstance(fragment, Buffer) else fragment


def tvm_load_matrix_sync(
    fragment: Any, m: int, n: int, k: int, index: Any, buffer_ptr: Any, stride: Any, layout: str
) -> Call:
    """Fragment `index` of an m x n x k product, from memory with rows `stride` apart."""
    args = (_pointer(fragment), m, n, k, index, buffer_ptr, stride, StringImm(layout))
    return call_intrin("handle", "tir.tvm_load_matrix_sync", *args)


def tvm_store_matrix_sync(
    fragment: Any, m: int, n: int, k: int, index: Any, buffer_ptr: Any, stride: Any, layout: str
) -> Call:
    """Fragment `index` of an m x n x k product, to memory with rows `stride` apart."""
    args = (_pointer(fragment), m, n, k, index, buffer_ptr, stride, StringImm(layout))
    return call_intrin("handle", "tir.tvm_store_matrix_sync", *args)


def _multiply_fragments(name: str, *pairs: tuple[Any, Any]) -> Call:
    args = [part for fragment, index in pairs for part in (_pointer(fragment), index)]
    return call_intrin("handle", name, *args)


def tvm_mma_sync(
    fragment_d: Any,
    index_d: Any,
    fragment_a: Any,
    index_a: Any,
    fragment_b: Any,
    index_b: Any,
    fragment_c: Any,
    index_c: Any,
) -> Call:
    """d = a * b + c of fragments, by a warp."""
    return _multiply_fragments(
        "tir.tvm_mma_sync",
        (fragment_d, index_d),
        (fragment_a, index_a),
        (fragment_b, index_b),
        (fragment_c, index_c),
    )


def tvm_bmma_sync(
    fragment_d: Any,
    index_d: Any,
    fragment_a: Any,
    index_a: Any,
    fragment_b: Any,
    index_b: Any,
    fragment_c: Any,
    index_c: Any,
) -> Call:
    """d = popcount(a ^ b) + c of fragments of single bits, by a warp."""
    return _multiply_fragments(
        "tir.tvm_bmma_sync",
        (fragment_d, index_d),
        (fragment_a, index_a),
        (fragment_b, index_b),
        (fragment_c, index_c),
    )


def tvm_fill_fragment(fragment: Any, m: int, n: int, k: int, index: Any, value: Any) -> Call:
    """Fragment `index` of an m x n x k product with one value everywhere."""
    args = (_pointer(fragment), m, n, k, index, value)
    return call_intrin("handle", "tir.tvm_fill_fragment", *args)
