"""What passes from one step to the next: a network, and a compiled one."""

from __future__ import annotations

import os
import tarfile
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

import tvm
from tvm import runtime
from tvm.ir import IRModule
from tvm.runtime import NDArray
from tvm.runtime.files import write_atomically
from tvm.runtime.params import named_arrays

from .errors import TVMCException

__all__ = ["TVMCModel", "TVMCPackage", "pack", "unpack"]

_Path = str | os.PathLike[str]


def pack(path: _Path, members: Mapping[str, Path]) -> None:
    """Write an archive of files under names of their own."""
    with tempfile.TemporaryDirectory() as folder:
        archive = Path(folder) / "archive.tar"
        with tarfile.open(archive, "w") as tar:
            for name, file in members.items():
                tar.add(file, name)
        write_atomically(Path(path), archive.read_bytes())


def unpack(path: _Path, folder: Path, wanted: tuple[str, ...]) -> None:
    """Read files of an archive into a folder, and nothing else that it may hold.

    Raises
    ------
    FileNotFoundError : there is no such file.
    TVMCException : it is no archive, or lacks a file.
    """
    try:
        with tarfile.open(path) as tar:
            for name in wanted:
                source = tar.extractfile(name)
                if source is None:
                    raise KeyError(name)
                (folder / name).write_bytes(source.read())
    except (tarfile.TarError, KeyError) as problem:
        raise TVMCException(
            f"{path} is no archive with {', '.join(wanted)}: {problem}; tvmc writes them"
        ) from problem


class TVMCModel:
    """A network as relay.

    Parameters
    ----------
    mod, params : the network and its weights by name.
    model_path : instead, a file that :meth:`save` wrote.
    name : of the network, for files that are written for it.

    Raises
    ------
    TVMCException : neither a network nor a file is given, or both.
    """

    _FILES = ("model.json", "model.params")

    def __init__(
        self,
        mod: IRModule | None = None,
        params: Mapping[str, Any] | None = None,
        model_path: _Path | None = None,
        name: str = "default",
    ) -> None:
        if (mod is None) == (model_path is None):
            raise TVMCException("TVMCModel: give a relay module, or the file of a saved model")
        self.name = name
        self.mod: IRModule
        self.params: dict[str, NDArray]
        if model_path is not None:
            self.load(model_path)
        else:
            assert mod is not None
            self.mod = mod
            self.params = named_arrays(params)

    def save(self, model_path: _Path) -> None:
        """Write network and weights to an archive."""
        with tempfile.TemporaryDirectory() as temporary:
            files = [Path(temporary) / name for name in self._FILES]
            files[0].write_text(tvm.ir.save_json(self.mod))
            files[1].write_bytes(runtime.save_param_dict(self.params))
            pack(model_path, dict(zip(self._FILES, files, strict=True)))

    def load(self, model_path: _Path) -> None:
        """Become the network of an archive."""
        with tempfile.TemporaryDirectory() as temporary:
            folder = Path(temporary)
            unpack(model_path, folder, self._FILES)
            self.mod = tvm.ir.load_json((folder / self._FILES[0]).read_text())
            weights = runtime.load_param_dict((folder / self._FILES[1]).read_bytes())
        self.params = dict(weights.items())

    def summary(self, file: IO[str] | None = None) -> None:
        """Print the network as relay's text."""
        print(self.mod.astext(show_meta_data=False), file=file)

    def default_tuning_records_path(self) -> str:
        """File of this network's records where none is named, in the working folder."""
        return f"{self.name}_tuner.log"

    def default_package_path(self) -> str:
        """File of this network's package where none is named, in the working folder."""
        return f"{self.name}-package.tar"


class TVMCPackage:
    """A compiled network: its library ``mod.so``, graph ``mod.json`` and weights ``mod.params``.

    Parameters
    ----------
    package_path : the archive that `compile` wrote.

    Attributes
    ----------
    lib_path : the library, in a folder that lasts as long as this object.
    graph : the graph as JSON. params : the weights, as ``load_param_dict`` reads them.

    Raises
    ------
    FileNotFoundError : there is no such file.
    TVMCException : it is no package.
    """

    lib_name = "mod.so"
    FILES = ("mod.so", "mod.json", "mod.params")

    def __init__(self, package_path: _Path) -> None:
        self.package_path = str(package_path)
        self._folder = tempfile.TemporaryDirectory()
        folder = Path(self._folder.name)
        unpack(package_path, folder, self.FILES)
        self.lib_path = str(folder / self.lib_name)
        self.graph = (folder / "mod.json").read_text()
        self.params = (folder / "mod.params").read_bytes()
