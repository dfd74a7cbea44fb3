"""Good default schedules by kind of operator and of target, for kernels that nobody tuned.

A rule serves computations with one stage of its tag, whatever elementwise work stands around it.
It looks at the shapes and gives a schedule, or None where it has nothing better than the default.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tvm import te
from tvm.target import Target

from . import tag
from .generic.default import default_schedule

__all__ = [
    "ScheduleRule",
    "has_rule_for",
    "operations_of",
    "register_schedule",
    "registered_schedules",
    "schedule_for",
]

ScheduleRule = Callable[[te.Tensor, Sequence[te.Tensor], Target], "te.Schedule | None"]

_RULES: dict[tuple[str, str], ScheduleRule] = {}


def register_schedule(
    tags: str | Sequence[str], key: str
) -> Callable[[ScheduleRule], ScheduleRule]:
    """Decorator that enters a rule for operators on a kind of target.

    Parameters
    ----------
    tags : tags of the te stages that the rule is for; "injective" stands for computations without
        any other stage, and "" for all that no other rule serves.
    key : a key of the targets, such as "cpu", "gpu" or "cuda". Of a target's keys, the first with
        a rule counts.

    The rule gets the tagged stage's tensor (any output for "injective" and ""), all outputs, and
    the target.

    Raises
    ------
    ValueError : there is such a rule already.
    """

    def register(rule: ScheduleRule) -> ScheduleRule:
        for name in [tags] if isinstance(tags, str) else tags:
            if (name, key) in _RULES:
                raise ValueError(
                    f"register_schedule: there is a schedule for '{name}' on '{key}' already "
                    f"({_RULES[name, key].__module__})"
                )
            _RULES[name, key] = rule
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
    for name, anchor in (_anchor(outputs), ("", outputs[0])):
        rule = _rule(name, target)
        chosen = rule(anchor, outputs, target) if rule is not None else None
        if chosen is not None:
            return chosen
    return default_schedule(outputs, target)


def has_rule_for(outputs: Sequence[te.Tensor], target: Target) -> bool:
    """Whether a rule for this kind of computation, and not only one for all, is asked first."""
    name, _ = _anchor(outputs)
    return bool(name) and _rule(name, target) is not None


def _rule(name: str, target: Target) -> ScheduleRule | None:
    return next((rule for key in target.keys if (rule := _RULES.get((name, str(key))))), None)


def _anchor(outputs: Sequence[te.Tensor]) -> tuple[str, te.Tensor]:
    """Tag and tensor of the one stage that says what kind of computation this is."""
    operations = operations_of(outputs)
    tagged = [o for o in operations if str(o.tag) and not tag.is_injective(str(o.tag))]
    if len(tagged) == 1:
        return str(tagged[0].tag), tagged[0].output(0)
    plain = not tagged and not any(len(o.reduce_axis) for o in operations)
    return "injective" if plain else "", outputs[0]
