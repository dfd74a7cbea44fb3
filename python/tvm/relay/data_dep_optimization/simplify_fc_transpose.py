"""Weights that are transposed before they are used."""

from __future__ import annotations

import numpy as np

import tvm

from ..analysis import search_fc_transpose
from ..expr import Function
from ..transform import SimplifyFCTranspose
from .values import Values, through

__all__ = ["convert"]


def convert(func: Function, params: Values) -> tuple[Function, Values]:
    """The function without transposes of weights of ``nn.dense``, and the parameters for it.

    Parameters
    ----------
    params : by name; changed in place: ``w`` becomes its transpose under the name ``w.T``.
    """
    names = [name for name in search_fc_transpose(func) if name in params]
    for name in names:
        weight = params.pop(name).numpy()
        params[f"{name}.T"] = tvm.nd.array(np.ascontiguousarray(weight.T))
    return through(func, SimplifyFCTranspose(names)), params
