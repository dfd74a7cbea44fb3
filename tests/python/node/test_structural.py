"""Comparison, hashing and storage of object graphs."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tvm
from tvm import tir
from tvm.ir import IntImm, Range
from tvm.runtime import ObjectPath

values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@settings(max_examples=50, deadline=None)
@given(values)
def test_json_round_trip_gives_an_equal_graph(value):
    graph = tvm.runtime.convert([value])
    loaded = tvm.ir.load_json(tvm.ir.save_json(graph))
    assert tvm.ir.get_first_structural_mismatch(loaded, graph) is None
    assert tvm.ir.structural_hash(loaded) == tvm.ir.structural_hash(graph)


def test_first_difference_has_a_path():
    lhs = {"r": [Range(0, 4), Range(0, 8)]}
    rhs = {"r": [Range(0, 4), Range(0, 9)]}
    left, right = tvm.ir.get_first_structural_mismatch(lhs, rhs)
    expected = ObjectPath.root().map_value("r").array_index(1).attr("extent").attr("value")
    assert left == right == expected
    with pytest.raises(ValueError, match=r"lhs at .*extent.value:\n(.|\n)*8 vs. 9"):
        tvm.ir.assert_structural_equal(lhs, rhs)
    tvm.ir.assert_structural_equal(lhs, lhs)


def test_what_is_missing_has_a_place_too():
    def mismatch(lhs, rhs):
        found = tvm.ir.get_first_structural_mismatch(lhs, rhs)
        other = tvm.ir.get_first_structural_mismatch(rhs, lhs)
        assert found == other[::-1]
        return tuple(str(path) for path in found)

    assert mismatch([1], [1, 2]) == ("<root>[<missing element #1>]", "<root>[1]")
    assert mismatch([1], [1.0])[0] == "<root>[0]"
    assert mismatch(IntImm("int32", 1), IntImm("int64", 1))[0] == "<root>.dtype"
    assert mismatch({"a": 1}, {"a": 1, "b": 1}) == ("<root>[<missing entry>]", '<root>["b"]')
    x, y = tir.Var("x"), tir.Var("y")
    one = tir.PrimFunc([x, y], tir.Evaluate(x))
    other = tir.PrimFunc([x, y], tir.Evaluate(y))
    assert mismatch(one, other)[0] == "<root>.body.value"


def test_lists_of_numbers_are_lists_of_literals():
    literals = tvm.runtime.convert([tir.const(4), tir.const(2)])
    tvm.ir.assert_structural_equal(literals, [4, 2])
    assert tvm.ir.structural_hash(literals) == tvm.ir.structural_hash([4, 2])
    assert not tvm.ir.structural_equal(literals, [4, 3])


def test_arrays_compare_by_contents():
    a = tvm.nd.array(np.arange(3))
    b = tvm.nd.array(np.arange(3))
    assert tvm.ir.structural_equal(a, b)
    assert tvm.ir.structural_hash(a) == tvm.ir.structural_hash(b)
    assert not tvm.ir.structural_equal(a, tvm.nd.array(np.arange(3) + 1))
    loaded = tvm.ir.load_json(tvm.ir.save_json([a, a]))
    assert loaded[0].same_as(loaded[1])
    assert tvm.ir.structural_equal(loaded[0], a)


def test_hash_is_the_same_in_another_process():
    code = "import tvm; print(tvm.ir.structural_hash([tvm.ir.Range(0, 4), 'a', 1.5, {'k': None}]))"
    other = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(other.stdout) == tvm.ir.structural_hash([Range(0, 4), "a", 1.5, {"k": None}])


def test_json_is_json_with_a_version():
    document = json.loads(tvm.ir.save_json(Range(0, 4)))
    assert document["version"] == 1
    assert [node["type"] for node in document["nodes"]] == ["IntImm", "IntImm", "Range"]


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda d: d.update(version=2), "format version 2"),
        (lambda d: d.pop("nodes"), 'no member "nodes"'),
        (lambda d: d.update(root="\ud83d"), "half of a character"),
        (lambda d: d["nodes"][2]["fields"].pop("min"), 'lacks the field "min"'),
        (lambda d: d["nodes"][2]["fields"].update(extra=1), "fields this build does not know"),
        (lambda d: d["nodes"][2]["fields"].update(min="x"), '"min" should be PrimExpr'),
        (lambda d: d["nodes"][2].update(type="Rnage"), "no such node type"),
        (lambda d: d["nodes"][0]["fields"].update(span={"node": 2}), "does not come before it"),
    ],
)
def test_edited_json_is_refused_with_the_reason(edit, message):
    document = json.loads(tvm.ir.save_json(Range(0, 4)))
    edit(document)
    with pytest.raises(ValueError, match=message):
        tvm.ir.load_json(json.dumps(document))


@settings(max_examples=50, deadline=None)
@given(st.text(st.characters(codec="utf-8")) | st.binary().map(repr))
def test_arbitrary_text_never_crashes_the_reader(text):
    with pytest.raises(ValueError):
        tvm.ir.load_json(text)


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 400), st.characters(codec="utf-8"))
def test_damaged_json_is_read_or_refused(position, character):
    text = tvm.ir.save_json({"r": [Range(0, 4), "a"], "t": tvm.nd.array(np.arange(2))})
    position %= len(text)
    damaged = text[:position] + character + text[position + 1 :]
    try:
        tvm.ir.load_json(damaged)
    except (ValueError, TypeError) as error:
        assert isinstance(error, tvm.TVMError)


def test_closures_cannot_be_saved():
    with pytest.raises(TypeError, match="ffi.PyCallable cannot be taken apart"):
        tvm.ir.save_json([lambda: 1])


def test_make_node_names_wrong_fields():
    assert tvm.ir.make_node("IntImm", dtype="int32", value=3).value == 3
    with pytest.raises(ValueError, match='IntImm has no field "valeu"'):
        tvm.ir.make_node("IntImm", valeu=3)
    with pytest.raises(TypeError, match="IntImm.value: expected int, got str"):
        tvm.ir.make_node("IntImm", value="x")


def test_settings_are_equal_as_float32():
    near = float(np.float32(1e-5))
    a, b, c = (tvm.ir.make_node("DictAttrs", epsilon=e) for e in (1e-5, near, 2e-5))
    assert near != 1e-5
    assert tvm.ir.structural_equal(a, b) and not tvm.ir.structural_equal(a, c)
    assert tvm.ir.structural_hash(a) == tvm.ir.structural_hash(b)
    # Numbers of programs are not settings.
    one, other = (tvm.tir.FloatImm("float64", v) for v in (1.0, 1.0 + 1e-12))
    assert not tvm.ir.structural_equal(one, other)
