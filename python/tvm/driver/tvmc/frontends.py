"""Networks of other programs, read from files."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tvm import relay
from tvm.ir import IRModule
from tvm.relax.frontend.torch.saved import load_exported, load_scripted

from .errors import TVMCException
from .model import TVMCModel

__all__ = ["FORMATS", "load_model"]

Shapes = Mapping[str, Sequence[int]]
_Imported = tuple[IRModule, Mapping[str, Any]]


def _from_onnx(path: Path, shapes: Shapes | None) -> _Imported:
    return relay.frontend.from_onnx(str(path), shapes, freeze_params=False)


def _from_pytorch(path: Path, shapes: Shapes | None) -> _Imported:
    if not shapes:
        raise TVMCException(
            f"load: {path} does not say the shapes of its inputs; name them in order, as "
            '--input-shapes "data:[1,3,224,224]" or shape_dict'
        )
    try:
        program = load_exported(path) if path.suffix == ".pt2" else load_scripted(path)
    except ValueError as error:
        raise TVMCException(f"load: {error}") from error
    return relay.frontend.from_pytorch(program, [(n, tuple(s)) for n, s in shapes.items()])


def _from_relay(path: Path, shapes: Shapes | None) -> _Imported:
    if shapes:
        raise TVMCException(f"load: the text of {path} says the shapes of its inputs")
    return relay.parse(path.read_text()), {}


_READERS: dict[str, Callable[[Path, Shapes | None], _Imported]] = {
    "onnx": _from_onnx,
    "pytorch": _from_pytorch,
    "relay": _from_relay,
}
_SUFFIXES = {
    ".onnx": "onnx",
    ".pt": "pytorch",
    ".pt2": "pytorch",
    ".pth": "pytorch",
    ".relay": "relay",
}

FORMATS = tuple(_READERS)


def load_model(
    path: str | os.PathLike[str],
    model_format: str | None = None,
    shape_dict: Shapes | None = None,
) -> TVMCModel:
    """Read a network.

    Parameters
    ----------
    path : a file of ONNX, of ``torch.jit.save`` or ``torch.export.save`` (".pt2"), or relay's text.
    model_format : "onnx", "pytorch" or "relay"; by default what the file's name ends in says.
    shape_dict : shapes of inputs by name. For PyTorch in the order of the inputs, with any names;
        else those that the file leaves open.

    Raises
    ------
    FileNotFoundError : there is no such file.
    TVMCException : the format is not known, or needs shapes or takes none.
    ValueError : the network cannot be imported; the message names all operators that cannot.
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"load: there is no file {path}")
    chosen = model_format or _SUFFIXES.get(path.suffix)
    if chosen not in _READERS:
        asked = f'format "{model_format}"' if model_format else f"the format of {path.name}"
        raise TVMCException(f"load: {asked} is not one of {', '.join(FORMATS)}")
    mod, params = _READERS[chosen](path, shape_dict)
    return TVMCModel(mod, params, name=path.stem)
