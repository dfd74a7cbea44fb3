"""Pragmas of loops in functions of blocks reach the passes that read them."""

from __future__ import annotations

import tvm
from tvm import te, tir


def test_a_loop_of_blocks_is_unrolled_by_its_pragma() -> None:
    a = te.placeholder((4,), name="A")
    b = te.compute((4,), lambda i: a[i] + 1.0, name="B")
    sch = tir.Schedule(te.create_prim_func([a, b]))
    [loop] = sch.get_loops(sch.get_block("B"))
    sch.annotate(loop, "pragma_auto_unroll_max_step", 16)
    sch.annotate(loop, "pragma_unroll_explicit", 1)
    text = str(tvm.lower(sch.mod["main"]))
    assert "for" not in text.split("def main")[1] and text.count("B[") == 4
