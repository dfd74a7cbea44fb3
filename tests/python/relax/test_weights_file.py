"""Weights in a file of their own, mapped into memory beside the library."""

from __future__ import annotations

import shutil
import struct

import numpy as np
import pytest

import tvm
from tvm import relax
from tvm.relax import op
from tvm.runtime import relax_vm
from tvm.script import ir as I
from tvm.script import relax as R

W = np.random.default_rng(0).standard_normal((8, 5)).astype("float32")


def network(scale=1.0, extent=3):
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorStructInfo((extent, 8), "float32"))
    with builder.function("main", [x]):
        y = builder.emit(op.matmul(x, relax.const(scale * W)))
        builder.emit_func_output(y)
    return relax.build(builder.get(), "llvm")


def run(executable, x):
    return relax.VirtualMachine(executable)["main"](tvm.nd.array(x)).numpy()


def mapped(path):
    with open("/proc/self/maps") as maps:
        return any(line.rstrip().endswith(str(path)) for line in maps)


def test_weights_are_mapped_from_beside_the_library(tmp_path):
    executable = network()
    weights = tmp_path / "net.weights"
    executable.export_library(tmp_path / "net.so", weights=weights)
    x = np.random.default_rng(1).standard_normal((3, 8)).astype("float32")
    loaded = relax.load_executable(tmp_path / "net.so")
    assert mapped(weights)
    np.testing.assert_allclose(run(loaded, x), x @ W, rtol=1e-4, atol=1e-5)
    # What is exported does not lose its weights, and what is loaded can be exported again.
    np.testing.assert_allclose(run(executable, x), x @ W, rtol=1e-4, atol=1e-5)
    moved = tmp_path / "elsewhere"
    moved.mkdir()
    shutil.move(weights, moved / "w")
    with pytest.raises(RuntimeError, match="cannot open .*net.weights"):
        relax.load_executable(tmp_path / "net.so")
    again = relax.load_executable(tmp_path / "net.so", weights=moved / "w")
    np.testing.assert_allclose(run(again, x), x @ W, rtol=1e-4, atol=1e-5)


def test_arrays_of_programs_are_weights_too(tmp_path):
    @I.ir_module
    class Rows:
        @R.function
        def main(x: R.Tensor(("n", 8), "float32"), w: R.Tensor((8, 5), "float32")):
            with R.dataflow():
                y = R.matmul(x, w)
                R.output(y)
            return y

    executable = relax.build(relax.transform.BindParams("main", {"w": W})(Rows))
    executable.export_library(tmp_path / "rows.so", weights=tmp_path / "rows.weights")
    loaded = relax.load_executable(tmp_path / "rows.so")
    for n in (1, 4):
        x = np.random.default_rng(n).standard_normal((n, 8)).astype("float32")
        np.testing.assert_allclose(run(loaded, x), x @ W, rtol=1e-4, atol=1e-5)


def test_wrong_files_are_refused(tmp_path):
    network().export_library(tmp_path / "a.so", weights=tmp_path / "a.weights")
    network(2.0).export_library(tmp_path / "b.so", weights=tmp_path / "b.weights")
    module = tvm.runtime.load_module(tmp_path / "a.so")
    with pytest.raises(ValueError, match='file of their own, "a.weights"; call load_weights'):
        module["vm_load_executable"](tvm.cpu())
    with pytest.raises(ValueError, match="are those of another executable"):
        module["load_weights"](str(tmp_path / "b.weights"))
    data = (tmp_path / "a.weights").read_bytes()
    bad = tmp_path / "bad"
    for damaged in (data[:40], b"x" + data[1:], data[:-64]):
        bad.write_bytes(damaged)
        with pytest.raises(ValueError, match="the file is damaged, export it again"):
            module["load_weights"](str(bad))
    at = data.index(struct.pack("<qq", 8, 5)) + 16 if struct.pack("<qq", 8, 5) in data else 0
    for place in (-64, 1, 2**62):
        changed = bytearray(data)
        changed[at : at + 8] = struct.pack("<q", place)
        bad.write_bytes(changed)
        if at:
            with pytest.raises(ValueError, match="an array lies outside"):
                module["load_weights"](str(bad))
    bad.write_bytes(b"")
    with pytest.raises(RuntimeError, match="cannot map"):
        module["load_weights"](str(bad))
    module["load_weights"](str(tmp_path / "a.weights"))
    assert run(relax_vm.Executable(module), np.ones((3, 8), "float32")).shape == (3, 5)
    with pytest.raises(ValueError, match="the weights are inside"):
        network().mod["load_weights"]("a.weights")
