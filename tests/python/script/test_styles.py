"""How texts are written: every option of `script`."""

import pytest

import tvm
import tvm.script
from tvm import relax, tir
from tvm.runtime import ObjectPath
from tvm.script import ir as I
from tvm.script import relax as R
from tvm.script import tir as T
from tvm.script.highlight import cprint


@I.ir_module
class Both:
    @T.prim_func(private=True)
    def kernel(a: T.handle, B: T.Buffer((8,), "float32")):
        A = T.match_buffer(a, (8,), "float32")
        for i in range(8):
            B[i] = A[i] + T.float32(1) + T.Cast("float32", T.int64(2))

    @R.function
    def main(x: R.Tensor((8,), "float32")) -> R.Tensor((8,), "float32"):
        cls = Both
        y = R.call_tir(cls.kernel, (x,), out_sinfo=R.Tensor((8,), dtype="float32"))
        z: R.Tensor((8,), "float32") = R.add(y, y)
        return z


def _parts():
    n = tir.Var("n", "int64")
    info = relax.TensorStructInfo([1, n, 3], "float32")
    return n, relax.Var("a", info), relax.Var("b", info)


def test_the_languages_in_use_are_named_first():
    assert Both["main"].script().startswith("# from tvm.script import relax as R\n\n@R.function")
    assert Both.script().splitlines()[:3] == [
        "# from tvm.script import ir as I",
        "# from tvm.script import tir as T",
        "# from tvm.script import relax as R",
    ]
    assert relax.ObjectStructInfo().script() == "R.Object"


def test_parts_declare_their_variables():
    n, a, b = _parts()
    binding = relax.VarBinding(b, relax.op.sin(a))
    line = 'b: R.Tensor((1, n, 3), dtype="float32") = R.sin(a)'
    assert binding.script() == line
    declared = 'n = T.int64()\na: R.Tensor((1, n, 3), dtype="float32")\n'
    assert binding.script(verbose_expr=True) == declared + line
    # Different variables of one name are told apart.
    other = relax.Var("a", relax.TensorStructInfo([n], "float32"))
    text = relax.Tuple([a, other]).script(verbose_expr=True)
    assert text == declared + 'a_1: R.Tensor((n,), dtype="float32")\n(a, a_1)'
    # What only a branch names is declared there.
    cond = relax.Var("c", relax.TensorStructInfo([], "bool"))
    branches = relax.If(cond, relax.SeqExpr([], a), relax.SeqExpr([], a))
    assert branches.script(verbose_expr=True).splitlines()[:3] == [
        'c: R.Tensor((), dtype="bool")',
        "if c:",
        "    n = T.int64()",
    ]


def test_parts_of_tensor_programs_declare_variables_and_buffers():
    A = tir.decl_buffer((4,), "float16", name="A")
    i, j = tir.Var("i", "int32"), tir.Var("j", "int64")
    assert (i + 1).script() == "i + 1"
    assert (i + 1).script(verbose_expr=True) == "i = T.int32()\ni + 1"
    store = tir.BufferStore(A, tir.const(1, "float16"), [i])
    assert store.script(verbose_expr=True).splitlines() == [
        'A = T.Buffer((4,), "float16")',
        "i = T.int32()",
        "A[i] = T.float16(1.0)",
    ]
    loop = tir.For(j, 0, 4, tir.ForKind.SERIAL, tir.Evaluate(j))
    assert "j = " not in loop.script(verbose_expr=True)
    assert A.script() == str(A)


def test_annotations_that_follow_are_left_out():
    @R.function
    def func(x: R.Tensor((4, 5), "float32"), y: R.Tensor(ndim=2, dtype="float32")):
        m = R.match_cast(y, R.Tensor((4, 5), "float32"))
        s = R.add(x, m)
        t: R.Tensor((4, 5), "float32") = R.add(s, y)
        return t

    lines = [line.strip() for line in func.script(show_all_struct_info=False).splitlines()]
    assert 'm = R.match_cast(y, R.Tensor((4, 5), dtype="float32"))' in lines
    assert "s = R.add(x, m)" in lines
    assert 't: R.Tensor((4, 5), dtype="float32") = R.add(s, y)' in lines
    again = tvm.script.from_source(func.script(show_all_struct_info=False))
    tvm.ir.assert_structural_equal(again, func)


