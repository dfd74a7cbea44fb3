"""From the methods of a network to the functions of a graph module."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from tvm import error, tir
from tvm.ir import IRModule, RelayExpr

from ...analysis import well_formed
from ...block_builder import BlockBuilder
from ...expr import Tuple, TupleGetItem, Var
from ...struct_info import ObjectStructInfo, ShapeStructInfo, TupleStructInfo
from . import spec as _spec
from .core import Effect, find_attributes
from .effects import IOEffect
from .extern import ExternModule
from .tensor import Object, Parameter, Tensor

__all__ = ["Exporter", "add_extern"]

Named = list[tuple[str, Any]]


class _Extents:
    """Symbolic extents by name: one variable for each."""

    def __init__(self) -> None:
        self._known: dict[str, tir.Var] = {}

    def __call__(self, extent: Any) -> Any:
        if isinstance(extent, tir.Var):
            extent = extent.name
        if isinstance(extent, str):
            return self._known.setdefault(extent, tir.Var(extent, "int64"))
        return extent


class Exporter:
    """Traces methods, which operators and effects reach through :meth:`current`.

    Parameters
    ----------
    debug : whether functions hand on an effect for printing and debugging calls.
    """

    _active: ClassVar[list[Exporter]] = []

    def __init__(self, debug: bool) -> None:
        self.builder = BlockBuilder()
        self.io_effect = IOEffect() if debug else None
        self._added: list[ExternModule] = []

    @staticmethod
    def current() -> Exporter:
        """The exporter at work.

        Raises
        ------
        RuntimeError : none is.
        """
        if not Exporter._active:
            raise error.RuntimeError("nn: no network is being exported; call Module.export_tvm")
        return Exporter._active[-1]

    def build(self, spec: _spec.ModuleSpec) -> tuple[IRModule, list[tuple[str, Parameter]]]:
        """The module, and the parameters in the order of its functions' weights."""
        params = list(find_attributes(spec.module, "", lambda item: isinstance(item, Parameter)))
        effects: Named = [] if self.io_effect is None else [("", self.io_effect)]
        effects += find_attributes(spec.module, "", lambda item: isinstance(item, Effect))
        exprs = [param._expr for _, param in params]
        Exporter._active.append(self)
        try:
            if effects:
                self._emit_effects(effects)
            for name, method in zip(spec.method_names, spec.method_specs):
                self._emit_method(name, method, params, effects)
        finally:
            Exporter._active.pop()
            # What methods saw were the variables of their functions.
            for (_, param), expr in zip(params, exprs):
                param._expr = expr
        mod = self.builder.finalize()
        assert well_formed(mod)
        return mod, params

    def add_extern(self, module: ExternModule) -> None:
        """Have one more module of other compilers' functions linked into the network's library."""
        self._added.append(module)

    def extern_modules(self, spec: _spec.ModuleSpec) -> list[ExternModule]:
        """The modules of other compilers' functions in the network, and added ones, each once."""
        found = find_attributes(spec.module, "", lambda item: isinstance(item, ExternModule))
        modules = [module for _, module in found] + self._added
        return list({id(module): module for module in modules}.values())

    def _emit_effects(self, effects: Named) -> None:
        builder = self.builder
        with builder.function("_initialize_effect", []):
            with builder.dataflow():
                first = [v for name, effect in effects for v in effect.emit_init(name, builder)]
                output = builder.emit_output(builder.emit(Tuple(first)))
            builder.emit_func_output(output)

    def _emit_method(
        self, name: str, method: _spec.MethodSpec, params: Named, effects: Named
    ) -> None:
        builder = self.builder
        n_effects = {"plain": len(effects), "packed": 1, "none": 0}[method.effect_mode]
        attrs = {"num_input": len(method.arg_specs) + n_effects}
        with builder.function(name, attrs=attrs):
            with builder.dataflow():
                extents = _Extents()
                given = [
                    _input(arg, what, extents)
                    for arg, what in zip(method.arg_names, method.arg_specs)
                ]
                inputs = [var for var, _ in given]
                inputs += self._effects(effects, method.effect_mode)
                inputs += self._params(params, method.param_mode)
                arguments = [
                    self._fields(var, value) if isinstance(value, _spec.Tuple) else value
                    for var, value in given
                ]
                output = _result(method.method(*arguments))
                states = [state for _, effect in effects for state in effect.finalize()]
                if states and method.effect_mode != "none":
                    output = Tuple([output, Tuple(states)])
                output = builder.emit_output(output)
            builder.emit_func_output(output, inputs)

    def _fields(self, var: Var, value: Any) -> Any:
        """What a method gets for a tuple: the same structure of its fields."""
        if not isinstance(value, _spec.Tuple):
            return Tensor(_expr=var) if isinstance(value, Tensor) else value
        fields = [
            self._fields(self.builder.emit(TupleGetItem(var, i), f"{value.name}_{i}"), element)
            for i, element in enumerate(value.elements)
        ]
        return type(value.elements)(fields)

    def _params(self, params: Named, mode: str) -> list[Var]:
        """Let parameters stand for new variables, and return those of the function."""
        extents = _Extents()
        inputs = []
        for name, param in params:
            shape = [extents(extent) for extent in param.shape]
            param._expr = Tensor.placeholder(shape, param.dtype, name)._expr
            inputs.append(param._expr)
        if mode == "packed":
            packed = Var("packed_params", TupleStructInfo([v.struct_info for v in inputs]))
            for i, (name, param) in enumerate(params):
                param._expr = self.builder.emit(TupleGetItem(packed, i), name)
            return [packed]
        return inputs if mode == "plain" else []

    def _effects(self, effects: Named, mode: str) -> list[Var]:
        """Let effects begin with new variables, and return those of the function."""
        states = [effect.create(name) for name, effect in effects]
        inputs = [var for state in states for var in state]
        if mode == "packed":
            packed = Var("packed_effects", TupleStructInfo([v.struct_info for v in inputs]))
            fields = iter(range(len(inputs)))
            states = [
                [
                    self.builder.emit(TupleGetItem(packed, next(fields)), var.name_hint)
                    for var in state
                ]
                for state in states
            ]
            inputs = [packed]
        for (_, effect), state in zip(effects, states):
            effect.set_state(state)
        return inputs if mode != "none" else []


