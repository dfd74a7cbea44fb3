"""Holding derivatives to differences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import tvm
from tvm.ir import IRModule
from tvm.runtime import Device

from .. import transform
from ..build_module import create_executor
from ..expr import Constant, Function, Var, const
from ..expr_functor import PostOrderMutator
from ..transform.gradient import gradient
from ..ty import TensorType

__all__ = ["check_grad"]


def check_grad(
    func: Function,
    inputs: Sequence[np.ndarray] | None = None,
    test_inputs: Sequence[np.ndarray] | None = None,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    scale: float | None = None,
    mean: float = 0,
    mode: str = "higher_order",
    target_devices: Sequence[tuple[str, Any]] | None = None,
    executor_kind: str = "debug",
) -> None:
    """Compare the derivatives of a function's sum with central differences, in float64.

    Parameters
    ----------
    inputs : values of the parameters; random ones around `mean` by default.
    target_devices : pairs of target and device to run on; the processor by default.
    test_inputs : those of `inputs` by which derivatives are compared; all by default.

    Raises
    ------
    AssertionError : they differ by more than the tolerances.
    """
    wide = _in_float64(func)
    if inputs is None:
        rng = np.random.default_rng(0)
        spread = 1.0 if scale is None else scale
        inputs = [
            rng.normal(mean, spread, p.checked_type.concrete_shape).astype("float64")
            for p in wide.params
        ]
    given = [np.asarray(x, str(p.checked_type.dtype)) for x, p in zip(inputs, wide.params)]
    tested = range(len(given)) if test_inputs is None else [
        k for k, x in enumerate(inputs) if any(x is t for t in test_inputs)]  # fmt: skip
    machines = target_devices or [("llvm", tvm.cpu())]
    for target, device in machines:
        _check_on(wide, given, tested, max(eps, 1e-6), atol, rtol, mode, executor_kind, target,
                  device)  # fmt: skip


def _check_on(
    wide: Function, given: Sequence[np.ndarray], tested: Sequence[int], step: float, atol: float,
    rtol: float, mode: str, kind: str, target: Any, device: Device,
) -> None:  # fmt: skip
    """`check_grad` of a typed function in float64, on one device."""
    both = create_executor(kind, device=device, target=target).evaluate(gradient(wide, None, mode))
    plain = create_executor(kind, device=device, target=target).evaluate(wide)
    _, found = both(*given)

    def total(values: Sequence[np.ndarray]) -> float:
        result = plain(*values)
        parts = result if isinstance(result, list) else [result]
        return float(sum(part.numpy().astype("float64").sum() for part in parts))

    for k in tested:
        if given[k].dtype.kind != "f":
            continue
        expected = np.zeros_like(given[k])
        for place in np.ndindex(given[k].shape):
            ends = []
            for sign in (1, -1):
                moved = [x.copy() for x in given]
                moved[k][place] += sign * step
                ends.append(total(moved))
            expected[place] = (ends[0] - ends[1]) / (2 * step)
        np.testing.assert_allclose(found[k].numpy(), expected, atol=atol, rtol=rtol)


class _Widen(PostOrderMutator):
    """Values of floating point in float64."""

    def visit_constant(self, value: Constant) -> Any:
        wide = str(value.data.dtype) in ("float16", "float32")
        return const(value.data.numpy(), "float64") if wide else value

    def visit_var(self, var: Var) -> Any:
        type_ = var.checked_type_ or var.type_annotation
        if isinstance(type_, TensorType) and str(type_.dtype) in ("float16", "float32"):
            return Var(str(var.name_hint), TensorType(type_.shape, "float64"))
        return var


def _in_float64(func: Function) -> Function:
    typed = transform.InferType()(IRModule.from_expr(func))["main"]
    wide = _Widen().visit(Function(typed.params, typed.body))
    return transform.InferType()(IRModule.from_expr(wide))["main"]
