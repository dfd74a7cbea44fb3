"""ONNX models as callables over arrays or tensors."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import torch

from tvm.relax.frontend.onnx import OnnxError, OnnxModule, example_inputs
from tvm.relax.frontend.onnx.module import GraphInput
from tvm.relax.frontend.onnx.types import tensor_of
from tvm.target import Target

from .torch_backend import BackendOptions, ModuleByShape
from .torch_graph import CompiledRun

__all__ = ["OnnxNetwork", "from_onnx"]

# Larger integer inputs are data, such as the tokens of a text, and not sizes or axes.
_MAX_FIXED_ELEMENTS = 64


def from_onnx(
    model: str | os.PathLike[str] | bytes | onnx.ModelProto,
    target: Target | str = "llvm",
    records: str | os.PathLike[str] | None = None,
    cache: bool = True,
) -> OnnxNetwork:
    """An ONNX model as a callable.

    It is compiled when it is first called, for the shapes of the inputs, and once more for other
    shapes: the first four when they come, further ones where that pays. `felix.tune` and
    `felix.compile` take it like any network; `example_inputs` has inputs for them.

    Parameters
    ----------
    model : a file, its content, or a model.
    target : what to compile for; it must be able to run in this process.
    records : folder of a tuning run, or file of measured schedules.
    cache : whether the schedules that this machine remembers are used, and compiled models kept.

    Raises
    ------
    FileNotFoundError : there is no such file.
    OnnxError : a ValueError: the file is damaged, or has operators, types or opsets that are not
        supported; one message.
    ModuleNotFoundError : the onnx package is not installed.
    """
    options = BackendOptions(str(target), 0, records, None, cache)
    return OnnxNetwork(OnnxModule(model), options)


class OnnxNetwork(torch.nn.Module):
    """An ONNX model; calling it computes its results.

    `run`, `get_inputs` and `get_outputs` are those of a session of ONNX Runtime, so that programs
    written for one need another first line only.

    Attributes
    ----------
    input_names, output_names : in the order of the graph.
    """

    def __init__(self, module: OnnxModule, options: BackendOptions) -> None:
        super().__init__()
        self._module = module.eval()
        self._options = options
        self._fixed: list[int] | None = None
        self._compiled: dict[bytes, ModuleByShape] = {}
        # What computes the results of inputs whose shapes and types came before.
        self._known: dict[Any, Callable[[Sequence[Any]], list[Any]]] = {}
        self.input_names = [spec.name for spec in module.inputs]
        self.output_names = list(module.output_names)

    def __getstate__(self) -> dict[str, Any]:
        # Copies and pickles compile anew, or take from the machine's cache what was compiled.
        return {**self.__dict__, "_compiled": {}, "_known": {}}

    def __repr__(self) -> str:
        def described(spec: Any) -> str:
            dims = ", ".join("?" if e is None else str(e) for e in spec.shape or ())
            kind = str(spec.dtype).removeprefix("torch.")
            return f"{spec.name}: {kind} ({dims})" if spec.shape is not None else spec.name

        inputs = ", ".join(map(described, self._module.inputs))
        return (
            f"OnnxNetwork of {self._module.name}, ({inputs}) -> ({', '.join(self.output_names)}), "
            f"compiled for {len(self._compiled)} kinds of inputs"
        )

    def example_inputs(
        self, shapes: Mapping[str, Sequence[int]] | None = None
    ) -> tuple[torch.Tensor, ...]:
        """Random inputs, to tune with for instance; integers are zeros.

        Parameters
        ----------
        shapes : by name, for inputs whose shape the model leaves open.

        Raises
        ------
        OnnxError : a shape is open, or is not one that the model takes, or there is no such input.
        """
        return example_inputs(self._module, shapes)

    def forward(self, *inputs: Any) -> Any:
        """The results as PyTorch computes them; what exports and imports of the model see."""
        return self._module(*inputs)

    def __call__(self, *inputs: Any, **named: Any) -> Any:
        """The results, in the order of the graph: one, or a tuple of several.

        Parameters
        ----------
        inputs : arrays or tensors in the order of the graph; the results are of the kind of the
            first. Lists for sequences, None for optional inputs that are left out.
        named : the inputs that follow, by name; ``network(**feed)`` takes a dictionary.

        Raises
        ------
        OnnxError : a wrong number of inputs, or one of another name, type or shape than the model
            has.
        """
        if named:
            inputs = self._in_order(inputs, named)
        if torch.compiler.is_compiling():
            return super().__call__(*inputs)
        known = self._results_of_known(inputs)
        if known is not None:
            return tuple(known) if len(self.output_names) > 1 else known[0]
        given = [self._tensor(value) for value in inputs]
        self._check(given)
        if all(isinstance(value, torch.Tensor) for value in given):
            results = self._run_compiled(given)
            self._remember(inputs, given, results)
        else:
            # Sequences and optional values are no inputs of compiled code.
            with torch.no_grad():
                results = self._module(*given)
            results = results if len(self.output_names) > 1 else (results,)
        arrays = bool(inputs) and not any(isinstance(value, torch.Tensor) for value in inputs)
        found = [_like_inputs(value, arrays) for value in results]
        return tuple(found) if len(self.output_names) > 1 else found[0]

    def run(self, output_names: Sequence[str] | None, input_feed: Mapping[str, Any]) -> list[Any]:
        """Results by name, as a session of ONNX Runtime gives them.

        Parameters
        ----------
        output_names : the results that are wanted; None for all.
        input_feed : the inputs by name.

        Raises
        ------
        OnnxError : there is no such result, or as a call raises it.
        """
        if output_names is None and len(input_feed) == len(self.input_names):
            values = [input_feed.get(name) for name in self.input_names]
            known = self._results_of_known(values)
            if known is not None:
                return known
        places = {name: i for i, name in enumerate(self.output_names)}
        wanted = self.output_names if output_names is None else list(output_names)
        for name in wanted:
            if name not in places:
                raise OnnxError(
                    f"{self._module.name}: there is no result '{name}'; it has "
                    f"{', '.join(self.output_names)}"
                )
        results = self(*self._in_order((), input_feed))
        several = results if len(places) > 1 else (results,)
        return [several[places[name]] for name in wanted]

    def get_inputs(self) -> list[GraphInput]:
        """What the model takes: name, shape and type of each."""
        return list(self._module.inputs)

    def get_outputs(self) -> list[GraphInput]:
        """What the model gives: name, shape and type of each."""
        return list(self._module.outputs)

    def _in_order(self, inputs: Sequence[Any], named: Mapping[str, Any]) -> tuple[Any, ...]:
        rest = self.input_names[len(inputs) :]
        wrong = sorted(named.keys() ^ set(rest))
        if wrong:
            name = f"the input '{wrong[0]}'"
            what = (
                f"lacks {name}" if wrong[0] in rest
                else f"is given {name} twice" if wrong[0] in self.input_names
                else f"does not take {name}"
            )  # fmt: skip
            raise OnnxError(f"{self._module.name}: {what}; it takes {', '.join(self.input_names)}")
        return (*inputs, *(named[name] for name in rest))

    def _tensor(self, value: Any) -> Any:
        if isinstance(value, (list, tuple)):
            return [self._tensor(item) for item in value]
        if value is None or isinstance(value, torch.Tensor):
            return value
        if isinstance(value, Mapping):
            raise OnnxError(
                f"{self._module.name}: takes its inputs one by one or by name; write "
                "network(**inputs), or network.run(None, inputs)"
            )
        return tensor_of(np.asarray(value))

    def _run_compiled(self, tensors: Sequence[torch.Tensor]) -> Sequence[torch.Tensor]:
        """Results of the model compiled for these shapes, and for the values that decide them."""
        if self._fixed is None:
            self._fixed = self._inputs_to_fix(tensors)
        fixed = {i: tensors[i].numpy() for i in self._fixed}
        key = b"".join(f"{i} {a.dtype} {a.shape}".encode() + a.tobytes() for i, a in fixed.items())
        if key not in self._compiled:
            name = hashlib.sha256(self._module.digest.encode() + key).hexdigest()
            self._compiled[key] = ModuleByShape(
                _Several(self._module, fixed),
                self._options,
                f"onnx {name}",
                f"felix.from_onnx({self._module.name})",
            )
        return self._compiled[key]([t for i, t in enumerate(tensors) if i not in fixed])

    def _results_of_known(self, values: Sequence[Any]) -> list[Any] | None:
        """Results of inputs that need no questions, since their like came before; else None."""
        try:
            run = self._known.get(_kinds(values))
        except AttributeError:
            return None
        if run is None or not all(map(_is_plain, values)):
            return None
        return run(values)

    def _remember(
        self,
        inputs: Sequence[Any],
        tensors: Sequence[torch.Tensor],
        results: Sequence[torch.Tensor],
    ) -> None:
        """What computes results of inputs of such shapes and types is asked at once next time."""
        run = None if self._fixed else self._compiled[b""].compiled_run(tensors)
        if not isinstance(run, CompiledRun) or not inputs:
            return
        if all(isinstance(value, torch.Tensor) for value in inputs):
            self._known[_kinds(inputs)] = lambda values: run(*values)
        elif all(map(_is_plain, inputs)) and run.takes_arrays:
            in_numpy = all(value.dtype.kind in "biuf" for value in inputs)
            if in_numpy and not any(result.dtype in _NOT_IN_NUMPY for result in results):
                self._known[_kinds(inputs)] = run.of_arrays

    def _inputs_to_fix(self, tensors: Sequence[torch.Tensor]) -> list[int]:
        small = {
            i
            for i, tensor in enumerate(tensors)
            if not tensor.dtype.is_floating_point and tensor.numel() <= _MAX_FIXED_ELEMENTS
        }
        # Computing the graph to see what is asked for is of no use where nothing can be fixed.
        return sorted(small & self._module.inputs_to_know(tensors)) if small else []

    def _check(self, inputs: Sequence[Any]) -> None:
        specs = self._module.inputs
        if len(inputs) != len(specs):
            raise OnnxError(
                f"{self._module.name}: takes {len(specs)} inputs ({', '.join(self.input_names)}), "
                f"got {len(inputs)}"
            )
        for spec, value in zip(specs, inputs):
            if spec.dtype is None or value is None or isinstance(value, list):
                continue
            shape = tuple(value.shape)
            fits = spec.shape is None or (
                len(shape) == len(spec.shape)
                and all(not isinstance(w, int) or w == e for w, e in zip(spec.shape, shape))
            )
            if value.dtype != spec.dtype or not fits:
                raise OnnxError(
                    f"{self._module.name}: input '{spec.name}' must be {_kind(spec.dtype)} of "
                    f"shape {spec.shape}, got {_kind(value.dtype)} of shape {shape}"
                )


class _Several(torch.nn.Module):
    """The model with some inputs fixed, and with a tuple of results, also where there is one."""

    def __init__(self, module: OnnxModule, fixed: Mapping[int, np.ndarray[Any, Any]]) -> None:
        super().__init__()
        self._module = module
        self._fixed = fixed

    def forward(self, *inputs: torch.Tensor) -> tuple[Any, ...]:
        rest = iter(inputs)
        results = self._module(
            *(
                self._fixed[i] if i in self._fixed else next(rest)
                for i in range(len(self._module.inputs))
            )
        )
        return results if isinstance(results, tuple) else (results,)


def _kinds(values: Sequence[Any]) -> Any:
    """Types and shapes of tensors or arrays."""
    return tuple([(value.dtype, value.shape) for value in values])


def _is_plain(value: Any) -> bool:
    """Whether a tensor, or an array that compiled code takes as it is."""
    return isinstance(value, torch.Tensor) or (type(value) is np.ndarray and value.flags.carray)


def _kind(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def _like_inputs(value: Any, arrays: bool) -> Any:
    if isinstance(value, (list, tuple)):
        return [_like_inputs(item, arrays) for item in value]
    if not arrays or not isinstance(value, torch.Tensor):
        return value
    if value.dtype in _NOT_IN_NUMPY:
        import ml_dtypes

        integers = value.view(torch.int16 if value.dtype == torch.bfloat16 else torch.uint8)
        return integers.numpy().view(getattr(ml_dtypes, _kind(value.dtype)))
    return value.numpy()


_NOT_IN_NUMPY = (
    torch.bfloat16,
    torch.float8_e4m3fn,
    torch.float8_e4m3fnuz,
    torch.float8_e5m2,
    torch.float8_e5m2fnuz,
)
