"""The inner loop of a hand-tuned product, read off the assembly."""

from __future__ import annotations

import re

import numpy as np
import pytest

import testing_processors
import tvm
from tvm import te
from tvm.target import Target
from tvm.topi import x86


def inner_loop(assembly: str) -> list[str]:
    """Instructions of the innermost loop that multiplies most, found by its backward jump."""
    lines = [line.strip() for line in assembly.splitlines()]
    labels = {line[:-1]: i for i, line in enumerate(lines) if line.endswith(":")}
    loops = []
    for end, line in enumerate(lines):
        jump = re.match(r"j\w+\s+(\S+)", line)
        if jump and labels.get(jump[1], end) < end:
            body = [text for text in lines[labels[jump[1]] : end + 1] if text and text[0] != "."]
            # A body with labels in it is an outer loop.
            if not any(text.endswith(":") for text in body[1:]):
                loops.append(body)
    return max(loops, key=lambda body: sum("vfmadd" in text for text in body))


def build_product(target: Target):
    lanes = target.vector_width // 32
    # Of 16 registers 12 hold the tile.
    tile = x86.RegisterTile(6, 1, 2)
    A = te.placeholder((48, 64), name="A")
    W = te.placeholder((4, 64, 2 * lanes), name="W")
    C = x86.matmul_packed(A, W)
    with target:
        s = x86.schedule_matmul_packed(C, tile)
    return tvm.build(s, [A, W, C], target=target, name="product"), lanes


@pytest.fixture(scope="module", params=testing_processors.X86)
def product(request):
    return build_product(testing_processors.target_of(request.param))


def test_accumulators_stay_in_registers(product):
    module, lanes = product
    loop = inner_loop(module.get_source("asm"))
    register = "zmm" if lanes == 16 else "ymm"
    fused = [line for line in loop if "vfmadd" in line]
    assert len(fused) == 12, "\n".join(loop)
    assert all(register in line for line in fused)
    stores = [line for line in loop if re.match(r"vmov[au]ps\s+%[xyz]mm\d+, .*\(", line)]
    assert not stores, "\n".join(loop)
    # Two vectors of weights, six broadcasts; nothing is spilled or reloaded beside them.
    assert sum("(" in line for line in loop if line.startswith("v")) == 8, "\n".join(loop)


def test_little_but_arithmetic_is_in_the_loop(product):
    module, _ = product
    loop = inner_loop(module.get_source("asm"))
    rest = [line for line in loop if not line.startswith("v") and not line.endswith(":")]
    assert len(rest) <= 5, "\n".join(loop)


def test_the_product_is_right():
    module, lanes = build_product(Target("llvm"))
    rng = np.random.default_rng(0)
    a = rng.standard_normal((48, 64)).astype("float32")
    w = rng.standard_normal((64, 8 * lanes)).astype("float32")
    c = tvm.nd.empty((48, 8 * lanes), "float32")
    packed = x86.pack_matmul_weight(w, 2 * lanes)
    module["product"](tvm.nd.array(a), tvm.nd.array(packed), c)
    np.testing.assert_allclose(c.numpy(), a @ w, rtol=1e-4, atol=1e-4)


def test_a_tile_that_would_spill_is_refused():
    target = Target("llvm -num-vector-registers=16 -vector-width=256")
    with pytest.raises(ValueError, match="need 17 vector registers, the target has 16"):
        x86.RegisterTile(7, 1, 2).check(target)