def _input(name: str, what: Any, extents: _Extents) -> tuple[Var, Any]:
    """The parameter of a function for an argument, and what the method gets."""
    if isinstance(what, _spec.Int):
        size = extents(name)
        return Var(name, ShapeStructInfo([size])), size
    if isinstance(what, _spec.Tensor):
        tensor = Tensor.placeholder([extents(e) for e in what.shape], what.dtype, name)
        return tensor._expr, tensor
    if isinstance(what, _spec.Object):
        var = Var(name, ObjectStructInfo())
        return var, what.object_type(_expr=var, _name=name)
    fields = [_input(f"{name}_{i}", item, extents) for i, item in enumerate(what.elements)]
    info = TupleStructInfo([var.struct_info for var, _ in fields])
    return Var(name, info), _spec.Tuple(name, type(what.elements)(v for _, v in fields))


def _result(value: Any) -> RelayExpr:
    if isinstance(value, Tensor | Object):
        return value._expr
    if isinstance(value, Sequence) and not isinstance(value, str):
        return Tuple([_result(item) for item in value])
    if isinstance(value, RelayExpr):
        return value
    raise error.TypeError(
        f"nn: a method gives tensors, or tuples and lists of them, got {type(value)}"
    )


def add_extern(mod: ExternModule) -> None:
    """Link a module of other compilers' functions into the library of the network at work.

    For methods that call its functions by name (`nn.op.extern`), while they are traced.

    Raises
    ------
    RuntimeError : no network is being exported.
    """
    Exporter.current().add_extern(mod)
