"""``torch.compile(model, backend="felix")``."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import torch

from tvm import relax
from tvm.target import Target

from .cache import KernelCache, NetworkCache
from .network import GraphOptions, Network
from .patience import Patience
from .schedules import RecordedSchedules
from .settings import SearchBudget
from .torch_graph import GraphCompiler, Run, bind_inputs
from .tuning import compile_tuned, run_folder, search_kernels

__all__ = ["BackendOptions", "ModuleByShape", "felix"]

_TUNING_MODES = ("max-autotune", "max-autotune-no-cudagraphs")
_MODES = ("default", "reduce-overhead", *_TUNING_MODES)


@dataclass(frozen=True)
class BackendOptions:
    """What ``torch.compile(options={...})`` may say; PyTorch takes either that or a mode.

    Attributes
    ----------
    target : what to compile for; it must be able to run in this process.
    trials : programs to measure for each graph before its first call returns; 0 tunes nothing. With
        ``mode="max-autotune"`` the default is 300.
    records : folder of a tuning run, or record file; its schedules are used, and with `trials` what
        is measured is added to the folder.
    winograd : see `tvm.felix.compile`.
    cache : whether compiled graphs and the schedules of kernels are kept between processes.
    sizes : how many sizes of a graph are compiled when they come; of further ones, those on which
        PyTorch has spent as long as compiling takes.
    """

    target: str = "llvm"
    trials: int = 0
    records: str | os.PathLike[str] | None = None
    winograd: bool | None = None
    cache: bool = True
    sizes: int = 4

    @staticmethod
    def read(mode: str | None, options: Mapping[str, Any] | None) -> BackendOptions:
        """The options of a call of ``torch.compile``.

        Raises
        ------
        ValueError : a mode or option is not known, or its value is no possible one.
        """
        given = dict(options or {})
        known = [field.name for field in fields(BackendOptions)]
        unknown = sorted(given.keys() - set(known))
        if unknown:
            raise ValueError(
                f'backend "felix": unknown options {", ".join(unknown)}; known are '
                f"{', '.join(known)}"
            )
        if mode is not None and mode not in _MODES:
            raise ValueError(
                f'backend "felix": unknown mode {mode!r}; known are {", ".join(_MODES)}'
            )
        if mode in _TUNING_MODES:
            given.setdefault("trials", 300)
        for key, least in (("trials", 0), ("sizes", 1)):
            value = given.get(key, least)
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                raise ValueError(
                    f'backend "felix": {key} must be a number >= {least}, got {value!r}'
                )
        kinds = {
            "winograd": ((bool, type(None)), "True, False or None"),
            "cache": ((bool,), "True or False"),
            "records": ((str, os.PathLike, type(None)), "a folder or a file"),
        }
        for key, (types, what) in kinds.items():
            if key in given and not isinstance(given[key], types):
                raise ValueError(f'backend "felix": {key} must be {what}, got {given[key]!r}')
        return BackendOptions(**given)


def felix(
    module: torch.fx.GraphModule,
    example_inputs: Sequence[Any],
    *,
    mode: str | None = None,
    options: Mapping[str, Any] | None = None,
    name: str | None = None,
) -> Callable[..., Any]:
    """The backend: compiles a graph that TorchDynamo captured, when it is first called.

    Sizes that may change from call to call are compiled for one by one, as `BackendOptions.sizes`
    says. Weights are part of the compiled code, so a graph is compiled again after some were
    changed; those that change a second time become inputs. Gradients are computed by PyTorch, from
    the graph as it was.

    Parameters
    ----------
    mode : "default" and "reduce-overhead" tune nothing; "max-autotune" measures programs before the
        first call returns.
    options : see `BackendOptions`.
    name : of the compiled function, for messages; not used.

    Raises
    ------
    ValueError : a mode or option is not known.
    """
    return _CapturedGraph(module, BackendOptions.read(mode, options))


class _CapturedGraph:
    """A graph of TorchDynamo's with what is compiled of it."""

    def __init__(self, module: torch.fx.GraphModule, options: BackendOptions) -> None:
        self._module = module
        self._options = options
        placeholders = [node for node in module.graph.nodes if node.op == "placeholder"]
        self._weights = [i for i, node in enumerate(placeholders) if _is_weight(node)]
        self._numbers = [i for i, node in enumerate(placeholders) if _is_number(node)]
        rest = {*self._weights, *self._numbers}
        self._tensors = [i for i in range(len(placeholders)) if i not in rest]
        self._compiled: dict[Any, _Specialised | None] = {}
        self._given_back = _given_back(module)
        self._versions: dict[int, Any] = {}
        self._held: list[torch.Tensor] = []
        # Weights that are inputs, and how often the others were changed.
        self._inputs: set[int] = set()
        self._changes: Counter[int] = Counter()
        self._patience = Patience(options.sizes)

    def __call__(self, *args: Any) -> Any:
        grad = torch.is_grad_enabled() and any(
            isinstance(arg, torch.Tensor) and arg.requires_grad for arg in args
        )
        self._notice_changes(args)
        key = grad, self._key(args)
        if key not in self._compiled:
            if not self._patience.is_worth(key, len(self._compiled)):
                with self._patience.running(key):
                    return self._module(*args)
            with self._patience.compiling(key):
                self._compiled[key] = self._specialise(args, grad)
        run = self._compiled[key]
        # Backward runs the graph again, which random numbers would not repeat, those that are
        # compiled or of operators that PyTorch runs, nor a graph that writes to its inputs.
        if run is None or (grad and not run.repeats):
            return self._module(*args)
        if not grad:
            with torch.no_grad():
                return run(args)
        return tuple(_WithGradient.apply(self._module, run, *args))

    def _key(self, args: Sequence[Any]) -> Any:
        numbers = tuple(
            args[i].item() if isinstance(args[i], torch.Tensor) else args[i] for i in self._numbers
        )
        return numbers, tuple(tuple(args[i].shape) for i in self._tensors)

    def _notice_changes(self, args: Sequence[Any]) -> None:
        bound = [i for i in self._weights if i not in self._inputs]
        versions = {i: _version(args[i]) for i in bound}
        changed = [i for i in bound if self._versions.get(i, versions[i]) != versions[i]]
        if changed:
            # What PyTorch has to run, it has to run with any weights.
            self._compiled = {key: run for key, run in self._compiled.items() if run is None}
            self._changes.update(changed)
            self._inputs.update(i for i in changed if self._changes[i] > 1)
        self._versions = versions
        # As long as they are held, no other tensors can take their places in memory.
        self._held = [args[i] for i in bound]

    def _specialise(self, args: Sequence[Any], grad: bool) -> _Specialised | None:
        """The graph compiled for the sizes of these arguments; None where PyTorch has to run it.

        grad : whether gradients are wanted, for which the graph must be compiled as a whole.
        """
        tensors = [arg for arg in args if isinstance(arg, torch.Tensor)]
        if any(tensor.device.type != "cpu" for tensor in tensors) or not _gives_tensors(
            self._module
        ):
            return None
        fixed = {
            i: args[i].item() if isinstance(args[i], torch.Tensor) else args[i]
            for i in self._numbers
        }
        free = sorted([*self._inputs, *self._tensors])
        fixed |= {i: args[i] for i in self._weights if i not in self._inputs}
        bound, results = _computed(bind_inputs(self._module, fixed), self._given_back)
        if not any(isinstance(result, int) for result in results):
            return None
        compiler = _graph_compiler(self._options)
        compiled = compiler.compile(bound, [args[i] for i in free], in_parts=not grad)
        if compiled is None:
            return None
        return _Specialised(compiled.run, free, results, compiled.repeats)


