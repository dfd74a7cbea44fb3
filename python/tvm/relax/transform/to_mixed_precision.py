"""Half precision for products, and for what lies between them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum

from tvm.ir import IRModule, Op, RelayExpr

from ..expr import (
    BindingBlock,
    Call,
    Constant,
    DataflowBlock,
    Function,
    SeqExpr,
    Tuple,
    TupleGetItem,
    Var,
    VarBinding,
)
from ..expr_functor import PyExprMutator, mutator
from ..op import astype, has_op
from ..struct_info import StructInfo, TensorStructInfo, TupleStructInfo
from .graph_pass import graph_pass

__all__ = ["ToMixedPrecision"]

_HALF, _FULL = "float16", "float32"

# Products: they take halves wherever they are, and say in which type they add up.
_PRODUCTS = {
    "matmul": True, "einsum": False, "nn.conv1d": True, "nn.conv2d": True, "nn.conv3d": True,
    "nn.conv1d_transpose": True, "nn.conv2d_transpose": True, "nn.attention": False,
    "nn.attention_bias": False, "nn.attention_var_len": False,
}  # fmt: skip

# The program has chosen a type where it names one.
_TYPED = ("astype", "wrap_param", "quantize", "dequantize")


class _Policy(Enum):
    ALWAYS = "operands become halves"
    FOLLOW = "halves where all operands are"
    NEVER = "operands become full"


def _name(call: Call) -> str:
    return str(call.op.name).removeprefix("relax.") if isinstance(call.op, Op) else ""


def _policy(call: Call) -> _Policy:
    name = _name(call)
    if name in _PRODUCTS:
        return _Policy.ALWAYS
    follows = has_op(call.op) and name not in _TYPED and "dtype" not in call.attrs
    return _Policy.FOLLOW if follows else _Policy.NEVER


def _map_tensors(info: StructInfo, judge: Callable[[TensorStructInfo], bool]) -> bool:
    """Whether something holds for all tensors of a value."""
    if isinstance(info, TupleStructInfo):
        return all(_map_tensors(field, judge) for field in info.fields)
    return not isinstance(info, TensorStructInfo) or judge(info)


def _is_real(info: TensorStructInfo) -> bool:
    return str(info.dtype) in (_HALF, _FULL)


class _Readers:
    """Which variables of a block are read as halves only.

    Parameters
    ----------
    halves : variables that are halves from the beginning.
    """

    def __init__(self, block: DataflowBlock, halves: set[Var]) -> None:
        self._wanted: dict[Var, str] = dict.fromkeys(halves, _HALF)
        outside = [b.var for b in block.bindings if type(b.var) is Var]
        for var in outside:
            self._want([var], _FULL)
        for binding in reversed(list(block.bindings)):
            value = binding.value
            if isinstance(value, Call):
                args = list(value.args)
                policy = _policy(value)
                half = policy is _Policy.ALWAYS or (
                    policy is _Policy.FOLLOW and self.only_half(binding.var)
                )
                self._want(args, _HALF if half else _FULL)
            elif isinstance(value, (Tuple, TupleGetItem, Var)):
                half = self.only_half(binding.var)
                self._want([value], _HALF if half else _FULL)

    def _want(self, exprs: Sequence[RelayExpr], dtype: str) -> None:
        for expr in exprs:
            if isinstance(expr, Tuple):
                self._want(list(expr.fields), dtype)
            elif isinstance(expr, TupleGetItem):
                self._want([expr.tuple_value], dtype)
            elif isinstance(expr, Var):
                known = self._wanted.get(expr, dtype)
                self._wanted[expr] = dtype if known == dtype else _FULL

    def only_half(self, var: Var) -> bool:
        """Whether nobody reads the variable as anything else."""
        return self._wanted.get(var) == _HALF


@mutator
class _Converter(PyExprMutator):
    def __init__(self, mod: IRModule, out_dtype: str, half_inputs: set[str]) -> None:
        super().__init__(mod)
        self._out = out_dtype
        self._half_inputs = half_inputs
        self._readers: _Readers | None = None
        self._halves: set[Var] = set()

    def visit_function_(self, op: Function) -> RelayExpr:
        params = []
        for param in op.params:
            info = param.struct_info
            if str(param.name_hint) in self._half_inputs and isinstance(info, TensorStructInfo):
                shape = info.shape if info.shape is not None else None
                half = TensorStructInfo(shape, _HALF, info.vdevice, ndim=info.ndim)
                new = Var(str(param.name_hint), half)
                self.set_var_remap(param, new)
                self._halves.add(param)
                param = new
            params.append(param)
        body = self.visit_with_new_scope(op.body, params)
        info = op.ret_struct_info if not self._halves else None
        return Function(params, body, info, op.is_pure, op.attrs)

    def visit_dataflow_block_(self, block: DataflowBlock) -> BindingBlock:
        self._readers = _Readers(block, self._halves)
        new = super().visit_dataflow_block_(block)
        self._readers = None
        return new

    def visit_var_binding_(self, binding: VarBinding) -> None:
        if self._readers is None:
            super().visit_var_binding_(binding)
            return
        var, value = binding.var, binding.value
        wanted = _HALF if self._readers.only_half(var) else _FULL
        if not isinstance(value, Call):
            new = self.visit_expr(value)
            if not isinstance(value, Var | Tuple | TupleGetItem):
                self.reemit_binding(binding, new)
                return
            # A tuple has fields of one type; elsewhere what is only halves stays that.
            self._bind(binding, new, wanted if type(var) is Var else None)
            return
        policy = _policy(value)
        if policy is _Policy.ALWAYS and self._takes_reals(value):
            self._bind(binding, self._product(value), wanted)
        elif policy is _Policy.FOLLOW and self._takes_reals(value) and self._all_half(value):
            self._bind(binding, self._typed(value, _HALF), wanted)
        elif self._takes_halves(value):
            self._bind(binding, self._typed(value, _FULL), wanted)
        else:
            self._bind(binding, self.visit_expr(value), wanted)

    def _takes_reals(self, call: Call) -> bool:
        """Whether all tensors it takes are real, and there are some."""
        infos = [arg.struct_info for arg in call.args]
        some = any(isinstance(i, (TensorStructInfo, TupleStructInfo)) for i in infos)
        return some and all(_map_tensors(info, _is_real) for info in infos)

    def _takes_halves(self, call: Call) -> bool:
        """Whether a value that was full has become a half in between."""
        return any(
            not _map_tensors(self.visit_expr(arg).struct_info, lambda i: str(i.dtype) != _HALF)
            and _map_tensors(arg.struct_info, lambda i: str(i.dtype) != _HALF)
            for arg in call.args
        )

    def _all_half(self, call: Call) -> bool:
        """Whether operands are halves by now, or constants; not constants alone."""

        def is_half(expr: RelayExpr) -> bool:
            if isinstance(expr, Constant):
                return True
            if isinstance(expr, Tuple):
                return all(is_half(field) for field in expr.fields)
            return _map_tensors(expr.struct_info, lambda i: str(i.dtype) == _HALF)

        args = [self.visit_expr(arg) for arg in call.args]
        tensors = [
            a for a in args if isinstance(a.struct_info, (TensorStructInfo, TupleStructInfo))
        ]
        return not all(isinstance(a, Constant) for a in tensors) and all(map(is_half, tensors))

    def _product(self, call: Call) -> Call:
        typed = self._typed(call, _HALF)
        if not _PRODUCTS[_name(call)]:
            return typed
        attrs = {**dict(call.attrs), "out_dtype": self._out}
        return Call(typed.op, list(typed.args), attrs, typed.sinfo_args)

    def _typed(self, call: Call, dtype: str) -> Call:
        """The call with operands of an element type."""
        args = [self._cast(self.visit_expr(arg), dtype) for arg in call.args]
        return Call(call.op, args, call.attrs, call.sinfo_args)

    def _bind(self, binding: VarBinding, value: RelayExpr, wanted: str | None) -> None:
        """Emit a binding whose variable has the type that its readers want."""
        value = self.builder_.normalize(value)
        if wanted is not None:
            value = self._cast(value, wanted)
        self.reemit_binding(binding, value)

    def _cast(self, value: RelayExpr, dtype: str) -> RelayExpr:
        info = value.struct_info
        if isinstance(info, TupleStructInfo):
            if _map_tensors(info, lambda i: not _is_real(i) or str(i.dtype) == dtype):
                return value
            if isinstance(value, Tuple):
                return Tuple([self._cast(field, dtype) for field in value.fields])
            whole = self.builder_.normalize_argument(value)
            fields = [TupleGetItem(whole, i) for i in range(len(info.fields))]
            return Tuple([self._cast(self.builder_.emit(field), dtype) for field in fields])
        if not isinstance(info, TensorStructInfo) or not _is_real(info) or str(info.dtype) == dtype:
            return value
        if isinstance(value, Constant):
            return value.astype(dtype)
        return self.builder_.normalize(astype(self.builder_.normalize_argument(value), dtype))


@graph_pass("ToMixedPrecision")
def ToMixedPrecision(
    mod: IRModule, out_dtype: str = "float32", fp16_input_names: Sequence[str] | None = None
) -> IRModule:
    """The module with products of half-precision numbers in dataflow blocks.

    Operands of products (convolutions, matrix products, attention) are cast to float16. Other
    operators compute with halves where all of their operands are halves by then, or constants.
    What all readers want as a half is cast behind what computes it, everything else stays float32,
    and so do results of functions. Calls of kernels and functions, and operators that name a type,
    get what they were written for.

    Parameters
    ----------
    out_dtype : type in which products add up and give their result.
    fp16_input_names : parameters that are given as halves from now on.
    """
    half = {str(name) for name in fp16_input_names or ()}
    functions = dict(mod.functions.items())
    for gvar, func in mod.functions.items():
        if isinstance(func, Function) and isinstance(func.body, SeqExpr):
            functions[gvar] = _Converter(mod, out_dtype, half).visit_expr(func)
    return mod.with_functions(functions)
