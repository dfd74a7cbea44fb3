"""Writes programs of the virtual machine, step by step."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tvm import error
from tvm.runtime import DataType, Module, NDArray, ShapeTuple
from tvm.runtime.relax_vm import Executable, make_executable

__all__ = ["Argument", "ExecBuilder"]


class Argument(NamedTuple):
    """What a step of a program reads: a register, a number, a literal or a function.

    Attributes
    ----------
    kind : as the runtime numbers them, `ArgumentKind` of tvm/runtime/relax_vm/program.h.
    value : its number.
    """

    kind: int
    value: int


_REGISTER, _IMMEDIATE, _LITERAL, _FUNCTION = range(4)
_VOID = Argument(_REGISTER, -1)
_MACHINE = Argument(_REGISTER, -2)
_CALL, _RET, _GOTO, _IF = range(1, 5)


@dataclass
class _Step:
    opcode: int
    register: int = -1
    target: int = 0
    args: list[Argument] = field(default_factory=list)


@dataclass
class _Program:
    name: str
    input_names: list[str]
    num_registers: int
    steps: list[_Step] = field(default_factory=list)

    def words(self) -> list[int]:
        """The encoding that the runtime reads."""
        words = [self.num_registers, len(self.steps)]
        for step in self.steps:
            words += [step.opcode, step.register, step.target, len(step.args)]
            words += [number for arg in step.args for number in arg]
        return words


class ExecBuilder:
    """Builds an executable of programs over registers.

    >>> builder = relax.ExecBuilder()
    >>> with builder.function("main", num_inputs=2):
    ...     builder.emit_call("my.add", args=[builder.r(0), builder.r(1)], dst=builder.r(2))
    ...     builder.emit_ret(builder.r(2))
    >>> machine = relax.VirtualMachine(builder.get(), tvm.cpu())
    """

    def __init__(self) -> None:
        self._callees: dict[str, int] = {}
        self._literals: list[Any] = []
        self._literal_numbers: dict[Any, int] = {}
        self._programs: list[_Program] = []
        self._open: _Program | None = None

    def r(self, idx: int) -> Argument:
        """A register of the function."""
        program = self._current()
        program.num_registers = max(program.num_registers, idx + 1)
        return Argument(_REGISTER, idx)

    def imm(self, value: int) -> Argument:
        """An integer."""
        return Argument(_IMMEDIATE, int(value))

    def c(self, idx: int) -> Argument:
        """A literal by its number.

        Raises
        ------
        IndexError : there is none of this number; :meth:`convert_constant` makes one.
        """
        if not 0 <= idx < len(self._literals):
            raise error.IndexError(
                f"ExecBuilder.c: no literal {idx} of {len(self._literals)}; make it with "
                "convert_constant"
            )
        return Argument(_LITERAL, idx)

    def f(self, name: str) -> Argument:
        """A function of the executable or of the registry, as a value."""
        return Argument(_FUNCTION, self._callee(name))

    def void_arg(self) -> Argument:
        """No value, or a result that nobody needs."""
        return _VOID

    def vm_state(self) -> Argument:
        """The machine itself, which builtin functions take first."""
        return _MACHINE

    def convert_constant(self, value: Any) -> Argument:
        """A value known now: a number, a text, an element type, a shape, an array or None.

        Raises
        ------
        TypeError : it is of another kind.
        """
        if isinstance(value, Argument):
            return value
        if isinstance(value, int):
            return self.imm(value)
        if isinstance(value, (tuple, list)):
            value = ShapeTuple(value)
        elif not (value is None or isinstance(value, (float, str, NDArray, ShapeTuple, DataType))):
            raise error.TypeError(
                "ExecBuilder: a literal must be a number, a text, an element type, a shape or an "
                f"array, got {type(value).__name__}"
            )
        key = (type(value), str(value) if not isinstance(value, NDArray) else id(value))
        if key not in self._literal_numbers:
            self._literal_numbers[key] = len(self._literals)
            self._literals.append(value)
        return Argument(_LITERAL, self._literal_numbers[key])

    @contextmanager
    def function(
        self, func_name: str, num_inputs: int | None = 0, param_names: Sequence[str] | None = None
    ) -> Iterator[None]:
        """A function, whose steps are emitted inside; its first registers hold the arguments.

        Raises
        ------
        ValueError : there is one of this name, or one is open.
        """
        if self._open is not None:
            raise error.ValueError(f"ExecBuilder: '{self._open.name}' is not finished")
        if any(program.name == func_name for program in self._programs):
            raise error.ValueError(f"ExecBuilder: '{func_name}' is written already")
        count = len(param_names) if param_names is not None else int(num_inputs or 0)
        names = list(param_names or (f"param{i}" for i in range(count)))
        self._open = _Program(func_name, names, count)
        try:
            yield
            self._programs.append(self._open)
        finally:
            self._open = None

    def emit_call(
        self, name: str, args: Sequence[Any] | None = None, dst: Argument | None = None
    ) -> int:
        """Call a function by name; returns the number of the step."""
        given = [self.convert_constant(arg) for arg in args or ()]
        target = _VOID if dst is None else dst
        return self._emit(_Step(_CALL, target.value, self._callee(name), given))

    def emit_ret(self, result: Argument) -> int:
        """End the function with the value of a register."""
        return self._emit(_Step(_RET, self._register("emit_ret", result)))

    def emit_goto(self, pc_offset: int) -> int:
        """Go on some steps further; programs never go back."""
        return self._emit(_Step(_GOTO, -1, pc_offset))

    def emit_if(self, cond: Argument, false_offset: int) -> int:
        """Go on with the next step if a register holds a number that is not 0, else further on."""
        return self._emit(_Step(_IF, self._register("emit_if", cond), false_offset))

    def set_target(self, step: int, position: int) -> None:
        """Let an emitted `goto` or `if` lead to the step of a number."""
        self._current().steps[step].target = position - step

    def position(self) -> int:
        """The number of the next step."""
        return len(self._current().steps)

    def replace_argument(self, step: int, index: int, value: Argument) -> None:
        """Give an emitted call another argument."""
        self._current().steps[step].args[index] = value

    def get(self, library: Module | None = None, kernels: Sequence[str] = ()) -> Executable:
        """The executable of everything written.

        Parameters
        ----------
        library : a module with functions that programs call.

        Raises
        ------
        ValueError : a program does not end with `emit_ret`, or reads what is not there.
        """
        return make_executable(library, kernels, [], [], self.tables, self.programs)

    @property
    def tables(self) -> tuple[list[str], list[Any]]:
        """Names of what is called, and literals, in the order of their numbers."""
        return list(self._callees), self._literals

    @property
    def programs(self) -> list[tuple[str, list[str], list[int]]]:
        """Name, input names and encoding of everything written."""
        return [(p.name, p.input_names, p.words()) for p in self._programs]

    def _current(self) -> _Program:
        if self._open is None:
            raise error.ValueError("ExecBuilder: no function is open; use `with function(...)`")
        return self._open

    def _callee(self, name: str) -> int:
        return self._callees.setdefault(name, len(self._callees))

    def _emit(self, step: _Step) -> int:
        steps = self._current().steps
        steps.append(step)
        return len(steps) - 1

    @staticmethod
    def _register(who: str, arg: Argument) -> int:
        if arg.kind != _REGISTER or arg.value < 0:
            raise error.ValueError(f"ExecBuilder.{who}: takes a register")
        return arg.value