@dataclass(frozen=True)
class _Specialised:
    """A graph compiled for fixed sizes.

    Attributes
    ----------
    run : from tensors to a list of tensors.
    free : positions of the arguments that it takes.
    results : for each result of the graph its position in the list, or what it is instead.
    repeats : whether it is known to give the same for the same arguments.
    """

    run: Run
    free: Sequence[int]
    results: Sequence[int | _Known]
    repeats: bool

    def __call__(self, args: Sequence[Any]) -> list[Any]:
        tensors = self.run(*[args[i] for i in self.free])
        return [tensors[r] if isinstance(r, int) else r.value(args) for r in self.results]


@dataclass(frozen=True)
class _Known:
    """A result of a graph that is not computed.

    Attributes
    ----------
    constant : it, unless it is an argument.
    position : of the argument that it is.
    """

    constant: Any = None
    position: int | None = None

    def value(self, args: Sequence[Any]) -> Any:
        return self.constant if self.position is None else args[self.position]


class ModuleByShape:
    """A module compiled for each shapes of its inputs that are worth it, see `Patience`.

    Parameters
    ----------
    module : a function of tensors to a tuple of them.
    identity : names all that it computes, its weights included.
    who : begins warnings.
    """

    def __init__(
        self, module: torch.nn.Module, options: BackendOptions, identity: str, who: str
    ) -> None:
        self._module = module
        self._options = options
        self._identity = identity
        self._who = who
        self._compiled: dict[Any, Run | None] = {}
        self._patience = Patience(options.sizes)

    def compiled_run(self, tensors: Sequence[torch.Tensor]) -> Run | None:
        """What was compiled for the shapes and types of these tensors, if anything was."""
        return self._compiled.get(self._key(tensors))

    @staticmethod
    def _key(tensors: Sequence[torch.Tensor]) -> Any:
        return tuple((tuple(tensor.shape), tensor.dtype) for tensor in tensors)

    def __call__(self, tensors: Sequence[torch.Tensor]) -> Sequence[torch.Tensor]:
        """The results of the module."""
        key = self._key(tensors)
        if key not in self._compiled:
            if not self._patience.is_worth(key, len(self._compiled)):
                with torch.no_grad(), self._patience.running(key):
                    return self._module(*tensors)
            with self._patience.compiling(key):
                compiler = _graph_compiler(self._options, self._who)
                compiled = compiler.compile(self._module, tensors, self._identity)
            self._compiled[key] = None if compiled is None else compiled.run
        run = self._compiled[key]
        with torch.no_grad():
            return self._module(*tensors) if run is None else run(*tensors)


