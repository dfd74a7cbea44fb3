"""Choices, the knobs that offer them, and traces of what was decided."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import tvm
from tvm import error, tir
from tvm._ffi import get_global_func, register_func
from tvm.ir import IRModule

from ...expr import Function

__all__ = ["Choice", "Knob", "Trace", "get_trace"]

_NO_CHANGE = "relax.tuning_api.Choice.default_transform_func"
_ALWAYS = "relax.tuning_api.Choice.default_constr_func"
_APPLIED = "Applied"


@register_func(_NO_CHANGE)
def _no_change(mod: IRModule) -> IRModule:
    return mod


@register_func(_ALWAYS)
def _always(mod: IRModule) -> bool:
    return True


def _packed(args: Sequence[Any]) -> list[Any]:
    """Arguments as JSON takes them; nodes become what saves them."""
    plain = (bool, int, float, str, type(None))
    return [arg if isinstance(arg, plain) else {"node": tvm.ir.save_json(arg)} for arg in args]


def _unpacked(args: Sequence[Any]) -> list[Any]:
    return [tvm.ir.load_json(arg["node"]) if isinstance(arg, dict) else arg for arg in args]


class Choice:
    """A rewriting of modules, which is done where a condition holds.

    Parameters
    ----------
    transform_func_key : registered function from a module and arguments to a module; what it does
        to the module that it is given, it does to a copy. Nothing changes by default.
    constr_func_key : registered function from a module and arguments to bool; true by default.
    """

    def __init__(
        self,
        transform_func_key: str = _NO_CHANGE,
        transform_func_args: Sequence[Any] | None = None,
        constr_func_key: str = _ALWAYS,
        constr_func_args: Sequence[Any] | None = None,
    ) -> None:
        self.transform_func_key = transform_func_key
        self.transform_func_args = list(transform_func_args or ())
        self.constr_func_key = constr_func_key
        self.constr_func_args = list(constr_func_args or ())

    def get_transform_func(self) -> Callable[..., IRModule]:
        """The function that rewrites; ValueError if it is not registered."""
        return get_global_func(self.transform_func_key)

    def get_constr_func(self) -> Callable[..., bool]:
        """The condition; ValueError if it is not registered."""
        return get_global_func(self.constr_func_key)

    def check_constr(self, mod: IRModule) -> bool:
        """Whether the condition holds of a module."""
        return bool(self.get_constr_func()(mod, *self.constr_func_args))

    def apply_transform_func(self, mod: IRModule) -> IRModule:
        """The module rewritten, or itself where the condition does not hold."""
        if not self.check_constr(mod):
            return mod
        return self.get_transform_func()(mod.clone(), *self.transform_func_args)

    def as_json(self) -> list[Any]:
        """What :meth:`from_json` takes, of plain values."""
        return [
            self.transform_func_key,
            _packed(self.transform_func_args),
            self.constr_func_key,
            _packed(self.constr_func_args),
        ]

    @staticmethod
    def from_json(json_obj: Sequence[Any]) -> Choice:
        """The choice that was saved."""
        transform_key, transform_args, constr_key, constr_args = json_obj
        return Choice(transform_key, _unpacked(transform_args), constr_key, _unpacked(constr_args))


class Knob:
    """A point where one of several choices is made.

    Parameters
    ----------
    choices : by decision, or a list, whose decisions are numbers.
    """

    def __init__(self, name: str, choices: Sequence[Choice] | Mapping[str, Choice]) -> None:
        self.name = name
        listed = choices.items() if isinstance(choices, Mapping) else enumerate(choices)
        self.choices = {str(decision): choice for decision, choice in listed}

    def verify(self, decision: str | int) -> bool:
        """Whether there is such a decision."""
        return str(decision) in self.choices

    def get_choice(self, decision: str | int) -> Choice:
        """The choice of a decision; ValueError if there is none."""
        if not self.verify(decision):
            raise error.ValueError(
                f"Knob {self.name}: there is no decision {decision!r}; there are "
                f"{', '.join(self.choices)}"
            )
        return self.choices[str(decision)]

    def apply(self, mod: IRModule, decision: str | int) -> IRModule:
        """The module rewritten as decided."""
        return self.get_choice(decision).apply_transform_func(mod)

    def as_json(self) -> dict[str, Any]:
        """What :meth:`from_json` takes, of plain values."""
        choices = {decision: choice.as_json() for decision, choice in self.choices.items()}
        return {"name": self.name, "choices": choices}

    @staticmethod
    def from_json(json_obj: Mapping[str, Any]) -> Knob:
        """The knob that was saved."""
        choices = {key: Choice.from_json(value) for key, value in json_obj["choices"].items()}
        return Knob(json_obj["name"], choices)

    def __repr__(self) -> str:
        return f"Knob({self.name}: {', '.join(self.choices)})"


class Trace:
    """A module, the decisions that were made from it on, and what came out.

    Attributes
    ----------
    in_mod, out_mod : before and after all decisions.
    knobs, decisions : one of each for every step.
    perf : what was measured of the result, in seconds, or -1.
    """

    def __init__(
        self,
        in_mod: IRModule,
        knobs: Sequence[Knob] | None = None,
        decisions: Sequence[str | int] | None = None,
    ) -> None:
        self.in_mod = in_mod
        self.out_mod = in_mod
        self.knobs: list[Knob] = []
        self.decisions: list[str] = []
        self.perf = -1.0
        for knob, decision in zip(knobs or (), decisions or (), strict=True):
            self.add(knob, decision)

    @property
    def size(self) -> int:
        """How many decisions there are."""
        return len(self.knobs)

    def verify(self) -> bool:
        """Whether the knobs have the decisions."""
        return all(knob.verify(d) for knob, d in zip(self.knobs, self.decisions))

    def copy(self) -> Trace:
        """A trace that goes on by itself."""
        new = Trace(self.in_mod)
        new.knobs, new.decisions = list(self.knobs), list(self.decisions)
        new.out_mod, new.perf = self.out_mod, self.perf
        return new

    def add(self, knob: Knob, decision: str | int) -> IRModule:
        """Decide once more; returns what comes out. What was measured does not hold any more."""
        self._add(knob, decision, knob.apply(self.out_mod, decision))
        return self.out_mod

    def add_applied(self, name: str, out_mod: IRModule) -> None:
        """Say that a pass was applied, and what it gave."""
        self._add(Knob(name, {_APPLIED: Choice()}), _APPLIED, out_mod)

    def _add(self, knob: Knob, decision: str | int, out_mod: IRModule) -> None:
        self.out_mod = out_mod
        self.knobs.append(knob)
        self.decisions.append(str(decision))
        self.perf = -1.0

    def set_perf(self, perf: float) -> None:
        """Say what was measured."""
        self.perf = perf

    def set_out_mod(self, mod: IRModule) -> None:
        """Say what came out."""
        self.out_mod = mod

    def as_json(self, include_irmod: bool = True) -> dict[str, Any]:
        """What :meth:`from_json` takes, of plain values.

        Parameters
        ----------
        include_irmod : whether the modules are part of it; else `from_json` does not take it.
        """
        steps = [[k.as_json(), d] for k, d in zip(self.knobs, self.decisions)]
        if not include_irmod:
            return {"steps": steps, "perf": self.perf}
        modules = {"in_mod": self.in_mod, "out_mod": self.out_mod}
        saved = {name: tvm.ir.save_json(mod) for name, mod in modules.items()}
        return {"steps": steps, "perf": self.perf, **saved}

    @staticmethod
    def from_json(json_obj: Mapping[str, Any]) -> Trace:
        """The trace that was saved. What passes did is not done again."""
        trace = Trace(tvm.ir.load_json(json_obj["in_mod"]))
        for knob, decision in json_obj["steps"]:
            trace._add(Knob.from_json(knob), decision, trace.out_mod)
        trace.out_mod = tvm.ir.load_json(json_obj["out_mod"])
        trace.perf = json_obj["perf"]
        return trace

    def __repr__(self) -> str:
        steps = [f"{knob.name}: {decision}" for knob, decision in zip(self.knobs, self.decisions)]
        return f"Trace of {self.size} decisions ({', '.join(steps)}), perf {self.perf}"


def get_trace(in_: Trace | IRModule | Function | tir.PrimFunc) -> Trace:
    """The trace itself, or one that begins with a module or with that of a function.

    Raises
    ------
    TypeError : it is something else.
    """
    if isinstance(in_, Trace):
        return in_
    if isinstance(in_, IRModule):
        return Trace(in_)
    if isinstance(in_, (Function, tir.PrimFunc)):
        return Trace(IRModule.from_expr(in_))
    raise error.TypeError(f"get_trace: takes a trace, module or function, got {type(in_).__name__}")
