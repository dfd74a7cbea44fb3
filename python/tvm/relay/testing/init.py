"""Networks with parameters of random values."""

from __future__ import annotations

from typing import Any

import numpy as np

import tvm
from tvm.ir import IRModule, RelayExpr

from ..expr import Function
from ..transform.infer_type import InferType

__all__ = ["Constant", "create_workload", "random_value"]


def random_value(name: str, shape: tuple[int, ...], dtype: str, rng: np.random.Generator) -> Any:
    """A value for a parameter, by what its name ends in: scales and variances are positive."""
    if name.endswith(("bias", "beta", "moving_mean", "_mean")):
        value = np.zeros(shape)
    elif name.endswith(("gamma", "moving_var", "_var")):
        value = np.ones(shape)
    else:
        fan_in = float(np.prod(shape[1:])) or 1.0
        value = rng.uniform(-1, 1, shape) * np.sqrt(3.0 / fan_in)
    return value.astype(dtype)


class Constant:
    """An initializer that gives every weight one value, biases and means 0, scales 1."""

    def __init__(self, value: float = 0.0) -> None:
        self.value = value

    def __call__(self, name: str, array: np.ndarray) -> None:
        if name.endswith(("bias", "beta", "_mean")):
            array[...] = 0
        else:
            array[...] = 1 if name.endswith(("gamma", "_var")) else self.value


def create_workload(
    net: RelayExpr, initializer: Any = None, seed: int = 0
) -> tuple[IRModule, dict[str, Any]]:
    """A module of a network and values of its parameters, those but "data" and integers.

    Parameters
    ----------
    initializer : fills an array, given by name and array, in place; by default uniform values whose
        variance is one over the number of inputs.

    Returns
    -------
    The module, with types known, and arrays by name.
    """
    mod = net if isinstance(net, IRModule) else IRModule.from_expr(net)
    mod = InferType()(mod)
    main: Function = mod["main"]
    rng = np.random.default_rng(seed)
    params = {}
    for param in main.params:
        name, type_ = str(param.name_hint), param.checked_type
        if name == "data" or not hasattr(type_, "shape"):
            continue
        shape = type_.concrete_shape
        if initializer is None:
            value = random_value(name, shape, str(type_.dtype), rng)
        else:
            value = np.zeros(shape, str(type_.dtype))
            initializer(name, value)
        params[name] = tvm.nd.array(value)
    return mod, params
