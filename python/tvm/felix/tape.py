"""Tapes of scalar operations: storage, simplification, values and gradients."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch

import tvm

from . import _ffi_api

__all__ = ["Tape", "TapeOp", "TapeVar", "TorchExprRunner", "torch_function"]


class TapeOp(IntEnum):
    """Operation codes; the numbers are part of the saved format."""

    INT_CONST = 0
    REAL_CONST = 1
    VAR = 2
    ADD = 3
    SUB = 4
    MUL = 5
    DIV = 6
    FLOOR_DIV = 7
    FLOOR_MOD = 8
    MIN = 9
    MAX = 10
    POW = 11
    LOG = 12
    EXP = 13
    SQRT = 14
    LT = 15
    LE = 16
    EQ = 17
    NE = 18
    AND = 19
    OR = 20
    NOT = 21
    SELECT = 22
    SIGMOID = 23
    HUMP = 24
    ABS = 25
    CEIL = 26
    FLOOR = 27


@dataclass(frozen=True)
class TapeVar:
    """A variable of a tape; its range is closed and may be infinite."""

    name: str
    is_integer: bool = True
    lower: float = float("-inf")
    upper: float = float("inf")


@dataclass(frozen=True, eq=False)
class Tape:
    """Scalar expressions as one flat list of operations, each on earlier entries.

    Attributes
    ----------
    ops : uint8, shape (n,); TapeOp codes.
    args : int32, shape (n, 3); indices of earlier entries, -1 where a slot is unused.
    payload : int64, shape (n,); an integer, the bits of a float64, or the index of a variable.
    roots : int32, shape (n_roots,); the entries that are results.
    variables : what a point is made of, in column order.
    """

    ops: np.ndarray
    args: np.ndarray
    payload: np.ndarray
    roots: np.ndarray
    variables: tuple[TapeVar, ...]

    def __post_init__(self) -> None:
        for name, dtype in (
            ("ops", np.uint8),
            ("args", np.int32),
            ("payload", np.int64),
            ("roots", np.int32),
        ):
            array = np.ascontiguousarray(getattr(self, name), dtype=dtype)
            object.__setattr__(self, name, array.reshape(-1, 3) if name == "args" else array)
        object.__setattr__(self, "variables", tuple(self.variables))
        if len(self.args) != len(self.ops) or len(self.payload) != len(self.ops):
            raise ValueError(
                f"Tape: {len(self.ops)} operations need as many rows of args and payloads, got "
                f"{len(self.args)} and {len(self.payload)}"
            )

    def __len__(self) -> int:
        return len(self.ops)

    @staticmethod
    def from_bytes(
        ops: bytes, args: bytes, payload: bytes, roots: bytes, variables: Sequence[TapeVar]
    ) -> Tape:
        """A tape from its arrays in native byte order."""
        return Tape(
            np.frombuffer(ops, np.uint8),
            np.frombuffer(args, np.int32),
            np.frombuffer(payload, np.int64),
            np.frombuffer(roots, np.int32),
            tuple(variables),
        )

    def simplified(self, iterations: int = 8, node_limit: int = 2000) -> Tape:
        """A tape with the same values at every point in the ranges, cheaper or equally cheap.

        Parameters
        ----------
        iterations, node_limit : limits of equality saturation for each subterm it is run on; with
            no iterations only the normal form is computed.
        """
        variables = self.variables
        arrays = _ffi_api.SimplifyTape(
            *self._arrays(),
            tvm.nd.array(np.array([v.lower for v in variables], np.float64)),
            tvm.nd.array(np.array([v.upper for v in variables], np.float64)),
            tvm.nd.array(np.array([v.is_integer for v in variables], np.uint8)),
            iterations,
            node_limit,
        )
        ops, args, payload, roots = (array.numpy() for array in arrays)
        return Tape(ops, args, payload, roots, variables)

    def forward(self, points: np.ndarray) -> np.ndarray:
        """Roots at points: float64, shape (n_points, n_roots) from (n_points, n_variables).

        Raises
        ------
        ValueError : the tape is malformed, or the points have another number of columns.
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

    def save(self, folder: str | Path) -> None:
        """Write the tape as plain ``.npy`` arrays into a folder."""
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        for name, array in self._saved().items():
            np.save(folder / f"{name}.npy", array, allow_pickle=False)

    @staticmethod
    def load(folder: str | Path) -> Tape:
        """Inverse of `save`.

        Raises
        ------
        FileNotFoundError : the folder lacks an array.
        """
        folder = Path(folder)
        saved = {
            name: np.load(folder / f"{name}.npy", allow_pickle=False) for name in _SAVED_ARRAYS
        }
        variables = zip(saved["names"], saved["is_integer"], saved["lower"], saved["upper"])
        return Tape(
            saved["ops"],
            saved["args"],
            saved["payload"],
            saved["roots"],
            tuple(TapeVar(str(n), bool(i), float(lo), float(up)) for n, i, lo, up in variables),
        )

    def _saved(self) -> Mapping[str, np.ndarray]:
        variables = self.variables
        return {
            "ops": self.ops,
            "args": self.args,
            "payload": self.payload,
            "roots": self.roots,
            "names": np.array([v.name for v in variables], dtype=np.str_),
            "is_integer": np.array([v.is_integer for v in variables], dtype=bool),
            "lower": np.array([v.lower for v in variables], dtype=np.float64),
            "upper": np.array([v.upper for v in variables], dtype=np.float64),
        }

    def _arrays(self) -> tuple[Any, ...]:
        arrays = (self.ops, self.args.reshape(-1), self.payload, self.roots)
        return tuple(tvm.nd.array(array) for array in arrays)

    @cached_property
    def _program(self) -> Any:
        return _ffi_api.TapeProgram(*self._arrays(), len(self.variables))


