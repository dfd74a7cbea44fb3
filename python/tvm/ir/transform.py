"""Passes over modules, their context and their composition."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Any

import tvm._ffi
from tvm.runtime import Object

from . import _ffi_transform_api as _ffi_api
from .instrument import PassInstrument
from .module import IRModule

__all__ = [
    "ModulePass",
    "Pass",
    "PassContext",
    "PassInfo",
    "PrintIR",
    "Sequential",
    "module_pass",
]


@tvm._ffi.register_object("transform.PassInfo")
class PassInfo(Object):
    """Level, name and required passes of a pass."""

    def __init__(self, opt_level: int, name: str, required: Sequence[str] = ()) -> None:
        self.__init_handle_by_constructor__(_ffi_api.PassInfo, opt_level, name, list(required))


@tvm._ffi.register_object("transform.PassContext")
class PassContext(Object):
    """Options of the passes that run inside ``with PassContext(...)``. Scopes nest, per thread.

    Parameters
    ----------
    opt_level : passes of a higher level are left out of a Sequential, unless required.
    required_pass, disabled_pass : names of passes to run or to leave out whatever their level.
    instruments : called around every pass.
    config : options by registered name; see `list_configs`.

    Raises
    ------
    ValueError : an option no one registered; the message lists those there are.
    TypeError : an option's value has the wrong type.
    """

    def __init__(
        self,
        opt_level: int = 2,
        required_pass: Sequence[str] | None = None,
        disabled_pass: Sequence[str] | None = None,
        instruments: Sequence[PassInstrument] | None = None,
        config: Mapping[str, Any] | None = None,
    ) -> None:
        self.__init_handle_by_constructor__(
            _ffi_api.PassContext,
            opt_level,
            list(required_pass or ()),
            list(disabled_pass or ()),
            list(instruments or ()),
            dict(config or {}),
        )

    def __enter__(self) -> PassContext:
        _ffi_api.EnterPassContext(self)
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        _ffi_api.ExitPassContext(self)

    def override_instruments(self, instruments: Sequence[PassInstrument]) -> None:
        """Leave the present instruments and enter others."""
        _ffi_api.OverrideInstruments(self, list(instruments))

    @staticmethod
    def current() -> PassContext:
        """The innermost context of this thread, or the default one."""
        return _ffi_api.GetCurrentPassContext()

    @staticmethod
    def list_configs() -> dict[str, str]:
        """Registered options: type by name."""
        return dict(_ffi_api.ListConfigs().items())


@tvm._ffi.register_object("transform.Pass")
class Pass(Object):
    """A function from module to module, with a name."""

    @property
    def info(self) -> PassInfo:
        return _ffi_api.Info(self)

    def __call__(self, mod: IRModule) -> IRModule:
        """Run under the current context. The module given is not changed."""
        return _ffi_api.RunPass(self, mod)


@tvm._ffi.register_object("transform.ModulePass")
class ModulePass(Pass):
    """A pass made of a function over whole modules; see `module_pass`."""


@tvm._ffi.register_object("transform.Sequential")
class Sequential(Pass):
    """Passes in order. Those disabled, or of a higher level than the context's, are left out."""

    def __init__(
        self,
        passes: Sequence[Pass] | None = None,
        opt_level: int = 0,
        name: str = "sequential",
        required: Sequence[str] | None = None,
    ) -> None:
        info = PassInfo(opt_level, name, required or ())
        self.__init_handle_by_constructor__(_ffi_api.Sequential, list(passes or ()), info)


def module_pass(
    pass_func: Any = None,
    opt_level: int = 0,
    name: str | None = None,
    required: Sequence[str] = (),
) -> Any:
    """A pass from a function ``(IRModule, PassContext) -> IRModule``; usable as a decorator.

    A class is also accepted: its instances are passes, made with the arguments of its constructor
    and run through its method ``transform_module``.

    >>> @tvm.ir.transform.module_pass(opt_level=1)
    ... def rename(mod, ctx):
    ...     return tvm.IRModule.from_expr(mod["f"], "g")
    """

    def make(target: Any) -> Any:
        info = PassInfo(opt_level, name or target.__name__, required)
        if inspect.isclass(target):
            return _pass_class(target, info)
        return _ffi_api.MakeModulePass(target, info)

    return make if pass_func is None else make(pass_func)


def _pass_class(cls: type, info: PassInfo) -> Callable[..., Pass]:
    def create(*args: Any, **kwargs: Any) -> Pass:
        instance = cls(*args, **kwargs)
        return _ffi_api.MakeModulePass(instance.transform_module, info)

    create.__name__ = cls.__name__
    create.__doc__ = cls.__doc__
    return create


def PrintIR(header: str = "") -> Pass:
    """A pass that prints the module to stderr under a heading and returns it unchanged."""
    return _ffi_api.PrintIR(header)
