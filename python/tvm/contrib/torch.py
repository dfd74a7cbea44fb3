"""Tensor programs and tuned networks as modules of PyTorch."""

from __future__ import annotations

import functools
import os
import tempfile
from collections.abc import Callable, Sequence
from typing import Any

import torch

import tvm
from tvm import felix, tir
from tvm.felix import CompiledNetwork
from tvm.ir import IRModule
from tvm.meta_schedule.tir_integration import compile_tir, tune_tir
from tvm.runtime import Module
from tvm.target import Target

__all__ = ["OperatorModule", "OptimizedModule", "as_torch", "optimize_torch"]


def _as_target(target: Target | str) -> Target:
    if isinstance(target, Target):
        return target
    return Target.from_device(target) if target in ("cpu", "cuda") else Target(target)


class OperatorModule(torch.nn.Module):
    """A tensor program that is called with tensors, those that it writes included.

    Tensors share their memory with the program, so they have to be contiguous. It is built at the
    first call, for where the first tensor is. Pickled, it holds the program as it was scheduled,
    and is built again where it is unpickled.

    Parameters
    ----------
    program : a function, or a module of one.

    Attributes
    ----------
    ir_module : the module as it is now, after :meth:`tune` with the schedule that was found.
    """

    def __init__(self, program: IRModule | tir.PrimFunc) -> None:
        super().__init__()
        if isinstance(program, tir.PrimFunc):
            program = IRModule.from_expr(program)
        if [type(func) for func in program.functions.values()] != [tir.PrimFunc]:
            raise ValueError(
                "as_torch: expected one tensor program, got a module of "
                f"{', '.join(str(var.name_hint) for var in program.functions) or 'nothing'}"
            )
        self.ir_module = program
        self._target: Target | None = None
        self._built: Module | None = None

    def script(self) -> str:
        """The program as text."""
        return self.ir_module.script()

    def build(self, target: Target | str = "cpu") -> None:
        """Compile the program; the next call runs what was compiled."""
        self._target = _as_target(target)
        self._built = tvm.build(self.ir_module, target=self._target)

    def tune(
        self,
        target: Target | str = "cpu",
        max_trials_global: int = 32,
        *,
        work_dir: str | os.PathLike[str] | None = None,
        **search: Any,
    ) -> None:
        """Search a schedule for the program with MetaSchedule, and build it.

        Parameters
        ----------
        target : "cpu" and "cuda" are the devices of this machine.
        max_trials_global : programs to measure.
        work_dir : folder of what is measured, kept afterwards; by default a temporary one.
        search : as for ``meta_schedule.tune_tir``.

        Raises
        ------
        RuntimeError : no program that was tried could be measured.
        """
        chosen = _as_target(target)
        ((name, program),) = self.ir_module.functions.items()
        with tempfile.TemporaryDirectory() as temporary:
            folder = str(work_dir or temporary)
            database = tune_tir(program, chosen, folder, max_trials_global, **search)
            schedule = compile_tir(database, program, chosen)
        if schedule is None:
            raise RuntimeError(f"tune: no schedule of {name.name_hint} could be measured")
        self.ir_module = schedule.mod
        self.build(chosen)

    def forward(self, *tensors: torch.Tensor) -> None:
        """Run the program on tensors, in the order of its parameters."""
        if self._built is None:
            on_gpu = bool(tensors) and tensors[0].is_cuda
            self.build(self._target or ("cuda" if on_gpu else "cpu"))
        assert self._built is not None
        self._built(*(tvm.nd.from_dlpack(tensor.detach()) for tensor in tensors))

    def __getstate__(self) -> dict[str, Any]:
        target = None if self._target is None else str(self._target)
        parts = {"ir_module": tvm.ir.save_json(self.ir_module), "_target": target, "_built": None}
        return {**super().__getstate__(), **parts}

    def __setstate__(self, state: dict[str, Any]) -> None:
        target = None if state["_target"] is None else Target(state["_target"])
        parts = {"ir_module": tvm.ir.load_json(state["ir_module"]), "_target": target}
        super().__setstate__({**state, **parts})


def as_torch(func: IRModule | tir.PrimFunc | Callable[..., Any]) -> Any:
    """Make a module of PyTorch of a tensor program.

    Used as a decorator of a program, of a class that is a module of one, or of a function that
    makes one for its arguments, say for sizes.

    Returns
    -------
    An :class:`OperatorModule`; of a function, a function that makes one.

    Raises
    ------
    ValueError : a module does not hold one tensor program.
    TypeError : it is none of these.

    Examples
    --------
    >>> from tvm.script import tir as T
    >>> @as_torch
    ... @T.prim_func
    ... def double(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
    ...     for i in range(4):
    ...         B[i] = A[i] * T.float32(2)
    >>> a, b = torch.ones(4), torch.empty(4)
    >>> double(a, b)
    >>> b
    tensor([2., 2., 2., 2.])
    """
    if isinstance(func, (IRModule, tir.PrimFunc)):
        return OperatorModule(func)
    if not callable(func):
        raise TypeError(
            "as_torch: expected a tensor program, a module of one, or a function that makes one, "
            f"got {type(func).__name__}"
        )

    @functools.wraps(func)
    def make(*args: Any, **kwargs: Any) -> OperatorModule:
        return OperatorModule(func(*args, **kwargs))

    return make


class OptimizedModule(torch.nn.Module):
    """A tuned network as a module, which can be part of another one and be pickled.

    Attributes
    ----------
    network : the network, see `tvm.felix.CompiledNetwork`.
    """

    def __init__(self, network: CompiledNetwork) -> None:
        super().__init__()
        self.network = network

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Results of the network, in the structure that the original module returns."""
        return self.network(*args, **kwargs)


def optimize_torch(
    func: torch.nn.Module | Callable[..., Any],
    example_inputs: Sequence[Any] | torch.Tensor,
    *,
    max_trials_global: int = 300,
    work_dir: str | os.PathLike[str] | None = None,
    target: Target | str = "cpu",
    seed: int = 0,
) -> OptimizedModule:
    """Tune a network for inference with `tvm.felix.tune`.

    Parameters
    ----------
    func : a module, taken as it behaves in eval mode, or a function of tensors.
    example_inputs : inputs of the shapes and types to tune for.
    max_trials_global : programs to measure over all kernels; 0 to compile with the schedules of the
        operator library and those that this machine remembers.
    work_dir : folder of the records, from which a later call goes on.
    target : "cpu" and "cuda" are the devices of this machine.
    seed : of every random choice.

    Raises
    ------
    ValueError : operators that cannot be imported, all of them in one message.
    """
    chosen = _as_target(target)
    if max_trials_global == 0:
        return OptimizedModule(felix.compile(func, example_inputs, chosen, work_dir))
    return OptimizedModule(
        felix.tune(
            func, example_inputs, max_trials_global, target=chosen, folder=work_dir, seed=seed
        )
    )
