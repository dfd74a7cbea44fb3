"""Small programs that the tests of passes share."""

from __future__ import annotations

import numpy as np

from tvm import IRModule, tir

SERIAL, PARALLEL, VECTORIZED, UNROLLED = range(4)


def floats(*shape):
    """Float32 values of either sign, the same on every run."""
    return np.random.default_rng(0).standard_normal(shape).astype("float32")


def loop(extent, body, kind=SERIAL, name="i", dtype="int32"):
    """A loop over ``body(var)``."""
    var = tir.Var(name, dtype)
    return tir.For(var, 0, extent, kind, body(var))


def apply(pass_, func):
    """`func` after one pass, checked to be well formed and in SSA form."""
    func = func.with_attr("global_symbol", "main")
    after = pass_(IRModule({"main": func}))["main"]
    assert tir.analysis.verify_well_formed(after)
    assert tir.analysis.verify_ssa(after)
    return after


def lines(func):
    """The body of a function as lines, with indentation relative to it."""
    return str(func.body).split("\n")
