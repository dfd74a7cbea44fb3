"""Layouts by letters, and the maps between them."""

from __future__ import annotations

import numpy as np
import pytest

from tvm import tir


def test_a_layout_knows_its_axes():
    layout = tir.layout("NCHW16c", "int64")
    assert [layout[i] for i in range(len(layout))] == ["N", "C", "H", "W", "c"]
    assert (layout.factor_of("C"), layout.factor_of("c"), layout.factor_of("N")) == (16, 16, -1)
    assert (layout.index_of("H"), layout.index_of("Q")) == (2, -1)
    assert "c" in layout
    assert "o" not in layout
    assert str(layout.axes[0].var.dtype) == "int64"
    assert int(layout.axes[4].dom.extent) == 16


@pytest.mark.parametrize(
    ("name", "message"),
    [("NC16", "cannot read"), ("NCc", "cannot read"), ("NN", "twice"), ("N8c", "part of no axis")],
)
def test_names_that_are_no_layouts_are_refused(name, message):
    with pytest.raises(ValueError, match=message):
        tir.layout(name)
    with pytest.raises(TypeError, match="integers"):
        tir.layout("NCHW", "float32")


@pytest.mark.parametrize(
    ("source", "target", "shape"),
    [
        ("NCHW", "NCHW16c", (2, 32, 3, 4)),
        ("OIHW", "OIHW4o8i", (8, 16, 3, 3)),
        ("NCHW4c", "NHWC", (1, 2, 3, 5, 4)),
        ("HWIO", "OHWI2o", (3, 3, 4, 6)),
        ("OIW", "OIW4i6o3i", (6, 24, 2)),
        ("OI2i3o4i", "IO2o4i", (2, 3, 2, 3, 4)),
    ],
)
def test_maps_agree_with_moving_the_elements(source, target, shape):
    layout = tir.bijective_layout(source, target)
    values = np.arange(np.prod(shape)).reshape(shape)
    moved = np.full([int(extent) for extent in layout.forward_shape(shape)], -1)
    for index in np.ndindex(shape):
        moved[tuple(int(i) for i in layout.forward_index(index))] = values[index]
    assert sorted(moved.flatten()) == sorted(values.flatten())
    assert tuple(int(extent) for extent in layout.backward_shape(moved.shape)) == shape
    for index in np.ndindex(moved.shape):
        back = tuple(int(i) for i in layout.backward_index(index))
        assert values[back] == moved[index]


@pytest.mark.parametrize(
    ("source", "target"), [("NCHW", "ABCD"), ("__undef__", "NCHW"), ("", ""), ("NC", "NCHW")]
)
def test_layouts_of_other_axes_have_no_map(source, target):
    assert tir.bijective_layout(source, target) is None


def test_symbolic_extents_stay_expressions():
    n = tir.Var("n")
    shape = tir.bijective_layout("NC", "NC4c").forward_shape([1, n])
    assert str(shape[1]) == "(n + 3) // 4"
    with pytest.raises(ValueError, match="has 2 axes, here are 1 values"):
        tir.bijective_layout("NC", "NC4c").forward_shape([n])
