"""Compiled networks that are called with tensors of PyTorch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tvm import error
from tvm.ir import Array
from tvm.runtime import NDArray, ShapeTuple
from tvm.runtime.ndarray import from_dlpack
from tvm.runtime.relax_vm import VirtualMachine

from . import spec as _spec

__all__ = ["TorchModule"]


class TorchModule:
    """A compiled network: ``module["forward"](tensor)``.

    Effects, such as caches, are kept from call to call.

    Attributes
    ----------
    spec : what its methods take.
    vm : the machine that runs it.
    params : values of its weights.
    """

    def __init__(
        self, spec: _spec.ModuleSpec, vm: VirtualMachine, params: Sequence[NDArray]
    ) -> None:
        self.spec = spec
        self.vm = vm
        self.params = list(params)
        try:
            start = vm["_initialize_effect"]
        except AttributeError:
            start = None
        self.effects: Any = None if start is None else start()

    def __getitem__(self, method_name: str) -> Callable[..., Any]:
        if method_name not in self.spec.method_names:
            raise error.ValueError(
                f"Method `{method_name}` is not found in the module spec. {self.spec}"
            )
        spec = self.spec.method_specs[self.spec.method_names.index(method_name)]
        method = self.vm[method_name]

        def call(*args: Any) -> Any:
            if len(args) != len(spec.arg_names):
                raise error.TypeError(
                    f"Argument length mismatch. Expected {len(spec.arg_names)} arguments, but got "
                    f"{len(args)} arguments. The spec is: {spec}"
                )
            inputs = [
                _from_torch(name, what, value)
                for name, what, value in zip(spec.arg_names, spec.arg_specs, args)
            ]
            if self.effects is None:
                return _to_torch(method(*inputs, *self.params))
            outputs, self.effects = method(*inputs, *self.effects, *self.params)
            return _to_torch(outputs)

        call.__name__ = method_name
        return call


def _from_torch(name: str, what: Any, value: Any) -> Any:
    import torch

    if isinstance(what, _spec.Tensor):
        if not isinstance(value, torch.Tensor):
            raise error.TypeError(
                f"Expected argument `{name}` to be `torch.Tensor`, but got {type(value)}"
            )
        return from_dlpack(value.detach().contiguous())
    if isinstance(what, _spec.Int):
        if not isinstance(value, int):
            raise error.TypeError(f"Expected argument `{name}` to be `int`, but got {type(value)}")
        return ShapeTuple([value])
    if isinstance(what, _spec.Tuple):
        pairs = zip(what.elements, value)
        return [_from_torch(f"{name}[{i}]", item, v) for i, (item, v) in enumerate(pairs)]
    return value


def _to_torch(value: Any) -> Any:
    import torch

    if isinstance(value, NDArray):
        return torch.from_dlpack(value)
    if isinstance(value, ShapeTuple):
        return list(value)
    if isinstance(value, list | tuple | Array):
        return [_to_torch(item) for item in value]
    return value
