"""Tapes of scalar operations: simplification, values and gradients."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property
from typing import Any, NamedTuple, cast

import numpy as np
import torch
from numpy.typing import ArrayLike

import tvm
import tvm._ffi
from tvm.runtime import Object

from . import _ffi_api

__all__ = ["Simplification", "Tape", "TapeOp", "TapeVar", "TorchExprRunner", "torch_function"]


#: Limits of equality saturation: what they leave out is below one percent (docs/simplifier.md).
ITERATIONS, NODE_LIMIT = 2, 20000

# What was simplified last, by content and limits: a network that is tuned again in the process, or
# under another seed, has the tapes that it had.
_MAX_SIMPLIFIED = 256
_SIMPLIFIED: dict[tuple[bytes, int, int], Simplification] = {}


class _Row(NamedTuple):
    """A row of ``tvm/felix/tape_ops.def``; the formulas are their text."""

    code: int
    name: str
    arity: int
    cost: int
    value: str
    derivatives: tuple[str, ...]


def _read_rows() -> dict[int, _Row]:
    rows = {}
    for code, name, arity, cost, value, *derivatives in _ffi_api.TapeOps():
        upper = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", str(name)).upper()
        texts = tuple(str(text) for text in derivatives)
        rows[int(code)] = _Row(int(code), upper, int(arity), int(cost), str(value), texts)
    return rows


_ROWS = _read_rows()

#: Operation codes, such as ``TapeOp.ADD``; the numbers are part of the saved format.
TapeOp = cast(Any, IntEnum)("TapeOp", {row.name: row.code for row in _ROWS.values()})


@dataclass(frozen=True)
class TapeVar:
    """A variable of a tape; its range is closed and may be infinite."""

    name: str
    is_integer: bool = True
    lower: float = float("-inf")
    upper: float = float("inf")


class Simplification(NamedTuple):
    """A simplified tape and how the search for it went."""

    tape: Tape
    stop_reason: str
    """``saturated``, ``iteration limit`` or ``node limit``; of several rounds the last named."""
    nodes: int
    """Of the e-graph, at its largest."""


@tvm._ffi.register_object("felix.Tape")
class Tape(Object):
    """Scalar expressions as one flat list of operations, each on earlier entries.

    Parameters
    ----------
    ops : uint8, shape (n,); TapeOp codes.
    args : int32, shape (n, 3); indices of earlier entries, -1 where a slot is unused.
    payload : int64, shape (n,); an integer, the bits of a float64, or the index of a variable.
    roots : int32, shape (n_roots,); the entries that are results.
    variables : what a point is made of, in column order.

    Raises
    ------
    ValueError : an entry has no such operation, reads an entry that does not come before it or a
        variable that the table lacks, or the arrays differ in length.
    """

    def __init__(
        self,
        ops: ArrayLike,
        args: ArrayLike,
        payload: ArrayLike,
        roots: ArrayLike,
        variables: Sequence[TapeVar],
    ) -> None:
        arrays = [
            tvm.nd.array(np.array(array, dtype=dtype))
            for array, dtype in (
                (ops, np.uint8),
                (args, np.int32),
                (payload, np.int64),
                (roots, np.int32),
            )
        ]
        self.__init_handle_by_constructor__(
            _ffi_api.Tape,
            *arrays,
            [v.name for v in variables],
            tvm.nd.array(np.array([v.lower for v in variables], np.float64)),
            tvm.nd.array(np.array([v.upper for v in variables], np.float64)),
            tvm.nd.array(np.array([v.is_integer for v in variables], np.uint8)),
        )

    @cached_property
    def variables(self) -> tuple[TapeVar, ...]:
        """What a point is made of, in column order."""
        columns = (self.var_integer.numpy(), self.var_lower.numpy(), self.var_upper.numpy())
        return tuple(
            TapeVar(str(name), bool(integer), float(lower), float(upper))
            for name, integer, lower, upper in zip(self.var_names, *columns)
        )

    def __len__(self) -> int:
        return self.ops.shape[0]

    @property
    def n_roots(self) -> int:
        """Number of results."""
        return self.roots.shape[0]

    def simplify(
        self, iterations: int = ITERATIONS, node_limit: int = NODE_LIMIT
    ) -> Simplification:
        """A tape with the same values at every point in the ranges, cheaper or equally cheap.

        Parameters
        ----------
        iterations, node_limit : limits of equality saturation, which puts all roots into one
            e-graph; with no iterations only the normal form is computed.
        """
        key = self._content, iterations, node_limit
        found = _SIMPLIFIED.pop(key, None)
        if found is None:
            tape, stop_reason, nodes = _ffi_api.SimplifyTape(self, iterations, node_limit)
            found = Simplification(tape, str(stop_reason), int(nodes))
        _SIMPLIFIED[key] = found
        while len(_SIMPLIFIED) > _MAX_SIMPLIFIED:
            del _SIMPLIFIED[next(iter(_SIMPLIFIED))]
        return found

    def forward(self, points: np.ndarray) -> np.ndarray:
        """Roots at points: float64, shape (n_points, n_roots) from (n_points, n_variables).

        Raises
        ------
        ValueError : the points have another number of columns.
        """
        points = np.ascontiguousarray(points, dtype=np.float64)
        return _ffi_api.TapeForward(self._program, tvm.nd.array(points)).numpy()

    def backward(self, points: np.ndarray, cotangents: np.ndarray) -> np.ndarray:
        """Gradient of ``sum_k cotangents[:, k] * root_k``: float64, shape of `points`.

        Where a root has no derivative, a sub-gradient is given: equal operands of min and max share
        it, and comparisons, floor and ceil have none.
        """
        points = np.ascontiguousarray(points, dtype=np.float64)
        cotangents = np.ascontiguousarray(cotangents, dtype=np.float64)
        gradient = _ffi_api.TapeBackward(
            self._program, tvm.nd.array(points), tvm.nd.array(cotangents)
        )
        return gradient.numpy()

    @cached_property
    def _content(self) -> bytes:
        """Digest of everything that values depend on, and of the variables' names."""
        columns = (self.ops, self.args, self.payload, self.roots)
        ranges = (self.var_integer, self.var_lower, self.var_upper)
        digest = hashlib.sha256(json.dumps([str(name) for name in self.var_names]).encode())
        for array in (*columns, *ranges):
            digest.update(array.shape[0].to_bytes(8, "little"))
            digest.update(array.numpy().tobytes())
        return digest.digest()

    @cached_property
    def _program(self) -> Any:
        return _ffi_api.TapeProgram(self)


