"""Import of graphs of ``torch.fx``, as ``torch.fx.symbolic_trace`` makes them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import fx

import tvm
from tvm import error
from tvm.ir import IRModule, RelayExpr
from tvm.relax import BlockBuilder, TensorStructInfo, Tuple, Var, const

from . import fx_functions, fx_modules
from .fx_node import FxNode

__all__ = ["from_fx"]

Converter = Callable[[FxNode], RelayExpr]


def from_fx(
    model: fx.GraphModule,
    input_info: Sequence[tuple[Sequence[Any], str]],
    *,
    keep_params_as_input: bool = False,
    unwrap_unit_return_tuple: bool = False,
    no_bind_return_tuple: bool = False,
    custom_convert_map: Mapping[Any, Converter] | None = None,
) -> IRModule:
    """A traced PyTorch module as a graph function ``main``.

    Parameters
    ----------
    input_info : shape and element type of each input. Extents may be symbolic.
    keep_params_as_input : whether parameters are inputs, behind the others, instead of constants.
        Their values are the attribute "params" then (see ``relax.frontend.detach_params``).
    unwrap_unit_return_tuple : whether a tuple of one result is returned as that result.
    no_bind_return_tuple : whether the fields of a tuple are outputs, not the tuple.
    custom_convert_map : converters of one's own, which go before others: by the class of a module,
        a function, or the name of a function or method. Each gets an ``FxNode`` and returns the
        value.

    Raises
    ------
    ValueError : an operation is not supported, or the number of inputs is wrong.
    """
    importer = _Importer(model, keep_params_as_input, custom_convert_map or {})
    return importer.run(input_info, unwrap_unit_return_tuple, no_bind_return_tuple)


# Python's assignments with an operator, which tensors carry out in place.
_IN_PLACE = frozenset(("iadd", "isub", "imul", "itruediv", "ifloordiv", "ipow"))


class _Importer:
    def __init__(
        self, model: fx.GraphModule, keep_params: bool, custom: Mapping[Any, Converter]
    ) -> None:
        self.model = model
        self.builder = BlockBuilder()
        self.modules = dict(model.named_modules())
        self.values: dict[fx.Node, Any] = {}
        self.keep_params = keep_params
        self.custom = custom
        self.params: dict[int, RelayExpr] = {}
        self._kept: list[torch.Tensor] = []
        self._inputs: list[Var] = []
        self._param_values: list[tvm.nd.NDArray] = []

    def run(
        self, input_info: Sequence[tuple[Sequence[Any], str]], unwrap: bool, spread: bool
    ) -> IRModule:
        """The module."""
        self._inputs = [
            Var(f"inp_{k}", TensorStructInfo(list(shape), dtype))
            for k, (shape, dtype) in enumerate(input_info)
        ]
        attrs: dict[str, Any] = {}
        inputs = list(self._inputs)
        if self.keep_params:
            attrs["num_input"] = len(inputs)
            for name, param in sorted(self.model.named_parameters()):
                inputs.append(self._parameter(name, param))
            attrs["params"] = self._param_values
        with self.builder.function("main", inputs, attrs):
            with self.builder.dataflow():
                result = self._graph(unwrap, spread)
            self.builder.emit_func_output(result)
        return self.builder.get()

    def _parameter(self, name: str, param: torch.Tensor) -> Var:
        value = tvm.nd.array(param.detach().cpu().numpy())
        var = Var(name.replace(".", "_"), TensorStructInfo(value.shape, str(value.dtype)))
        self.params[id(param)] = var
        self._param_values.append(value)
        return var

    def tensor(self, value: torch.Tensor) -> RelayExpr:
        """A tensor of the module: an input, or a constant that all its readers share."""
        if id(value) not in self.params:
            array = value.detach().cpu().numpy()
            self.params[id(value)] = const(array, str(array.dtype))
            # The number of a tensor that is gone may be that of another one.
            self._kept.append(value)
        return self.params[id(value)]

    def _graph(self, unwrap: bool, spread: bool) -> RelayExpr:
        pending = iter(self._inputs)
        for node in self.model.graph.nodes:
            if node.op == "placeholder":
                value = next(pending, None)
                if value is None:
                    raise error.ValueError(
                        f"from_fx: input_info has {len(self._inputs)} inputs, the graph more"
                    )
                self.values[node] = value
            elif node.op == "output":
                return self._output(self._retrieve(node.args[0]), unwrap, spread)
            elif node.op == "get_attr":
                self.values[node] = self.tensor(_attribute(self.model, str(node.target)))
            else:
                self.values[node] = self._convert(node)
                changed = self._changed(node)
                if changed is not None:
                    # Whoever reads the operand from now on sees what was written into it.
                    self.values[changed] = self.values[node]
        raise error.ValueError("from_fx: the graph has no output")

    def _changed(self, node: fx.Node) -> fx.Node | None:
        """The operand that a node writes its result into; None for most."""
        if node.op == "call_module":
            in_place = getattr(self.modules[str(node.target)], "inplace", False)
        elif node.op == "call_method":
            name = str(node.target)
            in_place = name.endswith("_") and not name.endswith("__")
        else:
            name = str(getattr(node.target, "__name__", ""))
            in_place = name in _IN_PLACE or (name.endswith("_") and not name.endswith("__"))
        if not in_place and node.kwargs.get("inplace") is not True:
            return None
        operand = node.args[0] if node.args else node.kwargs.get("input")
        return operand if isinstance(operand, fx.Node) else None

    def _retrieve(self, arg: Any) -> Any:
        if isinstance(arg, fx.Node):
            return self.values[arg]
        if isinstance(arg, (tuple, list)):
            return type(arg)(self._retrieve(item) for item in arg)
        return arg

    def _output(self, result: Any, unwrap: bool, spread: bool) -> RelayExpr:
        several = isinstance(result, (tuple, list))
        if several and unwrap and len(result) == 1:
            result, several = result[0], False
        if several and spread:
            return Tuple([self.builder.emit_output(item) for item in result])
        if several:
            return self.builder.emit_output(Tuple([_value(item) for item in result]))
        return self.builder.emit_output(result)

    def _convert(self, node: fx.Node) -> Any:
        module = self.modules[str(node.target)] if node.op == "call_module" else None
        view = FxNode(
            node, self.builder, [self._retrieve(a) for a in node.args],
            {k: self._retrieve(v) for k, v in node.kwargs.items()}, module, self.tensor,
        )  # fmt: skip
        converter = self._converter(node, module)
        return converter(view)

    def _converter(self, node: fx.Node, module: torch.nn.Module | None) -> Converter:
        if module is not None:
            found = self.custom.get(type(module)) or fx_modules.CONVERTERS.get(type(module))
            what = f"module {type(module).__name__} ('{node.target}')"
        else:
            target: Any = node.target
            name = target if isinstance(target, str) else target.__name__
            found = (
                self.custom.get(target)
                or self.custom.get(name)
                or fx_functions.CONVERTERS.get(name)
            )
            kind = "method" if node.op == "call_method" else "function"
            what = f"{kind} {name} (node '{node.name}')"
        if found is None:
            raise error.ValueError(
                f"from_fx: the {what} is not supported; give a converter in custom_convert_map"
            )
        return found


def _value(item: Any) -> RelayExpr:
    return item if isinstance(item, RelayExpr) else const(item)


def _attribute(model: torch.nn.Module, path: str) -> torch.Tensor:
    found: Any = model
    for part in path.split("."):
        found = getattr(found, part)
    return found
