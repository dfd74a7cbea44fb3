"""Record files: one JSON line a measurement, format v0.6.

A line is ``{"i": [[key, target, hardware, host, layout, [inputs]], [[], [step, ...]]],
"r": [[costs], error_no, all_cost, timestamp], "v": "v0.6"}`` with the error text in an optional
``"e"``, and what the kernels of a GPU take in an optional ``"k"``. Blank lines and lines that begin
with ``#`` are skipped.

Beside `records.json` there may be `records.careful.json`, with what was measured more carefully in
the end: records of the winners, which count in place of the earlier ones, and of the operator
library's schedules, which are what a winner has to beat. These have ``"workload"``, ``"target"``
and ``"origin"`` in place of "i".
"""

from __future__ import annotations

import functools
import itertools
import json
import logging
import math
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import tvm._ffi
from tvm.runtime import Object
from tvm.runtime.files import append_lines, write_atomically
from tvm.target import Target

from .. import _ffi_api
from ..json_fields import (
    integer_of,
    malformed_is_value_error,
    number_of,
    numbers_of,
    parts_of,
    text_of,
)
from ..loop_state import StateObject
from ..measure_callback import MeasureCallback
from ..measure_node import (
    MAX_FLOAT,
    Candidate,
    MeasureInput,
    MeasureResult,
    dump_input,
    input_from_json,
    input_to_json,
    load_input,
)
from ..step_records import steps_from_json, steps_to_json
from ..utils import calc_workload_dis_factor, decode_workload_key
from ..workload_registry import is_registered_function

__all__ = [
    "RecordReader",
    "RecordSummary",
    "RecordToFile",
    "any_record_lines",
    "careful_file",
    "distill_record_file",
    "dump_input",
    "dump_record_to_string",
    "library_records",
    "load_best_record",
    "load_input",
    "load_record_from_string",
    "load_records",
    "record_lines",
    "record_summaries",
    "record_summary",
    "result_from_json",
    "recorded_seconds",
    "save_records",
    "steps_from_json",
    "steps_to_json",
]

logger = logging.getLogger("auto_scheduler")

RECORD_VERSION = "v0.6"
_RESULT = ("costs", "error_no", "all_cost", "timestamp")


@tvm._ffi.register_func("auto_scheduler.WriteMeasureRecords")
def dump_record_to_string(measure_input: MeasureInput, result: MeasureResult) -> str:
    """One record as a line without its end."""
    record: dict[str, Any] = {
        "i": input_to_json(measure_input),
        "r": [
            [float(cost) for cost in result.costs],
            int(result.error_no),
            float(result.all_cost),
            int(result.timestamp),
        ],
        "v": RECORD_VERSION,
    }
    if result.error_msg is not None and str(result.error_msg):
        record["e"] = str(result.error_msg)
    if result.kernel_resources:
        record["k"] = result.kernel_resources
    return json.dumps(record)


@tvm._ffi.register_func("auto_scheduler.ReadMeasureRecord")
def _read_measure_record(record: str) -> list[Any]:
    return list(load_record_from_string(record))


def load_record_from_string(record: str) -> tuple[MeasureInput, MeasureResult]:
    """Inverse of `dump_record_to_string`.

    Raises
    ------
    ValueError : the text is no record, or its workload is not registered in this process.
    """
    with malformed_is_value_error("record"):
        return _record_from_json(json.loads(record))


def _record_from_json(data: Any) -> tuple[MeasureInput, MeasureResult]:
    result = result_from_json(data)
    unknown = data.keys() - {"i", "r", "v", "e", "k"}
    if unknown:
        raise ValueError(f"unknown keys {sorted(unknown)}")
    measure_input = input_from_json(data["i"])
    _, (_, steps) = data["i"]
    names = {e for step in steps for field in step if isinstance(field, list) for e in field}
    if names := {name for name in names if isinstance(name, str)}:
        raise ValueError(f"a program that ran has no open lengths, got {sorted(names)}")
    return measure_input, result


def _checked(data: Any) -> tuple[list[float], int, float, float]:
    """The parts of "r" of a record: costs, error number, seconds that it took, and when.

    Raises
    ------
    ValueError : the data are no record; the message names the field.
    """
    if not isinstance(data, dict) or "r" not in data or not ("i" in data or "origin" in data):
        raise ValueError('expected an object with the keys "i" and "r"')
    costs, error_no, all_cost, timestamp = parts_of(data["r"], '"r"', *_RESULT)
    return (
        numbers_of(costs, "costs"),
        integer_of(error_no, "error_no"),
        number_of(all_cost, "all_cost"),
        number_of(timestamp, "timestamp"),
    )


