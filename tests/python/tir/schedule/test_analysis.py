"""What rules ask of a program before they write a schedule."""

from __future__ import annotations

import pytest

from testing_blocks import chain, matmul
from tvm import tir
from tvm.tir.schedule import analysis
from tvm.tir.schedule.state import CachedFlags, ScheduleState


def loop(var, extent):
    return tir.For(var, 0, extent, tir.ForKind.SERIAL, tir.Evaluate(0))


def test_suggest_index_map_follows_the_digits_of_loops():
    i, j = tir.Var("i", "int32"), tir.Var("j", "int32")
    indices = [(i // 16) * 4 + j // 16, (i % 16) * 16 + j % 16]
    layout = analysis.suggest_index_map(
        tir.decl_buffer((8, 256)), indices, [loop(i, 32), loop(j, 64)], True
    )
    wanted = tir.IndexMap.from_func(lambda x, y: [x // 4, y // 16, x % 4, y % 16])
    assert layout.is_equivalent_to(wanted)
    assert analysis.suggest_index_map(tir.decl_buffer((99,)), [i * i], [loop(i, 9)], True) is None


def test_tensorize_loops_are_the_innermost_ones_that_fit():
    desc = matmul(16, 16, 16)[0]
    sch = tir.Schedule(matmul(32, 48, 64)[0])
    i, j, k = sch.get_loops("C")
    info = analysis.get_tensorize_loop_mapping(sch, sch.get_block("C"), desc)
    found = {str(sref.stmt.loop_var): str(loop.loop_var) for sref, loop in info.loop_map.items()}
    assert found == {"i": "i", "j": "j", "k": "k"}
    assert sorted(info.desc_loop_indexer.values()) == [0, 1, 2]
    assert info.block_iter_paddings is None
    sch.split(k, [None, 16])
    assert analysis.get_tensorize_loop_mapping(sch, sch.get_block("C"), desc) is not None
    sch = tir.Schedule(matmul(32, 30, 64)[0])
    assert analysis.get_tensorize_loop_mapping(sch, sch.get_block("C"), desc) is None
    info = analysis.get_tensorize_loop_mapping(sch, sch.get_block("C"), desc, True)
    assert info.block_iter_paddings == [1, 16, 1]


def test_blocks_are_found_and_output_blocks_told():
    sch = tir.Schedule(chain()[0])
    assert analysis.has_block(sch, "B")
    assert not analysis.has_block(sch, "X")
    assert [analysis.is_output_block(sch, sch.get_block(name)) for name in "BCD"] == [0, 0, 1]


def test_flags_say_what_holds_of_a_block_in_its_scope():
    state = ScheduleState(chain()[0])
    root = state.mod["main"].body.block
    flags = state._get_cached_flags(state.get_sref(root))
    assert flags == CachedFlags(affine_binding=True, region_cover=True, stage_pipeline=True)
    sch = tir.Schedule(chain()[0])
    i, j = sch.get_loops("B")
    sch.fuse(i, j)
    assert sch.state._get_cached_flags(sch.get_sref(sch.get_block("B"))).affine_binding
    with pytest.raises(ValueError, match="cached flags are of blocks, got loop"):
        sch.state._get_cached_flags(sch.get_sref(sch.get_loops("B")[0]))
