"""Records of other machines and other versions: bringing them here, and measuring them again."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

import numpy as np

from tvm.runtime.files import write_atomically
from tvm.target import Target

from .compute_dag import ComputeDAG
from .json_fields import malformed_is_value_error, text_of
from .measure import ProgramMeasurer
from .measure_node import MeasureInput
from .measure_record import (
    RecordReader,
    RecordToFile,
    load_record_from_string,
    record_lines,
    record_summaries,
    result_from_json,
    steps_from_json,
)
from .search_task import SearchTask
from .utils import decode_workload_key

__all__ = ["patch_records", "query_records", "remeasure_records"]


def patch_records(
    in_files: str | Path | Sequence[str | Path],
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
    in_files, out_file : record files, one or several to read; the last is made anew, once all
        others are read, so it may be one of them.
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
    files = [in_files] if isinstance(in_files, (str, Path)) else in_files
    lines = ((f"{file}:{number}", line) for file in files for number, line in record_lines(file))

    def write(path: Path) -> None:
        with open(path, "w", encoding="utf-8") as out:
            for where, line in lines:
                with malformed_is_value_error(where):
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
    in_files: str | Path | Sequence[str | Path],
    out_file: str | Path,
    target: Target | str,
    measurer: ProgramMeasurer | None = None,
    limit: int | None = None,
    *,
    per_task: int | None = None,
    workloads: Collection[str] | None = None,
    seed: int = 0,
) -> int:
    """Measure the programs of record files for another target or machine; returns how many.

    A new record is appended to `out_file` as soon as it is measured; programs that stand there
    already are left out, so an interrupted run goes on where it stopped.

    Parameters
    ----------
    in_files, out_file : record files, one or several to read.
    target : what to measure for.
    measurer : its builder, runner and callbacks are used; by default one of this machine.
    limit : measure at most this many, in the order of the files; None measures all.
    per_task : of each workload take this many programs, drawn at random, and leave the others out.
    workloads : keys of the workloads that are measured; None means all.
    seed : of the draw. Equal seeds draw equal programs from equal files.

    Raises
    ------
    ValueError : `limit` or `per_task` is below 1, no record is of `workloads`, or one cannot be
        read; the message says which.
    """
    for name, value in (("limit", limit), ("per_task", per_task)):
        if value is not None and value < 1:
            raise ValueError(f"remeasure_records: {name} must be >= 1, got {value}")
    done = set()
    if Path(out_file).exists():
        done = {_identity(i) for i, _ in RecordReader(out_file)}
    files = [in_files] if isinstance(in_files, (str, Path)) else in_files
    wanted: list[MeasureInput] = []
    for where, line in _drawn(files, workloads, per_task, seed):
        if limit is not None and len(wanted) >= limit:
            break
        with malformed_is_value_error(where):
            measure_input, _ = load_record_from_string(line)
        moved = MeasureInput(_for_target(measure_input.task, target), measure_input.state)
        if _identity(moved) not in done:
            done.add(_identity(moved))
            wanted.append(moved)
    measurer = ProgramMeasurer() if measurer is None else measurer
    callbacks = [RecordToFile(out_file), *measurer.callbacks]
    ProgramMeasurer(
        measurer.builder,
        measurer.runner,
        callbacks,
        int(measurer.verbose),
        int(measurer.max_continuous_error),
    ).measure(wanted)
    return len(wanted)


def _drawn(
    files: Sequence[str | Path],
    workloads: Collection[str] | None,
    per_task: int | None,
    seed: int,
) -> list[tuple[str, str]]:
    """Places and lines of the records that are measured, in order."""
    found: list[tuple[str, str]] = []
    by_workload: dict[str, list[int]] = {}
    for file in files:
        for number, line, summary in record_summaries(file):
            if workloads is None or summary.workload_key in workloads:
                by_workload.setdefault(summary.workload_key, []).append(len(found))
                found.append((f"{file}:{number}", line))
    if workloads is not None and not found:
        raise ValueError(
            f"remeasure_records: no record in {', '.join(map(str, files))} is of the "
            f"{len(workloads)} workloads asked for; records of another version of TVM have other "
            "keys until patch_records has brought them here"
        )
    if per_task is None:
        return found
    rng = np.random.default_rng(seed)
    chosen = [
        position
        for members in by_workload.values()
        for position in rng.permutation(members)[:per_task]
    ]
    return [found[position] for position in sorted(chosen)]


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
