"""Where the schedules of a search come from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from typing import Any

from tvm import tir
from tvm.ir import IRModule

from ..defaults import kind_of
from ..mutator.mutator import Mutator
from ..postproc.postproc import Postproc
from ..schedule_rule.schedule_rule import ScheduleRule
from ..utils import Named

__all__ = [
    "PostOrderApply",
    "PySpaceGenerator",
    "ScheduleFn",
    "SpaceGenerator",
    "SpaceGeneratorUnion",
    "create",
]

_FROM_TARGET = "from-target"


class SpaceGenerator(Named):
    """Base of generators, which define `generate_design_space`.

    Parameters
    ----------
    sch_rules, postprocs, mutator_probs : lists and chances; "from-target" takes those for the
        target's kind where there are any, another text those of that kind, and None none.
    """

    # Whether a target without rules of its own is an error.
    _needs_rules = False

    def __init__(
        self,
        sch_rules: Any = _FROM_TARGET,
        postprocs: Any = _FROM_TARGET,
        mutator_probs: Any = _FROM_TARGET,
    ) -> None:
        self._rules, self._postprocs, self._mutators = sch_rules, postprocs, mutator_probs
        self.sch_rules: list[ScheduleRule] | None = _named(ScheduleRule.create, sch_rules)
        self.postprocs: list[Postproc] | None = _named(Postproc.create, postprocs)
        self.mutator_probs: dict[Mutator, float] | None = _named(Mutator.create, mutator_probs)
        self._seed = -1

    def _initialize_with_tune_context(self, context: Any) -> None:
        """Take the parts for the context's target, and tell them of it."""
        self._seed = context.rand_state
        kind = kind_of(context.target)
        if self._rules == _FROM_TARGET:
            self.sch_rules = self._defaults(ScheduleRule.create, kind, [])
        if self._postprocs == _FROM_TARGET:
            self.postprocs = self._defaults(Postproc.create, kind, [])
        if self._mutators == _FROM_TARGET:
            self.mutator_probs = self._defaults(Mutator.create, kind, {})
        for part in [*(self.sch_rules or ()), *(self.postprocs or ()), *(self.mutator_probs or {})]:
            part._initialize_with_tune_context(context)

    def _defaults(self, create: Callable[[str], Any], kind: str, none: Any) -> Any:
        try:
            return create(kind)
        except ValueError:
            if self._needs_rules:
                raise
            return none

    def generate_design_space(self, mod: IRModule) -> list[tir.Schedule]:
        """Schedules whose traces, sampled anew, are the space."""
        raise TypeError(f"{type(self).__name__} does not define generate_design_space")

    def clone(self) -> SpaceGenerator:
        """A copy for another task."""
        return copy(self)

    @staticmethod
    def create(kind: Any = "post-order-apply", *args: Any, **kwargs: Any) -> SpaceGenerator:
        """A generator by name, or of a function of a schedule."""
        return create(kind, *args, **kwargs)


def _named(create: Callable[[str], Any], parts: Any) -> Any:
    """Parts as they are given, or those of a kind; None where the target decides."""
    if parts == _FROM_TARGET:
        return None
    return create(parts) if isinstance(parts, str) else parts


class PySpaceGenerator(SpaceGenerator):
    """Base of generators that users define."""


class ScheduleFn(SpaceGenerator):
    """The space of a function that schedules with samples.

    Parameters
    ----------
    sch_fn : takes a schedule and changes it, or returns a schedule or a list of them.
    """

    def __init__(
        self,
        sch_fn: Callable[[tir.Schedule], Any],
        sch_rules: Any = _FROM_TARGET,
        postprocs: Any = _FROM_TARGET,
        mutator_probs: Any = _FROM_TARGET,
    ) -> None:
        super().__init__(sch_rules, postprocs, mutator_probs)
        self.sch_fn = sch_fn

    def generate_design_space(self, mod: IRModule) -> list[tir.Schedule]:
        sch = tir.Schedule(mod, seed=None if self._seed < 0 else self._seed)
        self._seed = self._seed + 1 if self._seed >= 0 else -1
        result = self.sch_fn(sch)
        if result is None:
            return [sch]
        if isinstance(result, tir.Schedule):
            return [result]
        if isinstance(result, Sequence) and all(isinstance(s, tir.Schedule) for s in result):
            return list(result)
        raise TypeError(
            "ScheduleFn: the function returns None, a schedule or a list of schedules, got "
            f"{type(result).__name__}"
        )


