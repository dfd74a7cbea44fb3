"""Passes over modules, their context and their composition."""

from __future__ import annotations

import functools
import inspect
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Any

import tvm._ffi
from tvm import error
from tvm.runtime import Object

from . import _ffi_transform_api as _ffi_api
from .instrument import PassInstrument
from .module import IRModule
from .tracing import (
    Trace,
    Tracing,
    TracingInstrument,
    enter,
    leave,
    leaves_its_own_trace,
    tracing_of,
)

__all__ = [
    "ApplyPassToFunction",
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

    def __init__(
        self,
        opt_level: int,
        name: str,
        required: Sequence[str] | None = None,
        traceable: bool = False,
    ) -> None:
        self.__init_handle_by_constructor__(
            _ffi_api.PassInfo, opt_level, name, list(required or ())
        )


@tvm._ffi.register_object("transform.PassContext")
class PassContext(Object):
    """Options of the passes that run inside ``with PassContext(...)``. Scopes nest, per thread.

    Parameters
    ----------
    opt_level : passes of a higher level are left out of a Sequential, unless required.
    required_pass, disabled_pass : names of passes to run or to leave out whatever their level.
    instruments : called around every pass.
    config : options by registered name; see `list_configs`.
    trace : a trace that passes are recorded in while the context is entered, see
        ``relax.transform.tuning_api``.
    trace_stack : several of them, the last one at work, instead.
    make_traceable : names of passes that are recorded; all by default. Passes that are `traceable`
        see to it themselves.
    num_evals : measurements so far.
    tuning_api_database : where tuning passes keep what they measured.

    Raises
    ------
    ValueError : an option no one registered; the message lists those there are.
    TypeError : an option's value has the wrong type, or one text stands for a list of names.
    """

    _tracing: Tracing | None = None

    def __init__(
        self,
        opt_level: int = 2,
        required_pass: Sequence[str] | None = None,
        disabled_pass: Sequence[str] | None = None,
        instruments: Sequence[PassInstrument] | None = None,
        config: Mapping[str, Any] | None = None,
        trace: Trace | None = None,
        trace_stack: Sequence[Trace] | None = None,
        make_traceable: Sequence[str] | None = None,
        num_evals: int = 0,
        tuning_api_database: Any = None,
    ) -> None:
        for label, names in (("required_pass", required_pass), ("disabled_pass", disabled_pass)):
            if isinstance(names, str):
                raise TypeError(f'PassContext: {label} is a list of names; write ["{names}"]')
        traces = [trace] if trace is not None else list(trace_stack or ())
        if traces:
            self._tracing = Tracing(traces, make_traceable, num_evals, tuning_api_database)
            instruments = [*(instruments or ()), TracingInstrument(self._tracing)]
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
        if self._tracing is not None:
            enter(self, self._tracing)
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._tracing is not None:
            leave()
        _ffi_api.ExitPassContext(self)

    def _traces(self) -> Tracing:
        tracing = tracing_of(self)
        if tracing is None:
            raise error.ValueError("PassContext: it has no trace; make it with PassContext(trace=)")
        return tracing

    @property
    def num_evals(self) -> int:
        """How many programs tuning passes have measured in this context."""
        return self._traces().num_evals

    def inc_num_evals(self, num: int) -> None:
        """Count measurements."""
        self._traces().num_evals += num

    def get_tuning_api_database(self) -> Any:
        """Where tuning passes keep what they measured, or None."""
        return self._traces().database

    def get_trace_stack(self) -> list[Trace]:
        """The traces, the last one at work."""
        return list(self._traces().traces)

    def get_trace_stack_size(self) -> int:
        """How many traces there are."""
        return len(self._traces().traces)

    def get_current_trace(self) -> Trace:
        """The trace at work."""
        return self._traces().traces[-1]

    def push_trace(self, trace: Trace) -> None:
        """Record in another trace from now on."""
        self._traces().traces.append(trace)

    def pop_trace(self, return_current: bool = True) -> Trace | None:
        """Take the trace at work off; returns it, or else the one that is at work then."""
        traces = self._traces().traces
        taken = traces.pop()
        if return_current:
            return taken
        return traces[-1] if traces else None

    def override_instruments(self, instruments: Sequence[PassInstrument] | None) -> None:
        """Leave the present instruments and enter others, or none."""
        _ffi_api.OverrideInstruments(self, list(instruments or ()))

    @staticmethod
    def current() -> PassContext:
        """The innermost context of this thread, or the default one."""
        return _ffi_api.GetCurrentPassContext()

    @staticmethod
    def set_default(option: str, value: Any) -> None:
        """The value of an option in contexts made from now on that do not give it, and here.

        ``PassContext.set_default("ir.verify", True)`` has every function checked after every pass.

        Raises
        ------
        ValueError : there is no such option. TypeError : the value has another type.
        """
        _ffi_api.SetDefaultConfig(option, value)

    @staticmethod
    def list_configs() -> dict[str, dict[str, str]]:
        """Registered options by name, each with the ``"type"`` of its value.

        Numbers and truth values are both "IntImm".
        """
        kinds = {"bool": "IntImm", "int": "IntImm"}
        options = _ffi_api.ListConfigs().items()
        return {str(name): {"type": kinds.get(str(kind), str(kind))} for name, kind in options}


@tvm._ffi.register_object("transform.Pass")
class Pass(Object):
    """A function from module to module, with a name."""

    @property
    def info(self) -> PassInfo:
        return _ffi_api.Info(self)

    def __call__(self, mod: IRModule) -> IRModule:
        """Run under the current context. The module given is not changed."""
        return _ffi_api.RunPass(self, mod)

    def __deepcopy__(self, memo: dict[int, Any]) -> Pass:
        """The pass itself, which never changes."""
        return self


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
        traceable: bool = False,
    ) -> None:
        info = PassInfo(opt_level, name, required or ())
        self.__init_handle_by_constructor__(_ffi_api.Sequential, list(passes or ()), info)


