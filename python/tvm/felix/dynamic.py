"""Networks whose inputs have sizes that vary from call to call."""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from tvm.relax.frontend.torch import (
    CallSignature,
    DynamicSizes,
    ProgramImporter,
    export_for_inference,
)
from tvm.target import Target

from .cache import KernelCache
from .compiler import CompiledNetwork, compile_network
from .network import GraphOptions, Network
from .schedules import RecordedSchedules

__all__ = ["DynamicNetwork", "compile_dynamic"]


def compile_dynamic(
    model: torch.nn.Module | Callable[..., Any] | torch.export.ExportedProgram,
    example_inputs: Sequence[Any] | torch.Tensor = (),
    dynamic_shapes: Any = None,
    target: Target | str = "llvm",
    records: str | os.PathLike[str] | None = None,
    example_kwargs: Mapping[str, Any] | None = None,
    winograd: bool | None = None,
    cache: bool = True,
) -> DynamicNetwork:
    """Compile a network, as it behaves in eval mode, for inputs of sizes in a range.

    Parameters
    ----------
    example_inputs, example_kwargs : inputs of some sizes in the range, other than 0 and 1, which
        PyTorch takes for sizes of their own.
    dynamic_shapes : as ``torch.export.export`` takes it: for each input the dimensions that vary,
        ``({0: torch.export.Dim("batch", max=64)},)``. An exported program has these, and its
        example inputs, from its export.
    model, target, records, winograd, cache : see ``felix.compile``. Each size has schedules of its
        own, tuned ones where that size was tuned.

    Raises
    ------
    ValueError : the program fixes a size that ``dynamic_shapes`` lets vary.
    """
    target = target if isinstance(target, Target) else Target(target)
    source = RecordedSchedules(target, records, KernelCache.of_machine() if cache else None)

    def compile_at(network: Network) -> CompiledNetwork:
        form = source.tuned_form(network) if winograd is None else network
        return compile_network(form, target, source)

    program = export_for_inference(model, example_inputs, example_kwargs, dynamic_shapes)
    name = getattr(model, "__name__", type(model).__name__)
    return DynamicNetwork(program, name, GraphOptions.for_target(target, winograd), compile_at)


class DynamicNetwork:
    """A network with dynamic sizes; calling it is calling the module it was made from.

    The module is exported once, for all sizes, and these share its weights. The kernels of a size
    are compiled when inputs of that size come first.

    Parameters
    ----------
    program : exported with dynamic shapes.
    compile_at : from the network of one size to the compiled one.
    most : sizes to keep; of more, those that were not used for longest are compiled again.
    """

    def __init__(
        self,
        program: torch.export.ExportedProgram,
        name: str,
        options: GraphOptions,
        compile_at: Callable[[Network], CompiledNetwork],
        most: int = 64,
    ) -> None:
        self._program = program
        self._name = name
        self._options = options
        self._compile_at = compile_at
        self._most = most
        self._signature = CallSignature(program)
        self._sizes = DynamicSizes(program)
        self._importer = ProgramImporter(program)
        self._compiled: OrderedDict[tuple[int, ...], CompiledNetwork] = OrderedDict()

    def at(self, *args: Any, **kwargs: Any) -> CompiledNetwork:
        """The network compiled for the sizes of some inputs.

        Raises
        ------
        ValueError : a size is out of its range; the message has the range and the size.
        TypeError : the inputs are not structured like the example.
        """
        tensors = self._signature.tensors(args, kwargs)
        sizes = self._sizes.of([tensor.shape for tensor in tensors])
        key = tuple(sizes[symbol] for symbol in self._sizes.symbols)
        if key not in self._compiled:
            network = Network.of_import(
                self._importer.at(sizes), self._program, self._name, self._options
            )
            self._compiled[key] = self._compile_at(network)
            if len(self._compiled) > self._most:
                self._compiled.popitem(last=False)
        self._compiled.move_to_end(key)
        return self._compiled[key]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Results of the network, in the structure that the module returns; see :meth:`at`."""
        return self.at(*args, **kwargs)(*args, **kwargs)

    def __repr__(self) -> str:
        return f"DynamicNetwork of {self._name}, compiled for {len(self._compiled)} sizes"
