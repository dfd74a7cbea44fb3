"""Matrix products and attention."""

from __future__ import annotations

import math

from tvm.ir import RelayExpr
from tvm.relax import op
from tvm.relax.expr import Constant, const
from tvm.relax.struct_info import open_shape

from ..arguments import Arguments, converter, same_shape

__all__: list[str] = []


@converter("linear.default")
def _linear(a: Arguments) -> RelayExpr:
    data, weight = a["input"], a["weight"]
    if a.rank("weight") == 1:
        weight = a.emit(op.reshape(weight, (1, *a.shape("weight"))))
    flat = a.rank("input") == 1
    if flat:
        data = a.emit(op.reshape(data, (1, *a.shape("input"))))
    out = op.nn.dense(data, weight)
    if a["bias"] is not None:
        out = op.add(a.emit(out), a["bias"])
    shape = a.result_shape
    if same_shape(open_shape(out.struct_info), shape):
        return out
    return op.reshape(a.emit(out), shape)


def product(left: RelayExpr, right: RelayExpr) -> RelayExpr:
    """left @ right; a constant right matrix becomes a dense weight, whose layout is free."""
    if isinstance(right, Constant) and len(right.data.shape) == 2:
        return op.nn.dense(left, right.rearranged(lambda array: array.T))
    return op.matmul(left, right)


@converter("addmm.default", "baddbmm.default", "addmv.default", "addbmm.default")
def _addmm(a: Arguments) -> RelayExpr:
    names = next(n for n in (("mat1", "mat2"), ("batch1", "batch2"), ("mat", "vec"))
                 if a.get(n[0]) is not None)  # fmt: skip
    result = a.emit(_matmul_of(a, a[names[0]], a[names[1]]))
    if a.name == "addbmm":
        result = a.emit(op.sum(result, [0]))
    if a["alpha"] != 1:
        result = a.emit(op.multiply(result, const(a["alpha"], a.result_dtype)))
    if a["beta"] == 0:
        return result
    bias = a["self"]
    if a["beta"] != 1:
        bias = a.emit(op.multiply(bias, const(a["beta"], a.result_dtype)))
    return op.add(result, bias)


@converter("mm.default", "bmm.default", "mv.default", "dot.default")
def _mm(a: Arguments) -> RelayExpr:
    right = next(a[n] for n in ("mat2", "vec", "tensor") if a.get(n) is not None)
    return _matmul_of(a, a["self"], right)


@converter("matmul.default")
def _matmul(a: Arguments) -> RelayExpr:
    return _matmul_of(a, a["self"], a["other"])


def _matmul_of(a: Arguments, left: RelayExpr, right: RelayExpr) -> RelayExpr:
    """left @ right with vectors as matrices of one row or one column."""
    shape_left, shape_right = open_shape(left.struct_info), open_shape(right.struct_info)
    dtype = str(left.struct_info.dtype)
    if min(len(shape_left), len(shape_right)) == 1:
        if len(shape_left) == 1:
            left = a.emit(op.reshape(left, (1, *shape_left)))
        if len(shape_right) == 1:
            right = a.emit(op.reshape(right, (*shape_right, 1)))
        matrix = a.emit(product(left, right))
        lead = open_shape(matrix.struct_info)
        keep = lead[:-2] if len(shape_left) == 1 else lead[:-1]
        return op.reshape(matrix, keep if len(shape_right) == 1 else (*keep, lead[-1]))
    if len(shape_left) > 2 and len(shape_right) == 2 and not isinstance(right, Constant):
        # One matrix for all batches: a single product of more rows.
        rows = math.prod(shape_left[:-1])
        flat = a.emit(op.reshape(left, (rows, shape_left[-1])))
        out = a.emit(op.matmul(flat, right))
        return op.reshape(out, (*shape_left[:-1], shape_right[-1]))
    if dtype == "bool":
        a.refuse_unless(False, "of truth values")
    return product(left, right)


@converter("_int_mm.default")
def _int_mm(a: Arguments) -> RelayExpr:
    left, right = (a.emit(op.astype(a[name], "int32")) for name in ("self", "mat2"))
    return op.matmul(left, right)


