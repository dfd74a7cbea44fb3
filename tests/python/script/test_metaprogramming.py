"""Programs that Python computes while it reads them."""

from __future__ import annotations

import pytest

import tvm
from tvm import tir
from tvm.error import DiagnosticError
from tvm.script import ir as I
from tvm.script import tir as T


def swizzle(i, j):
    return T.meta_var(((i + j) % 8, j))


def test_values_of_the_scope_around_are_parts_of_the_program():
    def copy(shape, dtype, times):
        @T.prim_func(private=True)
        def main(a: T.handle, b: T.handle) -> None:
            A = T.match_buffer(a, shape, dtype)
            B = T.match_buffer(b, shape, dtype)
            for i, j in T.grid(*shape):
                row, column = swizzle(i, j)
                B[row, column] = A[row, column] * times if times > 1 else A[row, column]

        return main

    @T.prim_func(private=True)
    def expected(A: T.Buffer((8, 8), "int8"), B: T.Buffer((8, 8), "int8")):
        for i, j in T.grid(8, 8):
            B[(i + j) % 8, j] = A[(i + j) % 8, j] * T.int8(3)

    tvm.ir.assert_structural_equal(copy((8, 8), "int8", 3), expected)
    assert "*" not in str(copy((8, 8), "int8", 1))


def test_dtypes_of_annotations_come_from_the_function_around():
    def make(dtype):
        @T.prim_func
        def main(A: T.Buffer((1,), dtype)):
            A[0] = T.exp(A[0])

        return main

    assert str(next(make("float16").buffer_map.values()).dtype) == "float16"


def test_python_computes_what_has_no_part_in_the_program():
    names = ["f", "g"]
    sizes = {"n": 4}

    @T.prim_func
    def main(A: T.Buffer((4,), "float32")):
        T.evaluate(T.call_extern("int32", f"{names[0]}_{sizes['n']:02d}", A.data))
        T.evaluate(sum([i * i for i in range(sizes["n"])]))

    text, number = (stmt.value for stmt in main.body.seq)
    assert text.args[0].value == "f_04"
    assert int(number) == 14


def test_a_macro_is_read_where_it_is_called():
    scale = 3.0

    @T.macro
    def store(buffer, i, factor=2.0):
        buffer[i] = buffer[i] * factor * scale

    @T.macro(hygienic=False)
    def store_here(i):
        A[i] = A[i] * scale  # noqa: F821

    @T.prim_func
    def main(A: T.Buffer((4,), "float32"), scale: T.float32):
        for i in range(4):
            store(A, i)
            store(A, i, factor=scale)
            store_here(i)

    @T.prim_func
    def expected(A: T.Buffer((4,), "float32"), scale: T.float32):
        for i in range(4):
            A[i] = A[i] * 2.0 * 3.0
            A[i] = A[i] * scale * 3.0
            A[i] = A[i] * scale

    tvm.ir.assert_structural_equal(
        main.with_attr("global_symbol", "f"), expected.with_attr("global_symbol", "f")
    )
    with pytest.raises(TypeError, match="read where a T.prim_func calls it"):
        store(1, 2)


def test_functions_of_a_module_call_each_other_by_its_name():
    @I.ir_module
    class Calls:
        @T.prim_func
        def main(A: T.Buffer((4,), "float32")):
            Calls.sub(A.data)

        @T.prim_func(private=True)
        def sub(p: T.handle("float32")) -> T.int32:
            B = T.Buffer((4,), data=p)
            B[0] = 1.0
            return 3

    call = Calls["main"].body.value
    assert call.op.same_as(Calls.get_global_var("sub"))
    assert Calls["sub"].body.seq[1].value.op.name == "tir.ret"


def test_failures_of_python_have_their_place():
    def broken(i):
        raise KeyError("lost")

    with pytest.raises(DiagnosticError, match=r"KeyError: 'lost'(.|\n)*broken\(i\)"):

        @T.prim_func
        def main(A: T.Buffer((4,), "float32")):
            for i in range(4):
                A[i] = broken(i)


def test_slices_of_buffers_are_vectors():
    @T.prim_func
    def main(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "bool")):
        A[0:4] = A[4:8] + 1.0
        B[0:4] = A[0:4] > 0.0 and A[4:8] < 2.0

    first, second = main.body.seq
    assert isinstance(first.value, tir.Add)
    assert int(first.value.b.lanes) == 4
    assert second.value.op.name == "tir.bitwise_and"


def test_programs_that_use_a_variable_before_it_is_bound_are_refused():
    unbound = tir.Var("unbound")
    with pytest.raises(DiagnosticError, match="unbound"):

        @T.prim_func
        def main(A: T.Buffer((4,), "float32")):
            A[unbound] = 1.0

    @T.prim_func(check_well_formed=False)
    def free(A: T.Buffer((4,), "float32")):
        A[unbound] = 1.0

    assert "unbound = T.int32()" in str(free)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("A[0] = A.data.__init__", "has no `__init__`"),
        ("A[0] = T.__dict__", "there is no construct"),
        ("A[0] = (lambda f: f(f))(lambda f: f(f))", "cannot be called"),
        ("A[0] = [i for i in (1, 2)][0]", "is not part of scripts"),
        ("A[0] = f'{A}'", "is not part of scripts"),
        ("x = 'a' * 10", "(.|\n)*"),
        ("A[0] = 9 ** 9 ** 9 ** 9", "(.|\n)*"),
        ("A[0] = (1,) * 100000000", "(.|\n)*"),
        ("A[0] = open('x')", "`open` cannot be called"),
        ("A[0] = T.exp.__globals__", "has no `__globals__`"),
        ("A[0] = A.script()", "has no `script`"),
    ],
)
def test_a_text_reaches_nothing_of_python(line, message):
    text = f'@T.prim_func\ndef f(A: T.Buffer((8,), "float32")):\n    {line}\n'
    with pytest.raises(DiagnosticError, match=message):
        tvm.script.from_source(text)


