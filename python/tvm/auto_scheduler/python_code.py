"""The steps of a state as Python code on a te schedule."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import tvm._ffi
from tvm import te
from tvm.runtime import Object

from . import _ffi_api
from .loop_state import State, StateObject, state_object_of

__all__ = ["python_code_from_state"]

_MARKS = {number: name for name, number in State.ANNOTATION_TRANS_TABLE.items()}

# The kind of loops that are summed over.
_REDUCTION = 1


class _Printer:
    """Writes one step after the other, and knows which variable holds which stage and loop."""

    def __init__(self, dag: Object, state: StateObject) -> None:
        self.lines: list[str] = []
        self.dag = dag
        self.transform_steps = list(state.transform_steps)
        self.steps = [list(_ffi_api.StepToRecord(step)) for step in self.transform_steps]
        for tag, *fields in self.steps:
            lengths = {"SP": 3, "FA": 2}.get(str(tag))
            if lengths is not None and not all(fields[lengths]):
                raise ValueError(
                    f"python code of a state: a length of the step {tag} {fields} is still open; "
                    "fill in the lengths first"
                )
        self.stages: list[str] = []
        self.loops: list[list[str]] = []
        # Stage variable -> (variable of the stage it is computed in, variable of the loop).
        self.attached: dict[str, tuple[str, str]] = {}
        self._used = {"s", "te", "tuple"}
        schedule, _ = dag.apply_steps_from_state(dag.init_state)
        positions = [
            next(i for i, stage in enumerate(schedule.stages) if stage.origin_op.same_as(op))
            for op in dag.ops
        ]
        for op in dag.ops:
            self.stages.append(self._name(str(op.name)))
            self.loops.append([])
        places = ", ".join(map(str, positions))
        names = ", ".join(self.stages)
        self.lines.append(f"{names}, = [s.stages[i].origin_op.output(0) for i in ({places},)]")
        for number, op in enumerate(dag.ops):
            if isinstance(op, te.ComputeOp):
                self._name_axes(number, [*op.axis, *op.reduce_axis])

    def print(self) -> str:
        for number, (tag, stage_id, *fields) in enumerate(self.steps):
            self._done = number + 1
            getattr(self, "_" + str(tag).lower())(int(stage_id), *fields)
        return "\n".join(self.lines) + "\n"

    def _name(self, wanted: str) -> str:
        base = re.sub(r"\W", "_", wanted) or "x"
        base = f"_{base}" if base[0].isdigit() else base
        name, count = base, 1
        while name in self._used:
            count += 1
            name = f"{base}_{count}"
        self._used.add(name)
        return name

    def _name_axes(self, stage_id: int, axes: Sequence[Any]) -> None:
        stage = self.stages[stage_id]
        self.loops[stage_id] = [self._name(f"{stage}_{axis.var.name}") for axis in axes]
        if axes:
            names = ", ".join(self.loops[stage_id])
            self._say(f"{names}, = tuple(s[{stage}].op.axis) + tuple(s[{stage}].op.reduce_axis)")

    def _say(self, text: str) -> None:
        self.lines.append(text)

    def _loop(self, stage_id: int, loop_id: Any) -> str:
        return self.loops[stage_id][int(loop_id)]

    def _replace(self, stage_id: int, first: int, count: int, made: list[str]) -> None:
        """Loops have become `made`; what was computed in one of them moves to the innermost."""
        before = self.loops[stage_id][first : first + count]
        self.loops[stage_id][first : first + count] = made
        host = self.stages[stage_id]
        for stage, (at, loop) in list(self.attached.items()):
            if at == host and loop in before:
                self._attach(stage, host, made[-1])

    def _attach(self, stage: str, host: str, loop: str) -> None:
        self.attached[stage] = (host, loop)
        self._say(f"s[{stage}].compute_at(s[{host}], {loop})")

    def _split(self, stage_id: int, loop_id: int, lengths: Sequence[int], inner_first: Any) -> None:
        stage, rest = self.stages[stage_id], self._loop(stage_id, loop_id)
        made: list[str] = []
        for length in reversed(lengths) if inner_first else lengths:
            outer, inner = self._name(f"{rest}_o"), self._name(f"{rest}_i")
            how = "factor" if inner_first else "nparts"
            self._say(f"{outer}, {inner} = s[{stage}].split({rest}, {how}={int(length)})")
            if inner_first:
                made.insert(0, inner)
                rest = outer
            else:
                made.append(outer)
                rest = inner
        made.insert(0 if inner_first else len(made), rest)
        self._replace(stage_id, int(loop_id), 1, made)

    def _source(self, step_id: Any) -> tuple[list[int], int]:
        """Lengths of an earlier split, and its direction."""
        *_, lengths, inner_first = self.steps[int(step_id)]
        return [int(length) for length in lengths], int(inner_first)

    # One method a tag of the record format; see the specification of steps in `transform_step.h`.

    def _an(self, stage_id: int, loop_id: int, annotation: int) -> None:
        stage, loop = self.stages[stage_id], self._loop(stage_id, loop_id)
        mark = _MARKS[int(annotation)]
        if mark in ("unroll", "vectorize", "parallel"):
            self._say(f"s[{stage}].{mark}({loop})")
        elif mark != "none":
            self._say(f's[{stage}].bind({loop}, te.thread_axis("{mark}"))')

    def _fu(self, stage_id: int, loop_ids: Sequence[int]) -> None:
        loops = [self._loop(stage_id, loop_id) for loop_id in loop_ids]
        stage = self.stages[stage_id]
        fused = self._name("_".join([*loops[:1], "fused"]) if loops else f"{stage}_unit")
        self._say(f"{fused} = s[{stage}].fuse({', '.join(loops)})")
        self._replace(stage_id, int(loop_ids[0]) if loops else 0, len(loops), [fused])

    def _pr(self, stage_id: int, loop_id: int, pragma: str) -> None:
        stage, loop = self.stages[stage_id], self._loop(stage_id, loop_id)
        kind, _, value = str(pragma).partition("$")
        if kind in ("double_buffer", "async_copy"):
            self._say(f"s[{stage}].double_buffer()")
        if kind == "double_buffer":
            return
        self._say(f's[{stage}].pragma({loop}, "{kind}", {value or True})')
        if value:
            self._say(f's[{stage}].pragma({loop}, "unroll_explicit", True)')

    def _re(self, stage_id: int, order: Sequence[int]) -> None:
        self.loops[stage_id] = [self._loop(stage_id, loop_id) for loop_id in order]
        self._say(f"s[{self.stages[stage_id]}].reorder({', '.join(self.loops[stage_id])})")

    def _sp(
        self, stage_id: int, loop_id: int, _: int, lengths: Sequence[int], inner_first: int
    ) -> None:
        self._split(stage_id, int(loop_id), lengths, inner_first)

    def _fxs(self, stage_id: int, loop_id: int, length: int) -> None:
        self._split(stage_id, int(loop_id), [int(length)], 1)

    def _pdl(self, stage_id: int, loop_id: int, extent: int) -> None:
        stage, loop = self.stages[stage_id], self._loop(stage_id, loop_id)
        names = [self._name(f"{loop}_{part}") for part in ("once", "padded")]
        self._say(f"{', '.join(names)} = s[{stage}].pad({loop}, {int(extent)})")
        self._replace(stage_id, int(loop_id), 1, names)

    def _fsp(self, stage_id: int, loop_id: int, source: int, n_split: int) -> None:
        lengths, inner_first = self._source(source)
        rest = 1
        for length in lengths[int(n_split) - 1 :]:
            rest *= length
        self._split(stage_id, int(loop_id), [*lengths[: int(n_split) - 1], rest], inner_first)

    def _ffsp(
        self, stage_id: int, loop_id: int, sources: Sequence[int], level: int, factor: int
    ) -> None:
        length = 1
        for source in sources:
            length *= self._source(source)[0][int(level)]
        self._split(stage_id, int(loop_id), [length], int(factor))

    def _sa(self, stage_id: int, loop_id: int, factor: int, offset: int) -> None:
        before = self.dag.replay_steps(self.transform_steps[: self._done - 1])
        if int(before.stages[stage_id].iters[int(loop_id)].iter_kind) == _REDUCTION:
            return  # results have no dimension of it
        stage, loop = self.stages[stage_id], self._loop(stage_id, loop_id)
        self._say(f"s[{stage}].storage_align({loop}, {int(factor)}, {int(offset)})")

    def _fsa(self, stage_id: int, dim: int, source: int) -> None:
        stage, length = self.stages[stage_id], self._source(source)[0][-1]
        axis = f"s[{stage}].op.axis[{int(dim)}]"
        self._say(f"s[{stage}].storage_align({axis}, {2 * length}, {length})")

    def _fa(self, stage_id: int, copies: Sequence[int], lengths: Sequence[int]) -> None:
        for copy in map(int, copies):
            stage = self.stages[copy]
            self._say(f"s[{stage}].double_buffer()")
            self._say(f's[{stage}].pragma({self._loop(copy, 0)}, "async_copy", {int(lengths[0])})')

    def _ca(self, stage_id: int, target_id: int, loop_id: int) -> None:
        host = self.stages[int(target_id)]
        self._attach(self.stages[stage_id], host, self._loop(int(target_id), loop_id))

    def _ci(self, stage_id: int) -> None:
        self._say(f"s[{self.stages[stage_id]}].compute_inline()")

    def _cr(self, stage_id: int) -> None:
        self.attached.pop(self.stages[stage_id], None)
        self._say(f"s[{self.stages[stage_id]}].compute_root()")

    def _insert(self, stage_id: int, name: str, make: str) -> None:
        self.stages.insert(stage_id, name)
        self.loops.insert(stage_id, [])
        self._say(f"{name} = {make}")

    def _chr(self, stage_id: int, scope: str, readers: Sequence[int], order: str = "") -> None:
        stage = self.stages[stage_id]
        names = ", ".join(self.stages[int(reader)] for reader in readers)
        name = self._name(f"{stage}_{scope}")
        self._insert(stage_id + 1, name, f's.cache_read({stage}, "{scope}", [{names}]{order})')
        self._refresh(stage_id + 1)

    def _pkr(self, stage_id: int, scope: str, readers: Sequence[int], order: Sequence[int]) -> None:
        self._chr(stage_id, scope, readers, f", order=({', '.join(str(int(d)) for d in order)},)")

    def _pdr(self, stage_id: int, readers: Sequence[int], shape: Sequence[int]) -> None:
        stage = self.stages[stage_id]
        names = ", ".join(self.stages[int(reader)] for reader in readers)
        extents = ", ".join(str(int(extent)) for extent in shape)
        name = self._name(f"{stage}_padded")
        self._insert(stage_id + 1, name, f"s.pad_read({stage}, [{names}], ({extents},))")
        self._refresh(stage_id + 1)

    def _pda(self, stage_id: int, extents: Sequence[int]) -> None:
        stage = self.stages[stage_id]
        longer = ", ".join(str(int(extent)) for extent in extents)
        self._insert(stage_id, self._name(f"{stage}_padded"), f"s.pad_axes({stage}, ({longer},))")
        self._refresh(stage_id)
        self._refresh(stage_id + 1)

    def _chw(self, stage_id: int, scope: str) -> None:
        stage = self.stages[stage_id]
        outputs = f"[{stage}.op.output(i) for i in range({stage}.op.num_outputs)]"
        name = self._name(f"{stage}_{scope}")
        self._insert(stage_id, name, f's.cache_write({outputs}, "{scope}")[0]')
        self._refresh(stage_id)
        self._refresh(stage_id + 1)

    def _rf(self, stage_id: int, loop_id: int, place: int) -> None:
        stage, loop = self.stages[stage_id], self._loop(stage_id, loop_id)
        name = self._name(f"{stage}_rf")
        self._insert(stage_id, name, f"s.rfactor({stage}, {loop}, {int(place)})")
        self._refresh(stage_id)
        self._refresh(stage_id + 1)

    def _refresh(self, stage_id: int) -> None:
        """Loops of a stage that the schedule has made anew."""
        state = self.dag.replay_steps(self.transform_steps[: self._done])
        op = state.stages[stage_id].op
        self._name_axes(stage_id, [*op.axis, *op.reduce_axis])


@tvm._ffi.register_func("auto_scheduler.ComputeDAGPrintPythonCodeFromState")
def python_code_from_state(dag: Object, state: State | StateObject) -> str:
    """Code that does to a te schedule `s` of the DAG's outputs what the state's steps do.

    It needs `te` and nothing else: tensors are taken from the schedule. A state as it was measured
    may have its constant inputs in other layouts too, which no schedule can express.

    Raises
    ------
    ValueError : a split length is still open.
    """
    return _Printer(dag, state_object_of(state)).print()
