"""Records of other machines and other versions: bringing them here, and measuring them again."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from tvm.runtime.files import write_atomically
from tvm.target import Target

from .compute_dag import ComputeDAG
from .json_fields import malformed_is_value_error, text_of
from .measure import ProgramMeasurer
from .measure_node import MeasureInput
from .measure_record import (
    RecordReader,
    record_lines,
    record_summaries,
    result_from_json,
    save_records,
    steps_from_json,
)
from .search_task import SearchTask
from .utils import decode_workload_key

__all__ = ["patch_records", "query_records", "remeasure_records"]

# Programs that an interrupted run may lose.
_SAVED_AT_ONCE = 64


def patch_records(
    in_file: str | Path,
    out_file: str | Path,
    tasks: Sequence[SearchTask],
    target: Target | str | None = None,
) -> Counter[str]:
    """Rewrite records of a foreign data set, such as TenSet, for tasks of this package.

    Their workload keys hash the operations' text of another version, which nobody can tell from the
    hash. A record belongs to the first task whose inputs and outputs have the shapes of its key and
    whose computation its steps can be replayed on. TenSet's keys list the extents of all shapes in
    a row, those of today have a list for each shape: the same extents in order are the same shapes
    here.

    Parameters
    ----------
    in_file, out_file : record files; the second is made anew, once all of the first is read, so it
        may be the same one.
    tasks : computations that records may belong to.
    target : written in place of the records' own targets.

    Returns
    -------
    How many records were "kept", are of "unknown workload" or of "other structure".

    Raises
    ------
    ValueError : a line is no record; the message says which. Then `out_file` is as it was.
    """
    by_shapes: dict[str, list[SearchTask]] = {}
    for known in tasks:
        by_shapes.setdefault(_shapes(str(known.workload_key)), []).append(known)
    counts: Counter[str] = Counter()

    def write(path: Path) -> None:
        with open(path, "w", encoding="utf-8") as out:
            for number, line in record_lines(in_file):
                with malformed_is_value_error(f"{in_file}:{number}"):
                    record = json.loads(line)
                    result = result_from_json(record)
                    (key, *_), (_, steps) = record["i"]
                    candidates = by_shapes.get(_shapes(text_of(key, "workload_key")), [])
                task = next((t for t in candidates if _replays(t.compute_dag, steps)), None)
                if task is None:
                    counts["other structure" if candidates else "unknown workload"] += 1
                    continue
                state = task.compute_dag.replay_steps(steps_from_json(steps))
                moved = task if target is None else _for_target(task, target)
                out.write(MeasureInput(moved, state).record(result) + "\n")
                counts["kept"] += 1

    write_atomically(out_file, write)
    return counts


def _shapes(workload_key: str) -> str:
    """The extents of a key in a row, since not every version says where a shape ends."""

    def extents(value: object) -> list[object]:
        return [e for part in value for e in extents(part)] if isinstance(value, list) else [value]

    return json.dumps(extents(decode_workload_key(workload_key)[1]))


def _replays(dag: ComputeDAG, steps: Sequence[Sequence[object]]) -> bool:
    from tvm.error import TVMError

    try:
        dag.infer_bound_from_state(dag.replay_steps(steps_from_json(steps)))
    except (TVMError, ValueError, TypeError):
        return False
    return True


def _for_target(task: SearchTask, target: Target | str) -> SearchTask:
    return SearchTask(
        compute_dag=task.compute_dag,
        workload_key=str(task.workload_key),
        target=target,
        layout_rewrite_option=int(task.layout_rewrite_option),
        desc=str(task.desc),
    )


def remeasure_records(
    in_file: str | Path,
    out_file: str | Path,
    target: Target | str,
    measurer: ProgramMeasurer | None = None,
    limit: int | None = None,
) -> int:
    """Measure the programs of a record file for another target or machine; returns how many.

    New records are appended to `out_file`; programs that stand there already are left out, so an
    interrupted run goes on where it stopped.

    Parameters
    ----------
    in_file, out_file : record files.
    target : what to measure for.
    measurer : by default one of this machine.
    limit : measure at most this many, in the order of the file; None measures all.

    Raises
    ------
    ValueError : `limit` is below 1.
    """
    if limit is not None and limit < 1:
        raise ValueError(f"remeasure_records: limit must be >= 1, got {limit}")
    done = set()
    if Path(out_file).exists():
        done = {_identity(i) for i, _ in RecordReader(out_file)}
    wanted: list[MeasureInput] = []
    for measure_input, _ in RecordReader(in_file):
        if limit is not None and len(wanted) >= limit:
            break
        moved = MeasureInput(_for_target(measure_input.task, target), measure_input.state)
        if _identity(moved) not in done:
            done.add(_identity(moved))
            wanted.append(moved)
    measurer = ProgramMeasurer() if measurer is None else measurer
    for first in range(0, len(wanted), _SAVED_AT_ONCE):
        batch = wanted[first : first + _SAVED_AT_ONCE]
        save_records(out_file, batch, measurer.measure(batch))
    return len(wanted)


def _identity(measure_input: MeasureInput) -> tuple[str, str]:
    return str(measure_input.task.workload_key), str(measure_input.state)


def query_records(
    files: Iterable[str | Path],
    workload: str = "",
    target: str = "",
    only_valid: bool = False,
) -> list[tuple[str, int, dict]]:
    """Records whose workload key and target contain the given texts; workloads may be unknown.

    Returns
    -------
    File, line number, and the record as JSON values, the fastest first.
    """
    found = []
    for file in files:
        for number, line, summary in record_summaries(file):
            if workload not in summary.workload_key or target not in summary.target:
                continue
            if only_valid and summary.seconds == float("inf"):
                continue
            found.append((summary.seconds, str(file), number, json.loads(line)))
    return [entry[1:] for entry in sorted(found, key=lambda entry: entry[:3])]
