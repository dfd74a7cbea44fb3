"""A machine's kernels beside those of another library, call by call."""

from __future__ import annotations

from typing import Any

import numpy as np

from tvm import error
from tvm.runtime import Device, Module, NDArray
from tvm.runtime.ndarray import array

__all__ = ["LibCompareVMInstrument"]


class LibCompareVMInstrument:
    """Runs each kernel that a library has, too, on what a machine gave its own, and compares.

    For `VirtualMachine.set_instrument`. Derive from it to compare otherwise, or to leave calls out.

    Parameters
    ----------
    mod : the library, whose functions have the names of the machine's kernels.
    device : where those run.
    verbose : whether each kernel is printed as it passes, or is not found.
    rtol, atol : tolerances, as of `numpy.testing.assert_allclose`.
    """

    def __init__(
        self,
        mod: Module,
        device: Device,
        verbose: bool = True,
        rtol: float = 1e-5,
        atol: float = 1e-5,
    ) -> None:
        self.mod = mod
        self.device = device
        self.verbose = verbose
        self.rtol = rtol
        self.atol = atol
        self.counter = 0

    def compare(
        self, name: str, ref_args: list[NDArray], new_args: list[NDArray], ret_indices: list[int]
    ) -> None:
        """Raise AssertionError where results differ.

        Parameters
        ----------
        ref_args : operands and results of the machine's kernel.
        new_args : the same of the library's, on its device.
        ret_indices : which of them are results.
        """
        for at in ret_indices:
            np.testing.assert_allclose(
                new_args[at].numpy(), ref_args[at].numpy(), rtol=self.rtol, atol=self.atol,
                err_msg=f"kernel {name}, argument {at}",
            )  # fmt: skip
        if self.verbose:
            print(f"[{self.counter}] {name}: the same")

    def skip_instrument(
        self, func: Any, name: str, before_run: bool, ret_val: Any, *args: Any
    ) -> bool:
        """Whether a call is not compared; of its arguments, those of an instrument."""
        return False

    def __call__(self, func: Any, name: str, before_run: bool, ret_val: Any, *args: Any) -> None:
        if before_run or name.startswith("vm.builtin."):
            return
        if not args or any(not isinstance(arg, NDArray) for arg in args):
            return
        if self.skip_instrument(func, name, before_run, ret_val, *args):
            return
        self.counter += 1
        try:
            kernel = self.mod.get_function(name, query_imports=True)
        except (AttributeError, error.TVMError):
            if self.verbose:
                print(f"[{self.counter}] {name}: not in the library")
            return
        # Results come last, in the places of operands; what they hold has been computed already.
        *operands, result = args
        copies = [array(operand.numpy(), self.device) for operand in operands]
        empty = array(np.zeros(result.shape, result.numpy().dtype), self.device)
        kernel(*copies, empty)
        self.compare(name, list(args), [*copies, empty], [len(args) - 1])