class _WithGradient(torch.autograd.Function):
    """Forward by compiled code; backward by PyTorch, which computes the graph once more for it."""

    @staticmethod
    def forward(ctx: Any, module: Any, run: _Specialised, *args: Any) -> tuple[Any, ...]:
        tensors = [arg for arg in args if isinstance(arg, torch.Tensor)]
        ctx.save_for_backward(*tensors)
        ctx.module = module
        ctx.others = [None if isinstance(arg, torch.Tensor) else (arg,) for arg in args]
        return tuple(run(args))

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> tuple[Any, ...]:
        saved = iter(ctx.saved_tensors)
        args = [next(saved) if other is None else other[0] for other in ctx.others]
        with torch.enable_grad():
            args = [
                arg.detach().requires_grad_(arg.requires_grad)
                if isinstance(arg, torch.Tensor)
                else arg
                for arg in args
            ]
            results = ctx.module(*args)
        pairs = [
            (result, gradient)
            for result, gradient in zip(results, gradients)
            if isinstance(result, torch.Tensor) and result.requires_grad and gradient is not None
        ]
        wanted = [arg for arg in args if isinstance(arg, torch.Tensor) and arg.requires_grad]
        found = iter(
            torch.autograd.grad(
                [result for result, _ in pairs],
                wanted,
                [gradient for _, gradient in pairs],
                allow_unused=True,
            )
        )
        return (
            None,
            None,
            *(
                next(found) if isinstance(arg, torch.Tensor) and arg.requires_grad else None
                for arg in args
            ),
        )


