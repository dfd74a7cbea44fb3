"""Looking at the schedules of a space."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tvm
from tvm import tir
from tvm.ir import IRModule
from tvm.target import Target

from ..schedule_rule import ScheduleRule
from ..space_generator import PostOrderApply
from ..tune_context import TuneContext

__all__ = ["check_sketches", "generate_design_space", "get_rules", "print_sketches"]


def get_rules(kind: str, types: type | tuple[type, ...]) -> list[ScheduleRule]:
    """The default rules of a kind of target that are of some classes."""
    return [rule for rule in ScheduleRule.create(kind) if isinstance(rule, types)]


def generate_design_space(
    kind: str,
    mod: IRModule | tir.PrimFunc,
    target: Target,
    types: type | tuple[type, ...] | None,
    sch_rules: Sequence[ScheduleRule] | None = None,
) -> list[tir.Schedule]:
    """The schedules that some rules make of a module.

    Parameters
    ----------
    kind : of target whose rules are taken, see `ScheduleRule.create`.
    types : classes of the rules to apply; all others are left out.
    sch_rules : these rules instead.
    """
    if sch_rules is None:
        rules = get_rules(kind, ScheduleRule if types is None else types)
    else:
        rules = [rule for rule in sch_rules if types is None or isinstance(rule, types)]
    generator = PostOrderApply(sch_rules=rules, postprocs=[], mutator_probs={})
    return TuneContext(mod, target=target, space_generator=generator).generate_design_space()


def check_sketches(
    mod: IRModule | tir.PrimFunc,
    sketches: Sequence[tir.Schedule],
    expected_mods: Sequence[IRModule | tir.PrimFunc],
    expected_decisions: Sequence[Sequence[tuple[str, Any]]],
    *,
    debug_mask: str = "all",
) -> None:
    """Assert that each expected module is what some sketch makes with given decisions.

    Names of functions do not count, nor does how an index is written: both sides are simplified.

    Parameters
    ----------
    mod : what the sketches schedule.
    expected_decisions : for each module pairs of a sampling instruction's kind and its decision, in
        the order of the trace.
    """
    if isinstance(mod, tir.PrimFunc):
        mod = IRModule({"main": mod})
    assert len(expected_mods) == len(expected_decisions)
    assert len(sketches) == len(expected_mods), (
        f"{len(sketches)} sketches, expected {len(expected_mods)}"
    )
    unmatched = list(sketches)
    for number, (expected, decisions) in enumerate(zip(expected_mods, expected_decisions)):
        if isinstance(expected, tir.PrimFunc):
            expected = IRModule({"main": expected})
        made = []
        for sketch in unmatched:
            sch = _with_decisions(mod, sketch, decisions, debug_mask)
            if sch is None:
                continue
            made.append(sch)
            if tvm.ir.structural_equal(_comparable(sch.mod), _comparable(expected)):
                unmatched.remove(sketch)
                break
        else:
            shown = "\n".join(str(sch.mod) for sch in made)
            raise AssertionError(f"no sketch makes module {number}:\n{expected}\nbut:\n{shown}")


def _comparable(mod: IRModule) -> IRModule:
    """The module with variables named by their place, simplified, its sums in one order."""
    functions = {
        str(var.name_hint): _renamed(function.without_attr("global_symbol"))
        for var, function in mod.functions.items()
    }
    simple = tir.transform.Simplify()(IRModule(functions))
    return IRModule({var.name_hint: _sorted(f) for var, f in simple.functions.items()})


def _sorted(function: tir.PrimFunc) -> tir.PrimFunc:
    def terms(node: Any) -> list[Any]:
        return [*terms(node.a), *terms(node.b)] if isinstance(node, tir.Add) else [node]

    def sort(node: Any) -> Any:
        first, *others = sorted(terms(node), key=str)
        for term in others:
            first = tir.Add(first, term)
        return first

    return function.with_body(tir.stmt_functor.ir_transform(function.body, None, sort, ["tir.Add"]))


def _renamed(function: tir.PrimFunc) -> tir.PrimFunc:
    # A variable of one value may stand in an index or not, and what a sum adds to may be among its
    # reads or not.
    count = 0

    def rename(node: Any) -> Any:
        nonlocal count
        if isinstance(node, tir.For):
            var = tir.Var(f"loop_{count:04}", node.loop_var.dtype)
            value = node.min if _is_one(node.extent) else var
            body = tir.stmt_functor.substitute(node.body, {node.loop_var: value})
            count += 1
            return tir.For(
                var,
                node.min,
                node.extent,
                node.kind,
                body,
                node.thread_binding,
                node.annotations,
            )
        axes, renaming = [], {}
        for axis in node.iter_vars:
            var = tir.Var(f"axis_{count:04}", axis.var.dtype)
            renaming[axis.var] = axis.dom.min if _is_one(axis.dom.extent) else var
            axes.append(tir.IterVar(axis.dom, var, axis.iter_type, axis.thread_tag))
            count += 1
        written = [region.buffer for region in node.writes]
        reads = [r for r in node.reads if not any(r.buffer.same_as(buffer) for buffer in written)]

        def put(regions: Any) -> list[tir.BufferRegion]:
            return [
                tir.BufferRegion(
                    region.buffer,
                    [
                        tvm.ir.Range.from_min_extent(
                            tir.stmt_functor.substitute(part.min, renaming),
                            tir.stmt_functor.substitute(part.extent, renaming),
                        )
                        for part in region.region
                    ],
                )
                for region in regions
            ]

        init = node.init
        return tir.Block(
            axes,
            put(reads),
            put(node.writes),
            node.name_hint,
            tir.stmt_functor.substitute(node.body, renaming),
            None if init is None else tir.stmt_functor.substitute(init, renaming),
            node.alloc_buffers,
            node.match_buffers,
            node.annotations,
        )

    kinds = ["tir.For", "tir.Block"]
    body = tir.stmt_functor.ir_transform(function.body, None, rename, kinds)
    return function.with_body(body)


def _is_one(extent: Any) -> bool:
    return isinstance(extent, tir.IntImm) and int(extent) == 1


def _with_decisions(
    mod: IRModule, sketch: tir.Schedule, decisions: Sequence[tuple[str, Any]], debug_mask: str
) -> tir.Schedule | None:
    trace = sketch.trace.simplified(remove_postproc=True)
    sampled = [inst for inst in trace.insts if trace.get_decision(inst) is not None]
    if [str(inst.kind.name) for inst in sampled] != [name for name, _ in decisions]:
        return None
    for inst, (_, decision) in zip(sampled, decisions):
        trace = trace.with_decision(inst, decision, remove_postproc=True)
    sch = tir.Schedule(mod, debug_mask=debug_mask)
    trace.apply_to_schedule(sch, remove_postproc=True)
    return sch


def print_sketches(sketches: Sequence[tir.Schedule]) -> None:
    """Print each sketch: its module, and what was sampled."""
    for number, sketch in enumerate(sketches):
        print(f"sketch {number}\n{sketch.mod}")
        for inst in sketch.trace.insts:
            decision = sketch.trace.get_decision(inst)
            if decision is not None:
                print(f"  {inst.kind.name}: {decision}")