@converter("_trilinear.default")
def _trilinear(a: Arguments) -> RelayExpr:
    """The product of three tensors, each with the dimensions that it lacks, summed over some."""
    factors = []
    for name in ("1", "2", "3"):
        shape = list(a.shape(f"i{name}"))
        for place in sorted(int(k) for k in a[f"expand{name}"]):
            shape.insert(place, 1)
        factors.append(a.emit(op.reshape(a[f"i{name}"], tuple(shape))))
    # First the two that the sum is over, so that what comes between stays small.
    first, weight, last = factors
    whole = a.emit(op.multiply(a.emit(op.multiply(first, last)), weight))
    axes = [int(k) for k in a["sumdim"]]
    return op.sum(whole, axes) if axes else whole


def _grouped_mm(a: Arguments) -> RelayExpr:
    """Rows times the matrix of their expert; `offs` has the row behind each expert's last."""
    left, right = ("input", "weight") if a.get("input") is not None else ("self", "mat2")
    a.refuse_unless(
        a.get("offs") is not None and (a.rank(left), a.rank(right)) == (2, 3),
        "of other operands than rows, matrices and the ends of the groups of rows",
    )
    out = op.make_call("nn.grouped_matmul", a[left], a[right], a["offs"])
    return out if a.get("bias") is None else op.add(a.emit(out), a["bias"])


converter("_grouped_mm.default")(_grouped_mm)
# What the library of that name puts in its place where PyTorch's own does not run.
converter("grouped_mm_fallback.default", namespace="transformers")(_grouped_mm)


@converter("outer.default")
def _outer(a: Arguments) -> RelayExpr:
    column = a.emit(op.reshape(a.operand("self"), (*a.shape("self"), 1)))
    return op.multiply(column, a.operand("vec2"))


@converter("scaled_dot_product_attention.default")
def _attention(a: Arguments) -> RelayExpr:
    a.refuse_unless(a["dropout_p"] == 0, "with dropout; call model.eval() before the export")
    query, key, value = a["query"], a["key"], a["value"]
    *lead, length, size = a.shape("query")
    source = a.shape("key")[-2]
    out_size = a.shape("value")[-1]
    heads = lead[-1] if lead else 1
    groups = a.shape("key")[-3] if lead else 1
    dtype = a.result_dtype
    scale = 1 / math.sqrt(size) if a["scale"] is None else float(a["scale"])
    # Scaled before the product, where there are fewer elements.
    query = a.emit(op.multiply(query, const(scale, dtype)))
    batch = (*lead[:-1], groups)
    if heads != groups:
        # The queries of the heads that share a key are more rows of one product.
        query = a.emit(op.reshape(query, (*batch, heads // groups * length, size)))
    rank = a.rank("key")
    turned = a.emit(op.permute_dims(key, [*range(rank - 2), rank - 1, rank - 2]))
    scores = a.emit(op.matmul(query, turned))
    if heads != groups:
        scores = a.emit(op.reshape(scores, (*lead, length, source)))
    weights = a.emit(_attention_weights(a, scores))
    if heads != groups:
        weights = a.emit(op.reshape(weights, (*batch, heads // groups * length, source)))
    out = op.matmul(weights, value)
    if heads == groups:
        return out
    return op.reshape(a.emit(out), (*lead, length, out_size))


def _attention_weights(a: Arguments, scores: RelayExpr) -> RelayExpr:
    dtype = a.result_dtype
    mask = a["attn_mask"]
    if a["is_causal"]:
        scores = a.call("tril", scores, k=0, fill=-math.inf)
    if mask is None:
        # Every query sees at least the first key.
        return op.nn.softmax(scores, -1)
    if a.dtype("attn_mask") == "bool":
        scores = a.call("where", mask, scores, const(-math.inf, dtype))
    else:
        scores = a.emit(op.add(scores, a.cast(mask, dtype)))
    return op.make_call("nn.masked_softmax", scores, axis=-1)
