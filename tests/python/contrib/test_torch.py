"""Tensor programs and tuned networks as modules of PyTorch."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
import torch

import tvm
from tvm.contrib.torch import OperatorModule, as_torch, optimize_torch
from tvm.script import ir as I
from tvm.script import tir as T


def product(n: int):
    """The product of two square matrices."""

    @T.prim_func
    def main(
        A: T.Buffer((n, n), "float32"),
        B: T.Buffer((n, n), "float32"),
        C: T.Buffer((n, n), "float32"),
    ):
        for i, j, k in T.grid(n, n, n):
            with T.block("C"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    C[vi, vj] = T.float32(0)
                C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]

    return main


def check(module: OperatorModule, n: int) -> None:
    a, b = torch.rand(n, n), torch.rand(n, n)
    c = torch.full((n, n), 7.0)
    assert module(a, b, c) is None
    torch.testing.assert_close(c, a @ b)


def test_programs_read_and_write_tensors():
    check(as_torch(product(16)), 16)
    check(as_torch(product)(8), 8)

    @as_torch
    @I.ir_module
    class Twice:
        @T.prim_func
        def twice(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
            for i in range(4):
                B[i] = A[i] * T.float32(2)

    weight, out = torch.nn.Parameter(torch.arange(4.0)), torch.empty(4)
    Twice(weight, out)
    assert out.tolist() == [0, 2, 4, 6]
    assert "def twice" in Twice.script()


def test_a_program_is_tuned_and_kept(tmp_path: Path):
    module = as_torch(product(16))
    before = module.script()
    module.tune(max_trials_global=2, work_dir=tmp_path, strategy="replay-trace", seed=1)
    assert module.script() != before
    assert list(tmp_path.iterdir())
    check(module, 16)
    file = io.BytesIO()
    torch.save(torch.nn.Sequential(module), file)
    file.seek(0)
    (loaded,) = torch.load(file, weights_only=False)
    assert loaded.script() == module.script()
    check(loaded, 16)


def test_what_is_no_single_program_is_refused():
    func = product(4)
    with pytest.raises(ValueError, match="expected one tensor program, got a module of one, two"):
        as_torch(tvm.IRModule({"one": func, "two": func}))
    with pytest.raises(TypeError, match="got int"):
        as_torch(3)
    with pytest.raises(ValueError, match="strides: expected .* of a contiguous array"):
        as_torch(func)(torch.rand(4, 4).t(), torch.rand(4, 4), torch.rand(4, 4))


@pytest.mark.parametrize("trials", [0, 2])
def test_a_network_is_tuned_as_a_part_of_another(trials: int, tmp_path: Path):
    net = torch.nn.Sequential(torch.nn.Linear(12, 8), torch.nn.ReLU(), torch.nn.Linear(8, 3)).eval()
    x = torch.rand(2, 12)
    folder = tmp_path if trials else None
    tuned = optimize_torch(net, x, max_trials_global=trials, work_dir=folder)
    assert bool(list(tmp_path.iterdir())) == bool(trials)
    whole = torch.nn.Sequential(tuned, torch.nn.Softmax(-1))
    file = io.BytesIO()
    torch.save(whole, file)
    file.seek(0)
    for module in (whole, torch.load(file, weights_only=False)):
        torch.testing.assert_close(module(x), net(x).softmax(-1))
