"""Functions of `topi`'s form as parts of strategies, and the strategies of the library.

Each ``<operator>_strategy`` has versions by target. What is registered for a target comes in the
place of the library's there:

>>> @dense_strategy.register("mydevice")
... def dense_of_mine(attrs, inputs, out_type, target):
...     strategy = OpStrategy()
...     strategy.add_implementation(
...         wrap_compute_dense(topi.nn.dense), naive_schedule, name="dense.mydevice"
...     )
...     return strategy
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tvm import error, te, topi
from tvm.ir import Op
from tvm.target import Target, override_native_generic_func

from ..implementation import Compute, LibraryStrategy, MakeSchedule, OpStrategy
from ..registry import settings_of_attrs

Tensors = Sequence[te.Tensor]


def naive_schedule(attrs: Any, outs: Tensors, target: Target) -> te.Schedule:
    """Every stage in loops of its own, as it was written.

    Raises
    ------
    ValueError : the target runs what is bound to threads only.
    """
    if "gpu" in [str(key) for key in target.keys]:
        raise error.ValueError(
            f"naive_schedule: loops on {target.kind.name} are bound to threads; take "
            "schedule_injective, which schedules anything for its target"
        )
    return te.create_schedule([out.op for out in outs])


def schedule_injective(attrs: Any, outs: Tensors, target: Target) -> te.Schedule:
    """The library's schedule of a computation for the target."""
    return topi.schedule_for(list(outs), target)


schedule_reduce = schedule_concatenate = schedule_pool = schedule_adaptive_pool = schedule_injective
schedule_softmax = schedule_lrn = schedule_extern = schedule_injective


def wrap_topi_schedule(topi_schedule: Callable[[Tensors], te.Schedule]) -> MakeSchedule:
    """A function of results alone, which finds its target around, as the schedule of a strategy."""

    def schedule(attrs: Any, outs: Tensors, target: Target) -> te.Schedule:
        with target:
            return topi_schedule(outs)

    return schedule


def wrap_topi_compute(topi_compute: Callable[..., Any]) -> Compute:
    """A function of the operands alone as the computation of a strategy."""

    def compute(attrs: Any, inputs: Tensors, out_type: Any) -> list[te.Tensor]:
        return _listed(topi_compute(*inputs))

    return compute


def _listed(results: Any) -> list[te.Tensor]:
    return [results] if isinstance(results, te.Tensor) else list(results)


def _out_dtype(settings: dict[str, Any], inputs: Tensors) -> str:
    return settings["out_dtype"] or str(inputs[0].dtype)


def _wrap(names: Sequence[str], topi_compute: Callable[..., Any]) -> Compute:
    """A computation of the operands and then of settings, by position."""

    def compute(attrs: Any, inputs: Tensors, out_type: Any) -> list[te.Tensor]:
        settings = settings_of_attrs(attrs)
        values = [_out_dtype(settings, inputs) if name == "out_dtype" else settings[name]
                  for name in names]  # fmt: skip
        return _listed(topi_compute(*inputs, *values))

    return compute


_WINDOW = ("strides", "padding", "dilation")


def wrap_compute_conv1d(topi_compute: Callable[..., Any]) -> Compute:
    """``f(data, weight, strides, padding, dilation, out_dtype)``."""
    return _wrap([*_WINDOW, "out_dtype"], topi_compute)


def wrap_compute_group_conv1d(topi_compute: Callable[..., Any]) -> Compute:
    """``f(data, weight, strides, padding, dilation, groups, out_dtype)``."""
    return _wrap([*_WINDOW, "groups", "out_dtype"], topi_compute)


def wrap_compute_conv2d(
    topi_compute: Callable[..., Any],
    *,
    need_data_layout: bool = False,
    need_kernel_layout: bool = False,
    need_out_layout: bool = False,
    has_groups: bool = False,
) -> Compute:
    """``f(data, weight, strides, padding, dilation[, groups][, layouts], out_dtype)``.

    Parameters
    ----------
    need_data_layout, need_kernel_layout, need_out_layout : which layouts it takes, in this order.
    has_groups : whether it takes the number of groups.
    """
    wanted = (
        ("groups", has_groups),
        ("data_layout", need_data_layout),
        ("kernel_layout", need_kernel_layout),
        ("out_layout", need_out_layout),
    )
    return _wrap([*_WINDOW, *(n for n, need in wanted if need), "out_dtype"], topi_compute)


def wrap_compute_conv3d(
    topi_compute: Callable[..., Any], *, need_layout: bool = False, has_groups: bool = True
) -> Compute:
    """``f(data, weight, strides, padding, dilation[, groups][, data_layout], out_dtype)``."""
    names = [*_WINDOW, *(["groups"] if has_groups else [])]
    return _wrap([*names, *(["data_layout"] if need_layout else []), "out_dtype"], topi_compute)


def _wrap_transposed(topi_compute: Callable[..., Any], has_groups: bool = False) -> Compute:
    names = ["strides", "padding", "out_dtype", "output_padding"]
    return _wrap([*names, *(["groups"] if has_groups else [])], topi_compute)


