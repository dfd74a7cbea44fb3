"""Calls that describe a graph function."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tvm import error, relax
from tvm.ir import RelayExpr
from tvm.ir.function import attribute_value
from tvm.script.relax_names import value as graph_value
from tvm.script.relax_types import info_of

from ..base import IRBuilder
from .frames import BindingBlockFrame, BranchFrame, FunctionFrame, IfFrame

__all__ = [
    "Else",
    "If",
    "Then",
    "arg",
    "dataflow",
    "emit",
    "emit_match_cast",
    "emit_te",
    "emit_var_binding",
    "func_attr",
    "func_name",
    "func_ret_struct_info",
    "func_ret_value",
    "function",
    "output",
]


def function(is_pure: bool = True, is_private: bool = False) -> FunctionFrame:
    """A graph function, for a ``with``.

    >>> with IRBuilder() as builder, R.function():
    ...     R.func_name("main")
    ...     x = R.arg("x", R.Tensor((4, 8), "float32"))
    ...     with R.dataflow() as block:
    ...         R.output(R.emit(R.nn.relu(x)))
    ...     R.func_ret_value(block.output_vars[0])
    >>> builder.get()

    Parameters
    ----------
    is_pure : calls of it have no effects.
    is_private : it gets no global symbol.
    """
    return FunctionFrame(is_pure, is_private)


def _function(what: str) -> FunctionFrame:
    frame = IRBuilder.current().find(FunctionFrame)
    if frame is None:
        raise error.ValueError(f"{what} belongs to a function; open `with R.function():` around")
    return frame


def _info(what: str, struct_info: Any) -> relax.StructInfo:
    info = info_of(struct_info)
    if not isinstance(info, relax.StructInfo):
        raise error.TypeError(
            f'{what}: the type of a graph value is needed, such as R.Tensor((1, 8), "float32"), '
            f"not {struct_info!r}"
        )
    return info


def arg(name: str, struct_info: Any) -> relax.Var:
    """A parameter."""
    frame = _function("R.arg")
    param = relax.Var(name, _info("R.arg", struct_info))
    frame.params.append(param)
    # Extents of parameters are known in the function.
    frame.builder.end_scope()
    frame.builder.begin_scope(frame.params)
    return param


def func_name(name: str) -> None:
    """The name of the function."""
    frame = _function("R.func_name")
    if frame.name is not None:
        raise error.ValueError(f"the function has the name `{frame.name}` already")
    frame.name = name


def func_attr(attrs: Mapping[str, Any]) -> None:
    """Attributes of the function."""
    frame = _function("R.func_attr")
    if frame.attrs is not None:
        raise error.ValueError("the attributes of the function are given twice")
    for name in attrs:
        if not isinstance(name, str):
            raise error.TypeError(f"R.func_attr: a text is needed here, not {name!r}")
    frame.attrs = {name: attribute_value(value) for name, value in attrs.items()}


def func_ret_struct_info(ret_sinfo: Any) -> None:
    """What is known of the function's result; what its value says by default."""
    frame = _function("R.func_ret_struct_info")
    if frame.ret_struct_info is not None:
        raise error.ValueError("the type of the result is given twice")
    frame.ret_struct_info = _info("R.func_ret_struct_info", ret_sinfo)


def func_ret_value(value: Any) -> None:
    """The function's result, which stands behind its last block."""
    frame = _function("R.func_ret_value")
    if frame.output is not None:
        raise error.ValueError("a function has one result; R.func_ret_value was called before")
    if IRBuilder.current().frames[-1] is not frame:
        raise error.ValueError("R.func_ret_value stands in the function itself, not in a block")
    builder = frame.builder
    frame.output = builder.normalize_argument(builder.normalize(graph_value(value)))


def emit(value: Any, annotate_struct_info: Any = None) -> relax.Var:
    """A variable that is bound to a value; nested calls get variables of their own.

    Parameters
    ----------
    annotate_struct_info : what is known of the value, if that is not what it says itself.
    """
    frame = _emitting("R.emit")
    if annotate_struct_info is None:
        return frame.builder.emit(graph_value(value))
    normal = frame.builder.normalize(graph_value(value))
    info = _info("R.emit", annotate_struct_info)
    return _put(frame, normal, info)


def _put(frame: FunctionFrame, value: RelayExpr, info: relax.StructInfo) -> relax.Var:
    local = frame.builder.current_block_is_dataflow()
    name = frame.builder.get_unique_name("lv" if local else "gv")
    var = (relax.DataflowVar if local else relax.Var)(name, info)
    frame.builder.emit_normalized(relax.VarBinding(var, value))
    return var


def _emitting(what: str) -> FunctionFrame:
    frame = _function(what)
    if isinstance(IRBuilder.current().frames[-1], IfFrame):
        raise error.ValueError(f"{what}: open `with R.Then():` or `with R.Else():` in R.If")
    if frame.output is not None:
        raise error.ValueError(f"{what}: nothing follows the result of a function")
    return frame


def emit_te(func: Callable[..., Any], *args: Any, **kwargs: Any) -> relax.Var:
    """The result of a te function, which becomes a kernel of the module; see
    :meth:`tvm.relax.BlockBuilder.emit_te`."""
    return _emitting("R.emit_te").builder.emit_te(func, *args, **kwargs)


def emit_match_cast(value: Any, struct_info: Any) -> relax.Var:
    """A variable of which more is known than of its value; that is checked when it runs."""
    frame = _emitting("R.emit_match_cast")
    return frame.builder.match_cast(graph_value(value), _info("R.emit_match_cast", struct_info))


def emit_var_binding(value: relax.VarBinding) -> relax.Var:
    """Add a binding that was made elsewhere; its variable."""
    frame = _emitting("R.emit_var_binding")
    if not isinstance(value, relax.VarBinding):
        raise error.TypeError(f"R.emit_var_binding: a VarBinding is needed, not {value!r}")
    normal = frame.builder.normalize(value.value)
    frame.builder.emit_normalized(relax.VarBinding(value.var, normal))
    return value.var


def dataflow() -> BindingBlockFrame:
    """A block of bindings without effects, for a ``with``; it ends with :func:`output`."""
    return BindingBlockFrame(_emitting("R.dataflow"))


def output(*vars: relax.Var) -> None:
    """The values of a dataflow block that are seen behind it."""
    frame = IRBuilder.current().find(BindingBlockFrame)
    if frame is None:
        raise error.ValueError("R.output ends a dataflow block; open `with R.dataflow():` around")
    if frame.output_vars is not None:
        raise error.ValueError("a dataflow block has one R.output")
    for var in vars:
        if not isinstance(var, relax.Var):
            raise error.TypeError(f"R.output takes variables that the block has emitted, not {var}")
    frame.output_vars = list(vars)
    frame.function.outputs.update(vars)


def If(condition: Any) -> IfFrame:
    """A conditional, for a ``with``; in it stand one :func:`Then` and one :func:`Else`."""
    frame = _emitting("R.If")
    builder = frame.builder
    return IfFrame(builder.normalize_argument(builder.normalize(graph_value(condition))), frame)


def _choice(what: str) -> IfFrame:
    frames = IRBuilder.current().frames
    if not frames or not isinstance(frames[-1], IfFrame):
        raise error.ValueError(f"{what} stands in a conditional; open `with R.If(cond):` around")
    return frames[-1]


def Then() -> BranchFrame:
    """The bindings where the condition holds, for a ``with``."""
    return BranchFrame("Then", _choice("R.Then"))


def Else() -> BranchFrame:
    """The bindings where it does not, for a ``with``."""
    return BranchFrame("Else", _choice("R.Else"))
