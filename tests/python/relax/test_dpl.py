"""Patterns over graphs: what they match, in expressions and in dataflow blocks, and rewriting."""

from __future__ import annotations

import numpy as np
import pytest

import tvm
from tvm import relax
from tvm.relax import op
from tvm.relax.analysis import get_var2val
from tvm.relax.dpl import (
    DFPattern,
    PatternContext,
    TupleGetItemPattern,
    has_attr,
    has_dtype,
    is_call_dps_packed,
    is_call_packed,
    is_call_tir,
    is_const,
    is_dfv,
    is_expr,
    is_gv,
    is_op,
    is_shape,
    is_tuple,
    is_tuple_get_item,
    is_var,
    make_fused_bias_activation_pattern,
    rewrite_bindings,
    rewrite_call,
    wildcard,
)
from tvm.script import ir as I
from tvm.script import relax as R
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def relu(x: T.Buffer((4, 8), "float32"), y: T.Buffer((4, 8), "float32")):
        for i, j in T.grid(4, 8):
            with T.block("relu"):
                vi, vj = T.axis.remap("SS", [i, j])
                y[vi, vj] = T.max(x[vi, vj], T.float32(0))

    @R.function
    def main(x: R.Tensor((4, 8), "float32"), w: R.Tensor((8, 8), "float32")):
        with R.dataflow():
            a = R.matmul(x, w)
            b = R.call_tir(Module.relu, (a,), R.Tensor((4, 8), "float32"))
            c = R.add(b, R.const(1.0, "float32"))
            d = R.call_dps_packed("extern_gelu", (c,), R.Tensor((4, 8), "float32"))
            t = R.split(d, 2, axis=1)
            e = t[0]
            f = R.multiply(e, e)
            R.output(f)
        return f


MAIN = Module["main"]
VALUES = get_var2val(MAIN)
BOUND = {str(var.name_hint): var for var in VALUES}
BLOCK = MAIN.body.blocks[0]


def _value(name: str) -> relax.Expr:
    return VALUES[BOUND[name]]


MATMUL = is_op("relax.matmul")(wildcard(), wildcard())


@pytest.mark.parametrize(
    ("pattern", "expr", "matches"),
    [
        (is_var("x"), MAIN.params[0], True),
        (is_var("y"), MAIN.params[0], False),
        (is_var(), _value("a"), False),
        (is_dfv(), BOUND["a"], True),
        (is_dfv(), BOUND["f"], False),
        (is_gv("relu"), Module.get_global_var("relu"), True),
        (is_const(), relax.const(1.0), True),
        (is_const(), MAIN.params[0], False),
        (is_expr(relax.const(1.0)), relax.const(1.0), True),
        (is_expr(relax.const(1.0)), relax.const(2.0), False),
        (MATMUL, _value("a"), True),
        (MATMUL, BOUND["a"], True),
        (is_op("relax.matmul")(wildcard()), _value("a"), False),
        (is_op("relax.matmul")(is_var("x"), varg_default_wildcard=True), _value("a"), True),
        (is_call_tir("relu"), _value("b"), True),
        (is_call_tir("relu", [MATMUL]), _value("b"), True),
        (is_call_tir("gelu"), _value("b"), False),
        (is_op("relax.add")(is_const(), is_call_tir("relu")), _value("c"), True),
        (is_call_dps_packed("extern_gelu"), _value("d"), True),
        (is_call_dps_packed("extern_gelu", [is_var("x")]), _value("d"), False),
        (is_tuple_get_item(is_op("relax.split")(wildcard()), 0), _value("e"), True),
        (is_tuple_get_item(is_op("relax.split")(wildcard()), 1), _value("e"), False),
        (is_tuple_get_item(wildcard()), _value("e"), True),
        (has_dtype("float32"), BOUND["a"], True),
        (has_dtype("float16"), BOUND["a"], False),
        (wildcard().has_shape([4, 8]), BOUND["a"], True),
        (wildcard().has_shape((4, 4)), BOUND["a"], False),
        (wildcard().has_struct_info(relax.TensorStructInfo(None, "float32", ndim=2)), BOUND["a"],
         True),
        (wildcard().has_struct_info(relax.TensorStructInfo((4, 4), "float32")), BOUND["a"], False),
        (wildcard().has_type(relax.DynTensorType(2, "float32")), BOUND["a"], True),
        (is_shape([4, 8]), relax.ShapeExpr([4, 8]), True),
        (is_shape([4, 8]), relax.ShapeExpr([4, 8, 1]), False),
        (has_attr({"axis": 1}, is_op("relax.split")(wildcard())), _value("t"), True),
        (has_attr({"axis": 0}, is_op("relax.split")(wildcard())), _value("t"), False),
        (MATMUL | is_const(), relax.const(1.0), True),
        (MATMUL & has_dtype("float32"), _value("a"), True),
        (MATMUL & has_dtype("int8"), _value("a"), False),
        (~MATMUL, _value("a"), False),
        (~MATMUL, _value("c"), True),
        (is_tuple([is_var("x"), is_var("w")]), relax.Tuple(MAIN.params), True),
        (is_tuple([is_var("w"), is_var("x")]), relax.Tuple(MAIN.params), False),
        (is_tuple([is_var("w"), is_var("x")], unordered=True), relax.Tuple(MAIN.params), True),
        (is_tuple([is_var("w"), is_var("w")], unordered=True), relax.Tuple(MAIN.params), False),
    ],
)  # fmt: skip
def test_patterns_match_what_they_describe(
    pattern: DFPattern, expr: relax.Expr, matches: bool
) -> None:
    assert pattern.match(expr, VALUES) is matches


