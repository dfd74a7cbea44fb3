"""Places in object graphs."""

from __future__ import annotations

import itertools

import pytest

from tvm import tir
from tvm.runtime import ObjectPath, object_path

ROOT = ObjectPath.root()


@pytest.mark.parametrize(
    ("path", "text", "kind"),
    [
        (ROOT, "<root>", object_path.RootPath),
        (ObjectPath.root("module"), "module", object_path.RootPath),
        (ROOT.attr("body"), "<root>.body", object_path.AttributeAccessPath),
        (
            ROOT.attr(None),
            "<root>.<unknown attribute>",
            object_path.UnknownAttributeAccessPath,
        ),
        (ROOT.array_index(2), "<root>[2]", object_path.ArrayIndexPath),
        (
            ROOT.missing_array_element(2),
            "<root>[<missing element #2>]",
            object_path.MissingArrayElementPath,
        ),
        (ROOT.map_value("foo"), '<root>["foo"]', object_path.MapValuePath),
        (ROOT.missing_map_entry(), "<root>[<missing entry>]", object_path.MissingMapEntryPath),
    ],
)
def test_paths_print_their_steps(path, text, kind):
    assert str(path) == text
    assert type(path) is kind
    assert len(path) == (1 if path.parent is None else 2)


def test_paths_of_equal_steps_are_equal():
    var = tir.Var("x")
    paths = [
        [
            root,
            root.attr("a"),
            root.attr("b"),
            root.array_index(1),
            root.missing_array_element(1),
            root.map_value("a"),
            root.map_value(var),
            root.map_value(tir.Var("x")),
            root.attr("a").array_index(1),
        ]
        for root in (ObjectPath.root(), ObjectPath.root())
    ]
    for (i, a), (j, b) in itertools.product(enumerate(paths[0]), enumerate(paths[1])):
        # A variable is known by identity: the one that was made twice is two.
        assert (a == b) == (i == j and i != 7)
        assert a != b or hash(a) == hash(b)


def test_prefixes_are_shorter_paths():
    path = ROOT.attr("a").array_index(3)
    assert path.get_prefix(2) == path.parent == ROOT.attr("a")
    assert ROOT.is_prefix_of(path)
    assert path.is_prefix_of(path)
    assert not path.is_prefix_of(ROOT)
    assert not ROOT.attr("b").is_prefix_of(path)
    with pytest.raises(IndexError, match="at least 1"):
        path.get_prefix(0)
    with pytest.raises(IndexError, match="longer than the path itself"):
        path.get_prefix(4)