class _TapeFunction(torch.autograd.Function):
    """The native evaluator as an operation of torch."""

    @staticmethod
    def forward(ctx: Any, points: torch.Tensor, tape: Tape) -> torch.Tensor:
        ctx.tape = tape
        ctx.save_for_backward(points)
        return torch.from_numpy(tape.forward(points.detach().numpy())).to(points.dtype)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, cotangents: torch.Tensor) -> tuple[torch.Tensor, None]:
        (points,) = ctx.saved_tensors
        gradient = ctx.tape.backward(points.detach().numpy(), cotangents.numpy())
        return torch.from_numpy(gradient).to(points.dtype), None


def torch_function(tape: Tape) -> Callable[[torch.Tensor], torch.Tensor]:
    """The tape as a function of torch tensors that can be differentiated once.

    Returns
    -------
    Function from (n_points, n_variables) to (n_points, n_roots), floating point, on the CPU. It
    computes in float64 whatever the dtype.
    """

    def evaluate(points: torch.Tensor) -> torch.Tensor:
        return _TapeFunction.apply(points, tape)

    return evaluate


def _real(value: torch.Tensor | float) -> torch.Tensor:
    return torch.as_tensor(value, dtype=torch.float64)


# What formulas of the table are written in, on tensors.
_FORMULA = {
    "truth": lambda condition: condition.to(torch.float64),
    "choose": lambda condition, x, y: torch.where(condition, x, y),
    "min": lambda a, b: torch.minimum(_real(a), _real(b)),
    "max": lambda a, b: torch.maximum(_real(a), _real(b)),
    "floor": torch.floor,
    "ceil": torch.ceil,
    "abs": torch.abs,
    "log": torch.log,
    "exp": torch.exp,
    "sqrt": torch.sqrt,
    "pow": torch.pow,
}
_TORCH_OPS: dict[int, Callable[..., torch.Tensor]] = {
    row.code: eval(f"lambda a, b=None, c=None: {row.value}", _FORMULA)
    for row in _ROWS.values()
    if row.arity
}


class TorchExprRunner(torch.nn.Module):
    """Reference evaluation of a tape, one torch operation an entry.

    Slow, readable, and differentiated by torch itself; the native evaluator is tested against it.
    """

    def __init__(self, tape: Tape) -> None:
        super().__init__()
        self.tape = tape

    def forward(self, points: torch.Tensor) -> torch.Tensor:
        """Roots: float64, shape (n_points, n_roots) from (n_points, n_variables)."""
        points = points.to(torch.float64)
        values: list[torch.Tensor] = []
        tape = self.tape
        for code, args, payload in zip(tape.ops.numpy(), tape.args.numpy(), tape.payload.numpy()):
            if code == TapeOp.VAR:
                value = points[:, int(payload)]
            elif code == TapeOp.INT_CONST:
                value = points.new_full((len(points),), float(payload))
            elif code == TapeOp.REAL_CONST:
                value = points.new_full((len(points),), float(payload.view(np.float64)))
            else:
                arity = _ROWS[int(code)].arity
                value = _TORCH_OPS[int(code)](*(values[arg] for arg in args[:arity]))
            values.append(value)
        return torch.stack([values[root] for root in tape.roots.numpy()], dim=1)
