"""Which kernels of a program of relay take how long."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .profiling import MetricCollector, Report
from .vm import VirtualMachine

__all__ = ["VirtualMachineProfiler", "enabled"]


def enabled() -> bool:
    """Whether programs can be profiled, which is always so."""
    return True


class VirtualMachineProfiler(VirtualMachine):
    """A virtual machine of which calls can be profiled.

    Examples
    --------
    >>> import numpy as np, tvm
    >>> from tvm import relay
    >>> from tvm.runtime.profiler_vm import VirtualMachineProfiler
    >>> x = relay.var("x", shape=(4,))
    >>> mod = tvm.IRModule.from_expr(relay.Function([x], relay.exp(x)))
    >>> program = relay.vm.compile(mod, "llvm")
    >>> report = VirtualMachineProfiler(program, tvm.cpu()).profile(np.ones(4, "float32"))
    >>> len(report.calls)
    1
    """

    def profile(
        self,
        *args: Any,
        func_name: str = "main",
        collectors: Sequence[MetricCollector] | None = None,
        **kwargs: Any,
    ) -> Report:
        """Run a function and measure each call of a kernel.

        Parameters
        ----------
        args, kwargs : arguments in order or by name; those of `set_input` if there are none.
        collectors : measure more than time, see `tvm.runtime.profiling`.

        Returns
        -------
        Report; printing it shows a table, the longest kernels first. Compiling a kernel for shapes
        that come for the first time is no part of it.

        Raises
        ------
        KeyError : there is no such function. ValueError : a wrong number of arguments.
        """
        if args or kwargs:
            self.set_input(func_name, *args, **kwargs)
        return self.module["profile"](func_name, list(collectors or ()))