def result_from_json(data: Any) -> MeasureResult:
    """The result that a record of any kind has, of its JSON.

    Raises
    ------
    ValueError : the data are no record; the message names the field.
    """
    costs, error_no, all_cost, timestamp = _checked(data)
    recorded_seconds(costs, error_no)  # raises for what cannot be
    message = data.get("e")
    if message is not None:
        message = text_of(message, '"e"')
    kernels = data.get("k", {})
    if not isinstance(kernels, dict):
        raise ValueError(f'"k" must be an object, got {type(kernels).__name__}')
    return MeasureResult(costs, error_no, message, all_cost, timestamp, kernels)


def recorded_seconds(costs: Sequence[float], error_no: int) -> float:
    """Mean cost of a record; infinite where the program failed, or is only there to be measured.

    Files of programs that are to be measured, such as TenSet's, have costs of 0.

    Raises
    ------
    ValueError : no program can have taken that long.
    """
    if error_no != 0 or (costs and not any(costs)):
        return math.inf
    if not costs or min(costs) <= 0:
        raise ValueError(f"costs must be positive, got {list(costs)}")
    return sum(costs) / len(costs)


def careful_file(filename: str | Path) -> Path:
    """Where the careful measurements of a record file's programs stand."""
    path = Path(filename)
    return path.with_name(f"{path.stem}.careful.json")


def record_lines(filename: str | Path) -> Iterator[tuple[int, str]]:
    """Lines that hold a record of a loop state, with their numbers."""
    for number, line, values in _lines(filename):
        if not _is_of_no_state(values):
            yield number, line


def any_record_lines(filename: str | Path) -> Iterator[tuple[int, str]]:
    """Lines that hold a record of any kind, with their numbers."""
    for number, line, _ in _lines(filename):
        yield number, line


def _costs(
    filename: str | Path,
    cost_of: Callable[[str, str, float], float],
) -> dict[str, tuple[float, str]]:
    """Program to cost and line: the least of a file, and the careful one where there is one.

    cost_of : from workload, target and seconds of a record to what it counts as.
    """
    found: dict[str, tuple[float, str]] = {}
    for path in (Path(filename), careful_file(filename)):
        if path != Path(filename) and not path.exists():
            continue
        costs: dict[str, tuple[float, str]] = {}
        for number, line, summary in record_summaries(path):
            with malformed_is_value_error(f"{path}:{number}"):
                cost = cost_of(summary.workload_key, summary.target, summary.seconds)
            if cost < costs.get(summary.program, (math.inf, ""))[0]:
                costs[summary.program] = cost, line
        found.update(costs)
    return found


def _lines(filename: str | Path) -> Iterator[tuple[int, str, Any]]:
    """Lines of any record with numbers and values; broken ones are reported and left out."""
    reader = RecordReader(filename)
    while entry := _ffi_api.RecordReaderReadLine(reader):
        number, line = int(entry[0]), entry[1].decode(errors="replace")
        if _is_whole(filename, number, line):
            yield number, line, json.loads(line)


def library_records(filename: str | Path) -> dict[tuple[str, str], MeasureResult]:
    """Workload key and target to the last measurement of the library's schedule.

    Parameters
    ----------
    filename : record file; the measurements stand in the careful one beside it.

    Raises
    ------
    ValueError : such a record is damaged; the message names file and line.
    """
    found: dict[tuple[str, str], MeasureResult] = {}
    path = careful_file(filename)
    for number, _, values in _lines(path) if path.exists() else ():
        if isinstance(values, dict) and values.get("origin") == "library":
            with malformed_is_value_error(f"{path}:{number}"):
                found[str(values["workload"]), str(values["target"])] = result_from_json(values)
    return found


def _is_of_no_state(values: Any) -> bool:
    """Whether a record is of a program that somebody else scheduled, or of the library's."""
    return isinstance(values, dict) and "origin" in values


