"""One step of a schedule: which primitive was called with what, and what it returned."""

from __future__ import annotations

import ast
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import tvm.error
from tvm.ir import PrimExpr

from ..expr import Add, FloorDiv, FloorMod, IntImm, Max, Min, Mul, StringImm, Sub, Var, convert
from ..op import max as max_of
from ..op import min as min_of
from .random_variables import RV, BlockRV, LoopRV

__all__ = ["Instruction", "InstructionKind"]


@dataclass(frozen=True)
class InstructionKind:
    """A primitive as traces know it.

    `name` is that of the kind ("SamplePerfectTile"), `method` that of the method of a schedule.
    Kinds that only look are `is_pure`; arguments of `variadic` are written without a name.
    """

    name: str
    method: str
    is_pure: bool = False
    is_sampling: bool = False
    is_postproc: bool = False
    variadic: str | None = None

    _table: ClassVar[dict[str, InstructionKind]] = {}

    def __post_init__(self) -> None:
        self._table[self.name] = self

    @staticmethod
    def get(name: str) -> InstructionKind:
        """The kind of that name.

        Raises
        ------
        KeyError : there is none; the message lists those there are.
        """
        kind = InstructionKind._table.get(name)
        if kind is None:
            known = ", ".join(sorted(InstructionKind._table))
            raise tvm.error.KeyError(f"no instruction is called {name!r}; there are {known}")
        return kind

    @staticmethod
    def of_method(method: str) -> InstructionKind:
        """The kind that a method of a schedule records."""
        return next(kind for kind in InstructionKind._table.values() if kind.method == method)


def _declare() -> None:
    looks = ("get_block", "get_loops", "get_child_blocks", "get_producers", "get_consumers")
    for method in (*looks, "get_output_blocks"):
        InstructionKind(_camel(method), method, is_pure=True)
    for method in ("sample_perfect_tile", "sample_categorical", "sample_compute_location"):
        InstructionKind(_camel(method), method, is_sampling=True)
    for method in ("reorder", "fuse"):
        InstructionKind(_camel(method), method, variadic="loops")
    InstructionKind("EnterPostproc", "enter_postproc", is_postproc=True)
    changes = "split parallel vectorize unroll bind annotate unannotate decompose_reduction rfactor"
    changes += " compute_at reverse_compute_at compute_inline reverse_compute_inline cache_read"
    changes += " cache_write set_scope storage_align"
    for method in changes.split():
        InstructionKind("RFactor" if method == "rfactor" else _camel(method), method)


def _camel(method: str) -> str:
    return "".join(word.capitalize() for word in method.split("_"))


_declare()


@dataclass(eq=False)
class Instruction:
    """A call of a primitive; `arguments` by name may hold random variables, also inside of lists.

    The decision of a sampling instruction belongs to the trace.
    """

    kind: InstructionKind
    arguments: dict[str, Any]
    outputs: list[RV] = field(default_factory=list)

    @property
    def inputs(self) -> list[RV]:
        """Random variables the call takes, in order."""
        found: list[RV] = []

        def collect(value: Any) -> Any:
            found.append(value)
            return value

        for value in self.arguments.values():
            map_rvs(value, collect)
        return found

    @property
    def attrs(self) -> list[Any]:
        """The other arguments, in order."""
        return [v for v in self.arguments.values() if not isinstance(v, BlockRV | LoopRV | Var)]

    def as_python(self, names: Mapping[Any, str], decision: Any = None) -> str:
        """The call as a line of Python, with `names` for random variables."""
        parts = []
        for key, value in self.arguments.items():
            if key == self.kind.variadic:
                parts += [to_text(item, names) for item in value]
            else:
                parts.append(f"{key}={to_text(value, names)}")
        if self.kind.is_sampling and decision is not None:
            parts.append(f"decision={to_text(decision, names)}")
        call = f"sch.{self.kind.method}({', '.join(parts)})"
        outputs = ", ".join(names[rv] for rv in self.outputs)
        if len(self.outputs) == 1 and returns_list(self.kind):
            outputs += ","
        return f"{outputs} = {call}" if outputs else call


def returns_list(kind: InstructionKind) -> bool:
    """Whether the primitive returns a list, which one output has to be unpacked from."""
    return kind.method in (
        "get_loops",
        "get_child_blocks",
        "get_producers",
        "get_consumers",
        "get_output_blocks",
        "sample_perfect_tile",
        "split",
    )


