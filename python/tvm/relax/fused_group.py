"""The distinct kernels of a fused network as te computations."""

from __future__ import annotations

import functools
import hashlib
from dataclasses import dataclass
from typing import Any

from tvm.ir import GlobalVar, IRModule
from tvm.te import ComputeOp, Tensor

from .expr import Call, Constant, Function
from .op import has_op, op_spec
from .rewriter import graph_functions
from .struct_info import static_shape, tensor_fields
from .te_lowering import TEFunction, function_to_te, tensors_flop

__all__ = ["FusedGroup", "fused_groups"]


@dataclass(frozen=True)
class FusedGroup:
    """One distinct kernel of a network.

    Attributes
    ----------
    name : unique in its module, made of the operators' names.
    function : the graph function, of attribute "Primitive".
    weight : how often one run of the network calls it.
    constant_inputs : positions of the inputs that are constants in every call, which a schedule may
        have stored in another layout.
    """

    name: str
    function: Function
    weight: int
    constant_inputs: frozenset[int]

    @functools.cached_property
    def te(self) -> TEFunction:
        """The computation as te tensors; the same objects each time."""
        return function_to_te(self.function)

    @property
    def args(self) -> list[Tensor]:
        """Inputs, then outputs: what a ComputeDAG or a schedule takes."""
        return self.te.args

    @property
    def is_tunable(self) -> bool:
        """Whether there is a schedule to search: it computes something, by no fixed program.

        Nor by an instruction that the search does not know, as for products of bytes.
        """
        known = all(op_spec(name).tunable for name, _ in self.te.calls)
        return self.flop > 0 and known and not any(_sums_bytes(t) for _, t in self.te.calls)

    @functools.cached_property
    def flop(self) -> int:
        """Floating-point operations of one call."""
        return tensors_flop(self.te.outputs)

    @functools.cached_property
    def key(self) -> str:
        """Equal for kernels of equal structure and shapes, in every process."""
        return hashlib.sha256(str(self.function).encode()).hexdigest()[:32]

    @property
    def op_names(self) -> list[str]:
        """Operators in order, without their prefix: ``["nn.conv2d", "add", "nn.relu"]``."""
        return [
            str(binding.value.op.name).removeprefix("relax.")
            for block in self.function.body.blocks
            for binding in block.bindings
            if has_op(binding.value.op)
        ]

    @property
    def input_shapes(self) -> list[tuple[int, ...]]:
        """Shape of each input."""
        return [static_shape(p.struct_info) for p in self.function.params]

    @property
    def output_shapes(self) -> list[tuple[int, ...]]:
        """Shape of each output."""
        return [static_shape(t) for t in tensor_fields(self.function.ret_struct_info)]


def _sums_bytes(result: Any) -> bool:
    """Whether a computation sums up products of bytes, or others smaller than the sum."""
    if not isinstance(result, Tensor) or result.dtype != "int32":
        return False
    if not isinstance(result.op, ComputeOp) or not len(result.op.reduce_axis):
        return False
    return all(operand.dtype in ("int8", "uint8") for operand in result.op.input_tensors)


def fused_groups(mod: IRModule) -> list[FusedGroup]:
    """The kernels of a module that has been fused, in order of their first call.

    Raises
    ------
    ValueError : the module has operators outside fused functions.
    """
    calls: dict[str, list[Call]] = {}
    functions: dict[str, Function] = {}
    for func in graph_functions(mod).values():
        for block in func.body.blocks:
            for binding in block.bindings:
                call = binding.value
                if isinstance(call, Call) and isinstance(call.op, GlobalVar):
                    name = str(call.op.name_hint)
                    calls.setdefault(name, []).append(call)
                    functions[name] = mod[name]
    return [
        FusedGroup(name, functions[name], len(uses), _constant_positions(uses))
        for name, uses in calls.items()
    ]


def _constant_positions(calls: list[Call]) -> frozenset[int]:
    return frozenset(
        i
        for i in range(len(calls[0].args))
        if all(isinstance(call.args[i], Constant) for call in calls)
    )
