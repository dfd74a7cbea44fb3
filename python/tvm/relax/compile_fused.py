"""From a fused module to an executable: one kernel for each group, memory planned, calls listed."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import tvm
from tvm import te, tir, topi
from tvm.driver import schedule_to_module
from tvm.ir import GlobalVar, IRModule, RelayExpr
from tvm.runtime import NDArray
from tvm.runtime.relax_vm import Executable, make_executable
from tvm.target import Target

from . import op
from .expr import Call, Constant, Function, Tuple, TupleGetItem, Var, rearranged
from .fused_group import FusedGroup, fused_groups
from .memory_plan import Lifetime, plan_memory
from .rewriter import graph_functions
from .struct_info import TensorStructInfo, static_shape, tensor_fields

__all__ = [
    "GroupSchedule",
    "ScheduleSource",
    "compile_fused",
    "current_schedules",
    "fused_kernels",
    "schedules_from",
]

Relayout = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class GroupSchedule:
    """How one kernel is to be compiled.

    Attributes
    ----------
    schedule : of the group's computation, or of an equivalent one.
    args : inputs, then outputs, in the group's order. A constant input may have another shape here.
    relayouts : for the position of each constant input whose layout differs, the function from the
        array in the graph's layout to the array that the schedule reads. It runs once, at build
        time.
    """

    schedule: te.Schedule
    args: Sequence[te.Tensor]
    relayouts: Mapping[int, Relayout] = field(default_factory=dict)


ScheduleSource = Callable[[FusedGroup], GroupSchedule | None] | Mapping[str, GroupSchedule] | None

# What builds ask that are not told where schedules come from.
_CURRENT_SOURCE: ContextVar[ScheduleSource] = ContextVar("relax.schedules", default=None)


@contextmanager
def schedules_from(source: ScheduleSource) -> Iterator[None]:
    """Inside, `relax.build` without `schedules` takes them from `source`."""
    token = _CURRENT_SOURCE.set(source)
    try:
        yield
    finally:
        _CURRENT_SOURCE.reset(token)


def current_schedules() -> ScheduleSource:
    """Where builds that are not told take schedules from."""
    return _CURRENT_SOURCE.get()


def fused_kernels(
    mod: IRModule, target: Target, schedules: ScheduleSource = None
) -> tuple[dict[str, tir.PrimFunc], dict[str, Mapping[int, Relayout]]]:
    """The kernels of a module that has been fused, by name, and how each wants its constant inputs
    laid out; see :func:`tvm.relax.build`."""
    kernels: dict[str, tir.PrimFunc] = {}
    relayouts: dict[str, Mapping[int, Relayout]] = {}
    schedules = current_schedules() if schedules is None else schedules
    for group in fused_groups(mod):
        # Whoever has schedules may ask which target they are for, and so may computations that are
        # written out as a program.
        with target:
            chosen = _schedule_for(group, schedules)
            if chosen is None:
                known = topi.schedule_args_for(group.args, group.constant_inputs, target)
                stored = {position: packing.pack for position, packing in known.packings.items()}
                chosen = GroupSchedule(known.schedule, known.args, stored)
            else:
                _check_schedule(group, chosen)
        module = schedule_to_module(chosen.schedule, list(chosen.args), name=group.name)
        kernels[group.name] = module[group.name]
        relayouts[group.name] = chosen.relayouts
    for gvar, func in mod.functions.items():
        if isinstance(func, tir.PrimFunc):
            kernels[str(gvar.name_hint)] = func
    return kernels, relayouts


def compile_fused(mod: IRModule, target: Target, schedules: ScheduleSource = None) -> Executable:
    """An executable of a module that has been fused; see :func:`tvm.relax.build`."""
    kernels, relayouts = fused_kernels(mod, target, schedules)
    lister = _CallLister(list(kernels), relayouts)
    programs = [
        lister.program(str(gvar.name_hint), func) for gvar, func in graph_functions(mod).items()
    ]
    library = tvm.build(
        IRModule({GlobalVar(name): func for name, func in kernels.items()}), target=target
    )
    return make_executable(library, list(kernels), lister.constants, programs)


def _schedule_for(group: FusedGroup, schedules: ScheduleSource) -> GroupSchedule | None:
    if schedules is None:
        return None
    return schedules(group) if callable(schedules) else schedules.get(group.key)


def _check_schedule(group: FusedGroup, chosen: GroupSchedule) -> None:
    expected = group.args
    if len(chosen.args) != len(expected):
        raise ValueError(
            f"relax.build: the schedule of '{group.name}' has {len(chosen.args)} arguments, the "
            f"group {len(expected)}"
        )
    for i, (given, wanted) in enumerate(zip(chosen.args, expected)):
        same = [int(x) for x in given.shape] == [int(x) for x in wanted.shape]
        if i in chosen.relayouts:
            if i not in group.constant_inputs:
                raise ValueError(
                    f"relax.build: the schedule of '{group.name}' changes the layout of argument "
                    f"{i}, which is not a constant"
                )
        elif not same or given.dtype != wanted.dtype:
            raise ValueError(
                f"relax.build: argument {i} of the schedule of '{group.name}' is {given.dtype} of "
                f"shape {list(given.shape)}, the group has {wanted.dtype} of shape "
                f"{list(wanted.shape)}; give a relayout for a constant whose layout changes"
            )


# As the runtime numbers them: DLDataTypeCode and TensorPlace.
_TYPE_CODES = {
    "int": 0,
    "uint": 1,
    "float": 2,
    "bfloat": 4,
    "bool": 1,
    "e4m3_float8": 10,
    "float8_e4m3fnuz": 11,
    "e5m2_float8": 12,
    "float8_e5m2fnuz": 13,
}
_PLACES = {"input": 0, "constant": 1, "arena": 2, "output": 3}


@dataclass
class _Memory:
    """Where tensors are stored: an input, a constant, or memory that one instruction writes."""

    place: str
    index: int
    nbytes: int
    first: int = -1
    last: int = -1


@dataclass(frozen=True)
class _Tensor:
    """A shape and type over some memory; views of one tensor share it."""

    dtype: str
    shape: tuple[int, ...]
    memory: _Memory


_Value = Any  # A _Tensor, or a list of values for a tuple.


class _CallLister:
    """Turns graph functions into lists of kernel calls over numbered tensors."""

    def __init__(
        self, kernels: Sequence[str], relayouts: Mapping[str, Mapping[int, Relayout]]
    ) -> None:
        self._kernel_index = {name: i for i, name in enumerate(kernels)}
        self._relayouts = relayouts
        self.constants: list[NDArray] = []
        # Numbers of constants by the graph's constant, and by the re-laid-out use of it.
        self._constant_index: dict[Any, int] = {}

    def program(self, name: str, func: Function) -> tuple[str, list[str], list[int]]:
        """Name, input names and encoded program of one function."""
        writer = _ProgramWriter(self, func)
        return name, [str(p.name_hint) for p in func.params], writer.encode()

    def kernel(self, name: str) -> int:
        """Number of a kernel."""
        return self._kernel_index[name]

    def constant(self, constant: Constant, relayout: Relayout | None, kernel: str, arg: int) -> int:
        """Number of a constant in the layout that argument ``arg`` of the kernel wants."""
        use = (constant, kernel, arg) if relayout else (constant,)
        if use not in self._constant_index:
            data = constant.data
            if relayout is not None:
                data = rearranged(data, relayout)
            self._constant_index[use] = len(self.constants)
            self.constants.append(data)
        return self._constant_index[use]

    def relayout(self, kernel: str, arg: int) -> Relayout | None:
        """How argument ``arg`` of a kernel is stored, if not as in the graph."""
        return self._relayouts.get(kernel, {}).get(arg)


class _ProgramWriter:
    """The program of one function, in the encoding that the runtime reads."""

    def __init__(self, lister: _CallLister, func: Function) -> None:
        self._lister = lister
        self._func = func
        self._env: dict[Var, _Value] = {}
        # Kernel, number of its results, and its arguments, results last.
        self._instructions: list[tuple[int, int, list[_Tensor]]] = []
        self._scratch: list[_Memory] = []

    def encode(self) -> list[int]:
        inputs = []
        for i, param in enumerate(self._func.params):
            info = param.struct_info
            if not isinstance(info, TensorStructInfo):
                raise ValueError(
                    f"relax.build: parameter '{param.name_hint}' is not a tensor; pass the fields "
                    "of a tuple one by one"
                )
            tensor = _make_tensor(info, "input", i)
            self._env[param] = tensor
            inputs.append(tensor)
        for block in self._func.body.blocks:
            for binding in block.bindings:
                self._env[binding.var] = self._evaluate(binding.value)
        result = self._value(self._func.body.body)
        outputs = self._place_outputs(_flatten(result))
        arena_bytes = self._place_scratch()
        return self._words(inputs, outputs, isinstance(result, list), arena_bytes)

    def _value(self, expr: RelayExpr) -> _Value:
        if isinstance(expr, Tuple):
            return [self._value(item) for item in expr.fields]
        if isinstance(expr, TupleGetItem):
            return self._value(expr.tuple_value)[expr.index]
        if isinstance(expr, Constant):
            index = self._lister.constant(expr, None, "", 0)
            return _make_tensor(expr.struct_info, "constant", index)
        return self._env[expr]

    def _evaluate(self, value: RelayExpr) -> _Value:
        if not isinstance(value, Call):
            return self._value(value)
        if isinstance(value.op, GlobalVar):
            return self._call(str(value.op.name_hint), value.args, value)
        if op.has_op(value.op) and op.op_spec(value.op).is_view:
            whole = self._value(value.args[0])
            return _Tensor(whole.dtype, static_shape(value.struct_info), whole.memory)
        if str(getattr(value.op, "name", "")) == "relax.call_tir":
            callee, args = value.args
            return self._call(str(callee.name_hint), args.fields, value)
        raise ValueError(f"relax.build: {value.op} is not part of a kernel; fuse the module first")

    def _call(self, kernel: str, args: Sequence[RelayExpr], call: Call) -> _Value:
        operands = []
        for i, arg in enumerate(args):
            relayout = self._lister.relayout(kernel, i)
            if relayout is not None and isinstance(arg, Constant):
                index = self._lister.constant(arg, relayout, kernel, i)
                data = self._lister.constants[index]
                info = TensorStructInfo(data.shape, str(data.dtype))
                operands.append(_make_tensor(info, "constant", index))
            else:
                operands.extend(_flatten(self._value(arg)))
        step = len(self._instructions)
        results = []
        for info in tensor_fields(call.struct_info):
            tensor = _make_tensor(info, "arena", 0)
            tensor.memory.first = step
            self._scratch.append(tensor.memory)
            results.append(tensor)
        self._append(self._lister.kernel(kernel), len(results), [*operands, *results])
        return results[0] if isinstance(call.struct_info, TensorStructInfo) else results

    def _append(self, kernel: int, num_results: int, tensors: list[_Tensor]) -> None:
        step = len(self._instructions)
        for tensor in tensors:
            tensor.memory.last = step
        self._instructions.append((kernel, num_results, tensors))

    def _place_outputs(self, results: list[_Tensor]) -> list[_Tensor]:
        """Results in memory of their own: written there directly where that is possible."""
        outputs = []
        for i, tensor in enumerate(results):
            memory = tensor.memory
            if memory.place == "arena":
                memory.place, memory.index = "output", i
                outputs.append(tensor)
            else:
                # An argument or constant that is returned, or a result returned twice.
                copy = _Tensor(tensor.dtype, tensor.shape, _Memory("output", i, memory.nbytes))
                self._append(-1, 1, [tensor, copy])
                outputs.append(copy)
        return outputs

    def _place_scratch(self) -> int:
        memories = [m for m in self._scratch if m.place == "arena"]
        lifetimes = [Lifetime(m.nbytes, m.first, m.last) for m in memories]
        offsets, total = plan_memory(lifetimes)
        for memory, offset in zip(memories, offsets):
            memory.index = offset
        return total

    def _words(
        self, inputs: list[_Tensor], outputs: list[_Tensor], is_tuple: bool, arena_bytes: int
    ) -> list[int]:
        used = [*inputs, *outputs, *(t for *_, tensors in self._instructions for t in tensors)]
        numbers: dict[int, int] = {}
        table: list[_Tensor] = []
        for tensor in used:
            if id(tensor) not in numbers:
                numbers[id(tensor)] = len(table)
                table.append(tensor)

        def listed(items: Sequence[int]) -> list[int]:
            return [len(items), *items]

        words = listed([numbers[id(t)] for t in inputs])
        words.append(len(table))
        for tensor in table:
            dtype = tvm.DataType(tensor.dtype)
            words += [_TYPE_CODES[dtype.kind], dtype.bits, dtype.lanes]
            words += [_PLACES[tensor.memory.place], tensor.memory.index]
            words += listed(tensor.shape)
        words.append(len(self._instructions))
        for kernel, num_results, tensors in self._instructions:
            words += [kernel, num_results]
            words += listed([numbers[id(t)] for t in tensors])
        words += listed([numbers[id(t)] for t in outputs])
        return [*words, int(is_tuple), arena_bytes]


def _make_tensor(info: TensorStructInfo, place: str, index: int) -> _Tensor:
    shape, dtype = static_shape(info), str(info.dtype)
    nbytes = math.prod(shape) * tvm.DataType(dtype).itemsize
    return _Tensor(dtype, shape, _Memory(place, index, nbytes))


def _flatten(value: _Value) -> list[_Tensor]:
    if isinstance(value, list):
        return [tensor for item in value for tensor in _flatten(item)]
    return [value]
