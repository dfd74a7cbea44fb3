"""Which of LLVM's passes a program gets, and what comes of them."""

from __future__ import annotations

import re

import numpy as np
import pytest

import tvm
from tvm import te, tir
from tvm.script import tir as T
from tvm.target import codegen


def product_and_sum(target: str, vectorized: bool = False) -> tvm.runtime.Module:
    n = 64 if vectorized else te.var("n")
    A, B = (te.placeholder((n,), name=name) for name in "AB")
    C = te.compute((n,), lambda i: A[i] * B[i] + A[i], name="C")
    s = te.create_schedule(C.op)
    if vectorized:
        _, inner = s[C].split(C.op.axis[0], factor=4)
        s[C].vectorize(inner)
    return tvm.build(s, [A, B, C], target)


@pytest.mark.parametrize(
    "target", ["llvm", "llvm -opt-level=0", "llvm -opt-level=1", "llvm -opt-level=3"]
)
def test_every_level_computes_the_same(target):
    rng = np.random.default_rng(0)
    for length in (1, 7, 64, 131):
        a, b = (rng.random(length, dtype=np.float32) for _ in range(2))
        out = tvm.nd.empty((length,))
        product_and_sum(target)(tvm.nd.array(a), tvm.nd.array(b), out)
        np.testing.assert_allclose(out.numpy(), a * b + a, rtol=1e-6)


def test_loops_that_nobody_scheduled_become_vectors():
    target = "llvm -mtriple=x86_64-linux-gnu -mcpu=skylake-avx512"
    assert "x float>" in product_and_sum(target).get_source("ll")
    assert "x float>" not in product_and_sum(f"{target} -opt-level=0").get_source("ll")
    assert "x float>" not in product_and_sum(f"{target} -opt-level=1").get_source("ll")


def test_vectors_that_were_scheduled_stay_as_they_are():
    target = "llvm -mtriple=x86_64-linux-gnu -mcpu=skylake-avx512"
    lanes = re.findall(
        r"<(\d+) x float>", product_and_sum(target, vectorized=True).get_source("ll")
    )
    assert set(lanes) == {"4"}


def test_a_level_that_llvm_lacks_is_refused():
    with pytest.raises(ValueError, match="opt-level is a number from 0 to 3, got 7"):
        product_and_sum("llvm -opt-level=7")


@pytest.mark.parametrize("dtype", ["float32", "float16", "int8", "int32"])
def test_scalable_vectors_of_arm_are_used(dtype):
    m = te.var("m")
    A, B = (te.placeholder((m,), dtype, name=name) for name in "AB")
    C = te.compute((m,), lambda i: A[i] * B[i], name="C")
    built = tvm.build(
        te.create_schedule(C.op), [A, B, C], "llvm -mtriple=aarch64-linux-gnu -mattr=+sve"
    )
    assembly = built.get_source("asm")
    assert len(re.findall(r"\tld1[bhwd]\t\{ ?z\d+", assembly)) > 1
    assert len(re.findall(r"\tf?mul\tz\d+", assembly)) > 1


def test_old_processors_of_32_bits_compile():
    # Asked whether they convert halves, LLVM would end the process.
    assert product_and_sum("llvm -mtriple=i386-pc-linux-gnu").get_source("asm")


def test_an_intrinsic_may_be_looked_up_by_number():
    number = codegen.llvm_lookup_intrinsic_id("llvm.fma")
    assert codegen.llvm_get_intrinsic_name(number) == "llvm.fma"
    named = tir.call_llvm_pure_intrin("float32", "llvm.fma", 1.0, 2.0, 3.0)
    counted = tir.call_llvm_pure_intrin("float32", number, tir.const(3, "uint32"), 1.0, 2.0, 3.0)
    tvm.ir.assert_structural_equal(named, counted)
    with pytest.raises(ValueError, match=r'"fma" does not begin with "llvm."'):
        codegen.llvm_lookup_intrinsic_id("fma")
    with pytest.raises(ValueError, match="no LLVM intrinsic was looked up under the number 0"):
        codegen.llvm_get_intrinsic_name(0)


def test_a_script_looks_an_intrinsic_up():
    @T.prim_func
    def fused(A: T.Buffer((4,), "float32")):
        for i in range(4):
            A[i] = T.call_llvm_pure_intrin(
                T.llvm_lookup_intrinsic_id("llvm.fma.f32"),
                T.uint32(3),
                A[i],
                A[i],
                T.float32(1),
                dtype="float32",
            )

    assert '"llvm.fma.f32", A[i], A[i]' in fused.script()
    values = tvm.nd.array(np.arange(4, dtype="float32"))
    tvm.build(fused, target="llvm")(values)
    np.testing.assert_array_equal(values.numpy(), np.arange(4) ** 2 + 1)
