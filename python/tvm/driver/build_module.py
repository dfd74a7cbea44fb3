"""Lowering and building: from a schedule, a function or a module to a runtime module."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tvm import te, tir
from tvm.ir import IRModule
from tvm.runtime import Module
from tvm.runtime.container import Array
from tvm.target import Target

from . import _ffi_api

__all__ = [
    "build",
    "build_passes",
    "device_build",
    "form_irmodule",
    "get_binds",
    "lower",
    "lower_passes",
    "prepare",
    "schedule_to_module",
    "split_dev_host_funcs",
]

Source = te.Schedule | tir.PrimFunc | IRModule | Sequence[tir.PrimFunc | IRModule]


def get_binds(
    args: Sequence[Any], compact: bool = False, binds: Mapping[te.Tensor, Any] | None = None
) -> tuple[dict[te.Tensor, Any], list[Any]]:
    """Buffers for the tensors of an argument list.

    Parameters
    ----------
    args : tensors, buffers and variables, one per parameter.
    compact : whether buffers are row-major without gaps; otherwise their strides are variables
        that take the values of the array passed.
    binds : buffers already chosen; returned as they are.

    Returns
    -------
    The complete table of buffers, and the argument list with buffers in place of tensors.
    """
    table = dict(binds or {})
    arg_list: list[Any] = []
    for arg in args:
        if isinstance(arg, te.Tensor):
            if arg not in table:
                strides = (
                    None if compact else [te.var(f"{arg.name}.stride{i}") for i in range(arg.ndim)]
                )
                table[arg] = tir.decl_buffer(arg.shape, arg.dtype, arg.name, strides=strides)
            arg_list.append(table[arg])
        elif isinstance(arg, (tir.Buffer, tir.Var)):
            arg_list.append(arg)
        else:
            raise TypeError(
                f"lower: args must be tensors, buffers and variables, got {type(arg).__name__}"
            )
    return table, arg_list


def schedule_to_module(
    sch: te.Schedule,
    args: Sequence[Any],
    name: str = "main",
    binds: Mapping[te.Tensor, Any] | None = None,
) -> IRModule:
    """Loop nest of a schedule as the function ``name``, before any pass.

    Raises
    ------
    ScheduleError : the schedule is not consistent. ValueError : a tensor that the program reads is
        missing from ``args``.
    """
    if not isinstance(sch, te.Schedule):
        raise TypeError(f"form_irmodule: expected a Schedule, got {type(sch).__name__}")
    return _ffi_api.ScheduleToModule(sch, list(args), name, dict(binds or {}))


form_irmodule = schedule_to_module


def lower_passes(simple_mode: bool = False) -> list[Any]:
    """The passes :func:`lower` applies in the present pass context and target, in order."""
    return list(_ffi_api.LowerPasses(simple_mode))


def lower(
    inp: te.Schedule | tir.PrimFunc | IRModule,
    args: Sequence[Any] | None = None,
    name: str = "main",
    binds: Mapping[te.Tensor, Any] | None = None,
    simple_mode: bool = False,
) -> IRModule:
    """Lowered module of a schedule, a function or a module.

    Parameters
    ----------
    inp : what to lower.
    args : for a schedule: a Tensor, Buffer or Var per parameter, in order. A function has
        parameters of its own; as many may be given again.
    name : of the resulting function, for a schedule or a function.
    binds : buffers to use for tensors of ``args``.
    simple_mode : for reading: every loop stands once, without the segments of LoopPartition. Before
        any pass, buffers still have their axes: see :func:`form_irmodule`.

    Raises
    ------
    ValueError : a schedule without args, or a tensor missing from them. ScheduleError : the
        schedule is not consistent.

    Examples
    --------
    >>> import tvm
    >>> from tvm import te
    >>> A = te.placeholder((8,), name="A")
    >>> B = te.compute((8,), lambda i: A[i] * 2.0, name="B")
    >>> mod = tvm.lower(te.create_schedule(B.op), [A, B], name="double", simple_mode=True)
    >>> mod["double"].body.extent.value
    8
    """
    if isinstance(inp, te.Schedule):
        if args is None:
            raise ValueError(
                "lower: args are required for a schedule; pass its input and output tensors"
            )
        return _ffi_api.LowerSchedule(inp, list(args), name, dict(binds or {}), simple_mode)
    if args is not None and isinstance(inp, (tir.PrimFunc, IRModule)):
        _check_parameters(inp, len(args))
    if isinstance(inp, tir.PrimFunc):
        return _ffi_api.LowerPrimFunc(inp, name, simple_mode)
    if isinstance(inp, IRModule):
        return _ffi_api.LowerModule(inp, simple_mode)
    raise TypeError(
        f"lower: expected a Schedule, a PrimFunc or an IRModule, got {type(inp).__name__}"
    )


def build_passes(target: Any, target_host: Any = None) -> dict[str, list[Any]]:
    """The passes :func:`build` applies after lowering, in the present pass context, in order.

    Returns
    -------
    Three lists: "mixed" for functions that hold host code and kernels together, then "host" and
    "device" for the two parts.
    """
    chosen = _as_target(target, target_host)
    return {
        "mixed": list(_ffi_api.MixedPasses(chosen)),
        "host": list(_ffi_api.HostPasses(_ffi_api.HostOf(chosen, None))),
        "device": list(_ffi_api.DevicePasses(chosen)),
    }


def _as_target(target: Any, host: Any = None) -> Target:
    if target is None:
        target = Target.current(allow_none=True) or "llvm"
    return Target(target, host) if host is not None or not isinstance(target, Target) else target


def _as_host(host: Any) -> Target | None:
    return host if host is None or isinstance(host, Target) else Target(host)


def _merged(inputs: Sequence[tir.PrimFunc | IRModule]) -> IRModule:
    if not isinstance(inputs, (Sequence, Array)) or isinstance(inputs, str):
        raise TypeError(
            "build: expected a schedule, a PrimFunc, an IRModule, a list of functions and modules, "
            f"or a dict from target to these, got {type(inputs).__name__}"
        )
    merged = IRModule()
    for i, part in enumerate(inputs):
        if not isinstance(part, (tir.PrimFunc, IRModule)):
            raise TypeError(
                f"build: element {i} of the list must be a PrimFunc or an IRModule, "
                f"got {type(part).__name__}"
            )
        module = part
        if not isinstance(part, IRModule):
            module = IRModule.from_expr(part, f"default_function_{i}")
        for var, func in module.functions.items():
            if str(var.name_hint) in {str(known.name_hint) for known in merged.get_global_vars()}:
                raise ValueError(
                    f"build: two functions are called {var.name_hint}; give each its own name"
                )
            merged[var] = func
    return merged


def _check_parameters(inp: tir.PrimFunc | IRModule, count: int) -> None:
    """Refuse arguments beside a program whose parameters they cannot be."""
    functions = inp.functions.values() if isinstance(inp, IRModule) else [inp]
    found = [len(func.params) for func in functions]
    if found != [count]:
        raise TypeError(
            f"args are for a schedule, and this {type(inp).__name__} has its parameters already: "
            f"{found} of its functions, where {count} are given; leave args out"
        )


def _lowered(
    inputs: Source,
    args: Sequence[Any] | None,
    target: Target,
    name: str,
    binds: Mapping[te.Tensor, Any] | None,
) -> IRModule:
    with target:
        if not isinstance(inputs, (te.Schedule, tir.PrimFunc, IRModule)):
            inputs = _merged(inputs)
        return lower(inputs, args, name, binds)


def split_dev_host_funcs(
    lowered: IRModule, target: Any, target_host: Any = None
) -> tuple[IRModule, IRModule]:
    """Host functions and kernels of a lowered module, each ready for its code generator.

    Raises
    ------
    ValueError : a program for a GPU accesses its arrays outside of kernels.
    """
    chosen = _as_target(target)
    with chosen:
        host, device = _ffi_api.SplitDevHostFuncs(lowered, chosen, _as_host(target_host))
    return host, device


def device_build(kernels: IRModule, target: Any) -> Module | None:
    """Code of the kernels that :func:`split_dev_host_funcs` gives; None when there are none."""
    return _ffi_api.DeviceBuild(kernels, _as_target(target))


def _build_for_device(
    input_mod: IRModule, tar: Any, target_host: Any = None
) -> tuple[IRModule, Module | None]:
    """Host functions of a lowered module, and the module of its kernels if there are any."""
    host, device = split_dev_host_funcs(input_mod, tar, target_host)
    return host, device_build(device, tar)


def prepare(
    inputs: Source,
    args: Sequence[Any] | None = None,
    target: Any = None,
    name: str = "default_function",
    binds: Mapping[te.Tensor, Any] | None = None,
) -> IRModule:
    """The host functions :func:`build` hands to the code generator; takes the same arguments."""
    return prepare_parts(inputs, args, target, name, binds)[0]


def prepare_parts(
    inputs: Source,
    args: Sequence[Any] | None = None,
    target: Any = None,
    name: str = "default_function",
    binds: Mapping[te.Tensor, Any] | None = None,
) -> tuple[IRModule, IRModule]:
    """The host functions and the kernels that :func:`build` hands to the code generators."""
    chosen = _as_target(target)
    return split_dev_host_funcs(_lowered(inputs, args, chosen, name, binds), chosen)


def build(
    inputs: Source | Mapping[Any, Source],
    args: Sequence[Any] | None = None,
    target: Any = None,
    target_host: Any = None,
    runtime: Any = None,
    name: str = "default_function",
    binds: Mapping[te.Tensor, Any] | None = None,
) -> Module:
    """Compile a program.

    Parameters
    ----------
    inputs : a schedule, a PrimFunc, an IRModule, a list of functions and modules, or a dict from
        target to any of these.
    args : for a schedule: a Tensor, Buffer or Var per parameter, in order. Of other inputs the
        target may stand here.
    target : Target or anything it accepts; by default the current target, else "llvm".
    target_host : target of the code that launches kernels; by default the host that a target
        names, else the first target of a dict that is a processor, else this machine's.
    runtime : a ``relay.backend.Runtime``, of which there is one, "cpp".
    name : of the resulting function, for a schedule or a function.
    binds : buffers to use for tensors of `args`.

    Returns
    -------
    Module whose functions take arrays and scalars in the order of `args`. It holds the code of the
    host and imports one module per target that has kernels.

    Raises
    ------
    ValueError : a schedule without `args`, two functions of one name, a target kind without a code
        generator, another `runtime`, or a schedule for a GPU that leaves a loop unbound.
    ScheduleError : the schedule is not consistent.

    Examples
    --------
    >>> import numpy as np
    >>> import tvm
    >>> from tvm import te
    >>> A = te.placeholder((8,), name="A")
    >>> B = te.compute((8,), lambda i: A[i] * 2.0, name="B")
    >>> double = tvm.build(te.create_schedule(B.op), [A, B], target="llvm", name="double")
    >>> a, b = tvm.nd.array(np.ones(8, "float32")), tvm.nd.empty((8,), "float32")
    >>> double(a, b)
    >>> float(b.numpy().sum())
    16.0
    """
    if runtime is not None and str(runtime.name) != "cpp":
        raise ValueError(f'build: modules are for the runtime "cpp", got "{runtime.name}"')
    if isinstance(args, (str, Target)) and target is None and not isinstance(inputs, te.Schedule):
        args, target = None, args  # as in tvm.build(module, "llvm")
    parts = list(inputs.items()) if isinstance(inputs, Mapping) else [(target, inputs)]
    if not parts:
        raise ValueError("build: the dict of targets is empty; give at least one target")
    if isinstance(inputs, te.Schedule) and args is None:
        raise ValueError(
            "build: args are required for a schedule; pass its input and output tensors"
        )
    targets = [_as_target(kind) for kind, _ in parts]
    lowered = [
        _lowered(part, args, kind, name, binds)
        for kind, (_, part) in zip(targets, parts, strict=True)
    ]
    with targets[0]:
        return _ffi_api.BuildModules(targets, lowered, _as_host(target_host))
