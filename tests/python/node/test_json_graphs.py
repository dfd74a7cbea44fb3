"""Every kind of object through JSON, copies and pickles; damaged JSON is refused."""

from __future__ import annotations

import contextlib
import copy
import json
import pickle
import random
import threading

import pytest

import testing_graphs as graphs_of
import tvm
from tvm import te, tir
from tvm.runtime import _ffi_node_api

GRAPHS = graphs_of.graphs()


@pytest.mark.parametrize("name", GRAPHS)
def test_graph_survives_json_copying_and_pickling(name):
    graph = tvm.runtime.convert(GRAPHS[name])
    for other in (
        tvm.ir.load_json(tvm.ir.save_json(graph)),
        pickle.loads(pickle.dumps(graph)),
        copy.deepcopy(graph),
    ):
        assert tvm.ir.get_first_structural_mismatch(other, graph, map_free_vars=True) is None
        hashes = [tvm.ir.structural_hash(value, map_free_vars=True) for value in (other, graph)]
        assert hashes[0] == hashes[1]
        assert not other.same_as(graph)


def test_every_registered_type_survives_json():
    seen = set().union(*(graphs_of.types_in(graph) for graph in GRAPHS.values()))
    for key in _ffi_node_api.ListTypeKeys():
        if key in seen:
            continue
        try:
            node = tvm.ir.make_node(key)
        except (TypeError, ValueError):
            # Abstract, or its fields depend on one another: then there is nothing to save.
            continue
        restored = tvm.ir.load_json(tvm.ir.save_json(node))
        assert tvm.ir.structural_equal(restored, node, map_free_vars=True), key


def test_printing_names_no_addresses():
    for name, graph in GRAPHS.items():
        assert "0x" not in repr(tvm.runtime.convert(graph)), name


def test_object_used_twice_stays_one_object():
    x = tir.Var("x", "int32")
    pair = tvm.ir.load_json(tvm.ir.save_json([x + 1, x * 2]))
    assert pair[0].a.same_as(pair[1].a)


def test_restored_schedule_lowers_to_the_same_program():
    schedule, arguments = graphs_of.scheduled_matmul()
    restored, tensors = copy.deepcopy(tvm.runtime.convert([schedule, list(arguments)]))
    tvm.ir.assert_structural_equal(
        tvm.lower(restored, list(tensors)), tvm.lower(schedule, list(arguments))
    )


def test_pickled_subclass_keeps_its_class():
    target = pickle.loads(pickle.dumps(tvm.target.Target("llvm")))
    assert type(target) is tvm.target.Target


def deep_sum(first, second, depth):
    expr = first
    for _ in range(depth):
        expr = tir.Add(expr, second)
    return expr


def test_deep_graph_is_freed_and_refused_without_a_crash():
    # Deep enough for the few bytes of stack that an optimised build needs per level.
    x = tir.Var("x", "int32")
    expr = deep_sum(x, x, 1_000_000)
    for use in (repr, tir.analysis.undefined_vars):
        with pytest.raises(RecursionError, match="nested too deeply"):
            use(expr)
    del expr


def test_deep_graphs_are_compared_hashed_and_saved():
    x = tir.Var("x", "int32")
    one, same, other = (deep_sum(first, x, 40_000) for first in (x, x, tir.const(2, "int32")))
    assert tvm.ir.structural_equal(one, same)
    assert not tvm.ir.structural_equal(one, other)
    assert tvm.ir.structural_hash(one) == tvm.ir.structural_hash(same)
    read = tvm.ir.load_json(tvm.ir.save_json(one))
    assert tvm.ir.structural_equal(read, one, map_free_vars=True)


def test_deep_graph_in_json_is_read_and_freed():
    nodes = json.loads(tvm.ir.save_json([[]]))["nodes"]
    array = nodes[0]
    deep = [array] + [dict(array, items=[{"node": i}]) for i in range(100_000)]
    value = tvm.ir.load_json(json.dumps({"version": 1, "root": {"node": 100_000}, "nodes": deep}))
    assert len(value) == 1
    del value


def test_nested_text_is_refused():
    with pytest.raises(ValueError, match="nesting too deep"):
        tvm.ir.load_json("[" * 100_000)


def test_small_stacks_are_respected():
    outcome = []

    def work():
        expr = deep_sum(tir.Var("x", "int32"), tir.IntImm("int32", 1), 150_000)
        try:
            tir.analysis.undefined_vars(expr)
        except RecursionError:
            outcome.append("refused")
        outcome.append(tvm.ir.structural_hash(expr))

    before = threading.stack_size(2 * 2**20)
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    threading.stack_size(before)
    assert outcome[0] == "refused" and isinstance(outcome[1], int)


def test_text_of_another_writer_is_named_as_such():
    with pytest.raises(ValueError, match='no format "version"'):
        tvm.ir.load_json('{"root": 1, "nodes": [], "attrs": {"tvm_version": "0.8.0"}}')


def test_abstract_types_are_refused():
    text = '{"version": 1, "root": {"node": 0}, "nodes": [{"type": "tir.Stmt", "fields": {}}]}'
    with pytest.raises(ValueError, match="abstract"):
        tvm.ir.load_json(text)
    with pytest.raises(TypeError, match="abstract"):
        tvm.ir.make_node("tir.Stmt")


