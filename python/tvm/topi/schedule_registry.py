"""Good default schedules by kind of operator and of target, for kernels that nobody tuned.

A rule serves computations with one stage of its tag, whatever elementwise work stands around it.
It looks at the shapes and gives a schedule, or None where it has nothing better than the default.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tvm import te, tir
from tvm.target import Target

from . import tag
from .generic.default import default_schedule
from .utils import const_shape, get_const_tuple

if TYPE_CHECKING:
    import numpy as np

__all__ = [
    "Packing",
    "PackingRule",
    "ScheduleRule",
    "ScheduledArgs",
    "anchor_of",
    "has_rule_for",
    "is_elementwise_of",
    "operations_of",
    "register_packing",
    "register_schedule",
    "registered_schedules",
    "schedule_args_for",
    "schedule_for",
    "stored_array",
    "wanted_of",
]

ScheduleRule = Callable[[te.Tensor, Sequence[te.Tensor], Target], "te.Schedule | None"]

_RULES: dict[tuple[str, str], ScheduleRule] = {}


@dataclass(frozen=True)
class Packing:
    """Weights stored in the order in which a schedule reads them.

    Attributes
    ----------
    packed : the placeholder that is read in place of the weights.
    weight : the weights, each read from its place in `packed`; a schedule inlines this stage.
    dims, strides : for each dimension of `packed`, the dimension of the weights that it runs along,
        and by how many elements of that one a step of it moves.
    filled : extents of the weights with the zeros behind them that panels need; by default there
        are none.
    result : what takes the place of the operator's stage, and has its values; by default that stage
        reads `weight`.
    """

    packed: te.Tensor
    weight: te.Tensor
    dims: tuple[int, ...]
    strides: tuple[int, ...]
    filled: tuple[int, ...] = ()
    result: te.Tensor | None = None

    def pack(self, array: np.ndarray) -> np.ndarray:
        """An array in the layout of the weights as one in that of `packed`."""
        shape = get_const_tuple(self.packed.shape)
        return stored_array(array, shape, self.dims, self.strides, self.filled)


def stored_array(
    array: np.ndarray,
    shape: Sequence[int],
    dims: Sequence[int],
    strides: Sequence[int],
    filled: Sequence[int] = (),
) -> np.ndarray:
    """Weights as a :class:`Packing` with these fields stores them.

    Parameters
    ----------
    shape : of the result.
    """
    import numpy as np

    extents = filled or array.shape
    array = np.pad(array, [(0, wide - own) for wide, own in zip(extents, array.shape)])
    steps = [array.strides[d] * step for d, step in zip(dims, strides)]
    return np.ascontiguousarray(np.lib.stride_tricks.as_strided(array, shape, steps))


PackingRule = Callable[[te.Tensor, te.Tensor, Target], "Packing | None"]

_PACKINGS: dict[tuple[str, str], PackingRule] = {}


@dataclass(frozen=True)
class ScheduledArgs:
    """A schedule with the tensors it is for.

    Attributes
    ----------
    args : in the order of the tensors it was made for; some inputs may have another layout.
    packings : by the positions of those, how they are stored.
    """

    schedule: te.Schedule
    args: Sequence[te.Tensor]
    packings: Mapping[int, Packing] = field(default_factory=dict)


def register_schedule(
    tags: str | Sequence[str], key: str, override: bool = False
) -> Callable[[ScheduleRule], ScheduleRule]:
    """Decorator that enters a rule for operators on a kind of target.

    Parameters
    ----------
    tags : tags of the te stages that the rule is for; "injective" stands for computations without
        any other stage, and "" for all that no other rule serves.
    key : a key of the targets, such as "cpu", "gpu" or "cuda". Of a target's keys, the first with
        a rule counts.
    override : put the rule in the place of one that is there, such as the library's own.

    The rule gets the tagged stage's tensor (any output for "injective" and ""), all outputs, and
    the target.

    Raises
    ------
    ValueError : there is such a rule already, and it is not to be overridden.
    """

    def register(rule: ScheduleRule) -> ScheduleRule:
        for name in [tags] if isinstance(tags, str) else tags:
            if (name, key) in _RULES and not override:
                raise ValueError(
                    f"register_schedule: there is a schedule for '{name}' on '{key}' already "
                    f"({_RULES[name, key].__module__}); override=True replaces it"
                )
            _RULES[name, key] = rule
        return rule

    return register


def register_packing(
    tags: str | Sequence[str], key: str, override: bool = False
) -> Callable[[PackingRule], PackingRule]:
    """Decorator that enters how the constant weights of an operator are best stored.

    Parameters
    ----------
    tags, key, override : as for :func:`register_schedule`.

    The rule gets the tagged stage's tensor, the placeholder of the weights and the target.

    Raises
    ------
    ValueError : there is such a rule already, and it is not to be overridden.
    """

    def register(rule: PackingRule) -> PackingRule:
        for name in [tags] if isinstance(tags, str) else tags:
            if (name, key) in _PACKINGS and not override:
                raise ValueError(
                    f"register_packing: there is a packing for '{name}' on '{key}' already "
                    f"({_PACKINGS[name, key].__module__}); override=True replaces it"
                )
            _PACKINGS[name, key] = rule
        return rule

    return register


def registered_schedules() -> list[tuple[str, str]]:
    """Tag and target key of every rule, sorted."""
    return sorted(_RULES)


def operations_of(outputs: Sequence[te.Tensor]) -> list[te.ComputeOp]:
    """All computations that the outputs are made of, readers first."""
    found: list[te.ComputeOp] = []
    seen: set[te.Operation] = set()
    pending = [tensor.op for tensor in outputs]
    while pending:
        operation = pending.pop()
        if operation in seen:
            continue
        seen.add(operation)
        if isinstance(operation, te.ComputeOp):
            found.append(operation)
        pending.extend(tensor.op for tensor in operation.input_tensors)
    return found


def schedule_for(
    outs: te.Tensor | Sequence[te.Tensor], target: Target | str | None = None
) -> te.Schedule:
    """The best schedule that is known for a computation without searching.

    Parameters
    ----------
    outs : results of the computation.
    target : by default the current one, or llvm.

    Returns
    -------
    That of the rule for the computation's only stage that is not injective; where there is none,
    or where it declines, :func:`topi.generic.default_schedule`.
    """
    outputs = [outs] if isinstance(outs, te.Tensor) else list(outs)
    if not isinstance(target, Target):
        target = Target(target) if target else Target.current() or Target("llvm")
    if any(map(_is_empty, operations_of(outputs))):
        return default_schedule(outputs, target)
    for name, anchor in (anchor_of(outputs), ("", outputs[0])):
        # Rules for products tell the data from the weights, which one tensor is not both of.
        rule = None if _is_square(name, anchor) else _rule(name, target)
        chosen = rule(anchor, outputs, target) if rule is not None else None
        if chosen is not None:
            return chosen
    return default_schedule(outputs, target)


def _is_square(name: str, anchor: te.Tensor) -> bool:
    """Whether a stage multiplies a tensor with itself, such as ``dense(x, x)``."""
    is_product = name in (tag.DENSE, tag.MATMUL, tag.BATCH_MATMUL) or "conv" in name
    return is_product and len(anchor.op.input_tensors) == 1


def _is_empty(operation: te.ComputeOp) -> bool:
    """Whether there is nothing to compute or to sum, which rules have no tiles for."""
    extents = [loop.dom.extent for loop in (*operation.axis, *operation.reduce_axis)]
    return any(isinstance(extent, tir.IntImm) and int(extent) == 0 for extent in extents)


def schedule_args_for(
    args: Sequence[te.Tensor], constants: Collection[int], target: Target | str | None = None
) -> ScheduledArgs:
    """:func:`schedule_for` a computation of which some inputs may be stored in another layout.

    Parameters
    ----------
    args : inputs, then results.
    constants : positions of the inputs whose layout is free, such as weights.
    """
    outputs = [tensor for tensor in args if not isinstance(tensor.op, te.PlaceholderOp)]
    if not isinstance(target, Target):
        target = Target(target) if target else Target.current() or Target("llvm")
    name, anchor = anchor_of(outputs)
    rule = next((r for key in target.keys if (r := _PACKINGS.get((name, str(key))))), None)
    if rule is not None and not any(map(_is_empty, operations_of(outputs))):
        for position, weight in enumerate(args):
            if position not in constants or not _is_weight_of(weight, anchor, outputs):
                continue
            packing = rule(anchor, weight, target)
            if packing is None:
                continue
            if packing.result is None:
                results = te.replace_tensors(outputs, [(weight, packing.weight)])
            else:
                results = te.replace_tensors(outputs, [(anchor, packing.result)])
            inputs = list(args[: len(args) - len(outputs)])
            inputs[position] = packing.packed
            schedule = schedule_for(results, target)
            return ScheduledArgs(schedule, [*inputs, *results], {position: packing})
    return ScheduledArgs(schedule_for(outputs, target), list(args))


def _is_weight_of(weight: te.Tensor, reader: te.Tensor, outputs: Sequence[te.Tensor]) -> bool:
    """Whether a tensor is the second operand of a stage, and of no other stage.

    Of a stage that only moves elements it is the only one.
    """
    operands = list(reader.op.input_tensors)
    moves = len(operands) == 1 and not len(reader.op.reduce_axis)
    if not moves and (len(operands) < 2 or not weight.same_as(operands[1])):
        return False
    readers = [
        operation
        for operation in operations_of(outputs)
        if any(weight.op.same_as(tensor.op) for tensor in operation.input_tensors)
    ]
    return len(readers) == 1 and readers[0].same_as(reader.op)


def has_rule_for(outputs: Sequence[te.Tensor], target: Target) -> bool:
    """Whether a rule for this kind of computation, and not only one for all, is asked first."""
    name, _ = anchor_of(outputs)
    return bool(name) and _rule(name, target) is not None


def wanted_of(anchor: te.Tensor, outputs: Sequence[te.Tensor]) -> te.Tensor:
    """What is read of an anchor: all of it, or the stage that takes its first columns alone."""
    readers = [
        operation
        for operation in operations_of(outputs)
        if any(anchor.op.same_as(tensor.op) for tensor in operation.input_tensors)
    ]
    if len(readers) == 1 and readers[0].num_outputs == 1:
        (value,), axes = readers[0].body, readers[0].axis
        if isinstance(value, tir.ProducerLoad) and len(axes) == len(value.indices):
            leads = const_shape(readers[0].output(0).shape)[:-1] == const_shape(anchor.shape)[:-1]
            if leads and all(i.same_as(axis.var) for i, axis in zip(value.indices, axes)):
                return readers[0].output(0)
    return anchor


def is_elementwise_of(anchor: te.Tensor, outputs: Sequence[te.Tensor]) -> bool:
    """Whether there is one output, which reads each element of the anchor at its own place.

    It may read it several times, as x * sigmoid(x) does.
    """
    if len(outputs) != 1:
        return False
    shape = const_shape(anchor.shape)
    pending, seen = [outputs[0].op], {anchor.op}
    while pending:
        operation = pending.pop()
        if operation in seen:
            continue
        seen.add(operation)
        plain = tag.is_broadcast(str(operation.tag))
        if not plain or const_shape(operation.output(0).shape) != shape:
            return False
        pending.extend(
            tensor.op
            for tensor in operation.input_tensors
            if any(o.same_as(anchor.op) for o in operations_of([tensor]))
        )
    return const_shape(outputs[0].shape) == shape


def _rule(name: str, target: Target) -> ScheduleRule | None:
    return next((rule for key in target.keys if (rule := _RULES.get((name, str(key))))), None)


def anchor_of(outputs: Sequence[te.Tensor]) -> tuple[str, te.Tensor]:
    """Tag and tensor of the one stage that says what kind of computation this is.

    The tag is "injective" where there is no other stage, and "" where several could be meant.
    """
    operations = operations_of(outputs)
    tagged = [o for o in operations if str(o.tag) and not tag.is_injective(str(o.tag))]
    if len(tagged) == 1:
        return str(tagged[0].tag), tagged[0].output(0)
    plain = not tagged and not any(len(o.reduce_axis) for o in operations)
    return "injective" if plain else "", outputs[0]
