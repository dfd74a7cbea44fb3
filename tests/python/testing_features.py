"""Features of symbolic programs at whole points, and those of the programs with the numbers in."""

from __future__ import annotations

import numpy as np

from tvm.auto_scheduler import _ffi_api
from tvm.felix import ffi
from tvm.felix.features import FeaturePackPy


def exponents(pack: FeaturePackPy, config: dict[str, int]) -> np.ndarray:
    """The point of a tape, shape (1, variables), at which knobs have these values."""
    values = {}
    for knob, factors in pack.var_factors.items():
        rest = config[str(knob)]
        for prime, name in factors:
            values[str(name)] = 0
            while rest % prime == 0:
                rest //= prime
                values[str(name)] += 1
        assert rest == pack.fixed_factor(knob)
    return np.array([[values[name] for name in pack.variables]], dtype=np.float64)


def features_of_state(task, state, pack: FeaturePackPy) -> np.ndarray:
    """A row for each store of the program that a state makes."""
    func, _ = ffi.generate_code_for_state(task, state, False)
    return _ffi_api.LoopFeatures(task, func, pack.buffer_order, "felix").numpy()


def features_at(pack: FeaturePackPy, config: dict[str, int], shape) -> np.ndarray:
    """What the tape says of the same, in an array of `shape`."""
    return pack.tape.forward(exponents(pack, config))[0][: np.prod(shape)].reshape(shape)
