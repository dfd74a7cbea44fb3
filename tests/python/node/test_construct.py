"""Nodes are made of their declared fields, by one function each and with one set of checks."""

from __future__ import annotations

import json

import pytest

import tvm
from tvm import te, tir
from tvm.auto_scheduler import _ffi_api as auto_scheduler_api
from tvm.relax import _ffi_api as relax_api
from tvm.tir import _ffi_api as tir_api

X = tir.Var("x", "int32")
NOTHING = tir.Evaluate(0)


def test_arguments_at_the_end_may_be_left_out():
    branch = tir_api.IfThenElse(X < 1, NOTHING)
    assert branch.else_case is None
    loop = tir_api.For(X, 0, 4, int(tir.ForKind.PARALLEL), NOTHING)
    assert loop.thread_binding is None
    assert dict(loop.annotations) == {}


def test_a_type_may_be_given_by_its_name():
    assert tir_api.Var("y", "float16x4").dtype == "float16x4"
    assert tir_api.Var("y", tvm.ir.PointerType(tvm.ir.PrimType("int8"))).dtype == "handle"


@pytest.mark.parametrize(
    ("make", "kind", "message"),
    [
        (lambda: tir_api.LetStmt(X, 1), TypeError, "tir.LetStmt: expected 3 arguments, got 2"),
        (lambda: tir_api.LetStmt(X, 1, None), ValueError, "tir.LetStmt.body is missing"),
        (lambda: tir_api.LetStmt(X, 1, X), TypeError, "argument 2: expected tir.Stmt, got tir.Var"),
        (lambda: tir_api.SeqStmt([NOTHING, None]), ValueError, r"tir.SeqStmt.seq\[1\] is missing"),
        (lambda: tir_api.For(X, 0, 4, 9, NOTHING), ValueError, "kind must be in .0, 4., got 9"),
        (lambda: tir_api.IterVar(None, X, 11, ""), ValueError, "iter_type must be in .0, 8."),
        (lambda: tir_api.Var("y", "float77"), TypeError, "cannot work with values of type"),
        (lambda: relax_api.Var("y", X), TypeError, "relax.StructInfo"),
        (
            lambda: auto_scheduler_api.AnnotationStep(0, 0, 40),
            ValueError,
            "no loop annotation has the number 40",
        ),
        (
            lambda: auto_scheduler_api.SplitStep(0, 0, 16, [4, -1], True),
            tvm.error.ScheduleError,
            "got -1",
        ),
        (
            lambda: tvm.ir.make_node(
                "te.Tensor", shape=[1], dtype="int8", op=te.placeholder([1]).op
            ),
            ValueError,
            "te.Tensor: placeholder gives another type",
        ),
    ],
)
def test_wrong_arguments_are_refused(make, kind, message):
    with pytest.raises(kind, match=message):
        make()


def test_a_step_is_made_of_what_its_record_says():
    made = auto_scheduler_api.SplitStep(2, 1, 16, [4, 0], True)
    assert made.lengths[1] is None
    read = auto_scheduler_api.StepFromRecord(["SP", 2, 1, 16, [4, 0], 1])
    assert tvm.ir.structural_equal(made, read)
    open_split = auto_scheduler_api.StepFromRecord(["SP", 2, 1, 16, ["sp_0_0"], 1])
    assert isinstance(open_split.lengths[0], tir.SizeVar)
    assert [str(part) for part in auto_scheduler_api.StepToRecord(open_split)[4]] == ["sp_0_0"]


def test_a_list_that_is_missing_in_json_is_read_as_the_empty_one():
    document = json.loads(tvm.ir.save_json(tvm.ir.make_node("DictAttrs", dict={})))
    document["nodes"][-1]["fields"]["dict"] = None
    assert len(tvm.ir.load_json(json.dumps(document)).dict) == 0


def test_what_follows_from_other_fields_need_not_be_given():
    total = tvm.ir.make_node("tir.Add", a=X, b=X)
    assert total.dtype == "int32"
    with pytest.raises(TypeError, match=r"tir\.Add\.dtype: the other fields make it int32"):
        tvm.ir.make_node("tir.Add", a=X, b=X, dtype="int64")
