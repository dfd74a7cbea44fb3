"""Gradients of tensor expressions, as tensor expressions."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import tvm
from tvm import arith, tir
from tvm.ir import Range

from .operation import compute, reduce_axis
from .tensor import ComputeOp, PlaceholderOp, Tensor

__all__ = ["gradient"]

# Factors of the chain rule: derivative of op(x) in terms of the arguments and of the value itself.
_RULES: dict[str, Callable[..., Any]] = {
    "tir.exp": lambda y, x: y,
    "tir.exp2": lambda y, x: y * math.log(2),
    "tir.exp10": lambda y, x: y * math.log(10),
    "tir.log": lambda y, x: 1.0 / x,
    "tir.log2": lambda y, x: 1.0 / (x * math.log(2)),
    "tir.log10": lambda y, x: 1.0 / (x * math.log(10)),
    "tir.log1p": lambda y, x: 1.0 / (x + 1.0),
    "tir.sigmoid": lambda y, x: y * (1.0 - y),
    "tir.tanh": lambda y, x: 1.0 - y * y,
    "tir.sqrt": lambda y, x: 0.5 / y,
    "tir.rsqrt": lambda y, x: -0.5 * y / x,
    "tir.sin": lambda y, x: tir.cos(x),
    "tir.cos": lambda y, x: -tir.sin(x),
    "tir.tan": lambda y, x: 1.0 + y * y,
    "tir.asin": lambda y, x: 1.0 / tir.sqrt(1.0 - x * x),
    "tir.acos": lambda y, x: -1.0 / tir.sqrt(1.0 - x * x),
    "tir.atan": lambda y, x: 1.0 / (1.0 + x * x),
    "tir.sinh": lambda y, x: tir.cosh(x),
    "tir.cosh": lambda y, x: tir.sinh(x),
    "tir.asinh": lambda y, x: 1.0 / tir.sqrt(x * x + 1.0),
    "tir.acosh": lambda y, x: 1.0 / tir.sqrt(x * x - 1.0),
    "tir.atanh": lambda y, x: 1.0 / (1.0 - x * x),
    "tir.erf": lambda y, x: tir.exp(-(x * x)) * (2.0 / math.sqrt(math.pi)),
    "tir.fabs": lambda y, x: tir.Select(x < tir.const(0, x.dtype), _like(x, -1), _like(x, 1)),
}
# Constant between jumps.
_FLAT = {"tir.floor", "tir.ceil", "tir.trunc", "tir.round", "tir.nearbyint"}


def _like(expr: Any, value: float) -> Any:
    return tir.const(value, expr.dtype)


def _is_float(dtype: str) -> bool:
    return str(dtype).startswith(("float", "bfloat"))


class _Reads:
    """Derivatives of one expression with respect to its reads of a tensor."""

    def __init__(self, tensor: Tensor) -> None:
        self.tensor = tensor
        self.found: list[tuple[list[Any], Any]] = []

    def add(self, expr: Any, factor: Any) -> None:
        """Take ``factor`` times the derivative of ``expr`` into the sum."""
        if not _is_float(expr.dtype) or not _mentions(expr, self.tensor):
            return
        if isinstance(expr, tir.ProducerLoad):
            self._read(expr, factor)
        elif isinstance(expr, tir.Add):
            self.add(expr.a, factor)
            self.add(expr.b, factor)
        elif isinstance(expr, tir.Sub):
            self.add(expr.a, factor)
            self.add(expr.b, -factor)
        elif isinstance(expr, tir.Mul):
            self.add(expr.a, factor * expr.b)
            self.add(expr.b, factor * expr.a)
        elif isinstance(expr, tir.Div):
            self.add(expr.a, factor / expr.b)
            self.add(expr.b, -factor * expr.a / (expr.b * expr.b))
        elif isinstance(expr, (tir.Min, tir.Max)):
            first = expr.a <= expr.b if isinstance(expr, tir.Min) else expr.a >= expr.b
            self.add(expr.a, tir.Select(first, factor, _like(expr, 0)))
            self.add(expr.b, tir.Select(first, _like(expr, 0), factor))
        elif isinstance(expr, tir.Select):
            self.add(expr.true_value, tir.Select(expr.condition, factor, _like(expr, 0)))
            self.add(expr.false_value, tir.Select(expr.condition, _like(expr, 0), factor))
        elif isinstance(expr, tir.Cast):
            self.add(expr.value, factor.astype(expr.value.dtype))
        elif isinstance(expr, tir.Let):
            values = {expr.var: expr.value}
            self.add(tir.stmt_functor.substitute(expr.body, values), factor)
        elif isinstance(expr, tir.Call):
            self._call(expr, factor)
        else:
            raise ValueError(f"te.gradient: no derivative is known of {expr}")

    def _read(self, load: Any, factor: Any) -> None:
        if not _same_tensor(load.producer, self.tensor):
            return  # only its indices mention the tensor
        for at, (indices, known) in enumerate(self.found):
            if all(map(tvm.ir.structural_equal, indices, load.indices)):
                self.found[at] = (indices, known + factor)
                return
        self.found.append((list(load.indices), factor))

    def _call(self, call: Any, factor: Any) -> None:
        name = call.op.name if isinstance(call.op, tvm.ir.Op) else str(call.op)
        if name == "tir.if_then_else":
            condition, first, second = call.args
            zero = _like(call, 0)
            self.add(first, tir.if_then_else(condition, factor, zero))
            self.add(second, tir.if_then_else(condition, zero, factor))
        elif name == "tir.likely":
            self.add(call.args[0], factor)
        elif name in ("tir.pow", "tir.power"):
            base, exponent = call.args
            self.add(base, factor * exponent * tir.power(base, exponent - 1))
            self.add(exponent, factor * call * tir.log(base))
        elif name in _RULES:
            self.add(call.args[0], factor * _RULES[name](call, *call.args))
        elif name not in _FLAT:
            raise ValueError(f"te.gradient: no derivative is known of {name} in {call}")


def _same_tensor(one: Any, other: Tensor) -> bool:
    return one.op.same_as(other.op) and one.value_index == other.value_index


def _mentions(expr: Any, tensor: Tensor) -> bool:
    found: list[bool] = []

    def visit(node: Any) -> None:
        if isinstance(node, tir.ProducerLoad) and _same_tensor(node.producer, tensor):
            found.append(True)

    tir.stmt_functor.post_order_visit(expr, visit)
    return bool(found)


def _is_sum(combiner: Any) -> bool:
    return (
        len(combiner.result) == 1
        and isinstance(combiner.result[0], tir.Add)
        and {combiner.lhs[0], combiner.rhs[0]} == {combiner.result[0].a, combiner.result[0].b}
    )


class _Adjoint:
    """What the derivative of each element is multiplied by: of a tensor, or of the identity."""

    def __init__(self, prefix: Sequence[Any], tensor: Tensor | None) -> None:
        self.prefix, self.tensor = list(prefix), tensor


def _sum_over(axes: Sequence[Any], value: Any) -> Any:
    return tir.sum(value, axis=list(axes)) if axes else value


def _contribution(
    adjoint: _Adjoint, op: Any, tensor: Tensor, indices: Sequence[Any], factor: Any, where: Any
) -> Tensor:
    """Sum over all elements of `op` that read `tensor` at `indices`, by the element read."""
    shape = [*adjoint.prefix, *tensor.shape]
    body = op.body[0]
    loops = [*op.axis, *(op.reduce_axis if isinstance(body, tir.Reduce) else [])]

    def element(*place: Any) -> Any:
        prefix, target = list(place[: len(adjoint.prefix)]), place[len(adjoint.prefix) :]
        known: dict[Any, Any] = {}
        if adjoint.tensor is None:
            # The identity: the element of the output is that of the prefix.
            known = {axis.var: var for axis, var in zip(op.axis, prefix, strict=True)}
        free = [axis.var for axis in loops if axis.var not in known]
        ranges = {axis.var: axis.dom for axis in loops if axis.var not in known}
        equations = [
            tir.EQ(tir.stmt_functor.substitute(index, known), var.astype(index.dtype))
            for index, var in zip(indices, target, strict=True)
        ]
        solved = arith.solve_linear_equations(equations, free, ranges)
        if free and not len(solved.src_to_dst):
            return tir.const(0, factor.dtype)
        values = {**known, **dict(solved.src_to_dst.items())}
        bounds = arith.Analyzer()
        for var, extent in zip(place, shape, strict=True):
            bounds.bind(var, Range(0, extent))
        moved: dict[Any, Any] = {}
        axes = []
        for var in solved.dst.variables:
            bound = solved.dst.ranges.get(var)
            if bound is None:
                raise ValueError(f"te.gradient: the range of {var} is not known in {op}")
            axis = reduce_axis((0, bound.extent), name=var.name)
            axes.append(axis)
            moved[var] = axis.var + bound.min
            bounds.bind(axis.var, Range(0, bound.extent))

        def settled(expr: Any) -> Any:
            expr = tir.stmt_functor.substitute(expr, values)
            return tir.stmt_functor.substitute(expr, moved)

        conditions = [*(solved.dst.relations if free else equations), where]
        conditions = [settled(condition) for condition in conditions]
        for var, bound in ranges.items():
            value = settled(var)
            conditions += [value >= bound.min, value < bound.min + bound.extent]
        conditions = [bounds.simplify(condition) for condition in conditions]
        conditions = [c for c in conditions if not (isinstance(c, tir.IntImm) and int(c))]
        value = settled(factor)
        if adjoint.tensor is not None:
            value = adjoint.tensor(*prefix, *[settled(axis.var) for axis in op.axis]) * value
        if conditions:
            value = tir.if_then_else(tir.all(*conditions), value, _like(value, 0))
        return _sum_over(axes, bounds.simplify(value))

    return compute(shape, element, name=f"{tensor.op.name}.grad")


def _jacobian(op: Any, tensor: Tensor) -> Tensor:
    """Derivatives of all elements of a reduction by all elements of `tensor`.

    The pair of derivative and value is reduced, so that any combiner will do.
    """
    body = op.body[0]
    combiner, old = body.combiner, body.source[0]
    dtype = old.dtype

    def derivative(x: Any, y: Any) -> Any:
        # Placeholders of one element stand for the operands, so that the rules apply to them.
        left, right = _scalar("lhs", dtype), _scalar("rhs", dtype)
        result = tir.stmt_functor.substitute(
            combiner.result[0], {combiner.lhs[0]: left(), combiner.rhs[0]: right()}
        )
        total: Any = tir.const(0, dtype)
        for operand, slope in ((left, x[0]), (right, y[0])):
            reads = _Reads(operand)
            reads.add(result, tir.const(1, dtype))
            for _, factor in reads.found:
                total = total + factor * slope
        return _without_reads(total, {left: x[1], right: y[1]})

    def combine(x: Any, y: Any) -> Any:
        value = tir.stmt_functor.substitute(
            combiner.result[0], {combiner.lhs[0]: x[1], combiner.rhs[0]: y[1]}
        )
        return derivative(x, y), value

    identity = combiner.identity_element[0]
    reducer = tir.comm_reducer(
        combine, lambda d, v: (tir.const(0, d), identity), name=f"{op.name}.jacobian"
    )

    def element(*place: Any) -> Any:
        known = {axis.var: var for axis, var in zip(op.axis, place, strict=False)}
        target = place[len(op.axis) :]
        axes = [reduce_axis(axis.dom, name=axis.var.name) for axis in op.reduce_axis]
        known.update({axis.var: new.var for axis, new in zip(op.reduce_axis, axes, strict=True)})

        def here(expr: Any) -> Any:
            return tir.stmt_functor.substitute(expr, known)

        reads = _Reads(tensor)
        reads.add(old, tir.const(1, dtype))
        slope: Any = tir.const(0, dtype)
        for indices, factor in reads.found:
            hit = [tir.EQ(here(index), var) for index, var in zip(indices, target, strict=True)]
            value = here(factor)
            slope = slope + (tir.Select(tir.all(*hit), value, _like(value, 0)) if hit else value)
        return reducer((slope, here(old)), axis=axes, where=here(body.condition))

    found = compute([*op.output(0).shape, *tensor.shape], element, name=f"{op.name}.jacobian")
    return found[0]


def _scalar(name: str, dtype: str) -> Tensor:
    return tvm.te.placeholder((), dtype=dtype, name=name)


def _without_reads(expr: Any, values: dict[Tensor, Any]) -> Any:
    """Values in the place of placeholders of one element."""

    def replace(node: Any) -> Any:
        if isinstance(node, tir.ProducerLoad):
            for tensor, value in values.items():
                if _same_tensor(node.producer, tensor):
                    return value
        return None

    body = tir.stmt_functor.ir_transform(tir.Evaluate(expr), None, replace, ["tir.ProducerLoad"])
    return body.value


def _through_jacobian(adjoint: _Adjoint, op: Any, tensor: Tensor) -> Tensor:
    jacobian = _jacobian(op, tensor)
    if adjoint.tensor is None:
        return jacobian
    own = op.output(0)
    given = adjoint.tensor

    def element(*place: Any) -> Any:
        prefix, target = place[: len(adjoint.prefix)], place[len(adjoint.prefix) :]
        axes = [reduce_axis((0, extent)) for extent in own.shape]
        variables = [axis.var for axis in axes]
        return _sum_over(axes, given(*prefix, *variables) * jacobian(*variables, *target))

    return compute([*adjoint.prefix, *tensor.shape], element, name=f"{tensor.op.name}.grad")


def _contributions(adjoint: _Adjoint, op: Any, tensor: Tensor) -> list[Tensor]:
    if not isinstance(op, ComputeOp) or len(op.body) != 1:
        raise ValueError(
            f"te.gradient: {op.name} is no te.compute of one output; take the gradients of what is "
            "before and behind it, and multiply by its own"
        )
    body = op.body[0]
    where: Any = tir.const(True, "bool")
    if isinstance(body, tir.Reduce):
        if not _is_sum(body.combiner) or len(body.init):
            if len(body.combiner.result) != 1:
                raise ValueError(f"te.gradient: {op.name} reduces several values at once")
            return [_through_jacobian(adjoint, op, tensor)]
        where, body = body.condition, body.source[0]
    reads = _Reads(tensor)
    reads.add(body, tir.const(1, body.dtype))
    return [
        _contribution(adjoint, op, tensor, indices, factor, where)
        for indices, factor in reads.found
    ]


def _added(tensors: Sequence[Tensor]) -> Tensor:
    total = tensors[0]
    for other in tensors[1:]:
        first = total
        total = compute(
            first.shape,
            lambda *place, a=first, b=other: a(*place) + b(*place),
            name=other.op.name,
        )
    return total


def _in_order(output: Tensor) -> list[Any]:
    """Operations that `output` depends on, inputs first."""
    order: list[Any] = []
    seen: set[Any] = set()
    stack: list[tuple[Any, bool]] = [(output.op, False)]
    while stack:
        op, done = stack.pop()
        if done:
            order.append(op)
        elif op not in seen:
            seen.add(op)
            stack.append((op, True))
            stack += [(tensor.op, False) for tensor in op.input_tensors]
    return order


def gradient(
    output: Tensor, inputs: Tensor | Sequence[Tensor], head: Tensor | None = None
) -> list[Tensor]:
    """Derivatives of ``output`` by each of ``inputs``, multiplied by ``head``.

    Reverse mode: one adjoint for each operation in between. Where the elements that read an input
    follow from the element read (linear indices), sums run only over those.

    Parameters
    ----------
    output : the result of `tvm.te.compute`, of a floating point type.
    inputs : tensors that `output` depends on; zeros are returned for others.
    head : of shape ``prefix + output.shape``. Without it: the identity, whose prefix is the shape
        of the output, so that the Jacobian is returned.

    Returns
    -------
    One tensor for each input, of shape ``prefix + input.shape``.

    Raises
    ------
    ValueError : an operation in between has several outputs or no known derivative, or the shape of
        `head` does not end as that of `output`.

    Examples
    --------
    >>> from tvm import te
    >>> A = te.placeholder((10, 20), name="A")
    >>> B = te.compute((10,), lambda i: te.sum(A[i, k] * A[i, k], k))
    >>> head = te.placeholder((10,), name="head")
    >>> (dA,) = te.gradient(B, A, head)
    """
    wanted = [inputs] if isinstance(inputs, Tensor) else list(inputs)
    rank = len(output.shape)
    if head is None:
        prefix = list(output.shape)
    else:
        own = list(head.shape)
        prefix = own[: len(own) - rank]
        ends = own[len(own) - rank :]
        analyzer = arith.Analyzer()
        if len(own) < rank or not all(map(analyzer.can_prove_equal, ends, output.shape)):
            raise ValueError(
                f"te.gradient: the shape of head, {own}, must end as that of the output, "
                f"{list(output.shape)}"
            )
    order = _in_order(output)
    needed: set[Any] = {tensor.op for tensor in wanted}
    for op in order:
        if any(tensor.op in needed for tensor in op.input_tensors):
            needed.add(op)
    adjoints: dict[Tensor, list[Tensor]] = {}
    results: dict[Tensor, Tensor] = {}
    for op in reversed(order):
        if op not in needed:
            continue
        for at in range(op.num_outputs):
            own_tensor = op.output(at)
            if own_tensor == output:
                adjoint = _Adjoint(prefix, head)
                if head is not None:
                    results[own_tensor] = head
            elif adjoints.get(own_tensor):
                results[own_tensor] = _added(adjoints[own_tensor])
                adjoint = _Adjoint(prefix, results[own_tensor])
            else:
                continue
            if isinstance(op, PlaceholderOp):
                continue
            for tensor in dict.fromkeys(op.input_tensors):
                if tensor.op in needed:
                    parts = _contributions(adjoint, op, tensor)
                    adjoints.setdefault(tensor, []).extend(parts)
    found = []
    for tensor in wanted:
        if tensor in results:
            found.append(results[tensor])
        elif tensor == output:
            found.append(_identity(output))
        else:
            found.append(
                compute(
                    [*prefix, *tensor.shape],
                    lambda *_, dtype=tensor.dtype: tir.const(0, dtype),
                    name=f"{tensor.op.name}.grad",
                )
            )
    return found


def _identity(output: Tensor) -> Tensor:
    rank = len(output.shape)

    def element(*place: Any) -> Any:
        same = [tir.EQ(a, b) for a, b in zip(place[:rank], place[rank:], strict=True)]
        one, zero = tir.const(1, output.dtype), tir.const(0, output.dtype)
        return tir.Select(tir.all(*same), one, zero) if same else one

    return compute([*output.shape, *output.shape], element, name="identity")
