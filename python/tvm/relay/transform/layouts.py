"""Programs rewritten to other layouts of their tensors."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tvm import error
from tvm.ir import IRModule, Op, RelayExpr, TensorType, TupleType
from tvm.ir.transform import Pass, PassContext, module_pass

from .. import op
from ..expr import Call, Tuple, TupleGetItem
from ..expr_functor import PostOrderMutator
from ..op.registry import find_row, settings_of
from .base import expression_pass
from .layout_rules import Laid, infer_layouts, letters_of, plain_letters
from .simplify import CanonicalizeOps

__all__ = ["AlterOpLayout", "ConvertLayout", "LayoutConfig", "LayoutRewriter", "infer_call"]


@dataclass(frozen=True)
class _Placed:
    """A tensor in a layout that may be another than the program's."""

    value: RelayExpr
    old: str | None = None
    new: str | None = None


@dataclass(frozen=True)
class _PlacedTuple:
    fields: Sequence[_Placed]
    # What the fields are taken from, if it is one value.
    whole: RelayExpr | None = None


Alter = Callable[[Call, Sequence[RelayExpr]], RelayExpr | None]


class LayoutRewriter(PostOrderMutator):
    """Calls as `alter` makes them, and what is behind them in the layouts that they give, as far as
    operators allow it."""

    def __init__(self, alter: Alter) -> None:
        super().__init__()
        self._alter = alter
        self._moved: dict[tuple[RelayExpr, str, str], RelayExpr] = {}

    def visit(self, expr: RelayExpr) -> RelayExpr:
        """The expression in the program's layout."""
        return self._realised(super().visit(expr))

    def _placed(self, expr: RelayExpr) -> Any:
        super().visit(expr)
        found = self.memo_map[expr]
        return found if isinstance(found, (_Placed, _PlacedTuple)) else _Placed(found)

    def _realised(self, found: Any) -> RelayExpr:
        if isinstance(found, _PlacedTuple):
            if found.whole is not None and all(f.old == f.new for f in found.fields):
                return found.whole
            return Tuple([self._realised(f) for f in found.fields])
        if isinstance(found, _Placed):
            if found.old is None or found.new is None:
                return found.value
            return self._transformed(found.value, found.new, found.old)
        return found

    def _transformed(self, value: RelayExpr, src: str | None, dst: str | None) -> RelayExpr:
        if src == dst or not src or not dst:
            return value
        key = (value, src, dst)
        if key not in self._moved:
            missing = "".join(p for p in plain_letters(dst) if p not in plain_letters(src))
            moved = value
            if missing:
                moved = op.expand_dims(value, axis=0, num_newaxis=len(missing))
            if missing + src != dst:
                moved = op.layout_transform(moved, missing + src, dst)
            self._moved[key] = moved
        return self._moved[key]

    def visit_tuple(self, tup: Tuple) -> Any:
        fields = [self._placed(f) for f in tup.fields]
        if all(isinstance(f, _Placed) for f in fields):
            return _PlacedTuple(fields)
        return super().visit_tuple(tup)

    def visit_tuple_getitem(self, item: TupleGetItem) -> Any:
        value = self._placed(item.tuple_value)
        if isinstance(value, _PlacedTuple):
            return value.fields[item.index]
        return super().visit_tuple_getitem(item)

    def _operands(self, call: Call) -> tuple[list[_Placed], list[TensorType]] | None:
        """Tensors that a call takes, fields of tuples one by one, and their types."""
        operands: list[_Placed] = []
        types: list[TensorType] = []
        for arg in call.args:
            found, type_ = self._placed(arg), arg.checked_type_
            if isinstance(type_, TensorType) and isinstance(found, _Placed):
                operands.append(found)
                types.append(type_)
            elif isinstance(type_, TupleType) and isinstance(found, _PlacedTuple):
                operands.extend(found.fields)
                types.extend(type_.fields)
            else:
                return None
        return operands, types

    def visit_call(self, call: Call) -> Any:
        found = self._rewritten(call) if find_row(call.op) is not None else None
        return super().visit_call(call) if found is None else found

    def _rewritten(self, call: Call) -> Any:
        operands = self._operands(call)
        if operands is None or call.checked_type_ is None:
            return None
        placed, types = operands
        before = infer_call(call, None, [p.old for p in placed], types)
        if before is None:
            return None
        old = list(before.inputs)
        new = [p.new if p.new is not None else o for p, o in zip(placed, old)]
        args = self._regrouped(call.args, [p.value for p in placed])
        altered = self._alter(call, args)
        altered = Call(call.op, args, call.attrs) if altered is None else altered
        if not isinstance(altered, Call) or find_row(altered.op) is None:
            return None
        values = _flattened(altered.args)
        if len(values) != len(placed):
            return None
        after = infer_call(altered, new, old, types)
        if after is None or len(after.outputs) != len(before.outputs):
            return None
        moved = [self._transformed(v, n, a) for v, n, a in zip(values, new, after.inputs)]
        result = self._call(call, altered, self._regrouped(altered.args, moved), after)
        outputs = list(zip(before.outputs, after.outputs))
        if isinstance(call.checked_type_, TupleType):
            return _PlacedTuple(
                [_Placed(TupleGetItem(result, k), o, n) for k, (o, n) in enumerate(outputs)], result
            )
        return _Placed(result, *outputs[0])

    @staticmethod
    def _regrouped(args: Sequence[RelayExpr], values: Sequence[RelayExpr]) -> list[RelayExpr]:
        rest = iter(values)
        grouped: list[RelayExpr] = []
        for arg in args:
            if isinstance(arg.checked_type_, TupleType) or isinstance(arg, Tuple):
                count = len(arg.fields if isinstance(arg, Tuple) else arg.checked_type_.fields)
                grouped.append(Tuple([next(rest) for _ in range(count)]))
            else:
                grouped.append(next(rest))
        return grouped

    @staticmethod
    def _call(old: Call, altered: Call, args: Sequence[RelayExpr], after: Laid) -> Call:
        same = altered.op.same_as(old.op) and altered.attrs.same_as(old.attrs) if (
            altered.attrs is not None and old.attrs is not None) else (
            altered.attrs is None and old.attrs is None and altered.op.same_as(old.op))  # fmt: skip
        if same and not after.settings and all(a.same_as(b) for a, b in zip(args, old.args)):
            return old
        attrs: Any = altered.attrs
        if after.settings:
            given = {str(k): v for k, v in altered.attrs.items()}
            attrs = {**given, **after.settings}
        return Call(altered.op, args, attrs, old.type_args if same else ())