def module_pass(
    pass_func: Any = None,
    opt_level: int | None = None,
    name: str | None = None,
    required: Sequence[str] | None = None,
    traceable: bool = False,
) -> Any:
    """A pass from a function ``(IRModule, PassContext) -> IRModule``; usable as a decorator.

    A class is also accepted: its instances are passes, made with the arguments of its constructor
    and run through its method ``transform_module``. Their other attributes are those of the class.

    Parameters
    ----------
    opt_level : a Sequential leaves the pass out below that level of the context; 0 if left out.
    name : by default that of the function.
    required : passes that a Sequential runs before.
    traceable : the pass writes the traces of the context itself.

    >>> @tvm.ir.transform.module_pass(opt_level=1)
    ... def rename(mod, ctx):
    ...     return tvm.IRModule.from_expr(mod["f"], "g")
    """

    def make(target: Any) -> Any:
        info = PassInfo(opt_level or 0, name or target.__name__, required or ())
        if inspect.isclass(target):
            make_pass = _ffi_api.MakeModulePass
            return pass_class(
                target, ModulePass, "transform_module", make_pass, info, traceable=traceable
            )
        run = leaves_its_own_trace(target) if traceable else target
        return _ffi_api.MakeModulePass(run, info)

    return make if pass_func is None else make(pass_func)


def pass_class(
    cls: type,
    base: type[Pass],
    method: str,
    make: Callable[..., Any],
    *info: Any,
    traceable: bool = False,
) -> type[Pass]:
    """The class of passes whose work objects of `cls` do; what these have, the passes have too.

    Parameters
    ----------
    base : what its instances are.
    method : of `cls`, called for each module or function.
    make : global function that makes the pass of a function and `info`.
    traceable : the passes write the traces of the context themselves.
    """

    class PythonPass(base):  # type: ignore[misc, valid-type]
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            worker = cls(*args, **kwargs)

            # The function, not the pass, is what C++ keeps: a bound method would be a cycle.
            def run(*given: Any) -> Any:
                return getattr(worker, method)(*given)

            made = leaves_its_own_trace(run) if traceable else run
            self.__init_handle_by_constructor__(make, made, *info)
            self.worker = worker

        def __getattr__(self, name: str) -> Any:
            if name == "worker":
                raise AttributeError(name)
            return getattr(self.worker, name)

    for attribute in ("__name__", "__qualname__", "__doc__", "__module__"):
        setattr(PythonPass, attribute, getattr(cls, attribute))
    return PythonPass


def pass_decorator(
    pass_of: Callable[[Callable[..., Any], str], Pass], method: str, name: str | None
) -> Callable[[Any], Any]:
    """What makes passes of functions, or makers of passes of classes with a method.

    Parameters
    ----------
    pass_of : makes a pass of a function and a name.
    name : by default that of the function or class.
    """

    def make(target: Any) -> Any:
        pass_name = name or target.__name__
        if not inspect.isclass(target):
            return pass_of(target, pass_name)

        @functools.wraps(target, updated=())
        def create(*args: Any, **kwargs: Any) -> Pass:
            worker: Any = target(*args, **kwargs)
            return pass_of(getattr(worker, method), pass_name)

        return create

    return make


def ApplyPassToFunction(
    transform: Pass, func_name_regex: str, error_if_no_function_matches_regex: bool = False
) -> Pass:
    """A pass that runs `transform` on a module of only those functions whose whole name matches.

    What `transform` does to them, adds or removes is then taken over into the module.

    Raises
    ------
    ValueError : no name matches and `error_if_no_function_matches_regex` is set.
    """
    pattern = re.compile(func_name_regex)

    def apply(mod: IRModule, ctx: PassContext) -> IRModule:
        chosen = {
            var: func for var, func in mod.functions.items() if pattern.fullmatch(var.name_hint)
        }
        if not chosen:
            if error_if_no_function_matches_regex:
                names = ", ".join(var.name_hint for var in mod.get_global_vars())
                raise error.ValueError(
                    f"ApplyPassToFunction: no function matches {func_name_regex!r}; "
                    f"the functions are: {names or '(none)'}"
                )
            return mod
        changed = transform(IRModule(chosen))
        result = mod.clone()
        for var in chosen:
            if var not in changed:
                del result[var]
        result.update(changed)
        return result

    info = PassInfo(0, "ApplyPassToFunction")
    return _ffi_api.MakeModulePass(apply, info)


def PrintIR(header: str = "", show_meta_data: bool = False) -> Pass:
    """A pass that prints the module to stderr under a heading and returns it unchanged.

    Parameters
    ----------
    header : the heading.
    show_meta_data : print what texts leave out as well, see `Scriptable.script`.
    """
    if not show_meta_data:
        return _ffi_api.PrintIR(header)

    def show(mod: IRModule, ctx: PassContext) -> IRModule:
        print(f"PrintIR({header})\n{mod.script(show_meta=True)}", file=sys.stderr)
        return mod

    return module_pass(show, opt_level=0, name="PrintIR")