def test_variables_are_looked_through_only_where_values_are_given() -> None:
    pattern = is_op("relax.add")(is_call_tir("relu"), is_const())
    assert pattern.match(_value("c"), VALUES)
    assert not pattern.match(_value("c"))


def test_calls_of_packed_functions() -> None:
    x = MAIN.params[0]
    call = relax.ExternFunc("my_func")(x, x)
    assert is_call_packed("my_func").match(call)
    assert is_call_packed("my_func", [is_var("x"), wildcard()]).match(call)
    assert not is_call_packed("my_func", [is_var("x")]).match(call)
    assert not is_call_packed("other").match(call)


def test_one_pattern_in_two_places_is_one_expression() -> None:
    same = wildcard()
    pattern = is_op("relax.multiply")(same, same)
    assert pattern.match(_value("f"), VALUES)
    assert not pattern.match(relax.op.multiply(*[BOUND["a"], BOUND["b"]]), VALUES)


def test_matched_parts_are_variables_where_operands_are() -> None:
    lhs, rhs = wildcard(), wildcard()
    root = is_op("relax.matmul")(lhs, rhs)
    found = root.extract_matched_expr(_value("a"), VALUES)
    assert found is not None
    assert found[lhs].same_as(MAIN.params[0]) and found[rhs].same_as(MAIN.params[1])
    assert found[root].same_as(_value("a"))
    assert root.extract_matched_expr(_value("c"), VALUES) is None


def test_tuple_patterns_give_fields() -> None:
    pattern = is_tuple([is_var("x"), is_var("w")])
    assert pattern[0].index == 0 and pattern[-1].index == 1 and pattern[None].index == -1
    assert isinstance(pattern[0], TupleGetItemPattern) and len(pattern) == 2
    with pytest.raises(IndexError, match="index 2 of 2 fields"):
        pattern[2]


def test_a_context_finds_patterns_that_read_each_other() -> None:
    with PatternContext() as ctx:
        relu = is_call_tir("relu")
        gelu = is_call_dps_packed("extern_gelu")
        add = is_op("relax.add")(wildcard(), wildcard())
        chain = relu ^ add >> gelu
    found = ctx.match_dfb(BLOCK)
    assert found is not None and len(chain.patterns) == 3
    assert [str(found[p].name_hint) for p in (relu, add, gelu)] == ["b", "c", "d"]


def test_a_context_looks_at_the_operand_that_is_named() -> None:
    for index, expected in [(0, True), (1, False)]:
        with PatternContext() as ctx:
            source = is_var("x")
            source.used_by(is_op("relax.matmul")(wildcard(), wildcard()), index)
        assert (ctx.match_dfb(BLOCK) is not None) is expected


@I.ir_module
class Branches:
    @R.function
    def main(
        x: R.Tensor((2, 8), "float32"),
        q: R.Tensor((8, 4), "float32"),
        k: R.Tensor((8, 4), "float32"),
        v: R.Tensor((8, 4), "float32"),
    ):
        with R.dataflow():
            a = R.matmul(x, q)
            w = R.add(k, k)
            b = R.matmul(x, w)
            c = R.matmul(x, v)
            s = R.nn.relu(a)
            t = R.add(s, a)
            out = (t, b, c)
            R.output(out)
        return out


def test_only_used_by_fails_where_something_else_reads_too() -> None:
    block = Branches["main"].body.blocks[0]
    for link, expected in [("used_by", True), ("only_used_by", False)]:
        with PatternContext() as ctx:
            matmul = is_op("relax.matmul")(is_var("x"), is_var("q"))
            relu = is_op("relax.nn.relu")(wildcard())
            getattr(matmul, link)(relu, 0)
        assert (ctx.match_dfb(block) is not None) is expected