def _flattened(args: Sequence[RelayExpr]) -> list[RelayExpr]:
    return [v for arg in args for v in (arg.fields if isinstance(arg, Tuple) else [arg])]


def infer_call(call: Call, new: Any, old: Any, types: Any) -> Laid | None:
    """`infer_layouts` for a call of an operator of relay."""
    row = find_row(call.op)
    assert row is not None
    settings = {**row.settings, **settings_of(call)}
    return infer_layouts(row, settings, new, old, types)


def AlterOpLayout() -> Pass:
    """Rewrite calls by what ``relay.op.register_alter_op_layout`` says of their operators.

    Tensors between them come into the layouts that the new calls name.

    A rule gets the attributes, operands and types, and returns a call whose settings name layouts,
    or None. Operators without layouts of their own follow what comes to them.
    """

    def alter(call: Call, args: Sequence[RelayExpr]) -> RelayExpr | None:
        rule = call.op.get_attr("FTVMAlterOpLayout")
        if rule is None:
            return None
        types = [arg.checked_type for arg in call.args]
        return rule(call.attrs, list(args), types, call.checked_type)

    return expression_pass(lambda f, mod: LayoutRewriter(alter).visit(f), 3, "AlterOpLayout")


_KERNELS: Mapping[str, Mapping[str, str]] = {
    "nn.conv1d": {"NCW": "OIW", "NWC": "WIO"},
    "nn.conv2d": {"NCHW": "OIHW", "NHWC": "HWIO", "HWNC": "HWOI"},
    "nn.conv3d": {"NCDHW": "OIDHW", "NDHWC": "DHWIO"},
    "nn.conv2d_transpose": {"NCHW": "IOHW", "NHWC": "HWIO"},
    "nn.conv3d_transpose": {"NCDHW": "IODHW", "NDHWC": "DHWOI"},
}


