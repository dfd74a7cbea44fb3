"""A network as the compiler sees it: imported once, with the options of its graph."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import torch

from tvm import relax
from tvm.ir import IRModule
from tvm.relax.frontend.torch import export_for_inference, from_exported_program
from tvm.runtime.files import read_json
from tvm.target import Target

__all__ = ["GraphOptions", "Network", "read_graph_options"]


@dataclass(frozen=True)
class GraphOptions:
    """What may be done to a graph before its kernels are tuned; stored with a run's tasks.

    Attributes
    ----------
    winograd : whether 3x3 convolutions are taken apart into Winograd's transforms and products.
    attention : whether attention is one kernel.
    strassen : whether large matrix products with constant weights are seven of half the size.
    plain : names of the subgraphs that stay as they are all the same, see
        `relax.transform.Forms`.
    ends_inside : whether columns of matrix products may end inside of a vector, see
        `relax.transform.PadColumns`.
    """

    winograd: bool = False
    attention: bool = False
    strassen: bool = False
    plain: tuple[str, ...] = ()
    ends_inside: bool = False

    @classmethod
    def for_target(cls, target: Target, winograd: bool | None) -> GraphOptions:
        """What pays on a target; all forms have schedules for processors only.

        winograd : False for no form that has other products than the network has.
        """
        is_processor = "cpu" in target.keys
        fewer_products = is_processor and winograd is not False
        # Wide units multiply faster than the sums of Strassen's scheme are formed: on Emerald
        # Rapids it takes 1.04 to 1.23 times the time of the plain product. Registers of 256 bits
        # hold too small a tile of its blocks: on Zen 3 it takes 1.06 to 1.31 times as long.
        strassen = fewer_products and target.vector_width >= 512 and not target.has_wide_units
        return cls(
            winograd=fewer_products,
            attention=is_processor,
            strassen=strassen,
            ends_inside=is_processor,
        )


def read_graph_options(tasks: Path) -> GraphOptions | None:
    """The options of the graph whose tasks a file holds; None where it does not say.

    Raises
    ------
    ValueError : the file is damaged; the message names it.
    """
    document = read_json(tasks)
    options = document.get("graph") if isinstance(document, dict) else None
    if options is None:
        return None
    try:
        return GraphOptions(**{**options, "plain": tuple(options.get("plain", ()))})
    except (TypeError, AttributeError) as error:
        raise ValueError(f"{tasks}: graph options {options}: {error}") from error


def _way_to_named(name: str) -> str:
    """What to do with a name or a path in place of a model."""
    reader = "network_file.load_network_file" if Path(name).suffix else "nn.load_network"
    return (
        f"expected a module or a function of tensors, got a text: "
        f"felix.{reader}({name!r}) gives a network and its inputs"
    )


class _Import:
    """An imported module, with what graphs of several options have in common."""

    def __init__(self, mod: IRModule) -> None:
        self._mod = mod
        self._prepared: dict[Any, tuple[IRModule, tuple[str, ...]]] = {}
        self.forms = relax.transform.Forms()

    def prepared(self, options: GraphOptions) -> tuple[IRModule, tuple[str, ...]]:
        """The module up to the choice of products, and the forms that were offered until there."""
        forms = relax.transform.Forms(options.plain)
        # Names of no attention change nothing.
        fixed = options.attention, options.ends_inside
        for (others, plain), (mod, offered) in self._prepared.items():
            if others == fixed and plain == set(options.plain) & set(offered):
                return mod, offered
        mod = relax.transform.PrepareGraph(options.attention, forms, options.ends_inside)(self._mod)
        plain = frozenset(options.plain) & set(forms.offered)
        self._prepared[fixed, plain] = mod, forms.offered
        return mod, forms.offered


class Network:
    """A torch module, exported and imported once.

    Parameters
    ----------
    model : a module, imported as it behaves in evaluation mode and left as it was; a function of
        tensors; or a program of ``torch.export`` with fixed shapes, which has its example inputs.
    example_inputs, example_kwargs : inputs of the shapes and types to compile for; a single tensor
        need not stand in a tuple.
    options : of the graph.

    Attributes
    ----------
    program : the exported program.
    name : of the model's class.

    Raises
    ------
    ValueError : operators that cannot be imported, all of them in one message.
    TypeError : `model` cannot be called, or not with these inputs.
    """

    def __init__(
        self,
        model: torch.nn.Module | Callable[..., Any] | torch.export.ExportedProgram,
        example_inputs: Sequence[Any] | torch.Tensor = (),
        example_kwargs: Mapping[str, Any] | None = None,
        options: GraphOptions | None = None,
    ) -> None:
        if isinstance(model, str | os.PathLike):
            raise TypeError(_way_to_named(os.fspath(model)))
        self.name = getattr(model, "__name__", type(model).__name__)
        self.program = export_for_inference(model, example_inputs, example_kwargs)
        # Sizes of inputs are called s0 and so on; what results have depends on values, which the
        # import tells of by its operator.
        open_sizes = [str(size) for size in self.program.range_constraints if str(size)[0] == "s"]
        if open_sizes:
            sizes = ", ".join(open_sizes)
            raise ValueError(
                f"{self.name}: the program is exported for sizes that vary ({sizes}); compile it "
                "by felix.compile_dynamic, or export it without dynamic_shapes"
            )
        self.options = options or GraphOptions()
        self._import = _Import(from_exported_program(self.program))

    @classmethod
    def of_program(
        cls, program: torch.export.ExportedProgram, name: str, options: GraphOptions | None = None
    ) -> Network:
        """The network of a program that is exported already."""
        return cls._of(
            program, name, options or GraphOptions(), _Import(from_exported_program(program))
        )

    @classmethod
    def of_import(
        cls,
        mod: IRModule,
        program: torch.export.ExportedProgram,
        name: str,
        options: GraphOptions | None = None,
    ) -> Network:
        """The network of a program that is imported already, for one choice of its sizes."""
        return cls._of(program, name, options or GraphOptions(), _Import(mod))

    @classmethod
    def _of(
        cls,
        program: torch.export.ExportedProgram,
        name: str,
        options: GraphOptions,
        imported: _Import,
    ) -> Network:
        made = cls.__new__(cls)
        made.program, made.name, made.options, made._import = program, name, options, imported
        return made

    @property
    def mod(self) -> IRModule:
        """The graph: optimised as the options say, and fused into kernels."""
        return self._optimized[0]

    @property
    def forms(self) -> tuple[str, ...]:
        """Names of the subgraphs that the options may keep plain, or do."""
        return self._optimized[1]

    @cached_property
    def _optimized(self) -> tuple[IRModule, tuple[str, ...]]:
        options = self.options
        mod, attentions = self._import.prepared(options)
        forms = relax.transform.Forms(options.plain, self._import.forms)
        choose = relax.transform.ChooseProducts(options.winograd, options.strassen, forms)
        return choose(mod), (*attentions, *forms.offered)

    def with_options(self, options: GraphOptions) -> Network:
        """The same network with another graph; nothing is imported again."""
        if options == self.options:
            return self
        return Network._of(self.program, self.name, options, self._import)
