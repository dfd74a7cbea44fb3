"""Compiled modules."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import IntFlag
from pathlib import Path
from typing import Any

import numpy as np

import tvm._ffi
from tvm import error
from tvm._ffi.base import core

from . import _ffi_api
from .device import Device
from .elf import write_embedding_object
from .linker import create_object, create_shared, embedding_source
from .object import Object
from .threading import config_threadpool

__all__ = [
    "BenchmarkResult",
    "Module",
    "ModulePropertyMask",
    "ProfileResult",
    "enabled",
    "load_module",
    "load_static_library",
    "system_lib",
    "system_lib_path",
]


# Where a library keeps the modules it was exported with; the runtime's kModuleImports.
IMPORTS_SYMBOL = "__tvm_module_imports"


# Kinds of modules whose functions run on a device.
_DEVICE_KINDS = frozenset({"cuda", "hip", "metal", "opencl", "rocm", "vulkan"})


class ModulePropertyMask(IntFlag):
    """What can be done with a module."""

    BINARY_SERIALIZABLE = 1
    RUNNABLE = 2
    DSO_EXPORTABLE = 4


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


# The older name.
ProfileResult = BenchmarkResult


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
        """Whether there is a function of that name, be it one that is callable only once it is
        linked."""
        if not self.is_runnable and name in self.get_function_list():
            return True
        return _ffi_api.ModuleGetFunction(self, name, query_imports) is not None

    def get_function(self, name: str, query_imports: bool = False) -> Any:
        """The function of that name; ``get_func_names`` lists those that there are.

        Raises
        ------
        AttributeError : there is none; the message lists the names there are.
        """
        function = _ffi_api.ModuleGetFunction(self, name, query_imports)
        if function is None and name == "get_func_names":
            return self.get_function_list
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

    def get_ir(self) -> str:
        """LLVM IR of a module that has it.

        Raises
        ------
        ValueError : the module is of another kind; the message names the way out.
        """
        if self.type_key != "llvm":
            raise ValueError(
                f'Module.get_ir: a module of kind "{self.type_key}" keeps no IR; get_source() has '
                "its source, and tvm.lower the program before code generation"
            )
        return self.get_source("ll")

    @property
    def is_dso_exportable(self) -> bool:
        """Whether the module is linked into a library, as code of the host is."""
        return _ffi_api.ModuleIsDSOExportable(self)

    @property
    def is_device_module(self) -> bool:
        """Whether the functions are kernels of a device."""
        return self.type_key in _DEVICE_KINDS

    @property
    def is_runnable(self) -> bool:
        """Whether functions can be called here; C and object code have to be linked first."""
        return self.type_key not in ("c", "static_library")

    def get_property_mask(self) -> int:
        """The properties as bits of `ModulePropertyMask`."""
        mask = 0
        if self.is_runnable:
            mask |= ModulePropertyMask.RUNNABLE
        if self.is_dso_exportable:
            mask |= ModulePropertyMask.DSO_EXPORTABLE
        elif self.is_device_module:
            mask |= ModulePropertyMask.BINARY_SERIALIZABLE
        return int(mask)

    @property
    def is_binary_serializable(self) -> bool:
        """Whether the module travels in a library as bytes, as kernels do."""
        return bool(self.get_property_mask() & ModulePropertyMask.BINARY_SERIALIZABLE)

    @property
    def is_binary(self) -> bool:
        """Whether the module came from machine code alone and so has no source."""
        return self.type_key == "library"

    def set_num_threads(self, threads: int) -> None:
        """Run parallel loops, of this module and of all others, on this many threads."""
        config_threadpool(threads)

    def set_cuda_props(self, **limits: int) -> None:
        """Refused, since limits of a GPU belong to the target that code is generated for.

        Raises
        ------
        ValueError : always; the message spells the target.
        """
        options = " ".join(f"-{name}={value}" for name, value in limits.items())
        raise ValueError(
            "Module.set_cuda_props: the code is generated already; build again with "
            f'tvm.target.Target("cuda {options}")'
        )

    def save(self, file_name: str | Path, fmt: str = "") -> None:
        """Write the module to a file in its own format.

        Raises
        ------
        ValueError : modules of this kind cannot be saved.
        """
        _ffi_api.ModuleSaveToFile(
            self, str(file_name), fmt or Path(file_name).suffix.removeprefix(".")
        )

    def export_library(
        self,
        file_name: str | Path,
        fcompile: Callable[..., None] | None = None,
        addons: Sequence[str | Path] | None = None,
        workspace_dir: str | Path | None = None,
        **kwargs: Any,
    ) -> None:
        """Link the module and all it imports into a shared library, which `load_module` reads back.

        Modules with object code or C source are linked; others, such as those of devices, travel
        inside the library as bytes. The library needs libtvm_runtime, and libtvm_stackvm
        beside it if kernels are emulated.

        Parameters
        ----------
        file_name : ends in ".so"; in ".tar" for an archive of what would be linked, which
            `load_module` links; or in what `fcompile` writes.
        fcompile : called as ``fcompile(file_name, files, **kwargs)`` instead of the system's C
            compiler, for instance to link for another machine.
        addons : C sources and objects to compile and link into the library.
        workspace_dir : folder for the files that are linked, kept afterwards; by default a
            temporary one.
        kwargs : for the linker; `create_shared` takes ``cc`` and ``options``.

        Raises
        ------
        ValueError : a module cannot be saved (the message names its kind), `file_name` is not
            that of a shared library, or it is one for another kind of machine and no compiler for
            that is given.
        RuntimeError : no linker was found, or it failed (with its output).
        """
        triple = next(filter(None, map(_foreign_triple, self._collect_dso_modules())), None)
        if fcompile is None:
            if triple is not None and Path(file_name).suffix != ".tar" and "cc" not in kwargs:
                raise ValueError(
                    f'export_library: "{file_name}" would hold code for {triple}, which the linker '
                    "of this machine does not take; pass a compiler for it as cc, or write the "
                    'objects into a file that ends in ".tar"'
                )
            fcompile = _writer_of(Path(file_name))
        with tempfile.TemporaryDirectory() as temporary:
            folder = Path(workspace_dir or temporary)
            folder.mkdir(parents=True, exist_ok=True)
            files: list[str] = []
            modules = self._import_tree()
            for module in self._collect_dso_modules():
                suffix = "c" if module.format == "c" else "o"
                files.append(str(folder / f"module{len(files)}.{suffix}"))
                module.save(files[-1], suffix)
            if len(modules) > len(files):
                data = folder / "imports.bin"
                data.write_bytes(_ffi_api.ModuleSerializeTree(self))
                source = folder / "imports.c"
                source.write_text(embedding_source(IMPORTS_SYMBOL, data))
                files.append(str(source))
                if Path(file_name).suffix == ".tar":
                    # The source names the file with the bytes, which will not be there then.
                    files[-1] = str(folder / "imports.o")
                    compiler = kwargs.pop("cc", None)
                    made = triple is not None and compiler is None
                    if not made or not write_embedding_object(
                        Path(files[-1]), IMPORTS_SYMBOL, data, Path(files[0])
                    ):
                        create_object(files[-1], [source], cc=compiler)
            fcompile(str(file_name), [*files, *map(str, addons or ())], **kwargs)

    def _import_tree(self) -> list[Module]:
        """This module and everything it imports, each once."""
        found: list[Module] = [self]
        for module in found:
            found += [new for new in module.imported_modules if new not in found]
        return found

    def _collect_from_import_tree(self, filter_func: Callable[[Module], bool]) -> list[Module]:
        """Of this module and everything it imports, those that the function is true of."""
        return [module for module in self._import_tree() if filter_func(module)]

    def _collect_dso_modules(self) -> list[Module]:
        """The modules that `export_library` links."""
        return self._collect_from_import_tree(lambda module: module.is_dso_exportable)

    def time_evaluator(
        self,
        func_name: str,
        dev: Device,
        number: int = 10,
        repeat: int = 1,
        min_repeat_ms: float = 0,
        limit_zero_time_iterations: int = 100,
        cooldown_interval_ms: float = 0,
        repeats_to_cooldown: int = 1,
        cache_flush_bytes: int = 0,
        f_preproc: str | Callable[..., Any] = "",
    ) -> Callable[..., BenchmarkResult]:
        """A function that runs a function of the module with its arguments and times it.

        Parameters
        ----------
        dev : device the function runs on, which is timed with its own timer if it has one.
        number : calls of one repeat, of which the mean is taken.
        repeat : number of results.
        min_repeat_ms : a repeat takes at least this long; `number` grows as needed.
        limit_zero_time_iterations : a function too short for the clock is tried this often before
            its time is taken to be zero.
        cooldown_interval_ms, repeats_to_cooldown : length of a pause, and repeats between pauses.
        cache_flush_bytes : bytes written before each repeat, to evict the caches.
        f_preproc : function, or name of a global one, called with the arguments before each repeat.

        Returns
        -------
        Callable from the function's arguments to a BenchmarkResult, in seconds per call.

        Raises
        ------
        RuntimeError : the device is not available. ValueError : a number is out of range, or there
            is no function `f_preproc`. TypeError : `dev` is no Device.
        """
        if not isinstance(dev, Device):
            raise TypeError(
                f"time_evaluator: dev must be a Device such as tvm.cpu(), got {type(dev).__name__}"
            )
        if not dev.exist:
            raise error.RuntimeError(f"time_evaluator: device {dev} is not available here")
        preprocess = self._preprocess_function(f_preproc)
        evaluator = _ffi_api.TimeEvaluator(
            self.get_function(func_name),
            dev,
            number,
            repeat,
            min_repeat_ms,
            limit_zero_time_iterations,
            cooldown_interval_ms,
            repeats_to_cooldown,
            cache_flush_bytes,
            preprocess,
        )

        def evaluate(*args: Any) -> BenchmarkResult:
            return BenchmarkResult(tuple(core.array_to_list(evaluator(*args))))

        return evaluate

    def _preprocess_function(self, given: str | Callable[..., Any]) -> Any:
        if not isinstance(given, str):
            return given
        return tvm._ffi.get_global_func(given) if given else None

    def benchmark(
        self, dev: Device, *args: Any, func_name: str | None = None, **options: Any
    ) -> BenchmarkResult:
        """Time a function (the entry function if none is named) with the given arguments."""
        options = {"repeat": 5, "min_repeat_ms": 50, **options}
        return self.time_evaluator(func_name or self.entry_name, dev, **options)(*args)

    def __reduce__(self) -> tuple[Any, ...]:
        raise TypeError("a Module cannot be pickled; use export_library and load_module")


_LIBRARY_SUFFIXES = (".so", ".dylib", ".dll")


def _foreign_triple(module: Module) -> str | None:
    # The room of targets, which is above this one, knows machines; modules of that kind are its.
    if module.type_key != "llvm":
        return None
    return tvm._ffi.get_global_func("target.llvm_foreign_triple")(module)


def _writer_of(file: Path) -> Callable[..., None]:
    if file.suffix == ".tar":
        from tvm.contrib.tar import tar

        return tar
    if file.suffix not in _LIBRARY_SUFFIXES:
        raise ValueError(
            f'export_library: "{file}" must end in ".so" or ".tar"; to write something else, pass '
            "a function as fcompile"
        )
    return create_shared


def load_module(path: str | Path, fmt: str = "") -> Module:
    """A module from a file; the extension tells the format unless `fmt` does.

    Object files (".o") and archives of them (".tar") are linked with the system's C compiler first.

    Raises
    ------
    ValueError : no loader for the format.
    RuntimeError : the file is missing or is not a library, or an object file cannot be linked.
    """
    suffix = f".{fmt}" if fmt else Path(path).suffix
    if suffix in (".o", ".tar"):
        return _load_linked(Path(path), suffix)
    # Whatever the extension of libraries is elsewhere, the system's loader reads them.
    return _ffi_api.ModuleLoadFromFile(str(path), "so" if suffix in _LIBRARY_SUFFIXES else fmt)


def load_static_library(path: str | Path, func_names: Sequence[str]) -> Module:
    """Object code of this machine, to be imported by a module that is then exported.

    Parameters
    ----------
    path : object file (".o"), as `Module.save` writes it.
    func_names : functions in it, which have the packed calling convention. They can be called when
        the library that they are linked into is loaded.

    Raises
    ------
    RuntimeError : there is no such file.
    """
    return _ffi_api.ModuleLoadStaticLibrary(str(path), list(func_names))


def _load_linked(path: Path, suffix: str) -> Module:
    if not path.is_file():
        raise error.RuntimeError(f'load_module: there is no file "{path}"')
    with tempfile.TemporaryDirectory() as folder:
        objects = [path]
        if suffix == ".tar":
            from tvm.contrib.tar import untar

            objects = untar(path, folder)
        library = Path(folder, f"{path.stem}.linked.so")
        create_shared(library, objects)
        # The library is mapped by now, so its file may go.
        return _ffi_api.ModuleLoadFromFile(str(library), "so")


def system_lib(symbol_prefix: str = "") -> Module:
    """The functions that are linked into the program and registered themselves, as a module.

    Code registers its functions if it was built for a target with ``-system-lib`` or from a module
    with the attribute "system_lib_prefix".

    Parameters
    ----------
    symbol_prefix : look for functions whose names begin with it, by the rest of their names.
    """
    return _ffi_api.SystemLib(symbol_prefix)


def enabled(target: str) -> bool:
    """Whether code for a kind of target (options may follow) or of device can run here."""
    kind, _, _ = target.strip().partition(" ")
    return _ffi_api.RuntimeEnabled(kind)


def system_lib_path() -> Path:
    """Path of the runtime library, for linking C hosts."""
    return Path(_ffi_api.GetLibraryPath())