def _is_whole(filename: str | Path, number: int, line: str) -> bool:
    """Whether a line is JSON; what a run leaves behind that was killed while it wrote is not.

    Raises
    ------
    ValueError : neither is the next line, and the file begins with them: it holds something else.
    """
    if _is_json(line):
        return True
    if number <= 2:
        with open(filename, errors="replace") as file:
            begins = [text for text in itertools.islice(file, 3) if text.strip()][:2]
        if len(begins) == 2 and not any(map(_is_json, begins)):
            raise ValueError(f"{filename} is no record file: it begins with {begins[0][:40]!r}")
    _warn_of(str(filename), number, line)
    return False


def _is_json(line: str) -> bool:
    try:
        json.loads(line)
    except (json.JSONDecodeError, RecursionError):
        return False
    return True


# A file is read for several questions, and says the same each time.
@functools.lru_cache(maxsize=1024)
def _warn_of(filename: str, number: int, line: str) -> None:
    logger.warning("%s:%d is not a whole record; skipped", filename, number)


@tvm._ffi.register_func("auto_scheduler.ReadRecordLine")
def _read_record_line(filename: str, number: int, line: bytes) -> list[Object]:
    """Input and result of a line, or nothing of one that is broken or of no loop state."""
    text = line.decode(errors="replace")
    if not _is_whole(filename, number, text) or _is_of_no_state(json.loads(text)):
        return []
    with malformed_is_value_error(f"{filename}:{number}"):
        return list(load_record_from_string(text))


@tvm._ffi.register_object("auto_scheduler.RecordReader")
class RecordReader(Object):
    """Reads a record file from its beginning on, record by record.

    Iterating gives pairs of MeasureInput and MeasureResult. As with a file, each read goes on where
    the last one ended; at the end, a later read sees what was appended meanwhile. Lines that are no
    whole records are passed over with a warning.

    Parameters
    ----------
    filename : record file.

    Raises
    ------
    FileNotFoundError : there is no such file.
    ValueError : when reading, a line that is no record, which the message names, or a file that
        holds something else.
    """

    def __init__(self, filename: str | Path) -> None:
        if not Path(filename).exists():
            raise FileNotFoundError(f"record file {filename} does not exist")
        self.__init_handle_by_constructor__(_ffi_api.RecordReader, str(filename))

    def read_lines(
        self, max_lines: int | None = None, skip_lines: int = 0
    ) -> tuple[list[MeasureInput], list[MeasureResult]]:
        """Inputs and results of up to `max_lines` records behind the next `skip_lines`."""
        inputs, results = _ffi_api.RecordReaderReadLines(
            self, -1 if max_lines is None else max_lines, skip_lines
        )
        self.check_workload_key(inputs)
        return list(inputs), list(results)

    def check_workload_key(self, inputs: Sequence[MeasureInput]) -> None:
        """Warn of workload keys without shapes, of which other workloads may have the same."""
        for key in sorted({str(measure_input.task.workload_key) for measure_input in inputs}):
            is_list_of_hash = key.startswith("[") and not decode_workload_key(key)[1]
            if is_list_of_hash and not is_registered_function(key):
                logger.warning(
                    "%s: the workload key %s tells no shapes, so records of other shapes may "
                    "stand under it; tune again, or write the shapes into it",
                    self.filename,
                    key,
                )

    def __iter__(self) -> Iterator[tuple[MeasureInput, MeasureResult]]:
        while record := _ffi_api.RecordReaderReadNext(self):
            yield record[0], record[1]


@tvm._ffi.register_object("auto_scheduler.RecordToFile")
class RecordToFile(MeasureCallback):
    """Measure callback that appends each result to a file as soon as it is known.

    Parameters
    ----------
    filename : record file; folders that are missing are made.

    Where a record cannot be written, it goes to the log, and the search ends with the OSError.
    """

    def __init__(self, filename: str | Path) -> None:
        Path(filename).parent.mkdir(parents=True, exist_ok=True)
        self.__init_handle_by_constructor__(_ffi_api.RecordToFile, str(filename))


def load_records(filename: str | Path) -> Iterator[tuple[MeasureInput, MeasureResult]]:
    """The records of a file, see RecordReader."""
    return iter(RecordReader(filename))


@tvm._ffi.register_func("auto_scheduler.SaveRecords")
def save_records(
    filename: str | Path, inputs: Sequence[Candidate], results: Sequence[MeasureResult]
) -> None:
    """Append records to a file; they are with the operating system when the call returns.

    Raises
    ------
    OSError : they cannot be written; then none of them is in the file.
    """
    if len(inputs) != len(results):
        raise ValueError(f"save_records: {len(inputs)} inputs but {len(results)} results")
    append_lines(filename, [i.record(r) for i, r in zip(inputs, results)])


