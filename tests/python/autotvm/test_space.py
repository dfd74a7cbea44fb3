"""Spaces: what knobs offer, how points are numbered, written down and read."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from testing_templates import matmul_task
from tvm import te
from tvm.autotvm import ConfigEntity, ConfigSpace
from tvm.autotvm.task import FallbackConfigEntity


@given(st.integers(1, 360), st.integers(2, 4))
def test_factors_are_all_ways_to_divide(length: int, outputs: int) -> None:
    space = ConfigSpace()
    axes = space.define_split("s", length, num_outputs=outputs, no_tail=True)
    assert len(axes) == outputs
    divisors = [d for d in range(1, length + 1) if length % d == 0]
    expected = {
        inner
        for inner in itertools.product(divisors, repeat=outputs - 1)
        if length % math.prod(inner) == 0
    }
    assert {tuple(entity.size[1:]) for entity in space.space_map["s"]} == expected
    assert all(entity.size[0] == -1 for entity in space.space_map["s"])


def test_policies_of_splits() -> None:
    space = ConfigSpace()
    space.define_split("power2", 48, policy="power2", num_outputs=2)
    space.define_split("verbose", 48, policy="verbose", num_outputs=2, max_factor=8)
    space.define_split("candidate", 48, policy="candidate", candidate=[[-1, 7], [-1, 9]])
    space.define_split("filter", 48, num_outputs=2, filter=lambda e: e.size[1] % 3 == 0)
    sizes = {n: [e.size[1] for e in s] for n, s in space.space_map.items()}
    assert sizes["power2"] == [1, 2, 4, 8, 16, 32]
    assert sizes["verbose"] == [1, 2, 3, 4, 6, 8]
    assert sizes["candidate"] == [7, 9]
    assert sizes["filter"] == [3, 6, 12, 24, 48]
    with pytest.raises(ValueError, match="unknown policy 'prime'"):
        space.define_split("other", 4, policy="prime")
    with pytest.raises(ValueError, match="no candidate"):
        space.define_split("none", 4, num_outputs=2, filter=lambda e: False)
    with pytest.raises(ValueError, match="constant"):
        space.define_split("symbolic", te.var("n"))


def test_orders_and_marks() -> None:
    space = ConfigSpace()
    y, x, k = (space.axis(n) for n in (8, 8, 8))
    yo, yi = space.define_split("y", y, num_outputs=2)
    xo, xi = space.define_split("x", x, num_outputs=2)
    ko, ki = space.define_split("k", k, num_outputs=2)
    space.define_reorder("all", [yo, yi, ko], "all")
    space.define_reorder("part", [yo, yi, xo, xi], "interval_all", interval=(1, 3))
    space.define_reorder("given", [yo, xo], "candidate", candidate=[[xo, yo]])
    space.define_reorder(
        "tiles",
        [yo, xo, yi, xi, ko, ki],
        "interleave",
        spatial=[[yo, yi], [xo, xi]],
        reduce=[[ko, ki]],
    )
    orders = {n: [e.perm for e in space.space_map[n]] for n in ("all", "part", "given", "tiles")}
    assert len(orders["all"]) == 6
    assert orders["part"] == [[0, 1, 2, 3], [0, 2, 1, 3]]
    assert orders["given"] == [[1, 0]]
    assert sorted(orders["tiles"]) == sorted(
        [[0, 1, 4, 5, 2, 3], [0, 1, 4, 2, 3, 5], [0, 1, 2, 3, 4, 5]]
    )
    space.define_annotate("try", [yi, xi], "try_unroll_vec")
    space.define_annotate("bind", [yo, xo, yi, xi], "bind_gpu")
    space.define_annotate("cache", [yo, xo], "locate_cache", num_anchor=2)
    marks = {n: [e.anns for e in space.space_map[n]] for n in ("try", "bind", "cache")}
    assert len(marks["try"]) == 6 and ["none", "vec"] in marks["try"]
    assert marks["bind"] == [["blockIdx.y", "blockIdx.x", "threadIdx.y", "threadIdx.x"]]
    assert marks["cache"] == [[0, 0], [0, 1], [1, 0], [1, 1]]


def test_points_are_numbered_and_written_down() -> None:
    space = matmul_task().config_space
    assert space is not None and len(space) == 49 and space.dims == [7, 7]
    for index in (0, 5, 12, 48):
        point = space.get(index)
        assert space.knob2point(space.point2knob(index)) == index
        again = ConfigEntity.from_json_dict(point.to_json_dict())
        assert again == point and str(again) == str(point) and hash(again) == hash(point)
    assert space.get(5)["tile_y"].size == [-1, 32] and space.get(5)["tile_x"].size == [-1, 1]
    with pytest.raises(IndexError, match="index 49 of 49"):
        space.get(49)
    with pytest.raises(KeyError, match="tile_z"):
        space.get(0)["tile_z"]
    with pytest.raises(ValueError, match="of kind 'xx'"):
        ConfigEntity.from_json_dict({"index": 0, "entity": [["a", "xx", 1]]})


def test_filters_of_whole_points() -> None:
    space = matmul_task().config_space
    assert space is not None
    space.multi_filter(lambda e: e["tile_y"].size[1] * e["tile_x"].size[1] <= 16)
    valid = [i for i in range(49) if space.is_index_valid(i)]
    assert len(space) == len(valid) == 15 and space.range_length == 49
    assert [point.index for point in space] == valid
    assert sorted(space.sample_ints(100)) == valid
    assert set(space.sample_ints(5)) <= set(valid)
    assert space.get_next_index(-1, n=3) == valid[2]
    assert space.get_rand_index(to_exclude=set(valid[1:])) == valid[0]
    with pytest.raises(IndexError, match="no valid index is left"):
        space.get_rand_index(to_exclude=set(valid))
    for index in valid:
        moved = space.random_walk(index)
        differing = np.array(space.point2knob(index)) != np.array(space.point2knob(moved))
        assert space.is_index_valid(moved) and differing.sum() <= 1


def test_fallbacks_fill_themselves() -> None:
    config = FallbackConfigEntity()
    config.define_split("y", 100, num_outputs=3)
    config.define_knob("unroll", [16, 64])
    assert config["y"].size == [-1, 1, 1] and config["unroll"].val == 16
    config.fallback_split("y", [-1, 8, 16])
    assert config["y"].size == [-1, 5, 10]
    with pytest.raises(ValueError, match="'unroll' is no split"):
        config.fallback_split("unroll", [1])
    with pytest.raises(ValueError, match="3 loops, not 2"):
        config.fallback_split("y", [1, 2])
