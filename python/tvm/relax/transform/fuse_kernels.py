"""Groups of kernels that may become one."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tvm.ir import GlobalVar, IRModule

from ..analysis import free_vars
from ..block_builder import BlockBuilder
from ..expr import BindingBlock, Call, DataflowBlock, DataflowVar, Function, SeqExpr, Var
from ..op import OpPattern
from .fuse_by_pattern import with_own_extents
from .grouping import Group, largest_group, outline_groups

__all__ = ["fuse_kernel_calls", "has_kernel_patterns"]


def has_kernel_patterns(mod: IRModule) -> bool:
    """Whether kernels of the module say how they may be fused."""
    return any("op_pattern" in (func.attrs or {}) for func in mod.functions.values())


class _Flow:
    """Who reads what in a block, where paths meet again, and what belongs together."""

    def __init__(self, block: DataflowBlock, mod: IRModule) -> None:
        self._most = largest_group()
        self.order = [binding.var for binding in block.bindings]
        self.number = {var: i for i, var in enumerate(self.order)}
        self.pattern = [_pattern(binding.value, mod) for binding in block.bindings]
        self.users: list[list[int]] = [[] for _ in self.order]
        for i, binding in enumerate(block.bindings):
            for var in free_vars(binding.value):
                if var in self.number and i not in self.users[self.number[var]]:
                    self.users[self.number[var]].append(i)
        self.meet: list[int | None] = [None] * len(self.order)
        self._depth = [1] * len(self.order)
        for i in reversed(range(len(self.order))):
            self._set_meet(i)
        # The group of each binding, by one of its members, which has all of them and the largest of
        # their patterns.
        self._leader = list(range(len(self.order)))
        self._members = [[i] for i in range(len(self.order))]
        self._kind = list(self.pattern)

    def _set_meet(self, i: int) -> None:
        if not isinstance(self.order[i], DataflowVar) or not self.users[i]:
            return
        meet: int | None = self.users[i][0]
        for user in self.users[i][1:]:
            meet = self._common(meet, user)
        self.meet[i] = meet
        self._depth[i] = 1 if meet is None else self._depth[meet] + 1

    def _common(self, a: int | None, b: int | None) -> int | None:
        while a is not None and b is not None and a != b:
            if self._depth[a] >= self._depth[b]:
                a = self.meet[a]
            else:
                b = self.meet[b]
        return a if a is not None and b is not None else None

    def group(self, i: int) -> int:
        """The member that stands for the group."""
        while self._leader[i] != i:
            # Ways become shorter as they are gone.
            self._leader[i] = self._leader[self._leader[i]]
            i = self._leader[i]
        return i

    def members(self, i: int) -> list[int]:
        """All of the group of a binding."""
        return self._members[self.group(i)]

    def kind(self, i: int) -> OpPattern:
        """The pattern of the whole group of a binding."""
        return self._kind[self.group(i)]

    def _join(self, i: int, end: int) -> None:
        part, whole = self.group(i), self.group(end)
        if part == whole:
            return
        self._leader[part] = whole
        self._members[whole] += self._members[part]
        self._members[part] = []
        self._kind[whole] = max(self._kind[whole], self._kind[part])

    def between(self, start: int, end: int) -> list[int]:
        """What is on the ways from one to another, both left out."""
        seen: set[int] = set()
        pending = [start]
        while pending:
            for user in self.users[pending.pop()]:
                if user not in seen and user != end:
                    seen.add(user)
                    pending.append(user)
        return sorted(seen)

    def try_fuse(self, i: int, fits: Callable[[OpPattern, bool], bool]) -> None:
        """Join a binding with everything up to where its readers meet, if all of that fits."""
        end = self.meet[i]
        if end is None or self.group(i) == self.group(end):
            return
        inner = self.between(i, end)
        joined = {self.group(k) for k in (i, *inner, end)}
        if sum(len(self.members(group)) for group in joined) > self._most:
            return
        if fits(self.kind(end), True) and all(fits(self.kind(k), False) for k in inner):
            for k in [i, *inner]:
                self._join(k, end)


def _pattern(value: object, mod: IRModule) -> OpPattern:
    if not isinstance(value, Call) or str(getattr(value.op, "name", "")) != "relax.call_tir":
        return OpPattern.OPAQUE
    func = mod[str(value.args[0].name_hint)]
    number = int((func.attrs or {}).get("op_pattern", OpPattern.OPAQUE))
    known = {int(pattern) for pattern in OpPattern}
    return OpPattern(number) if number in known else OpPattern.OPAQUE


def _groups(block: DataflowBlock, mod: IRModule) -> Mapping[Var, Group]:
    flow = _Flow(block, mod)
    count = range(len(flow.order))
    for i in count:
        if flow.pattern[i] is OpPattern.OUT_FUSABLE:
            # One after the other, as long as elementwise work follows.
            while True:
                last = max(flow.members(i))
                before = flow.group(last)
                flow.try_fuse(last, lambda kind, _: kind <= OpPattern.BROADCAST)
                if flow.group(last) == before:
                    break
    for i in count:
        if flow.pattern[i] <= OpPattern.BROADCAST and flow.kind(i) <= OpPattern.INJECTIVE:
            flow.try_fuse(
                i,
                lambda kind, end: kind <= OpPattern.INJECTIVE or (end and kind < OpPattern.OPAQUE),
            )
    for i in count:
        if flow.pattern[i] is OpPattern.INJECTIVE and flow.kind(i) <= OpPattern.INJECTIVE:
            flow.try_fuse(i, lambda kind, _: kind <= OpPattern.INJECTIVE)
    made: dict[int, Group] = {}
    result: dict[Var, Group] = {}
    for i in count:
        if len(flow.members(i)) > 1:
            result[flow.order[i]] = made.setdefault(flow.group(i), Group({"Primitive": 1}))
    return result


def fuse_kernel_calls(mod: IRModule) -> IRModule:
    """The module with calls of kernels that may become one in functions of attribute "Primitive".

    What is computed element by element goes with the product or convolution before it, with what
    follows it, or with the reduction of it.
    """
    builder = BlockBuilder(mod)

    def add(func: Function, name: str) -> GlobalVar:
        return builder.add_func(with_own_extents(func), name)

    for gvar, func in mod.functions.items():
        if not isinstance(func, Function) or "Primitive" in func.attrs:
            continue
        blocks: list[BindingBlock] = []
        for block in func.body.blocks:
            if isinstance(block, DataflowBlock):
                groups = _groups(block, mod)
                block = outline_groups(block, groups, add, True) if groups else block
            blocks.append(block)
        body = SeqExpr(blocks, func.body.body)
        builder.update_func(
            gvar, Function(func.params, body, func.ret_struct_info, func.is_pure, func.attrs)
        )
    return builder.finalize()
