"""Executables and parameters from damaged files: an error or a loadable program, never a crash."""

from __future__ import annotations

import random

import numpy as np
import pytest

import tvm
from tvm import relax
from tvm.relax import op


@pytest.fixture(scope="module")
def saved():
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorStructInfo((2, 3)))
    with builder.function("main", [x]):
        with builder.dataflow():
            y = builder.emit(op.add(op.exp(x), relax.const(np.ones((2, 3), "float32"))))
            z = builder.emit_output(op.reshape(y, (6,)))
        builder.emit_func_output([z, y])
    executable = relax.build(builder.get(), "llvm")
    data = tvm.get_global_func("runtime.ModuleSaveToBinary")(executable.mod)
    return data, executable.mod.imported_modules[0]


def load(data: bytes, kernels):
    executable = tvm.get_global_func("runtime.module.loadbinary_relax.Executable")(data)
    executable.import_module(kernels)
    return executable


def test_damaged_executable_is_refused_or_made_ready(saved):
    data, kernels = saved
    rng = random.Random(1)
    refused = 0
    for _ in range(300):
        damaged = bytearray(data)
        for _ in range(rng.randint(1, 3)):
            at = rng.randrange(len(damaged))
            value = rng.choice([-1, 0, 1, 3, 1 << 20, -(1 << 63), (1 << 63) - 1, rng.randrange(64)])
            if rng.randrange(4):
                # Counts and numbers are words, but texts shift them off their natural places.
                damaged[at : at + 8] = value.to_bytes(8, "little", signed=True)
            else:
                damaged = damaged[: at + 1]
        try:
            machine = load(bytes(damaged), kernels)
            machine.get_function("vm_load_executable")(tvm.cpu(0))
        except (ValueError, MemoryError, tvm.TVMError) as error:
            assert not isinstance(error, tvm.error.InternalError)
            refused += 1
    assert refused > 150


def test_truncated_executable_says_so(saved):
    data, kernels = saved
    with pytest.raises(ValueError, match="the file is damaged, export it again|the data ends"):
        load(data[: len(data) // 2], kernels)
    with pytest.raises(ValueError, match="relax executable: the data does not begin"):
        load(b"x" * 64, kernels)


def test_damaged_parameters_are_refused_or_read():
    params = {"w": tvm.nd.array(np.arange(6, dtype="float32")), "b": tvm.nd.array(np.ones(2))}
    data = tvm.runtime.save_param_dict(params)
    rng = random.Random(2)
    refused = 0
    for _ in range(200):
        damaged = bytearray(data)
        for _ in range(rng.randint(1, 4)):
            damaged[rng.randrange(len(damaged))] = rng.randrange(256)
        if rng.randrange(3) == 0:
            damaged = damaged[: rng.randrange(len(damaged))]
        try:
            tvm.runtime.load_param_dict(bytes(damaged))
        except ValueError as error:
            assert "parameters" in str(error)
            refused += 1
    assert refused > 50
