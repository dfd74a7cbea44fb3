"""The schedule that fits a target, and running an operator with it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import tvm
from tvm import te, topi

__all__ = [
    "compare_numpy_tvm",
    "get_broadcast_schedule",
    "get_conv2d_nchw_implement",
    "get_elemwise_schedule",
    "get_injective_schedule",
    "get_reduce_schedule",
]


def _under(target: Any, schedule: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def apply(outs: Any) -> Any:
        with tvm.target.Target(target):
            return schedule(outs)

    return apply


def get_injective_schedule(target: Any) -> Callable[[Any], Any]:
    """Schedule of operators without reduction: from outputs to a te.Schedule."""
    return _under(target, topi.generic.schedule_injective)


def get_reduce_schedule(target: Any) -> Callable[[Any], Any]:
    """Schedule of sums and other reductions: from outputs to a te.Schedule."""
    return _under(target, topi.generic.schedule_reduce)


get_broadcast_schedule = get_injective_schedule
get_elemwise_schedule = get_injective_schedule


def get_conv2d_nchw_implement(target: Any) -> tuple[Callable[..., Any], Callable[[Any], Any]]:
    """The operator and the schedule of a convolution of images in NCHW."""
    on_cuda = "cuda" in tvm.target.Target(target).keys
    return (
        topi.cuda.conv2d_nchw if on_cuda else topi.nn.conv2d_nchw,
        _under(target, topi.generic.schedule_conv2d_nchw),
    )


def compare_numpy_tvm(
    inputs: Sequence[np.ndarray],
    output: np.ndarray,
    target: Any,
    device: Any,
    compute: Callable[..., Any],
    schedule: Callable[[Any], Any],
) -> None:
    """Build an operator, run it and compare the result.

    Raises
    ------
    AssertionError : it differs from `output` by more than 1e-4, absolutely and relatively.
    """
    placeholders = [te.placeholder(value.shape, dtype=str(value.dtype)) for value in inputs]
    with tvm.target.Target(target):
        out = compute(*placeholders)
        function = tvm.build(schedule([out]), [*placeholders, out])
    result = tvm.nd.array(np.zeros_like(output), device)
    function(*[tvm.nd.array(value, device) for value in inputs], result)
    np.testing.assert_allclose(result.numpy(), output, atol=1e-4, rtol=1e-4)