class LayoutConfig:
    """Which operators `ConvertLayout` leaves as they are, inside of ``with``.

    Parameters
    ----------
    skip_layers : which ones, counted from 0 among those that it has layouts for.
    """

    current: LayoutConfig | None = None
    """The one of the innermost ``with``."""

    def __init__(self, skip_layers: Sequence[int] | None = None) -> None:
        self.skip_layers = list(skip_layers or ())
        self.skip_counter = 0
        self._around: list[LayoutConfig | None] = []

    def check_skip(self) -> bool:
        """Whether the next operator is left; counts it."""
        skip = self.skip_counter in self.skip_layers
        self.skip_counter += 1
        return skip

    def reset(self) -> None:
        """Count from 0 again, and leave nothing."""
        self.skip_counter = 0
        self.skip_layers = []

    def __enter__(self) -> LayoutConfig:
        self._around.append(LayoutConfig.current)
        LayoutConfig.current = self
        return self

    def __exit__(self, *exc: object) -> None:
        LayoutConfig.current = self._around.pop()


def _is_depthwise(settings: Mapping[str, Any], data: TensorType) -> bool:
    letters = [letter for letter, _ in letters_of(settings["data_layout"])]
    extent = data.shape[letters.index("C")]
    return settings["groups"] > 1 and settings["groups"] == int(extent)


def _converted(call: Call, args: Sequence[RelayExpr], desired: Sequence[str]) -> RelayExpr | None:
    """A call whose settings name the layouts that are wished for."""
    name = str(call.op.name)
    row = find_row(call.op)
    assert row is not None
    s = {**row.settings, **settings_of(call)}
    if "data_layout" in s and "kernel_layout" in s:
        data = desired[0] if desired[0] != "default" else s["data_layout"]
        kernel = desired[1] if len(desired) > 1 else "default"
        if kernel == "default":
            table = _KERNELS.get(name.replace("qnn.", "nn."), {})
            if data not in table:
                raise error.ValueError(
                    f"relay.ConvertLayout: {name} in layout {data} needs a layout of its weights; "
                    f"give it behind {data}"
                )
            kernel = table[data]
            if name in ("nn.conv2d", "qnn.conv2d") and data == "NHWC" and _is_depthwise(
                s, call.args[0].checked_type
            ):  # fmt: skip
                kernel = "HWOI"
        changes = {"data_layout": data, "kernel_layout": kernel}
        if s.get("out_layout") and len(letters_of(s["out_layout"])) == len(letters_of(data)):
            changes["out_layout"] = ""
    elif "layout" in s:
        changes = {"layout": desired[0]}
    else:
        return None
    attrs = {str(k): v for k, v in call.attrs.items()}
    return Call(call.op, list(args), {**attrs, **changes})


def ConvertLayout(desired_layouts: Mapping[str, Sequence[str]]) -> Pass:
    """Bring a program into other layouts.

    Parameters
    ----------
    desired_layouts : for names of operators, the layouts of the data and, of convolutions, of the
        weights; "default" is what goes with the data. ``{"nn.conv2d": ["NHWC", "default"]}``.
        What ``relay.op.register_convert_op_layout`` says of an operator comes first.

    Raises, when it runs
    --------------------
    ValueError : there is no default for a layout of the data.
    """
    wishes = {str(k): [str(v) for v in values] for k, values in desired_layouts.items()}

    def convert(call: Call, args: Sequence[RelayExpr]) -> RelayExpr | None:
        name = str(call.op.name) if isinstance(call.op, Op) else ""
        if name not in wishes:
            return None
        config = LayoutConfig.current
        if config is not None and config.check_skip():
            return None
        rule = call.op.get_attr("FTVMConvertOpLayout")
        if rule is None:
            return _converted(call, args, wishes[name])
        types = [arg.checked_type for arg in call.args]
        return rule(call.attrs, list(args), types, wishes[name])

    @module_pass(opt_level=3, name="ConvertLayout")
    def run(mod: IRModule, ctx: PassContext) -> IRModule:
        # bias_add counts an axis; as a sum with a vector it follows layouts with blocks too.
        mod = CanonicalizeOps()(mod)
        return expression_pass(lambda f, m: LayoutRewriter(convert).visit(f), 3, "Rewrite")(mod)

    return run