def test_values_are_converted_to_what_a_buffer_has():
    @I.ir_module
    class Halves:
        @T.prim_func
        def main(A: T.Buffer((4,), "float16"), n: T.int32):
            A[0] = T.float32(0.5)
            A[1] = n

    assert Halves.__name__ == "Halves"
    first, second = Halves["main"].body.seq
    assert str(first.value.dtype) == str(second.value.dtype) == "float16"
    # A printed text means what it says.
    text = str(Halves).replace("T.Cast", "T.Cast").replace("T.float16(0.5)", "T.float32(0.5)")
    with pytest.raises(DiagnosticError, match="takes float16"):
        tvm.script.from_source(text)


def test_declared_buffers_bring_their_memory_unless_they_have_a_pointer():
    @T.prim_func
    def main(p: T.handle("float32")):
        A = T.decl_buffer((4,), "float32", data=p)
        B = T.alloc_buffer((4,), "float32")
        A[0] = B[0]

    assert "T.allocate" not in str(main)


def test_a_macro_may_be_a_method():
    class Loader:
        def __init__(self, index):
            self.index = index

        @T.macro
        def load(self, buffer, factor):
            T.evaluate(buffer[self.index] * factor)

    loader = Loader(3)

    @T.prim_func
    def main(A: T.Buffer((8,), "float32")):
        loader.load(A, 2.0)
        T.evaluate(T.if_then_else(A[0] < 1.0, A[1], A[2], dtype="float32"))

    assert str(main.body.seq[0].value) == "A[3] * T.float32(2.0)"
    with pytest.raises(DiagnosticError, match="T.exp gives float32 here, not float64"):

        @T.prim_func
        def other(A: T.Buffer((8,), "float32")):
            A[0] = T.exp(A[1], dtype="float64")


def test_index_maps_are_functions():
    @T.prim_func
    def main():
        T.func_attr({"layout": T.index_map(lambda i, j: (j, i // 4, i % 4))})
        T.evaluate(0)

    mapped = main.attrs["layout"].map_indices([9, 5])
    assert [int(index) for index in mapped] == [5, 2, 1]


def test_comparisons_keep_the_order_they_are_written_in():
    one, half = 1, 0.5

    @T.prim_func
    def compare(a: T.Buffer((6,), "bool"), b: T.Buffer((4,), "float32"), n: T.int64):
        a[0] = one < n
        a[1] = one <= n
        a[2] = one > n
        a[3] = one >= n
        a[4] = one == n
        a[5] = half != b[0]

    kinds = [tir.LT, tir.LE, tir.GT, tir.GE, tir.EQ, tir.NE]
    tests = [store.value for store in compare.body.seq]
    assert [type(test) for test in tests] == kinds
    assert [test.a.value for test in tests] == [1, 1, 1, 1, 1, 0.5]
    assert [test.a.dtype for test in tests] == ["int64"] * 5 + ["float32"]
    tvm.ir.assert_structural_equal(compare, tvm.script.from_source(compare.script()))


def _wrapped(func=None, private=False):
    """A decorator of a program's own, as libraries on top have them."""
    return T.prim_func(func, private)


_wrapped.dispatch_token = "tir"


def test_decorators_of_a_program_may_call_ours():
    length, factor = 8, 3.0

    @_wrapped
    def scaled(A: T.Buffer((length,), "float32")):
        for i in range(length):
            A[i] = A[i] * factor

    @_wrapped(private=True)
    def hidden(A: T.Buffer((length,), "float32")):
        for i in range(length):
            A[i] = A[i] * factor

    @I.ir_module
    class Module:
        @_wrapped
        def scaled(A: T.Buffer((8,), "float32")):
            for i in range(8):
                A[i] = A[i] * 3.0

    assert scaled.attrs["global_symbol"] == "scaled"
    assert "global_symbol" not in hidden.attrs
    tvm.ir.assert_structural_equal(Module["scaled"], scaled)


def test_the_names_of_the_parser_read_programs():
    from tvm.script.parser._core import dispatch, doc, parse, utils
    from tvm.script.parser.core.diagnostics import Source

    width = 8

    def raw(A: T.Buffer((width,), "float32")):
        for i in range(width):
            A[i] = 1.0

    assert utils.inspect_function_capture(raw)["width"] == 8
    assert not utils.is_defined_in_class([], raw)
    text = "@T.prim_func\ndef raw(A: T.Buffer((width,), 'float32')):\n    for i in range(width):\n"
    text += "        A[i] = 1.0\n"
    tvm.ir.assert_structural_equal(parse(text, {"width": width}), T.prim_func(raw))
    assert isinstance(Source(text).as_ast().body[0], doc.FunctionDef)
    with pytest.raises(NotImplementedError, match="use T.macro"):
        dispatch.register("tir", "For")
