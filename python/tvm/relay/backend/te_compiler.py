"""Relay functions as tensor programs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tvm import relax, te, topi
from tvm.driver import build, lower
from tvm.ir import GlobalVar, IRModule, structural_equal, structural_hash
from tvm.relax.te_lowering import TEFunction, function_to_te
from tvm.runtime import PackedFunc
from tvm.target import Target
from tvm.tir import PrimFunc

from .. import transform
from ..expr import Function
from .implementations import get_valid_implementations, select_implementation
from .to_relax import to_relax

__all__ = [
    "CachedFunc",
    "TECompiler",
    "get",
    "get_valid_implementations",
    "lower_to_primfunc",
    "select_implementation",
]


def _tensors_of(relay_func: Function) -> TEFunction:
    typed = transform.InferType()(IRModule.from_expr(relay_func))
    graph = relax.transform.CanonicalizeBindings()(to_relax(typed["main"]))
    return function_to_te(graph["main"])


def lower_to_primfunc(relay_func: Function, target: Any) -> PrimFunc:
    """One tensor program, in blocks, that computes what a relay function does.

    Its parameters are those of the function, then the results. The program is not scheduled;
    `target` becomes its attribute.

    Raises
    ------
    TypeError, ValueError : the function is no graph of known shapes; the error names the operator.
    """
    func = te.create_prim_func(_tensors_of(relay_func).args)
    return func.with_attr("target", Target(target))


@dataclass(frozen=True)
class CachedFunc:
    """A relay function as one kernel.

    Attributes
    ----------
    target : what the schedule is for.
    prim_fn_var : the name of the kernel among `funcs`.
    inputs, outputs : its tensors.
    schedule : the operator library's, of the computation.
    funcs : the kernel, lowered.
    """

    target: Target
    prim_fn_var: GlobalVar
    inputs: tuple[te.Tensor, ...]
    outputs: tuple[te.Tensor, ...]
    schedule: te.Schedule
    funcs: IRModule


class TECompiler:
    """Makes kernels of relay functions, one for all functions that are equal."""

    def __init__(self) -> None:
        self._made: dict[tuple[str, int], list[tuple[Function, CachedFunc]]] = {}

    def lower(self, source_func: Function, target: Any) -> CachedFunc:
        """The function as one kernel.

        Raises
        ------
        TypeError, ValueError : the function is no graph of known shapes; the error names the
            operator.
        """
        target = target if isinstance(target, Target) else Target(target)
        place = self._made.setdefault((str(target), structural_hash(source_func)), [])
        for func, kernel in place:
            if structural_equal(func, source_func):
                return kernel
        computation = _tensors_of(source_func)
        name = "_".join(["fused", *(name.rsplit(".", 1)[-1] for name, _ in computation.calls)])
        with target:
            schedule = topi.schedule_for(computation.outputs, target)
            funcs = lower(schedule, computation.args, name=name)
        kernel = CachedFunc(
            target,
            funcs.get_global_var(name),
            computation.inputs,
            computation.outputs,
            schedule,
            funcs,
        )
        place.append((source_func, kernel))
        return kernel

    def jit(self, source_func: Function, target: Any = None) -> PackedFunc:
        """The function compiled: of its arguments and then arrays for the results.

        Parameters
        ----------
        target : by default the current one, or llvm.

        Raises
        ------
        TypeError, ValueError : as `lower`.
        """
        kernel = self.lower(source_func, target or Target.current() or "llvm")
        return build(kernel.funcs, target=kernel.target)[str(kernel.prim_fn_var.name_hint)]

    def items(self) -> list[tuple[Function, CachedFunc]]:
        """Functions that were asked for, with their kernels."""
        return [pair for place in self._made.values() for pair in place]

    def clear(self) -> None:
        """Forget all kernels."""
        self._made.clear()


_COMPILER = TECompiler()


def get() -> TECompiler:
    """The compiler of this process."""
    return _COMPILER