def test_an_incremental_context_adds_to_the_one_around_it() -> None:
    block = Branches["main"].body.blocks[0]
    with PatternContext() as outer:
        matmul = is_op("relax.matmul")(wildcard(), wildcard())
        with PatternContext(incremental=True) as inner:
            assert PatternContext.current() is inner
            relu = is_op("relax.nn.relu")(matmul)
        found = inner.match_dfb(block)
        assert found is not None and str(found[relu].name_hint) == "s"
        assert relu not in outer.match_dfb(block)
    with pytest.raises(ValueError, match="no context is open"):
        PatternContext.current()


def test_shapes_of_patterns_can_be_asked_to_be_the_same() -> None:
    block = Branches["main"].body.blocks[0]
    with PatternContext() as ctx:
        first, second = wildcard(), wildcard()
        matmul = is_op("relax.matmul")(first, second)
        first.same_shape_as(second)
    assert ctx.match_dfb(block) is None
    with PatternContext() as ctx:
        first = wildcard()
        add = is_op("relax.add")(first, wildcard())
        add.same_shape_as(first)
    assert ctx.match_dfb(block) is not None and matmul not in ctx.match_dfb(block)


def _run(mod: tvm.IRModule, *inputs: np.ndarray) -> list[np.ndarray]:
    vm = relax.VirtualMachine(relax.build(mod))
    result = vm["main"](*[tvm.nd.array(array) for array in inputs])
    return [item.numpy() for item in result]


def test_products_that_share_an_operand_become_one() -> None:
    with PatternContext() as ctx:
        x = wildcard()
        weights = [wildcard() for _ in range(3)]
        products = [is_op("relax.matmul")(x, weight) for weight in weights]

    def merge(found, bindings):
        whole = relax.op.matmul(found[x], relax.op.concat([found[w] for w in weights], axis=1))
        return {
            found[product]: relax.op.strided_slice(whole, [1], [4 * i], [4 * i + 4])
            for i, product in enumerate(products)
        }

    func = rewrite_bindings(ctx, merge, Branches["main"])
    mod = tvm.IRModule({"main": func})
    assert relax.analysis.well_formed(mod)
    assert str(func).count("R.matmul") == 1
    rng = np.random.default_rng(1)
    inputs = [rng.normal(size=s).astype("float32") for s in [(2, 8), (8, 4), (8, 4), (8, 4)]]
    for got, want in zip(_run(mod, *inputs), _run(Branches, *inputs)):
        np.testing.assert_allclose(got, want, rtol=1e-5)


def test_replaced_bindings_that_are_not_found_again_stay() -> None:
    with PatternContext() as ctx:
        x = wildcard()
        relu = is_op("relax.nn.relu")(x)
    func = rewrite_bindings(
        ctx, lambda found, _: {found[relu]: relax.op.nn.relu(found[x])}, Branches["main"]
    )
    assert str(func).count("R.nn.relu") == 1
    assert rewrite_bindings(ctx, lambda found, _: {}, func).same_as(func)


def test_calls_are_rewritten_where_they_match() -> None:
    x = wildcard()
    pattern = is_op("relax.add")(x, x)
    func = rewrite_call(
        pattern, lambda call, found: relax.op.multiply(found[x], relax.const(2.0)), Branches["main"]
    )
    assert str(func).count("R.add") == 1 and str(func).count("R.multiply") == 1
    inputs = [np.ones(s, "float32") for s in [(2, 8), (8, 4), (8, 4), (8, 4)]]
    mod = tvm.IRModule({"main": func})
    for got, want in zip(_run(mod, *inputs), _run(Branches, *inputs)):
        np.testing.assert_allclose(got, want, rtol=1e-6)


def test_what_a_rewritten_call_needed_is_gone() -> None:
    pattern = make_fused_bias_activation_pattern("relax.matmul", activation="relax.nn.relu")
    func = rewrite_call(pattern, lambda call, found: relax.op.zeros_like(call), Branches["main"])
    assert str(func).count("R.zeros_like") == 1


def test_a_function_without_matches_is_given_back() -> None:
    func = Branches["main"]
    assert rewrite_call(is_op("relax.exp")(wildcard()), lambda call, _: call, func).same_as(func)


def test_patterns_of_attention_and_layer_norm():
    from tvm.relax.backend.patterns import make_attention_pattern, make_layer_norm_pattern

    info = relax.TensorStructInfo((1, 4, 2, 8), "float32")
    q, k, v = (relax.Var(name, info) for name in "qkv")
    bias = relax.Var("b", relax.TensorStructInfo((1, 2, 4, 4), "float32"))
    plain, parts = make_attention_pattern()
    assert plain.match(relax.op.nn.attention(q, k, v)) and set(parts) == {"query", "key", "value"}
    biased, parts = make_attention_pattern(with_bias=True)
    call = relax.op.nn.attention(q, k, v, bias)
    assert biased.extract_matched_expr(call)[parts["bias"]].same_as(bias)
    assert not plain.match(call)
    scale = relax.Var("g", relax.TensorStructInfo((8,), "float32"))
    assert make_layer_norm_pattern()[0].match(relax.op.nn.layer_norm(q, scale, scale, [-1]))


