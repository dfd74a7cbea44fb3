"""Modules: what users derive their networks from."""

from __future__ import annotations

from collections.abc import ItemsView, Iterator, KeysView, Mapping, ValuesView
from typing import Any

from tvm import error
from tvm.runtime import Device, NDArray
from tvm.runtime import device as _device
from tvm.runtime.relax_vm import VirtualMachine
from tvm.target import Target

from ...pipeline import get_pipeline
from ...transform import AttachExternModules
from ...vm_build import build
from .core import Component
from .exporter import Exporter
from .spec import ModuleSpec
from .tensor import Parameter
from .torch_module import TorchModule

__all__ = ["Module", "ModuleDict", "ModuleList"]


class Module(Component):
    """A network, or a part of one.

    Parameters, effects and other modules are set as attributes; methods say what is computed of
    tensors, ``forward`` by default.

    >>> class Net(nn.Module):
    ...     def __init__(self):
    ...         self.layer = nn.Linear(4, 2)
    ...
    ...     def forward(self, x):
    ...         return nn.relu(self.layer(x))
    ...
    >>> mod, params = Net().export_tvm({"forward": {"x": nn.spec.Tensor([1, 4], "float32")}})
    """

    def export_tvm(
        self,
        spec: ModuleSpec | Mapping[str, Any],
        debug: bool = False,
        allow_extern: bool = False,
    ) -> Any:
        """Trace methods into functions of a graph module.

        Parameters
        ----------
        spec : for each method what its arguments are, see :mod:`nn.spec`.
        debug : let functions print and call debugging functions, whose order an additional argument
            and result keeps.
        allow_extern : return the modules of other compilers' functions too, which
            ``relax.transform.AttachExternModules`` takes.

        Returns
        -------
        The module, and the parameters by name in the order of its functions' weights; with
        `allow_extern` a list of :class:`ExternModule` behind them.

        Raises
        ------
        ValueError : the network has such modules and `allow_extern` is false.
        """
        module_spec = ModuleSpec.from_raw(spec, self)
        exporter = Exporter(debug)
        mod, params = exporter.build(module_spec)
        externs = exporter.extern_modules(module_spec)
        if externs and not allow_extern:
            raise error.ValueError(
                "`ExternModule`(s) exist when they are not allowed. Turn on flag `allow_extern` to "
                "allow."
            )
        return (mod, params, externs) if allow_extern else (mod, params)

    def jit(
        self,
        spec: ModuleSpec | Mapping[str, Any],
        device: str | Device = "cpu",
        pipeline: str | None = "default_build",
        out_format: str = "torch",
        debug: bool = False,
        target: str | Target | None = None,
    ) -> TorchModule:
        """Compile with the values of the parameters, into something called with tensors of PyTorch.

        Parameters
        ----------
        pipeline : passes before building, see ``relax.get_pipeline``; None for no other than those
            of ``relax.build``.
        out_format : "torch".
        target : by default "llvm" for the processor, else the device's name.

        Raises
        ------
        ValueError : parameters have no values, or there is no such format.
        """
        if out_format != "torch":
            raise error.ValueError(f"Unknown out_format: {out_format}; there is 'torch'")
        where = device if isinstance(device, Device) else _device(device)
        module_spec = ModuleSpec.from_raw(spec, self)
        exporter = Exporter(debug)
        mod, params = exporter.build(module_spec)
        values = _values(params, where)
        if pipeline is not None:
            mod = get_pipeline(pipeline)(mod)
        kind = str(device).partition(":")[0]
        externs = exporter.extern_modules(module_spec)
        if externs:
            mod = AttachExternModules(externs)(mod)
        built = build(mod, target or ("llvm" if kind.startswith("cpu") else kind))
        return TorchModule(module_spec, VirtualMachine(built, where), values)


def _values(params: list[tuple[str, Parameter]], device: Device) -> list[NDArray]:
    missing = [name for name, param in params if param.data is None]
    if missing:
        raise error.ValueError(
            f"Parameters are not set to any concrete values: {', '.join(missing)}; set their `data`"
        )
    return [param.data.copyto(device) for _, param in params if param.data is not None]


class ModuleList(Module):
    """Modules by number."""

    def __init__(self, modules: list[Module]) -> None:
        self.modules = modules

    def __iter__(self) -> Iterator[Module]:
        return iter(self.modules)

    def __getitem__(self, idx: int) -> Module:
        return self.modules[idx]

    def __setitem__(self, idx: int, module: Module) -> None:
        self.modules[idx] = module

    def __len__(self) -> int:
        return len(self.modules)

    def append(self, module: Module) -> None:
        """Add a module behind the others."""
        self.modules.append(module)

    def children(self) -> Iterator[tuple[str, Any]]:
        """The modules, named by their numbers."""
        for i, module in enumerate(self.modules):
            yield str(i), module

    def forward(self, x: Any) -> Any:
        """Apply one after the other."""
        for module in self.modules:
            x = module(x)
        return x


class ModuleDict(Module):
    """Modules by name."""

    def __init__(self, modules: Mapping[str, Module] | None = None) -> None:
        self.modules: dict[str, Module] = dict(modules or {})

    def __iter__(self) -> Iterator[str]:
        return iter(self.modules)

    def __getitem__(self, key: str) -> Module:
        return self.modules[key]

    def __setitem__(self, key: str, module: Module) -> None:
        self.modules[key] = module

    def __contains__(self, key: object) -> bool:
        return key in self.modules

    def __len__(self) -> int:
        return len(self.modules)

    def keys(self) -> KeysView[str]:
        """The names."""
        return self.modules.keys()

    def values(self) -> ValuesView[Module]:
        """The modules."""
        return self.modules.values()

    def items(self) -> ItemsView[str, Module]:
        """Names and modules."""
        return self.modules.items()

    def get(self, key: str, default: Module | None = None) -> Module | None:
        """The module of a name, or `default`."""
        return self.modules.get(key, default)

    def pop(self, key: str) -> Module:
        """Take the module of a name out."""
        return self.modules.pop(key)

    def update(self, modules: Mapping[str, Module]) -> None:
        """Add modules, or replace those of the same names."""
        self.modules.update(modules)

    def clear(self) -> None:
        """Take all modules out."""
        self.modules.clear()

    def children(self) -> Iterator[tuple[str, Any]]:
        """The modules by their names."""
        yield from self.modules.items()
