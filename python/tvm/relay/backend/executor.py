"""How a program is run, as builds are asked for it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tvm import error
from tvm._ffi import register_object
from tvm.runtime import Object

from .. import _ffi_api

__all__ = ["Executor", "Runtime"]


def _checked(kind: str, options: Mapping[str, Any] | None, known: Mapping[str, Any]) -> dict:
    """Options, which have to be known and to say what builds do."""
    given = dict(options or {})
    for name, value in given.items():
        if name not in known:
            raise error.ValueError(
                f"relay: {kind} has no option '{name}'; it has {', '.join(sorted(known))}"
            )
        does, why = known[name]
        if value != does:
            raise error.ValueError(
                f"relay: {kind}: {name}={value!r} is not possible: {why}; leave the option out"
            )
    return given


_LINKED = (True, "parameters are part of the library, whose inputs p0, p1, ... replace them")
_NO_SYSTEM_LIBRARY = (False, "libraries are written by export_library and read by load_module")


_PACKED = (
    "packed",
    'functions take arrays; for programs in C, `tvm.build(target="c")` writes kernels as source',
)
_NOT_UNPACKED = (
    False,
    'functions take arrays; for programs in C, `tvm.build(target="c")` writes kernels as source',
)
_OPTIONS: dict[str, dict[str, Any]] = {
    "graph": {"link-params": _LINKED},
    "aot": {"link-params": _LINKED, "interface-api": _PACKED, "unpacked-api": _NOT_UNPACKED},
}


@register_object("Executor")
class Executor(Object):
    """The kind of executor, "graph" or "aot".

    Libraries of both hold the list of calls compiled, and the parameters. Those for "aot" are run
    by `tvm.runtime.executor.AotModule`.

    Parameters
    ----------
    options : "link-params", which is true; for "aot" also "interface-api", which is "packed", and
        "unpacked-api", which is false.

    Raises
    ------
    ValueError : another kind, an option that there is not, or a value that builds cannot follow.
    """

    def __init__(self, name: str, options: Mapping[str, Any] | None = None) -> None:
        if name not in _OPTIONS:
            raise error.ValueError(
                f"relay: the executors are {', '.join(sorted(_OPTIONS))}; there is no '{name}'"
            )
        checked = _checked(f"executor {name}", options, _OPTIONS[name])
        self.__init_handle_by_constructor__(_ffi_api.Executor, name, checked)

    def __getitem__(self, name: str) -> Any:
        """An option, None if it is not given."""
        return self.attrs.get(name)


@register_object("Runtime")
class Runtime(Object):
    """The runtime that libraries are linked with, which is the C++ one.

    Parameters
    ----------
    options : "system-lib", which is false.

    Raises
    ------
    ValueError : another one, an option that there is not, or a value that builds cannot follow.
    """

    def __init__(self, name: str, options: Mapping[str, Any] | None = None) -> None:
        if name != "cpp":
            raise error.ValueError(f'relay: libraries are for the runtime "cpp", got "{name}"')
        checked = _checked(f"runtime {name}", options, {"system-lib": _NO_SYSTEM_LIBRARY})
        self.__init_handle_by_constructor__(_ffi_api.Runtime, name, checked)

    def __getitem__(self, name: str) -> Any:
        """An option, None if it is not given."""
        return self.attrs.get(name)