@pytest.mark.parametrize("start_op", ["split", "strided_slice"])
@pytest.mark.parametrize("layout", ["BS3NH", "SBN3H"])
def test_patterns_of_attention_over_pieces_of_one_tensor(start_op, layout):
    from tvm.relax.backend.patterns import make_stacked_attention_pattern

    shape = (2, 8, 3 * 4 * 16) if layout == "BS3NH" else (8, 2, 4, 48)
    x = relax.Var("x", relax.TensorStructInfo(shape, "float32"))
    builder = relax.BlockBuilder()
    with builder.function("main", [x]):
        if start_op == "split":
            whole = builder.emit(op.split(x, 3, axis=-1))
            pieces = [builder.emit(relax.TupleGetItem(whole, i)) for i in range(3)]
        else:
            width = shape[-1] // 3
            pieces = [
                builder.emit(op.strided_slice(x, [-1], [i * width], [(i + 1) * width]))
                for i in range(3)
            ]
        if layout == "BS3NH":
            heads = [builder.emit(op.reshape(piece, (2, 8, 4, 16))) for piece in pieces]
            out = builder.emit(op.nn.attention(*heads))
        else:
            heads = [builder.emit(op.permute_dims(piece, [1, 0, 2, 3])) for piece in pieces]
            out = builder.emit(op.permute_dims(op.nn.attention(*heads), [1, 0, 2, 3]))
        builder.emit_func_output(out)
    func = builder.get()["main"]
    values = relax.analysis.get_var2val(func)
    pattern, parts = make_stacked_attention_pattern(start_op, layout=layout)
    found = pattern.extract_matched_expr(values[out], values)
    assert found[parts["stacked_qkv"]].same_as(x)
    other, _ = make_stacked_attention_pattern(start_op, with_bias=True, layout=layout)
    assert not other.match(values[out], values)
    with pytest.raises(ValueError, match="not reshape"):
        make_stacked_attention_pattern("reshape")
    with pytest.raises(ValueError, match="not NHWC"):
        make_stacked_attention_pattern(start_op, layout="NHWC")


def test_patterns_of_scaled_products_and_kernels_of_norms():
    from tvm.relax.backend.patterns import (
        make_matmul_dequantize_pattern,
        make_matmul_multiply_pattern,
        make_rms_norm_pattern,
    )

    def values_of(make, *params):
        builder = relax.BlockBuilder()
        with builder.function("main", list(params)):
            out = builder.emit(make(builder, *params))
            builder.emit_func_output(out)
        values = relax.analysis.get_var2val(builder.get()["main"])
        return values[out], values

    a, b = (relax.Var(n, relax.TensorStructInfo((4, 4), "float32")) for n in "ab")
    s, t = (relax.Var(n, relax.TensorStructInfo((1,), "float32")) for n in "st")
    pattern, parts = make_matmul_multiply_pattern(transposed_rhs=True)
    scaled, values = values_of(
        lambda bb, a, b, s, t: op.astype(
            op.multiply(op.matmul(a, op.permute_dims(b)), op.multiply(s, t)), "float16"
        ),
        a, b, s, t,
    )  # fmt: skip
    assert pattern.extract_matched_expr(scaled, values)[parts["scaleB"]].same_as(t)
    i, j = (relax.Var(n, relax.TensorStructInfo((4, 4), "int8")) for n in "ij")
    pattern, parts = make_matmul_dequantize_pattern()
    scale, zero = relax.const(0.5, "float32"), relax.const(1, "int32")
    out, values = values_of(
        lambda bb, i, j: op.dequantize(
            op.matmul(i, j, out_dtype="int32"), scale, zero, out_dtype="float32"
        ),
        i, j,
    )  # fmt: skip
    assert pattern.extract_matched_expr(out, values)[parts["scale"]].same_as(scale)
    pattern, parts = make_rms_norm_pattern()
    w = relax.Var("w", relax.TensorStructInfo((4,), "float32"))
    norm, values = values_of(
        lambda bb, a, w: bb.call_te(
            lambda x, y: tvm.topi.nn.rms_norm(x, y, [1]), a, w, primfunc_name_hint="rms_norm"
        ),
        a, w,
    )  # fmt: skip
    found = pattern.extract_matched_expr(norm, values)
    assert str(found[parts["gv"]].name_hint) == "rms_norm" and found[parts["inp"]].same_as(a)