_SAVED_ARRAYS = ("ops", "args", "payload", "roots", "names", "is_integer", "lower", "upper")


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


def _truth(value: torch.Tensor) -> torch.Tensor:
    return value.to(torch.float64)


_TORCH_OPS: dict[TapeOp, Callable[..., torch.Tensor]] = {
    TapeOp.ADD: torch.add,
    TapeOp.SUB: torch.sub,
    TapeOp.MUL: torch.mul,
    TapeOp.DIV: torch.div,
    TapeOp.FLOOR_DIV: lambda a, b: torch.floor(a / b),
    TapeOp.FLOOR_MOD: lambda a, b: a - torch.floor(a / b) * b,
    TapeOp.MIN: torch.minimum,
    TapeOp.MAX: torch.maximum,
    TapeOp.POW: torch.pow,
    TapeOp.LOG: torch.log,
    TapeOp.EXP: torch.exp,
    TapeOp.SQRT: torch.sqrt,
    TapeOp.LT: lambda a, b: _truth(a < b),
    TapeOp.LE: lambda a, b: _truth(a <= b),
    TapeOp.EQ: lambda a, b: _truth(a == b),
    TapeOp.NE: lambda a, b: _truth(a != b),
    TapeOp.AND: lambda a, b: _truth((a != 0) & (b != 0)),
    TapeOp.OR: lambda a, b: _truth((a != 0) | (b != 0)),
    TapeOp.NOT: lambda a: _truth(a == 0),
    TapeOp.SELECT: lambda c, a, b: torch.where(c != 0, a, b),
    TapeOp.SIGMOID: lambda a: 0.5 + 0.5 * a / torch.sqrt(1 + a * a),
    TapeOp.HUMP: lambda a: 1 / torch.sqrt(1 + a * a),
    TapeOp.ABS: torch.abs,
    TapeOp.CEIL: torch.ceil,
    TapeOp.FLOOR: torch.floor,
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
        for code, args, payload in zip(self.tape.ops, self.tape.args, self.tape.payload):
            op = TapeOp(code)
            if op == TapeOp.VAR:
                value = points[:, int(payload)]
            elif op == TapeOp.INT_CONST:
                value = points.new_full((len(points),), float(payload))
            elif op == TapeOp.REAL_CONST:
                value = points.new_full((len(points),), float(payload.view(np.float64)))
            else:
                value = _TORCH_OPS[op](*(values[arg] for arg in args if arg >= 0))
            values.append(value)
        return torch.stack([values[root] for root in self.tape.roots], dim=1)
