"""Bindings of dataflow blocks in another order."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from tvm import error
from tvm.ir import IRModule

from ..analysis import free_vars
from ..expr import Binding, DataflowBlock, Function, MatchCast, SeqExpr, Var
from ..rewriter import map_functions
from .graph_pass import graph_pass

__all__ = ["TopologicalSort"]


def _reads(binding: Binding) -> list[Var]:
    return free_vars(binding.value)


def _forward(
    nodes: Sequence[Var],
    before: dict[Var, list[Var]],
    starts: Sequence[Var],
    depth_first: bool,
) -> list[Var]:
    """Nodes in an order in which each comes when the last that it waits for has come.

    Parameters
    ----------
    before : what each node waits for: nodes, and starts, which come by themselves one by one.
    """
    after: dict[Var, list[Var]] = {}
    missing = {}
    for node in nodes:
        missing[node] = len(before[node])
        for other in before[node]:
            after.setdefault(other, []).append(node)
    order: list[Var] = []

    def released(var: Var) -> list[Var]:
        free = []
        for node in after.get(var, ()):
            missing[node] -= 1
            if not missing[node]:
                free.append(node)
        return free

    def follow(queue: deque[Var]) -> None:
        while queue:
            node = queue.popleft()
            order.append(node)
            fresh = released(node)
            if depth_first:
                queue.extendleft(reversed(fresh))
            else:
                queue.extend(fresh)

    waiting = deque(node for node in nodes if not before[node])
    if depth_first:
        follow(waiting)
    for start in starts:
        waiting.extend(released(start))
        if depth_first:
            follow(waiting)
    follow(waiting)
    return order


def _sorted(block: DataflowBlock, func: Function, depth_first: bool, from_inputs: bool) -> list:
    bindings = {b.var: b for b in block.bindings}
    reads = {var: _reads(b) for var, b in bindings.items()}
    if from_inputs:
        outer = {v for read in reads.values() for v in read if v not in bindings}
        starts = [p for p in func.params if p in outer]
        starts += [v for read in reads.values() for v in read if v in outer and v not in starts]
        order = _forward(list(bindings), reads, list(dict.fromkeys(starts)), depth_first)
    else:
        # The same from the other end: a binding comes when all that read it have come.
        readers: dict[Var, list[Var]] = {var: [] for var in bindings}
        for var, read in reads.items():
            for other in read:
                if other in readers:
                    readers[other].append(var)
        order = _forward(list(bindings)[::-1], readers, [], depth_first)[::-1]
    return [bindings[var] for var in order]


def _check(order: str = "depth-first", direction: str = "from-inputs") -> None:
    for what, value, choices in (
        ("order", order, ("depth-first", "breadth-first")),
        ("direction", direction, ("from-inputs", "from-outputs")),
    ):
        if value not in choices:
            raise error.ValueError(
                f'TopologicalSort: {what} must be "{choices[0]}" or "{choices[1]}", got {value!r}'
            )


@graph_pass("TopologicalSort", check=_check)
def TopologicalSort(
    mod: IRModule, order: str = "depth-first", direction: str = "from-inputs"
) -> IRModule:
    """The module with bindings of dataflow blocks in an order that follows what they read.

    Blocks with casts, which give extents their values, stay as they are.

    Parameters
    ----------
    order : "depth-first": a binding is followed by those that it was the last to be missing for;
        "breadth-first": by those that were there to follow before.
    direction : "from-inputs", or "from-outputs": the same from the end of the block backwards.

    Raises
    ------
    ValueError : an option has another value.
    """

    def rewrite(func: Function) -> Function:
        blocks = []
        for block in func.body.blocks:
            movable = isinstance(block, DataflowBlock) and not any(
                isinstance(b, MatchCast) for b in block.bindings
            )
            if movable:
                made = _sorted(block, func, order == "depth-first", direction == "from-inputs")
                if not all(a.same_as(b) for a, b in zip(made, block.bindings)):
                    block = DataflowBlock(made)
            blocks.append(block)
        if all(a.same_as(b) for a, b in zip(blocks, func.body.blocks)):
            return func
        body = SeqExpr(blocks, func.body.body)
        return Function(func.params, body, func.ret_struct_info, func.is_pure, func.attrs)

    return map_functions(mod, rewrite)
