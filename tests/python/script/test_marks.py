"""Texts with marks under places of the program, and notes behind them."""

from __future__ import annotations

import pytest

import tvm
from tvm.runtime import ObjectPath
from tvm.script import ir as I
from tvm.script import tir as T

ROOT = ObjectPath.root()


@T.prim_func
def scale(a: T.handle, B: T.Buffer((8, 4), "float32")):
    A = T.match_buffer(a, (8, 4))
    for i, j in T.grid(8, 4):
        with T.block("scaled"):
            v_i, v_j = T.axis.remap("SS", [i, j])
            B[v_i, v_j] = A[v_i, v_j] * 2.0


def marked(program, *places, **options):
    """The lines that have marks, each with what the marks are under."""
    lines = program.script(path_to_underline=places, **options).splitlines()
    found = []
    for line, below in zip(lines, lines[1:]):
        if below.strip(" ^") == "" and "^" in below:
            found.append("".join(c for c, mark in zip(line, below.ljust(len(line))) if mark == "^"))
    return found


BLOCK = ROOT.attr("body").attr("block").attr("body").attr("body").attr("body").attr("block")


@pytest.mark.parametrize(
    ("place", "text"),
    [
        (BLOCK.attr("body").attr("value").attr("b"), "T.float32(2.0)"),
        (BLOCK.attr("body").attr("value").attr("b").attr("value"), "T.float32(2.0)"),
        (BLOCK.attr("body").attr("value"), "A[v_i, v_j]*T.float32(2.0)"),
        (
            ROOT.attr("buffer_map").map_value(scale.params[0]).attr("shape").array_index(1),
            "4",
        ),
    ],
)
def test_a_place_is_underlined(place, text):
    (found,) = marked(scale, place)
    assert found.replace(" * ", "*") == text.replace(" * ", "*")


def test_places_in_modules_keep_their_margin():
    @I.ir_module
    class Module:
        @T.prim_func
        def main():
            T.evaluate(5)

    variable = Module.get_global_var("main")
    place = ROOT.attr("functions").map_value(variable).attr("body").attr("value")
    assert marked(Module, place) == ["5"]
    lines = Module.script(obj_to_underline=[Module["main"].body]).splitlines()
    assert lines[-1].strip() == "^" * len("T.evaluate(5)")
    assert lines[-1].index("^") == lines[-2].index("T.evaluate")


def test_notes_stand_behind_lines():
    body = scale.body.block.body
    text = scale.script(
        path_to_annotate={BLOCK.attr("body"): "the store"}, obj_to_annotate={body: "the loops"}
    )
    lines = [line.strip() for line in text.splitlines() if "  # the" in line]
    assert lines[0] == "for i, j in T.grid(8, 4):  # the loops"
    assert lines[1].endswith("  # the store")
    tvm.ir.assert_structural_equal(tvm.script.from_source(text), scale)


def test_a_difference_is_shown_in_both_texts():
    other = tvm.script.from_source(scale.script().replace("2.0", "3.0"))
    with pytest.raises(ValueError, match="check failed, caused by lhs at <root>.body") as caught:
        tvm.ir.assert_structural_equal(scale, other)
    marks = [line for line in str(caught.value).splitlines() if line.strip(" ^") == "" and line]
    assert len(marks) == 2


def test_without_sugar_every_loop_axis_and_buffer_has_a_line():
    text = scale.script(syntax_sugar=False)
    assert "T.grid" not in text
    assert "T.axis.remap" not in text
    assert text.count("T.match_buffer") == 2
    tvm.ir.assert_structural_equal(tvm.script.from_source(text), scale)
