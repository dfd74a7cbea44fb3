"""Functions of other compilers among the modules of a network."""

from __future__ import annotations

import tempfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tvm import error
from tvm._ffi.libinfo import find_include_path
from tvm.runtime import Module as RuntimeModule
from tvm.runtime import load_static_library
from tvm.runtime.linker import create_object

from .core import Component
from .kernel_ops import extern

__all__ = ["ExternModule", "ObjectModule", "SourceModule"]

Inference = Callable[..., Any]
"""From what a function is called with to tensors like its results (`nn.Tensor.placeholder`)."""


class ExternModule(Component, ABC):
    """Functions that are linked into the network's library.

    ``module["name"](*args)`` calls one while a network is traced: it takes tensors, numbers and
    texts, then memory for its results. `export_tvm(..., allow_extern=True)` returns the modules in
    use.

    Parameters
    ----------
    symbols : for each function what its results are, given what it is called with.
    """

    def __init__(self, symbols: Mapping[str, Inference]) -> None:
        self._symbols = dict(symbols)

    def __getitem__(self, func_name: str) -> Callable[..., Any]:
        """What calls a function.

        Raises
        ------
        KeyError : the module has no function of this name.
        """
        if func_name not in self._symbols:
            raise error.KeyError(
                f"{type(self).__name__}: no function '{func_name}'; it has "
                f"{', '.join(self._symbols)}"
            )
        infer = self._symbols[func_name]

        def call(*args: Any) -> Any:
            return extern(func_name, args, infer(*args))

        call.__name__ = func_name
        return call

    @abstractmethod
    def load(self) -> RuntimeModule:
        """The functions as a module that can be linked."""


class ObjectModule(ExternModule):
    """Functions of an object file, which have the calling convention of c_runtime_api.h.

    Parameters
    ----------
    filepath : of the object file.

    Raises
    ------
    ValueError : there is no such file.
    """

    def __init__(self, symbols: Mapping[str, Inference], filepath: str | Path) -> None:
        super().__init__(symbols)
        self.filepath = Path(filepath)
        if not self.filepath.is_file():
            raise error.ValueError(f"ObjectModule: there is no file {self.filepath}")

    def load(self) -> RuntimeModule:
        return load_static_library(self.filepath, list(self._symbols))


_FORMATS = {"cpp": "cc", "cc": "cc", "cu": "cu"}


class SourceModule(ExternModule):
    """Functions of a source in C++ or CUDA, compiled when the network is built.

    C++ sources see ``TVM_DLL_EXPORT_TYPED_FUNC(name, function)`` of tvm/runtime/export_function.h
    without including it, which makes a function over ``DLTensor*`` and numbers one that can be
    called.

    Parameters
    ----------
    source_code : the text, or the file that holds it.
    source_format : "cpp" or "cu".
    compile_options : arguments of the compiler, `get_compile_options` by default.
    compiler : its name; the environment's C++ compiler by default, or nvcc.
    output_format : "obj".

    Raises
    ------
    ValueError : another format, or a file that does not exist.
    """

    def __init__(
        self,
        symbols: Mapping[str, Inference],
        source_code: str | Path,
        source_format: str,
        compile_options: Sequence[str] | None = None,
        compiler: str | None = None,
        output_format: str = "obj",
    ) -> None:
        super().__init__(symbols)
        if source_format not in _FORMATS:
            raise error.ValueError(
                f"SourceModule: source_format must be one of {', '.join(_FORMATS)}, got "
                f"{source_format!r}"
            )
        if output_format != "obj":
            raise error.ValueError(
                f'SourceModule: output_format must be "obj", got {output_format!r}'
            )
        self.source_code = _text_of(source_code)
        self.source_format = source_format
        self.compiler = compiler
        self.compile_options = (
            self.get_compile_options(source_format)
            if compile_options is None
            else [str(option) for option in compile_options]
        )

    @staticmethod
    def get_includes() -> list[Path]:
        """The folders of the runtime's headers."""
        return [Path(path) for path in find_include_path()]

    @staticmethod
    def get_compile_options(source_format: str) -> list[str]:
        """What the compiler is told unless something else is given.

        Raises
        ------
        ValueError : there is no such format.
        """
        includes = [f"-I{path}" for path in SourceModule.get_includes()]
        if source_format in ("cpp", "cc"):
            return ["-std=c++20", "-O3", *includes]
        if source_format == "cu":
            return ["-std=c++20", "-O3", "-forward-unknown-to-host-compiler", *includes]
        raise error.ValueError(f"SourceModule: no options for {source_format!r} are known")

    def compile(self, output_path: str | Path) -> None:
        """Write the object file.

        Raises
        ------
        RuntimeError : there is no compiler, or it failed; the message has its output.
        """
        suffix = _FORMATS[self.source_format]
        options = self.compile_options
        if suffix == "cc":
            options = [*options, "-include", "tvm/runtime/export_function.h"]
        with tempfile.TemporaryDirectory() as folder:
            source = Path(folder) / f"source.{suffix}"
            source.write_text(self.source_code)
            compiler = self.compiler or ("nvcc" if suffix == "cu" else None)
            create_object(output_path, [source], options, compiler)

    def load(self) -> RuntimeModule:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "source.o"
            self.compile(path)
            return load_static_library(path, list(self._symbols))


def _text_of(source: str | Path) -> str:
    """The text itself, or that of the file it names."""
    is_path = isinstance(source, Path) or ("\n" not in source and Path(source).suffix != "")
    if not is_path:
        return str(source)
    path = Path(source)
    if not path.is_file():
        raise error.ValueError(f"SourceModule: there is no file {path}")
    return path.read_text()