def wrap_compute_conv1d_transpose(topi_compute: Callable[..., Any]) -> Compute:
    """``f(data, weight, strides, padding, out_dtype, output_padding)``."""
    return _wrap_transposed(topi_compute)


def wrap_compute_conv2d_transpose(
    topi_compute: Callable[..., Any], *, has_groups: bool = False
) -> Compute:
    """``f(data, weight, strides, padding, out_dtype, output_padding[, groups])``."""
    return _wrap_transposed(topi_compute, has_groups)


def wrap_compute_conv3d_transpose(topi_compute: Callable[..., Any]) -> Compute:
    """``f(data, weight, strides, padding, out_dtype, output_padding)``."""
    return _wrap_transposed(topi_compute)


def wrap_compute_dense(topi_compute: Callable[..., Any]) -> Compute:
    """``f(data, weight, bias, out_dtype)``, where `bias` is None."""

    def compute(attrs: Any, inputs: Tensors, out_type: Any) -> list[te.Tensor]:
        return _listed(topi_compute(*inputs, None, _out_dtype(settings_of_attrs(attrs), inputs)))

    return compute


def wrap_compute_matmul(topi_compute: Callable[..., Any]) -> Compute:
    """``f(a, b, bias, out_dtype, transpose_a, transpose_b)``, where `bias` is None."""

    def compute(attrs: Any, inputs: Tensors, out_type: Any) -> list[te.Tensor]:
        s = settings_of_attrs(attrs)
        order = (s["transpose_a"], s["transpose_b"])
        return _listed(topi_compute(*inputs, None, _out_dtype(s, inputs), *order))

    return compute


def wrap_compute_batch_matmul(
    topi_compute: Callable[..., Any], *, need_out_dtype: bool = False
) -> Compute:
    """``f(a, b, out_shape[, out_dtype], transpose_a, transpose_b)``."""

    def compute(attrs: Any, inputs: Tensors, out_type: Any) -> list[te.Tensor]:
        s = settings_of_attrs(attrs)
        dtype = [_out_dtype(s, inputs)] if need_out_dtype else []
        order = (s["transpose_a"], s["transpose_b"])
        return _listed(topi_compute(*inputs, out_type.shape, *dtype, *order))

    return compute


def wrap_compute_softmax(topi_compute: Callable[..., Any]) -> Compute:
    """``f(data, axis)``."""
    return _wrap(["axis"], topi_compute)


_STRATEGIES = {
    "argsort_strategy": "argsort",
    "argwhere_strategy": "argwhere",
    "batch_matmul_strategy": "nn.batch_matmul",
    "conv1d_strategy": "nn.conv1d",
    "conv1d_transpose_strategy": "nn.conv1d_transpose",
    "conv2d_NCHWc_strategy": "nn.contrib_conv2d_NCHWc",
    "conv2d_strategy": "nn.conv2d",
    "conv2d_transpose_strategy": "nn.conv2d_transpose",
    "conv3d_strategy": "nn.conv3d",
    "conv3d_transpose_strategy": "nn.conv3d_transpose",
    "correlation_strategy": "nn.correlation",
    "cumprod_strategy": "cumprod",
    "cumsum_strategy": "cumsum",
    "deformable_conv2d_strategy": "nn.deformable_conv2d",
    "dense_pack_strategy": "nn.contrib_dense_pack",
    "dense_strategy": "nn.dense",
    "depthwise_conv2d_NCHWc_strategy": "nn.contrib_depthwise_conv2d_NCHWc",
    "dilation2d_strategy": "image.dilation2d",
    "fast_softmax_strategy": "nn.fast_softmax",
    "log_softmax_strategy": "nn.log_softmax",
    "matmul_strategy": "nn.matmul",
    "roi_align_strategy": "vision.roi_align",
    "roi_pool_strategy": "vision.roi_pool",
    "scatter_elements_strategy": "scatter_elements",
    "scatter_nd_strategy": "scatter_nd",
    "softmax_strategy": "nn.softmax",
    "sort_strategy": "sort",
    "sparse_dense_strategy": "nn.sparse_dense",
    "topk_strategy": "topk",
}

for _name, _op in _STRATEGIES.items():
    globals()[_name] = override_native_generic_func(_name)(LibraryStrategy(_op))
    Op.get(_op).set_attr("FTVMStrategy", globals()[_name], 1)

__all__ = [
    *_STRATEGIES,
    "OpStrategy",
    "naive_schedule",
    "schedule_adaptive_pool",
    "schedule_concatenate",
    "schedule_extern",
    "schedule_injective",
    "schedule_lrn",
    "schedule_pool",
    "schedule_reduce",
    "schedule_softmax",
    "wrap_compute_batch_matmul",
    "wrap_compute_conv1d",
    "wrap_compute_conv1d_transpose",
    "wrap_compute_conv2d",
    "wrap_compute_conv2d_transpose",
    "wrap_compute_conv3d",
    "wrap_compute_conv3d_transpose",
    "wrap_compute_dense",
    "wrap_compute_group_conv1d",
    "wrap_compute_matmul",
    "wrap_compute_softmax",
    "wrap_topi_compute",
    "wrap_topi_schedule",
]