class PostOrderApply(SpaceGenerator):
    """Applies each rule to each block, the last block first.

    Parameters
    ----------
    f_block_filter : tells of a block whether rules see it.
    """

    _needs_rules = True

    def __init__(
        self,
        f_block_filter: Callable[[tir.Block], bool] | None = None,
        sch_rules: Any = _FROM_TARGET,
        postprocs: Any = _FROM_TARGET,
        mutator_probs: Any = _FROM_TARGET,
    ) -> None:
        super().__init__(sch_rules, postprocs, mutator_probs)
        self.f_block_filter = f_block_filter

    def generate_design_space(self, mod: IRModule) -> list[tir.Schedule]:
        sch = tir.Schedule(mod, seed=None if self._seed < 0 else self._seed)
        names = self._block_names(mod)
        result = [sch]
        for rule in self.sch_rules or ():
            before, result = result, []
            for start in before:
                result.extend(self._apply(rule, start, names))
        return result

    def _apply(
        self, rule: ScheduleRule, start: tir.Schedule, names: list[tuple[str, str]]
    ) -> list[tir.Schedule]:
        done: list[tir.Schedule] = []
        pending = [(start, list(names))]
        custom = getattr(rule, "is_custom", False)
        while pending:
            sch, left = pending.pop()
            if not left:
                done.append(sch)
                continue
            function, name = left.pop()
            block = self._find(sch, name, function)
            marked = block is not None and "schedule_rule" in sch.get(block).annotations
            if block is None or marked and not custom:
                pending.append((sch, left))
                continue
            pending.extend((after, list(left)) for after in reversed(rule.apply(sch, block)))
        return done

    @staticmethod
    def _find(sch: tir.Schedule, name: str, function: str) -> Any:
        """The block; None if a rule inlined it."""
        blocks: set[str] = set()

        def visit(node: Any) -> None:
            if isinstance(node, tir.Block):
                blocks.add(str(node.name_hint))

        tir.stmt_functor.post_order_visit(sch.mod[function].body, visit)
        return sch.get_block(name, func_name=function) if name in blocks else None

    def _block_names(self, mod: IRModule) -> list[tuple[str, str]]:
        found: list[tuple[str, str]] = []
        for var, function in mod.functions.items():
            if not isinstance(function, tir.PrimFunc):
                continue

            def visit(node: Any, name: str = str(var.name_hint)) -> None:
                if isinstance(node, tir.Block) and (
                    self.f_block_filter is None or self.f_block_filter(node)
                ):
                    found.append((name, str(node.name_hint)))

            tir.stmt_functor.post_order_visit(function.body, visit)
        return found


class SpaceGeneratorUnion(SpaceGenerator):
    """The schedules of several generators."""

    def __init__(
        self,
        space_generators: Sequence[SpaceGenerator],
        sch_rules: Any = _FROM_TARGET,
        postprocs: Any = _FROM_TARGET,
        mutator_probs: Any = _FROM_TARGET,
    ) -> None:
        super().__init__(sch_rules, postprocs, mutator_probs)
        self.space_generators = list(space_generators)

    def _initialize_with_tune_context(self, context: Any) -> None:
        super()._initialize_with_tune_context(context)
        for generator in self.space_generators:
            generator._initialize_with_tune_context(context)

    def generate_design_space(self, mod: IRModule) -> list[tir.Schedule]:
        return [
            s for generator in self.space_generators for s in generator.generate_design_space(mod)
        ]


def create(kind: Any = "post-order-apply", *args: Any, **kwargs: Any) -> SpaceGenerator:
    """A generator by name: "post-order-apply", "union", or a function of a schedule.

    Raises
    ------
    ValueError : another name.
    """
    if isinstance(kind, SpaceGenerator):
        return kind
    if callable(kind):
        return ScheduleFn(kind, *args, **kwargs)
    kinds: dict[str, Callable[..., SpaceGenerator]] = {
        "post-order-apply": PostOrderApply,
        "union": SpaceGeneratorUnion,
    }
    if kind not in kinds:
        raise ValueError(f"SpaceGenerator.create: unknown kind {kind!r}; there are {sorted(kinds)}")
    return kinds[kind](*args, **kwargs)
