"""Arrays that measurements of a task must use, where random numbers will not do."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tvm import te
from tvm.runtime.ndarray import NDArray, array

from .utils import get_const_tuple, register_by_name

__all__ = [
    "TASK_INPUT_BUFFER_TABLE",
    "get_task_input_buffer",
    "names_of_inputs",
    "register_task_input_buffer",
    "register_task_input_check_func",
]

# Workload key -> name of the input -> its array.
TASK_INPUT_BUFFER_TABLE: dict[str, dict[str, NDArray]] = {}

# Function name -> function that finds inputs by what is computed from them.
_CHECK_FUNCS: dict[str, Callable[..., Any]] = {}

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


def register_task_input_check_func(
    func_name: str | Callable[..., Any],
    f: Callable[..., Any] | None = None,
    override: bool = False,
) -> Any:
    """Register a function that says under which names inputs have their arrays.

    Usable as ``@register_task_input_check_func``, with a name, or with both; gives the function
    back. It takes the list of io tensors of a computation and returns a mapping from inputs to
    names, as tasks have them in `task_inputs`; tensors that are no inputs are passed over.

    Raises
    ------
    ValueError : the name is not a string.
    RuntimeError : the name is taken by another function, and `override` is False.
    """
    return register_by_name(_CHECK_FUNCS, "register_task_input_check_func", func_name, f, override)


def names_of_inputs(tensors: Sequence[te.Tensor]) -> dict[str, int]:
    """Positions of a computation's tensors by their own names and by those of check functions."""
    positions = {tensor: i for i, tensor in enumerate(tensors)}
    found = {str(tensor.op.name): i for tensor, i in reversed(positions.items())}
    for check in _CHECK_FUNCS.values():
        named = check(list(tensors)).items()
        found.update(
            (str(name), positions[tensor]) for tensor, name in named if tensor in positions
        )
    return found


@register_task_input_check_func
def sparse_weights_of_products(tensors: Sequence[te.Tensor]) -> Mapping[te.Tensor, str]:
    """Inputs that are the sparse matrix of `topi.nn.sparse_dense`.

    They are named by sizes, ``sparse_dense_bsr_N_K_R_C_BLOCKS_ROWS_W_data`` for blocks of (R, C)
    and ``sparse_dense_csr_N_K_ELEMENTS_ROWS_W_data`` without blocks; ``W_indices`` and
    ``W_indptr`` likewise.
    """
    found: dict[te.Tensor, str] = {}
    for op, read in te.schedule.CreateReadGraph([tensor.op for tensor in tensors]).items():
        if str(op.tag) not in ("sparse_dense_sp_rhs_bsrmm_block", "sparse_dense_sp_rhs_csrmm"):
            continue
        # In the order in which they are read: where rows begin, then elements and their columns.
        starts, data, columns, dense = read
        count, *block = get_const_tuple(data.shape)
        (rows,) = get_const_tuple(starts.shape)
        sizes = [(rows - 1) * (block[0] if block else 1), int(dense.shape[1]), *block, count, rows]
        prefix = "_".join(["sparse_dense", "bsr" if block else "csr", *map(str, sizes), "W"])
        for part, tensor in (("data", data), ("indices", columns), ("indptr", starts)):
            found[tensor] = f"{prefix}_{part}"
    return found
