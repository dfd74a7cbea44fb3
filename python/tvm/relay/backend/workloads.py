"""Which templates of AutoTVM an operator's call is a workload of."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tvm import autotvm, te
from tvm.ir import Op, TensorType, TupleType, Type
from tvm.target import Target

from ..expr import Call
from ..op.implementation import own_strategy
from ..op.registry import find_row, settings_of
from ..ty import is_dynamic
from .implementations import get_valid_implementations
from .transposed import plain_sizes

__all__ = [
    "WINDOW",
    "Workload",
    "conv2d_workloads",
    "dense_workloads",
    "settings_with_defaults",
    "workloads_of",
]

Workload = tuple[Any, ...]
Types = Sequence[TensorType]
Rule = Callable[[Types, TensorType, Mapping[str, Any]], list[Workload]]

WINDOW = ("strides", "padding", "dilation")
"""Settings of a convolution that say where its windows are."""


def _tensor(type_: TensorType) -> Workload:
    return ("TENSOR", tuple(int(extent) for extent in type_.shape), str(type_.dtype))


def _is_float(*types: TensorType) -> bool:
    return all(str(type_.dtype).startswith("float") for type_ in types)


def conv2d_workloads(types: Types, out: TensorType, s: Mapping[str, Any]) -> list[Workload]:
    """The workload of a convolution, if a template serves it; `s` are all of its settings."""
    data, kernel = types
    plain = (s["data_layout"], s["kernel_layout"]) == ("NCHW", "OIHW")
    if not plain or s["out_layout"] not in ("", "NCHW") or not _is_float(data, kernel):
        return []
    channels, (filters, inputs, *_) = int(data.shape[1]), map(int, kernel.shape)
    if s["groups"] == 1:
        name = "conv2d_NCHWc.x86"
    elif s["groups"] == channels == filters and inputs == 1:
        name = "depthwise_conv2d_NCHWc.x86"
    else:
        return []
    sizes = [tuple(s[key]) for key in WINDOW]
    return [(name, _tensor(data), _tensor(kernel), *sizes, "NCHW", "NCHW", str(out.dtype))]


def _conv3d(types: Types, out: TensorType, s: Mapping[str, Any]) -> list[Workload]:
    data, kernel = types
    plain = (s["data_layout"], s["kernel_layout"]) == ("NCDHW", "OIDHW")
    if not plain or s["out_layout"] not in ("", "NCDHW") or not _is_float(data, kernel):
        return []
    if s["groups"] != 1:
        return []
    sizes = [tuple(s[key]) for key in WINDOW]
    return [("conv3d_ncdhw.x86", _tensor(data), _tensor(kernel), *sizes, 1, str(out.dtype))]


def _conv2d_transpose(types: Types, out: TensorType, s: Mapping[str, Any]) -> list[Workload]:
    """That of the plain convolution which it becomes where a point is recorded."""
    found = plain_sizes(types, out, s) if _is_float(*types) else None
    if found is None:
        return []
    weight, padding, dilation = found
    sizes = [(1, 1), padding, dilation]
    tensors = [_tensor(types[0]), _tensor(weight)]
    return [("conv2d_NCHWc.x86", *tensors, *sizes, "NCHW", "NCHW", str(out.dtype))]


def dense_workloads(types: Types, out: TensorType, s: Mapping[str, Any]) -> list[Workload]:
    """The workloads of a dense layer, one for each template; `s` are all of its settings."""
    if len(types[0].shape) != 2 or not _is_float(*types):
        return []
    operands = [_tensor(type_) for type_ in types]
    names = ("dense_nopack.x86", "dense_pack.x86")
    return [(name, *operands, None, str(out.dtype)) for name in names]


def _batch_matmul(types: Types, out: TensorType, s: Mapping[str, Any]) -> list[Workload]:
    if s["transpose_a"] or not s["transpose_b"] or not _is_float(*types):
        return []
    a, b = (_tensor(type_) for type_ in types)
    if len(a[1]) != 3 or a[1][0] != b[1][0]:
        return []
    return [("batch_matmul.x86", a, b, _tensor(out)[1], str(out.dtype), False, True)]


def _on_gpu(types: Types, out: TensorType, *layouts: bool) -> bool:
    """Whether the templates for GPUs take a call: real numbers of one type, in the layouts that
    they are for."""
    dtypes = {str(type_.dtype) for type_ in (*types, out)}
    return all(layouts) and dtypes in ({"float32"}, {"float16"})


def _has_layouts(s: Mapping[str, Any], data: str, kernel: str) -> bool:
    return (s["data_layout"], s["kernel_layout"], s["out_layout"] or data) == (data, kernel, data)


def _gpu_conv2d(types: Types, out: TensorType, s: Mapping[str, Any]) -> list[Workload]:
    if not _on_gpu(types, out, _has_layouts(s, "NCHW", "OIHW")):
        return []
    operands = [_tensor(type_) for type_ in types]
    sizes = [tuple(s[key]) for key in WINDOW]
    channels, (filters, inputs, *_) = operands[0][1][1], operands[1][1]
    if s["groups"] == 1:
        return [("conv2d_nchw.cuda", *operands, *sizes, str(out.dtype))]
    if s["groups"] == channels == filters and inputs == 1:
        return [("depthwise_conv2d_nchw.cuda", *operands, *sizes, str(out.dtype))]
    if channels == inputs * s["groups"]:
        return [("group_conv2d_nchw.cuda", *operands, *sizes, s["groups"], str(out.dtype))]
    return []


def _gpu_conv3d(types: Types, out: TensorType, s: Mapping[str, Any]) -> list[Workload]:
    if not _on_gpu(types, out, _has_layouts(s, "NCDHW", "OIDHW"), s["groups"] == 1):
        return []
    sizes = [tuple(s[key]) for key in WINDOW]
    return [("conv3d_ncdhw.cuda", *(_tensor(t) for t in types), *sizes, 1, str(out.dtype))]


def _gpu_conv2d_transpose(types: Types, out: TensorType, s: Mapping[str, Any]) -> list[Workload]:
    found = plain_sizes(types, out, s) if _on_gpu(types, out) else None
    if found is None:
        return []
    weight, padding, dilation = found
    tensors = [_tensor(types[0]), _tensor(weight)]
    return [("conv2d_nchw.cuda", *tensors, (1, 1), padding, dilation, str(out.dtype))]


# Rows from which tiles of a dense layer are worth it.
_LARGE_BATCH = 32


def _gpu_dense(types: Types, out: TensorType, s: Mapping[str, Any]) -> list[Workload]:
    if not _on_gpu(types, out, len(types[0].shape) == 2):
        return []
    operands = [_tensor(type_) for type_ in types]
    large = operands[0][1][0] >= _LARGE_BATCH
    names = ("dense_small_batch.gpu", *(["dense_large_batch.gpu"] if large else []))
    return [(name, *operands, None, str(out.dtype)) for name in names]


def _gpu_batch_matmul(types: Types, out: TensorType, s: Mapping[str, Any]) -> list[Workload]:
    a, b = (_tensor(type_) for type_ in types)
    if not _on_gpu(types, out, len(a[1]) == 3, a[1][0] == b[1][0]):
        return []
    transposed = s["transpose_a"], s["transpose_b"]
    return [("batch_matmul.cuda", a, b, _tensor(out)[1], str(out.dtype), *transposed)]


# By a key of the target.
_RULES: Mapping[str, Mapping[str, Rule]] = {
    "cpu": {
        "nn.conv2d": conv2d_workloads,
        "nn.conv2d_transpose": _conv2d_transpose,
        "nn.conv3d": _conv3d,
        "nn.dense": dense_workloads,
        "nn.batch_matmul": _batch_matmul,
    },
    "gpu": {
        "nn.conv2d": _gpu_conv2d,
        "nn.conv2d_transpose": _gpu_conv2d_transpose,
        "nn.conv3d": _gpu_conv3d,
        "nn.dense": _gpu_dense,
        "nn.batch_matmul": _gpu_batch_matmul,
    },
}


def settings_with_defaults(call: Call) -> dict[str, Any]:
    """All settings of a call of one of the library's operators."""
    row = find_row(call.op)
    assert row is not None
    return {**row.settings, **settings_of(call)}


