"""Passes over graph modules."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from tvm.ir import IRModule
from tvm.runtime import NDArray
from tvm.transform import Pass, Sequential, module_pass

from ..expr import Function
from ..rewriter import FunctionRewriter, graph_functions
from .bind_params import bind_params
from .convert_layout import convert_layout
from .convert_winograd import convert_winograd
from .dead_code import dead_code_elimination
from .fold_batchnorm import fold_batchnorm
from .fold_constant import fold_constant
from .fuse_ops import fuse_ops

__all__ = [
    "BindParams",
    "ConvertLayout",
    "ConvertWinograd",
    "DeadCodeElimination",
    "FoldBatchnorm",
    "FoldConstant",
    "FunctionRewriter",
    "FuseOps",
    "OptimizeForInference",
    "is_fused",
    "optimize_for_inference",
]


def _as_pass(function: Callable[[IRModule], IRModule], name: str) -> Pass:
    return module_pass(lambda mod, _: function(mod), opt_level=0, name=name)


def BindParams(func_name: str, params: Mapping[str, NDArray | np.ndarray]) -> Pass:
    """Makes named parameters of one function constants; see ``bind_params``."""
    return _as_pass(lambda mod: bind_params(mod, func_name, params), "relax.BindParams")


def FoldBatchnorm() -> Pass:
    """Removes batch normalisation; see ``fold_batchnorm``."""
    return _as_pass(fold_batchnorm, "relax.FoldBatchnorm")


def ConvertLayout() -> Pass:
    """Moves convolutions and pools to NHWC; see ``convert_layout``."""
    return _as_pass(convert_layout, "relax.ConvertLayout")


def ConvertWinograd() -> Pass:
    """Takes convolutions apart into transforms and products; see ``convert_winograd``."""
    return _as_pass(convert_winograd, "relax.ConvertWinograd")


def FoldConstant() -> Pass:
    """Computes what depends on constants only; see ``fold_constant``."""
    return _as_pass(fold_constant, "relax.FoldConstant")


def DeadCodeElimination() -> Pass:
    """Removes what nobody reads; see ``dead_code_elimination``."""
    return _as_pass(dead_code_elimination, "relax.DeadCodeElimination")


def FuseOps() -> Pass:
    """Groups operators into kernels; see ``fuse_ops``."""
    return _as_pass(fuse_ops, "relax.FuseOps")


def OptimizeForInference(winograd: bool = False) -> Pass:
    """What an imported network goes through before its kernels are tuned or built.

    Parameters
    ----------
    winograd : whether ConvertWinograd is part of it; for processors only.
    """
    return Sequential(
        [
            FoldBatchnorm(),
            DeadCodeElimination(),
            ConvertLayout(),
            DeadCodeElimination(),
            FoldConstant(),
            *([ConvertWinograd()] if winograd else []),
            DeadCodeElimination(),
            FuseOps(),
        ],
        name="relax.OptimizeForInference",
    )


def is_fused(mod: IRModule) -> bool:
    """Whether the module has functions made by FuseOps."""
    graphs = sum(isinstance(func, Function) for func in mod.functions.values())
    return len(graph_functions(mod)) < graphs


def optimize_for_inference(mod: IRModule, winograd: bool = False) -> IRModule:
    """The module after OptimizeForInference; one that is fused already comes back as it is."""
    return mod if is_fused(mod) else OptimizeForInference(winograd)(mod)