def test_closures_are_not_saved_without_their_function():
    @tvm.transform.module_pass(opt_level=0)
    def nothing(mod, ctx):
        return mod

    with pytest.raises(TypeError, match=r"transform\.ModulePass cannot be taken apart"):
        tvm.ir.save_json(nothing)


@pytest.mark.parametrize(
    ("make", "edit", "message"),
    [
        (lambda x: x + 1, {"b": None}, r"node 3 \(tir\.Add\): tir\.Add\.b is missing"),
        (lambda x: x + 1, {"dtype": {"dtype": "float32"}}, "the other fields make it int32"),
        (lambda x: tir.Ramp(x, 1, 4), {"lanes": 1}, "lanes must be from 2 to 32767"),
        (lambda x: tir.Ramp(x, 1, 4), {"lanes": 70000}, "lanes must be from 2 to 32767"),
        (lambda x: tir.Ramp(x, 1, 4), {"lanes": -4}, "the other fields make it int32xvscalex4"),
        (lambda x: x < 1, {"a": {"node": 99}}, "does not come before it"),
        (lambda x: tir.Evaluate(x + 1), {"value": None}, r"tir\.Evaluate\.value is missing"),
    ],
)
def test_node_that_no_constructor_makes_is_refused(make, edit, message):
    document = json.loads(tvm.ir.save_json(make(tir.Var("x", "int32"))))
    document["nodes"][-1]["fields"].update(edit)
    with pytest.raises(ValueError, match=message):
        tvm.ir.load_json(json.dumps(document))


def test_none_in_place_of_an_object_is_an_error_where_it_is_used():
    with pytest.raises(ValueError, match=r"tir\.BufferLoad\.buffer is missing"):
        tir.BufferLoad(None, [0])


@pytest.mark.parametrize("name", GRAPHS)
def test_damaged_graph_is_refused_or_usable(name):
    text = tvm.ir.save_json(GRAPHS[name])
    document = json.loads(text)
    rng = random.Random(f"{name} 1")
    loaded = 0
    for _ in range(60):
        try:
            value = tvm.ir.load_json(json.dumps(graphs_of.damage(document, rng)))
            loaded += 1
            graphs_of.use(value)
        except tvm.TVMError as error:
            assert not isinstance(error, tvm.error.InternalError), error
    assert loaded < 60


@pytest.mark.parametrize("name", ["schedule", "tensor", "lowered", "expressions"])
def test_gently_damaged_program_is_refused_or_goes_through_lowering(name):
    document = json.loads(tvm.ir.save_json(GRAPHS[name]))
    rng = random.Random(f"{name} 3")
    for _ in range(60):
        with contextlib.suppress(tvm.TVMError):
            value = tvm.ir.load_json(json.dumps(graphs_of.damage_gently(document, rng)))
            graphs_of.use(value)
            if name == "schedule":
                tvm.lower(value, [stage.op.output(0) for stage in value.stages])
            elif name == "tensor":
                schedule = te.create_schedule(value.op)
                tvm.lower(schedule, [stage.op.output(0) for stage in schedule.stages])
            elif name == "lowered":
                for make in (tir.transform.Simplify, tir.transform.VectorizeLoop):
                    value = make()(value)
            else:
                analyzer = tvm.arith.Analyzer()
                for expr in value:
                    analyzer.simplify(expr)


@pytest.mark.parametrize("name", GRAPHS)
def test_damaged_text_is_refused_or_usable(name):
    text = tvm.ir.save_json(GRAPHS[name])
    rng = random.Random(f"{name} 2")
    for _ in range(40):
        with contextlib.suppress(tvm.TVMError):
            graphs_of.use(tvm.ir.load_json(graphs_of.damaged_text(text, rng)))


def fields_of(document, kind):
    """Fields of the first object of a type in a saved graph, to be changed in place."""
    return next(node["fields"] for node in document["nodes"] if node["type"] == kind)


def items_of(document, kind, field):
    """Items of the first list that is not empty in that field of an object of the type."""
    nodes = document["nodes"]
    lists = (nodes[n["fields"][field]["node"]]["items"] for n in nodes if n["type"] == kind)
    return next(items for items in lists if items)


def drop_a_loop(document):
    del items_of(document, "te.Stage", "leaf_iter_vars")[0]


def drop_a_pragma_value(document):
    items_of(document, "te.IterVarAttr", "pragma_values")[0] = None


@pytest.mark.parametrize(
    ("name", "damage", "message"),
    [
        (
            "schedule",
            lambda d: items_of(d, "te.Stage", "relations").reverse(),
            "is split, fused or rebased where it is no loop",
        ),
        ("schedule", drop_a_loop, "is not among those of the stage"),
        (
            "schedule",
            lambda d: items_of(d, "te.Schedule", "stages").reverse(),
            "which no stage before it computes",
        ),
        ("schedule", drop_a_pragma_value, r"te\.IterVarAttr\.pragma_values\[0\] is missing"),
        (
            "relax",
            lambda d: fields_of(d, "relax.expr.Constant").update(data=None),
            r"relax\.expr\.Constant\.data is missing",
        ),
    ],
)
def test_a_graph_that_contradicts_itself_is_refused_when_read(name, damage, message):
    document = json.loads(tvm.ir.save_json(GRAPHS[name]))
    damage(document)
    with pytest.raises(ValueError, match=message):
        tvm.ir.load_json(json.dumps(document))
