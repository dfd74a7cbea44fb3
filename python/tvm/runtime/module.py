"""Compiled modules."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import tvm._ffi
from tvm import error
from tvm._ffi.base import core

from . import _ffi_api
from .device import Device
from .object import Object

__all__ = ["BenchmarkResult", "Module", "enabled", "load_module", "system_lib_path"]


@dataclass(frozen=True)
class BenchmarkResult:
    """Seconds per call, one entry for each repeat."""

    results: tuple[float, ...]

    @property
    def mean(self) -> float:
        return float(np.mean(self.results))

    @property
    def median(self) -> float:
        return float(np.median(self.results))

    @property
    def min(self) -> float:
        return min(self.results)

    @property
    def max(self) -> float:
        return max(self.results)

    @property
    def std(self) -> float:
        return float(np.std(self.results))

    def __str__(self) -> str:
        return (
            f"median {self.median * 1e3:.4f} ms, mean {self.mean * 1e3:.4f} ms, "
            f"min {self.min * 1e3:.4f} ms, max {self.max * 1e3:.4f} ms, "
            f"{len(self.results)} repeats"
        )


@tvm._ffi.register_object("runtime.Module")
class Module(Object):
    """Functions of a compiled program. ``module["name"]`` is one; calling the module runs the
    entry function."""

    entry_name = "__tvm_main__"

    @property
    def type_key(self) -> str:
        """Kind of module, such as "jit" or "library"."""
        return _ffi_api.ModuleGetTypeKey(self)

    @property
    def format(self) -> str:
        """File format the module is saved in; empty when it cannot be."""
        return _ffi_api.ModuleGetFormat(self)

    @property
    def imported_modules(self) -> list[Module]:
        """Modules whose functions this one may call."""
        count = _ffi_api.ModuleImportSize(self)
        return [_ffi_api.ModuleGetImport(self, i) for i in range(count)]

    def import_module(self, module: Module) -> None:
        """Add a module whose functions this one may call.

        Raises
        ------
        ValueError : the imports would form a cycle.
        """
        _ffi_api.ModuleImport(self, module)

    def get_function_list(self) -> list[str]:
        """Names of the functions, as far as the module can list them."""
        return core.array_to_list(_ffi_api.ModuleListFunctionNames(self))

    def implements_function(self, name: str, query_imports: bool = False) -> bool:
        """Whether there is a function of that name."""
        return _ffi_api.ModuleGetFunction(self, name, query_imports) is not None

    def get_function(self, name: str, query_imports: bool = False) -> Any:
        """The function of that name.

        Raises
        ------
        AttributeError : there is none; the message lists the names there are.
        """
        function = _ffi_api.ModuleGetFunction(self, name, query_imports)
        if function is None:
            known = ", ".join(self.get_function_list()) or "not listed by this kind of module"
            raise error.AttributeError(f'Module: there is no function "{name}"; functions: {known}')
        return function

    def __getitem__(self, name: str) -> Any:
        return self.get_function(name)

    @property
    def entry_func(self) -> Any:
        """The function that calling the module runs."""
        return self.get_function(self.entry_name)

    def __call__(self, *args: Any) -> Any:
        return self.entry_func(*args)

    def get_source(self, fmt: str = "") -> str:
        """Source text, in the module's native form or in `fmt`."""
        return _ffi_api.ModuleGetSource(self, fmt)

    def save(self, path: str | Path, fmt: str = "") -> None:
        """Write the module to a file in its own format.

        Raises
        ------
        ValueError : modules of this kind cannot be saved.
        """
        _ffi_api.ModuleSaveToFile(self, str(path), fmt or Path(path).suffix.removeprefix("."))

    def export_library(
        self, path: str | Path, cc: str | None = None, addons: Sequence[str | Path] = ()
    ) -> None:
        """Link the module into a shared library that `load_module` reads back.

        Parameters
        ----------
        cc : C compiler used as linker; ``cc``, ``gcc`` or ``clang``, whichever is found first.
        addons : C sources and objects to compile and link into the library.

        Raises
        ------
        ValueError : modules of this kind have no object code.
        RuntimeError : no linker was found, or it failed (with its output).
        """
        linker = cc or next(filter(None, map(shutil.which, ("cc", "gcc", "clang"))), None)
        if linker is None:
            raise error.RuntimeError(
                "Module.export_library: no C compiler (cc, gcc, clang) was found to link with"
            )
        with tempfile.TemporaryDirectory() as folder:
            objects = []
            for i, module in enumerate([self, *self.imported_modules]):
                objects.append(str(Path(folder) / f"module{i}.o"))
                module.save(objects[-1], "o")
            # Calls into the runtime stay open: the process that loads the library provides them.
            parts = [*objects, *map(str, addons)]
            command = [linker, "-shared", "-fPIC", "-o", str(path), *parts, "-lm"]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise error.RuntimeError(f"Module.export_library: linking failed:\n{done.stderr}")

    def time_evaluator(
        self,
        func_name: str,
        dev: Device,
        number: int = 10,
        repeat: int = 1,
        min_repeat_ms: float = 0,
        cooldown_interval_ms: float = 0,
        cache_flush_bytes: int = 0,
    ) -> Callable[..., BenchmarkResult]:
        """A function that runs a function of the module with its arguments and times it.

        Parameters
        ----------
        dev : device the function runs on; its queue is empty when a clock is read.
        number : calls of one repeat, of which the mean is taken.
        repeat : number of results.
        min_repeat_ms : a repeat takes at least this long; `number` grows as needed.
        cooldown_interval_ms : pause between repeats.
        cache_flush_bytes : bytes written before each repeat, to evict the caches.

        Returns
        -------
        Callable from the function's arguments to a BenchmarkResult, in seconds per call.
        """
        if not dev.exist:
            raise error.RuntimeError(f"time_evaluator: device {dev} is not available here")
        evaluator = _ffi_api.TimeEvaluator(
            self.get_function(func_name),
            number,
            repeat,
            min_repeat_ms,
            cooldown_interval_ms,
            cache_flush_bytes,
        )

        def evaluate(*args: Any) -> BenchmarkResult:
            return BenchmarkResult(tuple(core.array_to_list(evaluator(*args))))

        return evaluate

    def benchmark(
        self, dev: Device, *args: Any, func_name: str | None = None, **options: Any
    ) -> BenchmarkResult:
        """Time a function (the entry function if none is named) with the given arguments."""
        options = {"repeat": 5, "min_repeat_ms": 50, **options}
        return self.time_evaluator(func_name or self.entry_name, dev, **options)(*args)

    def __reduce__(self) -> tuple[Any, ...]:
        raise TypeError("a Module cannot be pickled; use export_library and load_module")


def load_module(path: str | Path, fmt: str = "") -> Module:
    """A module from a file; the extension tells the format unless `fmt` does.

    Raises
    ------
    ValueError : no loader for the format.
    RuntimeError : the file is missing or is not a library.
    """
    return _ffi_api.ModuleLoadFromFile(str(path), fmt)


def enabled(target: str) -> bool:
    """Whether code for a kind of target or device can run here."""
    return _ffi_api.RuntimeEnabled(target)


def system_lib_path() -> Path:
    """Path of the runtime library, for linking C hosts."""
    return Path(_ffi_api.GetLibraryPath())
