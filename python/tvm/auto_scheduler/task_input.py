"""Arrays that measurements of a task must use, where random numbers will not do."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from tvm.runtime.ndarray import NDArray, array

__all__ = ["TASK_INPUT_BUFFER_TABLE", "get_task_input_buffer", "register_task_input_buffer"]

# Workload key -> name of the input -> its array.
TASK_INPUT_BUFFER_TABLE: dict[str, dict[str, NDArray]] = {}

# A file of an input: name, shape and dtype, such as "weight.64_128_float32.npy".
_FILE_NAME = re.compile(r"(?P<name>.+)\.(?P<shape>[0-9]+(_[0-9]+)*)_(?P<dtype>[a-z]+[0-9]*)\.npy")


def _file_name(name: str, data: NDArray) -> str:
    return f"{name}.{'_'.join(str(int(extent)) for extent in data.shape)}_{data.dtype}.npy"


def _read(name: str, folder: Path) -> NDArray | None:
    """The input from the first file of its name in a folder, None without one."""
    for path in sorted(folder.glob("*.npy")):
        match = _FILE_NAME.fullmatch(path.name)
        if match is None or match["name"] != name:
            continue
        try:
            data = np.load(path, allow_pickle=False)
        except (ValueError, EOFError, OSError) as error:
            raise ValueError(f"task input {name!r}: {path} holds no array: {error}") from error
        shape = tuple(int(extent) for extent in match["shape"].split("_"))
        if data.shape != shape or str(data.dtype) != match["dtype"]:
            raise ValueError(
                f"task input {name!r}: {path} holds {data.dtype} of shape {data.shape}, its name "
                f"says {match['dtype']} of shape {shape}"
            )
        return array(data)
    return None


def register_task_input_buffer(
    workload_key: str,
    input_name: str,
    input_data: NDArray | np.ndarray,
    overwrite: bool = False,
    save_to_file: bool = False,
) -> NDArray:
    """Register the array that an input of a workload is measured with; gives it back.

    Parameters
    ----------
    workload_key : of the task.
    input_name : name of the placeholder.
    input_data : its contents, of the placeholder's shape and dtype.
    overwrite : replace an array that is registered, or stands in a file, already; else that one
        stays and comes back.
    save_to_file : write ``name.<shape>_<dtype>.npy`` into the current folder, where later runs
        find it.
    """
    table = TASK_INPUT_BUFFER_TABLE.setdefault(workload_key, {})
    if not overwrite:
        known = table.get(input_name)
        if known is None:
            known = _read(input_name, Path("."))
        if known is not None:
            table[input_name] = known
            return known
    data = input_data if isinstance(input_data, NDArray) else array(input_data)
    table[input_name] = data
    if save_to_file:
        np.save(_file_name(input_name, data), data.numpy(), allow_pickle=False)
    return data


def get_task_input_buffer(workload_key: str, input_name: str) -> NDArray:
    """The array registered for an input, or read from a file in the current folder.

    Raises
    ------
    ValueError : there is none, or the file is damaged; the message names it.
    """
    table = TASK_INPUT_BUFFER_TABLE.setdefault(workload_key, {})
    if input_name not in table:
        data = _read(input_name, Path("."))
        if data is None:
            raise ValueError(
                f"task input {input_name!r} of {workload_key} is not registered, and no file "
                f"{input_name}.<shape>_<dtype>.npy stands in {Path('.').resolve()}; use "
                "register_task_input_buffer"
            )
        table[input_name] = data
    return table[input_name]
