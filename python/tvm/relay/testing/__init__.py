"""Helpers of tests, and networks to try things with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import tvm
from tvm.ir import IRModule, RelayExpr
from tvm.ir.transform import Pass
from tvm.runtime import NDArray
from tvm.target.enabled import enabled_targets

from .. import transform
from ..expr import Function
from ..prelude import Prelude
from . import (
    dcgan,
    densenet,
    dqn,
    inception_v3,
    lstm,
    mlp,
    mobilenet,
    resnet,
    resnet_3d,
    squeezenet,
    synthetic,
    temp_op_attr,
    vgg,
)
from .gradients import check_grad
from .init import create_workload
from .nat import add_nat_definitions, count, make_nat_expr, make_nat_value
from .py_converter import run_as_python, to_python

__all__ = [
    "add_nat_definitions",
    "check_grad",
    "count",
    "create_workload",
    "enabled_targets",
    "make_nat_expr",
    "make_nat_value",
    "rand",
    "run_as_python",
    "run_infer_type",
    "run_opt_pass",
    "to_python",
]


def rand(dtype: str = "float32", *shape: int) -> NDArray:
    """An array of random numbers from 0 to 1."""
    return tvm.nd.array(np.random.default_rng().random(shape).astype(dtype))


def run_opt_pass(
    expr: RelayExpr, opt_pass: Pass | Sequence[Pass], import_prelude: bool = False
) -> Any:
    """The expression after passes; a function, or the body for an expression that is none."""
    passes = opt_pass if isinstance(opt_pass, Pass) else transform.Sequential(list(opt_pass))
    mod = IRModule.from_expr(expr)
    if import_prelude:
        Prelude(mod)
    mod = transform.InferType()(mod)
    with tvm.transform.PassContext(opt_level=3):
        mod = passes(mod)
    entry = mod["main"]
    return entry if isinstance(expr, Function) else entry.body


def run_infer_type(expr: RelayExpr) -> Any:
    """The expression with the types of all its parts known."""
    return run_opt_pass(expr, transform.InferType())