def workloads_of(call: Call, target: Target) -> list[Workload]:
    """Names of the templates for a call, whose type is known, with their arguments.

    Those of an operator with a strategy of a program's own are what its implementations say.
    """
    if not isinstance(call.op, Op):
        return []
    keys = [str(key) for key in target.keys]
    rules = [table[str(call.op.name)] for key, table in _RULES.items()
             if key in keys and str(call.op.name) in table]  # fmt: skip
    own = own_strategy(call.op, target)
    if not rules and own is None:
        return []
    leaves = [leaf for arg in call.args for leaf in _leaves(arg.checked_type)]
    types = [leaf for leaf in leaves if isinstance(leaf, TensorType) and not is_dynamic(leaf)]
    if len(types) != len(leaves):
        return []
    if own is not None:
        return _own_workloads(call, types, target)
    return rules[0](types, call.checked_type, settings_with_defaults(call))


def _leaves(type_: Type) -> list[Type]:
    if isinstance(type_, TupleType):
        return [leaf for field in type_.fields for leaf in _leaves(field)]
    return [type_]


def _own_workloads(call: Call, types: Types, target: Target) -> list[Workload]:
    """Workloads of the templates among the implementations of a strategy."""
    inputs = [
        te.placeholder([int(extent) for extent in type_.shape], str(type_.dtype), f"p{k}")
        for k, type_ in enumerate(types)
    ]
    args = (call.attrs, inputs, call.checked_type)
    with target:
        found = [
            autotvm.task.get_workload(implementation.compute(*args))
            for implementation in get_valid_implementations(call.op, *args, target)
        ]
    return [tuple(workload) for workload in found if workload is not None]