def _graph_compiler(
    options: BackendOptions, who: str = 'torch.compile(backend="felix")'
) -> GraphCompiler:
    target = Target(options.target)
    kernels = KernelCache.of_machine() if options.cache else None

    def build(network: Network) -> relax.Executable:
        records = options.records
        network = network.with_options(GraphOptions.for_target(target, options.winograd))
        if options.trials == 0:
            source = RecordedSchedules(target, records, kernels)
            if options.winograd is None:
                network = source.tuned_form(network)
            return relax.build(network.mod, target, source)
        with run_folder(records) as folder:
            search_kernels([network], target, folder, SearchBudget(options.trials), kernels)
            [tuned] = compile_tuned([network], target, folder, kernels)
            return tuned.executable

    if options.trials:
        # What was measured once is kept; other searches, those of this network's other graphs
        # among them, add schedules, but nothing that would be searched again.
        state = f"{options}"
    else:
        stamp = "" if options.records is None else _stamp(Path(options.records))
        state = f"{options} {stamp} {'' if kernels is None else kernels.state()}"
    networks = NetworkCache.of_machine() if options.cache else None
    return GraphCompiler(target, build, networks, state, who)


def _stamp(records: Path) -> str:
    file = records / "records.json" if records.is_dir() else records
    return f"{file.stat().st_mtime_ns}" if file.exists() else ""


def _is_weight(node: torch.fx.Node) -> bool:
    """Whether an input is a parameter or buffer of a module, as TorchDynamo marks them."""
    return bool((node.meta.get("tensor_dict") or {}).get("_dynamo_static_input_type"))


def _is_number(node: torch.fx.Node) -> bool:
    """Whether an input is a size, or a number that TorchDynamo passes as a tensor."""
    value = node.meta.get("example_value")
    if not isinstance(value, torch.Tensor):
        return True
    return value.dim() == 0 and len(node.users) > 0 and all(u.target == "item" for u in node.users)


def _gives_tensors(module: torch.fx.GraphModule) -> bool:
    """Whether there is anything to compute but sizes and numbers."""
    (output,) = (node for node in module.graph.nodes if node.op == "output")
    return any(
        isinstance(node.meta.get("example_value"), torch.Tensor) for node in output.all_input_nodes
    )


def _version(tensor: torch.Tensor) -> tuple[int, int]:
    """Differs after a tensor was written to, or another one took its place."""
    return tensor.data_ptr(), 0 if tensor.is_inference() else tensor._version


def _given_back(module: torch.fx.GraphModule) -> list[int | None]:
    """For each result of a graph the position of the input that it is, if it is one.

    A result that is an input is the same tensor: a module that keeps it in place of a weight, as
    ``self.anchors = self.anchors.to(x.device)`` does, has not changed the weight.
    """
    placeholders = [node for node in module.graph.nodes if node.op == "placeholder"]
    (output,) = (node for node in module.graph.nodes if node.op == "output")

    def example(item: Any) -> Any:
        return item.meta.get("example_value") if isinstance(item, torch.fx.Node) else None

    inputs = {
        id(example(node)): position
        for position, node in enumerate(placeholders)
        if isinstance(example(node), torch.Tensor)
    }
    return [inputs.get(id(example(item))) for item in output.args[0]]


def _computed(
    module: torch.fx.GraphModule, given_back: Sequence[int | None]
) -> tuple[torch.fx.GraphModule, list[int | _Known]]:
    """The graph with the results that have to be computed, and where each result is found."""
    (output,) = (node for node in module.graph.nodes if node.op == "output")
    kept: list[torch.fx.Node] = []
    results: list[int | _Known] = []
    for item, position in zip(output.args[0], given_back):
        if position is not None:
            results.append(_Known(position=position))
        elif isinstance(item, torch.fx.Node):
            results.append(len(kept))
            kept.append(item)
        else:
            results.append(_Known(constant=item))
    output.args = (tuple(kept),)
    module.recompile()
    return module, results