@tvm._ffi.register_func("auto_scheduler.AppendRecord")
def _append_record(filename: str, line: str) -> None:
    try:
        append_lines(str(filename), [str(line)])
    except OSError as error:
        # The search ends here, and what was measured is in no other place.
        logger.error("%s; this record is in no file:\n%s", error, line)
        raise


def load_best_record(
    filename: str | Path,
    workload_key: str | None = None,
    target: str | Target | None = None,
    include_compatible: bool = False,
) -> tuple[MeasureInput | None, MeasureResult | None]:
    """The record with the lowest mean cost, or two times None.

    A program that was measured carefully counts with that, see this module's description.

    Parameters
    ----------
    filename : record file.
    workload_key : only records of this workload.
    target : only records of this machine, see Target.is_same_machine. Where the file has the
        workload for other machines only, a warning names them.
    include_compatible : also records of workloads whose sizes divide the wanted ones.
    """
    if isinstance(target, str):
        target = Target(target)
    other_machines: set[str] = set()
    is_wanted = functools.cache(lambda text: target is None or target.is_same_machine(Target(text)))

    def cost_of(key: str, record_target: str, seconds: float) -> float:
        if workload_key is not None and key != workload_key:
            if not include_compatible:
                return math.inf
            seconds *= calc_workload_dis_factor(
                decode_workload_key(workload_key), decode_workload_key(key)
            )
        if not is_wanted(record_target):
            if seconds < math.inf:
                other_machines.add(record_target)
            return math.inf
        return seconds

    programs = _costs(filename, cost_of)
    best_cost, best = min(programs.values(), default=(math.inf, ""))
    if best_cost >= MAX_FLOAT:
        if other_machines:
            logger.warning(
                "%s: its records of %s are of other machines than %s: %s",
                filename,
                workload_key or "any workload",
                target.with_machine() if target is not None else "",
                "; ".join(sorted(other_machines)),
            )
        return None, None
    return load_record_from_string(best)


@tvm._ffi.register_func("auto_scheduler.LoadBestState")
def _load_best_state(
    filename: str, workload_key: str, target: Target, include_compatible: bool
) -> StateObject | None:
    best, _ = load_best_record(str(filename), str(workload_key), target, bool(include_compatible))
    return None if best is None else best.state


class RecordSummary(NamedTuple):
    """What a record is of, and how it ended.

    Attributes
    ----------
    seconds : mean cost; infinite where the program failed or was not measured.
    program : task and transform steps as text, or where a program is from that is no loop state.
    is_state : whether it is one.
    """

    workload_key: str
    target: str
    seconds: float
    program: str
    is_state: bool


def record_summary(line: str) -> RecordSummary:
    """Workload, target, mean cost and program of one line of a record file.

    Raises
    ------
    ValueError : the line is no record; the message names the field.
    """
    with malformed_is_value_error("record"):
        data = json.loads(line)
        costs, error_no, _, _ = _checked(data)
        is_state = not _is_of_no_state(data)
        if is_state:
            (key, target, *_), _ = data["i"]
        else:
            key, target = data["workload"], data["target"]
        return RecordSummary(
            text_of(key, "workload_key"),
            text_of(target, "target"),
            recorded_seconds(costs, error_no),
            json.dumps(data["i" if is_state else "origin"]),
            is_state,
        )


def record_summaries(filename: str | Path) -> Iterator[tuple[int, str, RecordSummary]]:
    """Lines that hold a record of a loop state, with their numbers and what they say.

    Raises
    ------
    ValueError : a line is no record; the message names file, line and field.
    """
    for number, line in record_lines(filename):
        with malformed_is_value_error(f"{filename}:{number}"):
            summary = record_summary(line)
        yield number, line, summary


def distill_record_file(in_file: str | Path, out_file: str | Path) -> None:
    """Keep the best valid record of each workload and target."""
    best: dict[tuple[str, str], tuple[float, str]] = {}
    for cost, line in _costs(in_file, lambda key, target, seconds: seconds).values():
        kernel = record_summary(line)[:2]
        if cost < best.get(kernel, (math.inf, ""))[0]:
            best[kernel] = cost, line
    write_atomically(out_file, "".join(line + "\n" for _, line in best.values()))
