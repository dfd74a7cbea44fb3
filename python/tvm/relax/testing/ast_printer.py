"""Graph expressions as text that shows how they are put together, node by node."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tvm import error, tir
from tvm.ir import FuncType, GlobalVar, Op, PrimType, TupleType

from ..expr import (
    Binding,
    BindingBlock,
    Call,
    Constant,
    DataflowBlock,
    DataTypeImm,
    ExternFunc,
    Function,
    If,
    MatchCast,
    PrimValue,
    SeqExpr,
    ShapeExpr,
    StringImm,
    Tuple,
    TupleGetItem,
    Var,
    VarBinding,
)
from ..struct_info import (
    FuncStructInfo,
    ObjectStructInfo,
    PrimStructInfo,
    ShapeStructInfo,
    StructInfo,
    TensorStructInfo,
    TupleStructInfo,
)
from ..ty import DynTensorType, ObjectType, PackedFuncType, ShapeType

__all__ = ["dump_ast"]


@dataclass
class _Group:
    """Parts between two marks, each on a line unless it is one short one."""

    opening: str
    parts: list[Any]
    closing: str
    spread: bool = False

    def text(self, indent: str) -> str:
        texts = [p.text(indent) if isinstance(p, _Field | _Group) else str(p) for p in self.parts]
        if not texts:
            return self.opening + self.closing
        if len(texts) == 1 and not self.spread and "\n" not in texts[0]:
            return self.opening + texts[0] + self.closing
        lines = [indent + text.replace("\n", "\n" + indent) for text in texts]
        return self.opening + "\n" + ",\n".join(lines) + "\n" + self.closing


@dataclass
class _Field:
    name: str
    value: Any
    mark: str = "="

    def text(self, indent: str) -> str:
        value = self.value
        return self.name + self.mark + (value.text(indent) if isinstance(value, _Group) else value)


def _node(kind: str, spread: bool = False, /, **fields: Any) -> _Group:
    parts = [_Field(key, value) for key, value in fields.items() if value is not None]
    return _Group(f"{kind}(", parts, ")", spread)


def _list(parts: Sequence[Any], spread: bool = False) -> _Group:
    return _Group("[", list(parts), "]", spread)


def _quoted(text: Any) -> str:
    return f'"{text}"'


def _scalar(value: Any) -> _Group:
    return _node("PrimExpr", value=f"`{value}`")


def _setting(value: Any) -> str:
    if isinstance(value, str):
        return _quoted(value)
    if isinstance(value, tir.IntImm):
        return str(bool(value.value) if str(value.dtype) == "bool" else int(value.value))
    return str(value)


class _Dumper:
    def __init__(self, types: bool, infos: bool, attrs: bool) -> None:
        self._types, self._infos, self._attrs = types, infos, attrs

    def _expr(self, node: Any, kind: str, spread: bool = False, /, **fields: Any) -> _Group:
        """A node with what is known of its value."""
        info = node.struct_info
        if info is not None and self._types:
            fields["_checked_type_"] = self._type(info.as_type())
        if info is not None and self._infos:
            fields["struct_info"] = self.info(info)
        return _node(kind, spread, **fields)

    def expr(self, node: Any) -> _Group:
        """The tree of an expression, block or binding."""
        if isinstance(node, BindingBlock):
            return self._block(node)
        if isinstance(node, Binding):
            return self._binding(node)
        for kind, method in _METHODS.items():
            if isinstance(node, kind):
                return getattr(self, method)(node)
        raise error.TypeError(f"dump_ast: {type(node).__name__} is no graph expression")

    def _exprs(self, nodes: Sequence[Any]) -> _Group:
        return _list([self.expr(node) for node in nodes])

    def _constant(self, node: Constant) -> _Group:
        return self._expr(node, "Constant", len(node.data.shape) > 0, data=str(node.data))

    def _tuple(self, node: Tuple) -> _Group:
        return self._expr(node, "Tuple", fields=self._exprs(node.fields))

    def _var(self, node: Var) -> _Group:
        return self._expr(node, type(node).__name__, name_hint=_quoted(node.name_hint))

    def _shape(self, node: ShapeExpr) -> _Group:
        return self._expr(node, "ShapeExpr", values=_list([_scalar(v) for v in node.values]))

    def _extern(self, node: ExternFunc) -> _Group:
        return _node("ExternFunc", global_symbol=_quoted(node.global_symbol))

    def _function(self, node: Function) -> _Group:
        attrs = None
        if node.attrs:
            rows = [_Field(_quoted(k), _quoted(v), ": ") for k, v in node.attrs.items()]
            attrs = _Group("{", rows, "}")
        info = node.ret_struct_info
        return self._expr(
            node,
            "Function",
            params=self._exprs(node.params),
            body=self.expr(node.body),
            ret_struct_info=None if info is None else self.info(info),
            is_pure=str(int(node.is_pure)),
            attrs=attrs,
        )

    def _call(self, node: Call) -> _Group:
        attrs = None
        if self._attrs and node.attrs:
            rows = [_Field(_quoted(k), _setting(v), ": ") for k, v in node.attrs.items()]
            attrs = _Group("{", rows, "}")
        infos = [self.info(info) for info in node.sinfo_args]
        return self._expr(
            node,
            "Call",
            op=self.expr(node.op),
            args=self._exprs(node.args),
            sinfo_args=_list(infos) if infos else None,
            attrs=attrs,
        )

    def _sequence(self, node: SeqExpr) -> _Group:
        return self._expr(
            node, "SeqExpr", blocks=self._exprs(node.blocks), body=self.expr(node.body)
        )

    def _if(self, node: If) -> _Group:
        return self._expr(
            node,
            "If",
            cond=self.expr(node.cond),
            true_branch=self.expr(node.true_branch),
            false_branch=self.expr(node.false_branch),
        )

    def _prim(self, node: PrimValue) -> _Group:
        return self._expr(node, "PrimValue", value=_scalar(node.value))

    def _string(self, node: StringImm) -> _Group:
        return self._expr(node, "StringImm", value=_quoted(node.value))

    def _dtype(self, node: DataTypeImm) -> _Group:
        return self._expr(node, "DataTypeImm", value=str(node.value))

    def _op(self, node: Op) -> _Group:
        return _node("Op", False, name=_quoted(node.name))

    def _item(self, node: TupleGetItem) -> _Group:
        return self._expr(
            node,
            "TupleGetItem",
            tuple_value=self.expr(node.tuple_value),
            index=str(int(node.index)),
        )

    def _block(self, block: BindingBlock) -> _Group:
        name = "DataflowBlock" if isinstance(block, DataflowBlock) else "BindingBlock"
        return _node(name, bindings=_list([self._binding(b) for b in block.bindings], spread=True))

    def _binding(self, binding: Binding) -> _Group:
        var, value = self.expr(binding.var), self.expr(binding.value)
        if isinstance(binding, MatchCast):
            info = self.info(binding.struct_info)
            return _node("MatchCast", False, var=var, value=value, struct_info=info)
        assert isinstance(binding, VarBinding)
        return _node("VarBinding", False, var=var, value=value)

    def info(self, info: StructInfo) -> _Group:
        """The tree of struct info."""
        if isinstance(info, ShapeStructInfo):
            values = None if info.values is None else _list([_scalar(v) for v in info.values])
            return _node("ShapeStructInfo", ndim=str(info.ndim), values=values)
        if isinstance(info, ObjectStructInfo):
            return _node("ObjectStructInfo")
        if isinstance(info, PrimStructInfo):
            return _node("PrimStructInfo", dtype=str(info.dtype))
        if isinstance(info, TensorStructInfo):
            shape = None if info.shape is None else self.expr(info.shape)
            ndim = str(info.ndim) if shape is None else None
            dtype = "" if str(info.dtype) == "void" else str(info.dtype)
            return _node("TensorStructInfo", dtype=dtype, shape=shape, ndim=ndim)
        if isinstance(info, TupleStructInfo):
            return _node("TupleStructInfo", fields=_list([self.info(f) for f in info.fields]))
        assert isinstance(info, FuncStructInfo)
        params = None if info.params is None else _list([self.info(p) for p in info.params])
        purity = str(bool(info.purity))
        return _node("FuncStructInfo", params=params, ret=self.info(info.ret), purity=purity)

    def _type(self, kind: Any) -> _Group:
        if isinstance(kind, ShapeType):
            return _node("ShapeType", ndim=str(kind.ndim))
        if isinstance(kind, DynTensorType):
            dtype = None if str(kind.dtype) == "void" else str(kind.dtype)
            return _node("DynTensorType", ndim=str(kind.ndim), dtype=dtype)
        if isinstance(kind, PrimType):
            return _node("PrimType", dtype=str(kind.dtype))
        if isinstance(kind, TupleType):
            return _node("TupleType", fields=_list([self._type(f) for f in kind.fields]))
        if isinstance(kind, FuncType):
            params = _list([self._type(p) for p in kind.arg_types])
            return _node("FuncType", arg_types=params, ret_type=self._type(kind.ret_type))
        names = {ObjectType: "ObjectType", PackedFuncType: "PackedFuncType"}
        return _node(names.get(type(kind), type(kind).__name__))


_METHODS: dict[type, str] = {
    Constant: "_constant",
    Tuple: "_tuple",
    Var: "_var",
    ShapeExpr: "_shape",
    ExternFunc: "_extern",
    GlobalVar: "_var",
    Function: "_function",
    Call: "_call",
    SeqExpr: "_sequence",
    If: "_if",
    Op: "_op",
    TupleGetItem: "_item",
    PrimValue: "_prim",
    StringImm: "_string",
    DataTypeImm: "_dtype",
}


def dump_ast(
    exp: Any,
    indent_str: str = "    ",
    include_type_annotations: bool = False,
    include_struct_info_annotations: bool = True,
    include_call_attrs: bool = True,
) -> str:
    """A text with every node of a graph expression, its fields by name; for looking at.

    Parameters
    ----------
    exp : an expression, block or binding.
    indent_str : in front of the fields of a node that takes several lines.
    include_type_annotations, include_struct_info_annotations : whether nodes say the static type,
        and the struct info, of their value.
    include_call_attrs : whether calls say their settings.

    Raises
    ------
    TypeError : it is something else.
    """
    dumper = _Dumper(include_type_annotations, include_struct_info_annotations, include_call_attrs)
    return dumper.expr(exp).text(indent_str)
