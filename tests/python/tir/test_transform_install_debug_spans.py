"""Lines of a function's text as the source of its machine code."""

from __future__ import annotations

import re

import numpy as np
import pytest

import tvm
from tvm import tir
from tvm.script import tir as T


@T.prim_func
def main(a: T.handle, b: T.handle):
    n = T.int64()
    A = T.match_buffer(a, (n, 8))
    B = T.match_buffer(b, (n,))
    for i in T.parallel(n):
        B[i] = T.float32(0)
        for j in range(8):
            B[i] = B[i] + T.exp(A[i, j])


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def build(func):
    with tvm.transform.PassContext(config={"tir.enable_debug": True}):
        return tvm.build(tvm.IRModule({"main": func}), target="llvm")


def test_statements_know_their_lines(folder):
    func = tir.transform.InstallDebugSpans()(tvm.IRModule({"main": main}))["main"]
    lines = (folder / "main.tir").read_text().splitlines()
    seen = []

    def look(node):
        if isinstance(node, (tir.For, tir.BufferStore)):
            assert node.span.source_name.name == "main.tir"
            line = lines[node.span.line - 1]
            name = node.loop_var.name if isinstance(node, tir.For) else f"{node.buffer.name}["
            assert name in line
            assert line[node.span.column - 1] != " "
            seen.append(node)

    tir.stmt_functor.post_order_visit(func.body, look)
    assert len(seen) == 4
    assert str(func.attrs["tir.debug_source"]) == "main.tir"


def lines_of(text, instruction):
    """The lines in the debug information of instructions that match."""
    places = re.findall(rf"{instruction}.*!dbg (!\d+)", text)
    return {int(re.search(rf"\n{place} = !DILocation\(line: (\d+)", text)[1]) for place in places}


def test_code_says_of_what_line_it_is(folder):
    module = build(main)
    text = module.get_source("ll")
    assert "DICompileUnit" in text
    assert 'DIFile(filename: "main.tir"' in text
    source = (folder / "main.tir").read_text().splitlines()
    (exp_line,) = (i for i, line in enumerate(source, 1) if "exp" in line)
    (loop_line,) = (i for i, line in enumerate(source, 1) if "in range" in line)
    assert lines_of(text, "fadd contract float") == {exp_line}
    # The sum is kept in a register, and is stored when the loop over j has ended.
    assert lines_of(text, "store float") == {loop_line}
    a = np.random.default_rng(0).random((16, 8), "float32")
    out = tvm.nd.empty((16,))
    module(tvm.nd.array(a), out)
    np.testing.assert_allclose(out.numpy(), np.exp(a).sum(1), rtol=1e-5)


@T.prim_func
def steps(a: T.handle, b: T.handle):
    A = T.match_buffer(a, (64,))
    B = T.match_buffer(b, (64,))
    C = T.alloc_buffer((64,))
    for i in range(64):
        with T.block("C"):
            vi = T.axis.spatial(64, i)
            assert A[vi] > T.float32(0), "expected a positive number"
            C[vi] = T.sqrt(A[vi])
    for io in T.parallel(8):
        for ii in T.vectorized(8):
            with T.block("B"):
                vi = T.axis.spatial(64, io * 8 + ii)
                if vi % 3 == 0:
                    B[vi] = C[vi] * T.float32(2)
                else:
                    B[vi] = C[vi] + T.float32(3)


def test_statements_keep_their_lines_through_all_passes(folder):
    module = build(steps)
    text = module.get_source("ll")
    source = (folder / "steps.tir").read_text().splitlines()

    def line_with(part):
        (line,) = (number for number, text in enumerate(source, 1) if part in text)
        return line

    assert lines_of(text, "llvm.sqrt") == {line_with("sqrt")}
    assert lines_of(text, "fmul") == {line_with("T.float32(2.0)")}
    assert lines_of(text, "fadd") == {line_with("T.float32(3.0)")}
    message = re.search(r'@([\w.]+) = .*c"expected a positive', text)[1]
    failure = rf"call void @TVMAPISetLastError\(.*@{re.escape(message)}\)"
    assert lines_of(text, failure) == {line_with("expected a positive")}


def test_what_takes_the_place_of_a_statement_keeps_its_span():
    span = tvm.ir.Span(tvm.ir.SourceName("here"), 3, 3, 1, 9)
    x = tir.Var("x", "int32")
    buffer = tir.decl_buffer((8,), "int32", name="A")
    load = tir.BufferLoad(buffer, [x], span=span)
    store = tir.BufferStore(buffer, load + x, [x], span=span)

    def other(node):
        return tir.Evaluate(node.value) if isinstance(node, tir.BufferStore) else None

    moved = tir.stmt_functor.substitute(store, {x: x + 1})
    assert moved.span.same_as(span)
    assert moved.value.a.span.same_as(span)
    loop = tir.For(x, 0, 8, 0, store)
    changed = tir.stmt_functor.ir_transform(loop, None, other, ["tir.BufferStore"])
    assert changed.span is None
    assert isinstance(changed.body, tir.Evaluate)
    assert changed.body.span.same_as(span)


def test_libraries_have_line_tables(folder):
    module = build(main)
    module.export_library(str(folder / "lib.so"))
    data = (folder / "lib.so").read_bytes()
    assert b".debug_line" in data
    assert b"main.tir" in data


def test_nothing_is_said_without_being_asked(folder):
    text = tvm.build(main, target="llvm").get_source("ll")
    assert "!dbg" not in text
    assert not (folder / "main.tir").exists()


def test_a_function_needs_a_name():
    with pytest.raises(tvm.error.ValueError, match="has no global_symbol"):
        tir.transform.InstallDebugSpans()(tvm.IRModule({"f": main.without_attr("global_symbol")}))
