"""Networks from files: ONNX models, and what `torch.export` and `torch.jit` saved."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["FILE_KINDS", "InputSpec", "is_network_file", "load_network_file", "short_name"]

# What files of networks end with: of ONNX, torch.export.save, and torch.jit.save.
FILE_KINDS = (".onnx", ".pt2", ".pt", ".pth", ".ts", ".torchscript")

_SPEC = re.compile(r"(?:(?P<name>[^=]+)=)?(?P<shape>\d+(?:x\d+)*|scalar)(?::(?P<dtype>\w+))?")


@dataclass(frozen=True)
class InputSpec:
    """An example input as the command line spells it: `[NAME=]1x3x224x224[:int64]`.

    Attributes
    ----------
    name : None for the next input.
    shape : of a tensor; "scalar" is one without axes.
    dtype : None for what the network says, float32 where it says nothing.
    """

    name: str | None
    shape: tuple[int, ...]
    dtype: str | None

    @classmethod
    def read(cls, text: str) -> InputSpec:
        """Raises a ValueError that shows the form for what does not have it."""
        found = _SPEC.fullmatch(text)
        if found is None:
            raise ValueError(
                f"input: expected [NAME=]SHAPE[:TYPE], as in 1x3x224x224 or ids=1x128:int64, got "
                f"'{text}'"
            )
        shape = found["shape"]
        extents = () if shape == "scalar" else tuple(map(int, shape.split("x")))
        return cls(found["name"], extents, found["dtype"])


def is_network_file(network: str) -> bool:
    """Whether a network is named by a file and not by a name or a function of Python."""
    return Path(network).suffix.lower() in FILE_KINDS


def short_name(network: str) -> str:
    """A network's name as part of a file name: that of its file, or dots for what separates."""
    if is_network_file(network):
        return Path(network).stem
    return network.replace(":", ".").replace("/", ".")


def load_network_file(
    path: str | Path, inputs: Sequence[InputSpec] = ()
) -> tuple[Any, tuple[Any, ...]]:
    """The module of a file and example inputs for it, all by position.

    Parameters
    ----------
    path : ends with one of `FILE_KINDS`.
    inputs : for ONNX the shapes that the model leaves open, for scripted modules every input; saved
        programs have theirs.

    Raises
    ------
    FileNotFoundError : there is no such file.
    ValueError : it is damaged or something else, or the inputs do not fit.
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}")
    kind = path.suffix.lower()
    if kind == ".onnx":
        return _load_onnx(path, inputs)
    if kind == ".pt2":
        return _load_exported(path, inputs)
    return _load_scripted(path, inputs)


def _load_onnx(path: Path, inputs: Sequence[InputSpec]) -> tuple[Any, tuple[Any, ...]]:
    from tvm.relax.frontend.onnx import OnnxModule, example_inputs

    module = OnnxModule(path).eval()
    names = [spec.name for spec in module.inputs]
    types = {spec.name: str(spec.dtype).removeprefix("torch.") for spec in module.inputs}
    shapes: dict[str, tuple[int, ...]] = {}
    for name, spec in zip(_names_of(inputs, names, path), inputs):
        if spec.dtype not in (None, types[name]):
            raise ValueError(f"{path}: input '{name}' is {types[name]}, not {spec.dtype}")
        shapes[name] = spec.shape
    for graph_input in module.inputs:
        shape = graph_input.shape
        if graph_input.name not in shapes and (
            shape is None or not all(isinstance(extent, int) for extent in shape)
        ):
            wanted = "?" if shape is None else "x".join(map(str, shape))
            raise ValueError(
                f"{path}: sizes of input '{graph_input.name}' are open ({wanted}); say which to "
                f"compile for, as in --input {graph_input.name}=1x3x224x224"
            )
    return module, example_inputs(module, shapes)


def _load_exported(path: Path, inputs: Sequence[InputSpec]) -> tuple[Any, tuple[Any, ...]]:
    from tvm.relax.frontend.torch.saved import load_exported

    if inputs:
        raise ValueError(f"{path}: an exported program has its inputs; leave --input out")
    program = load_exported(path)
    if program.example_inputs is None:
        raise ValueError(f"{path}: the program was saved without its example inputs")
    if program.range_constraints:
        raise ValueError(
            f"{path}: the program has open sizes "
            f"({', '.join(map(str, program.range_constraints))}); export it without "
            "dynamic_shapes, or compile it by felix.compile_dynamic in Python"
        )
    args, kwargs = program.example_inputs
    module = program.module()
    if kwargs:
        module = _by_position(module, len(args), list(kwargs))
    return module, (*args, *kwargs.values())


def _by_position(module: Any, n_args: int, names: Sequence[str]) -> Any:
    """A module whose last inputs, which `module` takes by name, follow the others."""
    import torch

    class ByPosition(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.program = module

        def forward(self, *inputs: Any) -> Any:
            return self.program(*inputs[:n_args], **dict(zip(names, inputs[n_args:])))

    return ByPosition()


def _load_scripted(path: Path, inputs: Sequence[InputSpec]) -> tuple[Any, tuple[Any, ...]]:
    import torch

    from tvm.relax.frontend.torch.saved import load_scripted

    try:
        module = load_scripted(path)
    except ValueError as error:
        raise ValueError(
            f"{error}; of weights alone a function makes a network: name it as module:function "
            "and the file as --weights"
        ) from error
    arguments = module._c._get_method("forward").schema.arguments[1:]
    names = [argument.name for argument in arguments]
    required = [argument.name for argument in arguments if not argument.has_default_value()]
    given = dict(zip(_names_of(inputs, names, path), inputs))
    missing = [name for name in required if name not in given]
    if missing:
        raise ValueError(
            f"{path}: a scripted module does not say the shapes of its inputs "
            f"({', '.join(names)}); give one --input for each, as in "
            f"--input {missing[0]}=1x3x224x224"
        )
    generator = torch.Generator().manual_seed(0)
    kwargs = {name: _example(spec, generator) for name, spec in given.items()}
    # The export takes inputs by position as far as there is no gap.
    positional = names[: len(kwargs)]
    if set(positional) == set(kwargs):
        return module, tuple(kwargs[name] for name in positional)
    raise ValueError(
        f"{path}: inputs are given up to the last that is wanted, in the order {', '.join(names)}"
    )


def _names_of(inputs: Sequence[InputSpec], names: Sequence[str], path: Path) -> list[str]:
    """Which input each spec is for."""
    rest = [name for name in names if name not in {spec.name for spec in inputs}]
    found = []
    for spec in inputs:
        if spec.name is not None and spec.name not in names:
            raise ValueError(
                f"{path}: there is no input '{spec.name}'; its inputs are {', '.join(names)}"
            )
        if spec.name is None and not rest:
            raise ValueError(f"{path}: takes {len(names)} inputs, --input is given {len(inputs)}")
        found.append(rest.pop(0) if spec.name is None else spec.name)
    return found


def _example(spec: InputSpec, generator: Any) -> Any:
    """Normally distributed, or zeros of a type that is not floating point."""
    import torch

    dtype = getattr(torch, spec.dtype or "float32", None)
    if not isinstance(dtype, torch.dtype):
        raise ValueError(f"input: there is no element type '{spec.dtype}'")
    if dtype.is_floating_point:
        return torch.randn(spec.shape, generator=generator).to(dtype)
    return torch.zeros(spec.shape, dtype=dtype)
