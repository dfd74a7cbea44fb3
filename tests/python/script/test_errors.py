"""What is wrong with a text, where, and what to write instead; and that no text runs."""

from __future__ import annotations

import random
import re

import pytest

import tvm
from tvm import te
from tvm.error import DiagnosticError
from tvm.script import tir as T


def refusal(*lines, params='A: T.Buffer((8,), "float32"), n: T.int32'):
    text = "\n".join(["@T.prim_func", f"def f({params}):", *("    " + line for line in lines)])
    with pytest.raises(DiagnosticError) as caught:
        tvm.script.from_source(text, name="f.py")
    return str(caught.value)


def test_an_error_shows_the_place_and_a_way_out():
    assert refusal("A[0] = 1.0", "A[m] = 1.0") == (
        "error: `m` is not defined here\n"
        " --> f.py:4:7\n"
        "  |\n"
        "4 |     A[m] = 1.0\n"
        "  |       ^\n"
        "help: declare it before it is used, for instance `m = T.int32()`"
    )


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("A[nn] = 1.0", "did you mean `n`"),
        ("A[0] = T.expp(A[0])", "there is no construct `T.expp`(.|\n)*did you mean `T.exp`"),
        ("A[0] = exp(A[0])", "`exp` cannot be called in a script"),
        ("A[0] = A[0] if n else 1.0", "T.if_then_else"),
        ("A[0, 1] = 1.0", "`A` has 1 axes, here are 2 indices"),
        ("A[n / 2] = 1.0", "dividing integers by `/` is ambiguous(.|\n)*T.truncdiv"),
        ("A[0] = T.exp(A[0], A[0])", "T.exp takes 1 operands, here are 2"),
        ("A[0] = T.int8(1)", "takes float32, got"),
        ("A[0] = n[0]", "`n` is not a buffer"),
        ("A[0] = A", "the buffer `A` is not a value"),
        ("for i in A:\n        A[i] = 1.0", "not something to loop over"),
        (
            "for i in T.serial(0, 4, stop=3):\n        pass",
            "T.serial: got multiple values for argument 'stop'",
        ),
        (
            "for i, j, k in T.grid(2, 3):\n        pass",
            "T.grid of 2 extents needs as many variables",
        ),
        ("for i in T.thread_binding(4):\n        pass", 'thread="threadIdx.x"'),
        ("T.reads(A[0])", "T.reads stands in a block"),
        ("x: T.float33 = 1", "there is no construct `T.float33`"),
        ("T.func_attr({1: 2})", "a text is needed here, not 1"),
        ("T.func_attr({'a': ...})", "leaves something out"),
        ("T.func_attr({'a': I.node('no.Such')})", "no.Such"),
        ("x: T.serial = 1", "not a type of variables"),
        ("raise n", "is not a statement of tensor programs"),
        ("import os", "is not a statement of tensor programs"),
        ("A[0] = __import__('os')", "`__import__` cannot be called"),
        ("A[0] = (lambda: 1)()", "cannot be called in a script"),
        ("A[0] = n.__class__", "has no `__class__` in scripts"),
        ("n += 1", "a variable of a script has one value"),
        ("B = T.allocate([4])", "T.allocate: missing 1 required positional argument: 'dtype'"),
        ("A[0] = metadata['x'][0]", "show_meta=True"),
        ("A[0] = 1.0 +", "not the syntax of a script"),
        ("with open('x'):\n        pass", "is not a scope"),
        ("cls.f(*[n])", "is not part of scripts; write out what it stands for"),
        ("x = T.match_buffer(n, (8,), 'int8', 3)", "pointer"),
        ("for i in range(A):\n        pass", "the buffer `A` is not a value"),
        ("with T.block('b'):\n        v = T.axis.remap('S', [n])", "`n` is not a loop"),
        ("A[0] = T.float32('1')", '"nan", "inf" or "-inf"'),
        ("A[0] = T.uint8(300)", "300"),
    ],
)
def test_a_wrong_line_is_named(line, message):
    found = refusal(line)
    assert "f.py:" in found

    assert re.search(message, found), found


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "this one has 0"),
        ("x = 1", "the only name a text defines is metadata"),
        ("print(1)", "only imports, metadata and definitions"),
        ("def f():\n    pass", "nothing says what kind of function `f` is"),
        ("@T.prim_func\ndef f(a):\n    pass", "parameter `a` has no type"),
        ("@T.prim_func\ndef f(*a):\n    pass", r"parameters of a T.prim_func are plain"),
        ("@T.prim_func(pure=1)\ndef f():\n    pass", "has no argument `pure`"),
        ("@I.ir_module\nclass M:\n    x = 1", "a module has functions"),
        ("metadata = tvm.ir.load_json('[')", "<str>:1:1"),
        ("from tvm.script import relay as R", "has no dialect `relay`"),
    ],
)
def test_a_wrong_text_is_named(text, message):
    with pytest.raises(DiagnosticError, match=message):
        tvm.script.from_source(text)


def test_errors_in_a_python_file_have_its_name_and_line():
    with pytest.raises(DiagnosticError, match=r"test_errors.py:\d+:\d+(.|\n)*A\[j\] = 1.0"):

        @T.prim_func
        def f(A: T.Buffer((8,), "float32")):
            A[j] = 1.0  # noqa: F821


def test_values_of_the_scope_around_that_are_no_constants_are_refused():
    thing = object()
    assert thing is not None
    with pytest.raises(DiagnosticError, match="is not an expression"):

        @T.prim_func
        def f(A: T.Buffer((8,), "float32")):
            A[thing] = 1.0


def test_bodies_do_nothing_when_python_runs_them():
    with pytest.raises(ValueError, match="no program is being built here"):
        T.evaluate(1)


def test_damaged_texts_are_refused_and_never_crash():
    A = te.placeholder((8, 8), name="A")
    k = te.reduce_axis((0, 8), name="k")
    B = te.compute((8,), lambda i: te.sum(A[i, k], axis=k), name="B")
    s = te.create_schedule(B.op)
    texts = [str(te.create_prim_func([A, B])), str(tvm.lower(s, [A, B]))]
    rng = random.Random(0)
    refused = 0
    for _ in range(300):
        text = rng.choice(texts)
        at = rng.randrange(len(text))
        piece = rng.choice(
            ["", "(", "T.", "0", " ", "\n", "A", "-", '"', "[i]", "@", "k.x", "()", ":"]
        )
        damaged = text[:at] + piece + text[at + rng.choice([0, 1, 5]) :]
        try:
            tvm.script.from_source(damaged)
        except DiagnosticError:
            refused += 1
    assert refused > 100


def test_deep_nesting_is_refused_or_read():
    for text in ("(" * 300 + "n" + ")" * 300, "-" * 5000 + "n", "n" + " + n" * 5000):
        try:
            tvm.script.from_source(f"@T.prim_func\ndef f(n: T.int32):\n    T.evaluate({text})")
        except DiagnosticError as reason:
            assert "deep" in str(reason) or "read" in str(reason) or "syntax" in str(reason)
