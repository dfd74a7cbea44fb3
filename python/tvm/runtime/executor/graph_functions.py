"""What all executors of compiled graphs do: set inputs, run, get outputs."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..container import ShapeTuple
from ..device import RPC_SESS_MASK
from ..module import Module
from ..ndarray import NDArray, array

__all__ = ["GraphFunctions"]


def _as_type(dtype: str, values: np.ndarray) -> np.ndarray:
    """The same numbers in another type, where NumPy has it and only precision can be lost."""
    try:
        wanted = np.dtype(dtype)
    except TypeError:
        return values
    return values.astype(wanted) if np.can_cast(values.dtype, wanted, "same_kind") else values


class GraphFunctions:
    """A face on the functions of an executor, which ``lib["default"](device)`` gives.

    Its inputs are the graph's, then its parameters as "p0", "p1", ...
    """

    def __init__(self, module: Module) -> None:
        self.module = module
        self._get_output = module["get_output"]
        self._run = module["run"]
        # Of a session: arrays of this process mean nothing to its functions.
        self._is_remote = module.type_key == "rpc"

    def set_input(self, key: Any = None, value: Any = None, **params: Any) -> None:
        """Copy values to inputs, those of a session too.

        Parameters
        ----------
        key, value : name or number of an input, and an array. What is no NDArray, such as an array
            of NumPy, is converted to the type of the input, but real numbers not to integers.
        params : more inputs by name; names of no input are left out.

        Raises
        ------
        ValueError : there is no input of that name, or the array has another shape or type.
        """
        if key is not None:
            self.module["set_input"](key, self._array(key, value))
        for name, given in params.items():
            if self.get_input_index(name) >= 0:
                self.module["set_input"](name, self._array(name, given))

    def _array(self, key: int | str, value: Any) -> NDArray:
        is_array = isinstance(value, NDArray)
        if is_array and (not self._is_remote or value.device.device_type >= RPC_SESS_MASK):
            return value
        there = self.module["get_input"](key)
        if there is None:
            raise ValueError(f'graph executor: there is no input "{key}"')
        given = value if is_array else array(_as_type(there.dtype, np.asarray(value)))
        return given.copyto(there.device) if self._is_remote else given

    def _get(self, function: Any, key: int | str, out: NDArray | None) -> NDArray:
        if out is None:
            return function(key)
        if self._is_remote and out.device.device_type < RPC_SESS_MASK:
            function(key).copyto(out)
        else:
            function(key, out)
        return out

    def run(self, **input_dict: Any) -> None:
        """Compute the outputs; inputs given by name are set before."""
        if input_dict:
            self.set_input(**input_dict)
        self._run()

    def get_num_outputs(self) -> int:
        """Number of outputs."""
        return int(self.module["get_num_outputs"]())

    def get_num_inputs(self) -> int:
        """Number of inputs, parameters among them."""
        return int(self.module["get_num_inputs"]())

    def get_input(self, index: int | str, out: NDArray | None = None) -> NDArray:
        """Value of an input; `out` is filled if given."""
        return self._get(self.module["get_input"], index, out)

    def get_input_index(self, name: str) -> int:
        """Number of an input, -1 if there is none of that name."""
        return int(self.module["get_input_index"](name))

    def get_input_name(self, index: int) -> str:
        """Name of an input.

        Raises
        ------
        IndexError : there is no such input.
        """
        return str(self.module["get_input_name"](index))

    def get_input_info(self) -> tuple[dict[str, Any], dict[str, str]]:
        """Shapes and element types of the graph's inputs by name."""
        info = self.module["get_input_info"]()
        dtypes = dict(info["dtype"].items())
        if self._is_remote:
            # Shapes are objects, which stay in their process; those of arrays are known here.
            return {name: ShapeTuple(self.get_input(name).shape) for name in dtypes}, dtypes
        return dict(info["shape"].items()), dtypes

    def get_output(self, index: int, out: NDArray | None = None) -> NDArray:
        """An output of the last run; `out` is filled if given.

        Raises
        ------
        ValueError : it has not run yet. IndexError : there is no such output.
        """
        return self._get(self._get_output, index, out)

    def __getitem__(self, name: str) -> Any:
        """A function of the executor."""
        return self.module[name]