def test_names_and_prefixes():
    text = Both.script(
        name="Net", module_alias="this", tir_prefix="TT", relax_prefix="Rx", ir_prefix="Mod"
    )
    for line in ("# from tvm.script import tir as TT", "@Mod.ir_module", "class Net:",
                 "this = Net", "this.kernel", "@TT.prim_func", "Rx.add("):  # fmt: skip
        assert line in text
    assert "T." not in text.replace("TT.", "") and " R." not in text
    assert "Net.kernel" in Both.script(name="Net", module_alias="")
    assert "def kernel(" in Both["kernel"].script(name="kernel")
    quoted = tir.Evaluate(tir.StringImm('say "T.x" and T.y'))
    assert quoted.script(tir_prefix="X") == quoted.script().replace("T.evaluate", "X.evaluate")


def test_plain_numbers_and_left_out_types():
    n = tir.Var("n", "int64")
    assert (n + 1).script(int_dtype="int64") == "n + 1"
    assert (tir.Var("k", "int32") + 1).script(int_dtype="int64") == "k + T.int32(1)"
    half = tir.Evaluate(tir.const(0.5, "float32"))
    assert half.script(float_dtype="float32") == half.script().replace("T.float32(0.5)", "0.5")
    kernel = Both["kernel"]
    assert "A = T.match_buffer(a, (8,))" in kernel.script(syntax_sugar=False)
    assert 'A = T.match_buffer(a, (8,), "float32")' in kernel.script(
        syntax_sugar=False, buffer_dtype="int8"
    )


def test_layout_of_lines():
    kernel = Both["kernel"]
    plain = kernel.script().splitlines()
    two = kernel.script(indent_spaces=2).splitlines()
    assert [len(b) - len(b.lstrip()) for b in two] == [
        (len(a) - len(a.lstrip())) // 2 for a in plain
    ]
    numbered = kernel.script(print_line_numbers=True).splitlines()
    assert [int(line.split()[0]) for line in numbered] == list(range(1, len(plain) + 1))
    path = ObjectPath.root().attr("body")
    shown = kernel.script(path_to_underline=[path], num_context_lines=0)
    assert "skipped ...)" in shown and "def main" not in shown and "^^^" in shown
    i = tir.Var("i", "int32")
    assert i.script(show_object_address=True).startswith("i_0x")


def test_external_functions_of_modules_are_read_back():
    mod = tvm.IRModule({"main": Both["main"], "kernel": relax.ExternFunc("far.kernel")})
    text = mod.script()
    assert '    kernel = R.ExternFunc("far.kernel")\n' in text
    tvm.ir.assert_structural_equal(tvm.script.from_source(text), mod)


def test_wrong_options_are_refused():
    with pytest.raises(ValueError, match="no name for a language"):
        Both.script(tir_prefix="a b")
    with pytest.raises(ValueError, match="different prefixes"):
        Both.script(tir_prefix="R")
    with pytest.raises(ValueError, match="indent_spaces"):
        Both.script(indent_spaces=0)
    with pytest.raises(TypeError, match="verbose"):
        Both.script(verbose=True)


def test_programs_and_texts_are_printed(capsys):
    cprint(Both)
    cprint("x = 1")
    assert capsys.readouterr().out == f"{Both.script()}\nx = 1\n"
    with pytest.raises(TypeError, match="expected a program or its text, got int"):
        cprint(3)


def test_settings_of_calls_name_the_variables_of_the_text():
    n = tvm.tir.Var("n", "int64")
    x = relax.Var("x", relax.TensorStructInfo((4,), "float32"))
    kernel = tvm.ir.GlobalVar("kernel")
    call = relax.op.call_tir_with_grad(
        kernel,
        (x,),
        out_sinfo=relax.TensorStructInfo((4,), "float32"),
        te_grad_name="gradient",
        te_grad_kwargs={"k": 1.0, "sizes": [n, n + 1]},
    )
    text = call.script(verbose_expr=True)
    assert "n = T.int64()" in text.splitlines()
    assert 'te_grad_kwargs={"k": 1.0, "sizes": [n, n + T.int64(1)]}' in text