_OPERATORS = {Add: "+", Sub: "-", Mul: "*", FloorDiv: "//", FloorMod: "%"}
_FUNCTIONS = {Min: "tir.min", Max: "tir.max"}


def map_rvs(value: Any, new: Callable[[Any], Any]) -> Any:
    """`value` with each random variable in it exchanged."""
    if isinstance(value, BlockRV | LoopRV | Var):
        return new(value)
    if isinstance(value, list | tuple):
        return [map_rvs(item, new) for item in value]
    if isinstance(value, Mapping):
        return {key: map_rvs(item, new) for key, item in value.items()}
    if isinstance(value, tuple(_OPERATORS) + tuple(_FUNCTIONS)):
        return type(value)(map_rvs(value.a, new), convert(map_rvs(value.b, new)))
    return value


def to_text(value: Any, names: Mapping[Any, str]) -> str:
    """An argument as a Python expression."""
    if isinstance(value, BlockRV | LoopRV | Var):
        if value not in names:
            raise tvm.error.ValueError(f"{value} is no random variable of this trace")
        return names[value]
    if isinstance(value, IntImm):
        return str(int(value.value))
    if isinstance(value, StringImm):
        return json.dumps(str(value.value))
    if isinstance(value, str):
        return json.dumps(value)
    if isinstance(value, list | tuple):
        return "[" + ", ".join(to_text(item, names) for item in value) + "]"
    if isinstance(value, Mapping):
        items = (f"{json.dumps(str(k))}: {to_text(v, names)}" for k, v in value.items())
        return "{" + ", ".join(items) + "}"
    for node, operator in _OPERATORS.items():
        if isinstance(value, node):
            return f"({to_text(value.a, names)} {operator} {to_text(value.b, names)})"
    for node, function in _FUNCTIONS.items():
        if isinstance(value, node):
            return f"{function}({to_text(value.a, names)}, {to_text(value.b, names)})"
    if value is None or isinstance(value, bool | int | float):
        return repr(value)
    if isinstance(value, PrimExpr):
        raise tvm.error.ValueError(
            f"{value} cannot be recorded in a trace; sizes are computed with +, -, *, //, %, "
            "tir.min and tir.max"
        )
    raise tvm.error.TypeError(
        f"a {type(value).__name__} cannot be recorded in a trace; give numbers, texts and lists"
    )


def from_text(text: str, known: Mapping[str, RV]) -> Any:
    """The value of an expression that `to_text` wrote.

    Raises
    ------
    ValueError : it is none, or it names what is not `known`.
    """
    try:
        tree = ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise tvm.error.ValueError(f"{text!r} is no expression of a trace: {error}") from None
    return _evaluate(tree, known)


def _evaluate(node: ast.expr, known: Mapping[str, RV]) -> Any:
    if isinstance(node, ast.Constant) and isinstance(node.value, str | int | float | None):
        return node.value
    if isinstance(node, ast.Name) and node.id in known:
        return known[node.id]
    if isinstance(node, ast.List):
        return [_evaluate(item, known) for item in node.elts]
    if isinstance(node, ast.Dict):
        keys = [_evaluate(key, known) for key in node.keys if key is not None]
        return dict(zip(map(str, keys), (_evaluate(value, known) for value in node.values)))
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        value = _evaluate(node.operand, known)
        if isinstance(value, int | float):
            return -value
    if isinstance(node, ast.BinOp):
        symbol = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.FloorDiv: "//", ast.Mod: "%"}
        for make, operator in _OPERATORS.items():
            if symbol.get(type(node.op)) == operator:
                return make(*_operands(node.left, node.right, known))
    if isinstance(node, ast.Call) and not node.keywords and len(node.args) == 2:
        function = {"tir.min": min_of, "tir.max": max_of}.get(ast.unparse(node.func))
        if function is not None:
            return function(*_operands(node.args[0], node.args[1], known))
    raise tvm.error.ValueError(
        f"{ast.unparse(node)!r} is no expression of a trace, or names what no instruction before "
        "returned"
    )


def _operands(a: ast.expr, b: ast.expr, known: Mapping[str, RV]) -> tuple[PrimExpr, PrimExpr]:
    values = [_evaluate(a, known), _evaluate(b, known)]
    if not all(isinstance(v, int | PrimExpr) for v in values):
        raise tvm.error.ValueError("sizes of a trace are computed from integers")
    return convert(values[0]), convert(values[1])
