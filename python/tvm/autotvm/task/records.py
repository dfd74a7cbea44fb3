"""Lines of record files.

A line is ``{"input": [target, template, [argument, ...], {}], "config": {"index": .., "code_hash":
.., "entity": [[knob, kind, choice], ...]}, "result": [[seconds, ...], error_no, all_cost,
timestamp], "version": 0.2, "tvm_version": ..}``, the form in which AutoTVM writes them. The
protocol "pickle" is four texts in base64 with tabs between; reading it, too, executes nothing.
"""

from __future__ import annotations

import base64
import io
import json
import logging
import os
import pickle
from collections.abc import Iterator
from typing import Any, TextIO

import tvm
from tvm.target import Target

from ..measure_node import MeasureErrorNo, MeasureInput, MeasureResult
from .space import ConfigEntity
from .task import Task

__all__ = [
    "AUTOTVM_LOG_VERSION",
    "decode",
    "encode",
    "load_from_buffer",
    "load_from_file",
    "measure_str_key",
    "split_workload",
]

logger = logging.getLogger("autotvm")

AUTOTVM_LOG_VERSION = 0.2
# Seconds that a record says of a program that could not be measured.
_FAILED = 1e9


def measure_str_key(inp: MeasureInput, include_config: bool = True) -> str:
    """A text that is the same for equal measurements.

    Parameters
    ----------
    include_config : tell points of one task apart.
    """
    config = str(inp.config) if include_config else ""
    return "".join(
        [str(inp.target), inp.task.name, str(inp.task.args), str(inp.task.kwargs), config]
    )


def _result_fields(result: MeasureResult) -> list[Any]:
    ok = int(result.error_no) == MeasureErrorNo.NO_ERROR
    costs = [float(cost) for cost in result.costs] if ok else [_FAILED]
    return [costs, int(result.error_no), float(result.all_cost), float(result.timestamp)]


def encode(inp: MeasureInput, result: MeasureResult, protocol: str = "json") -> str:
    """The line of a measurement.

    Parameters
    ----------
    protocol : "json" or "pickle".

    Raises
    ------
    ValueError : another protocol.
    """
    header = [str(inp.target), inp.task.name, list(inp.task.args), dict(inp.task.kwargs)]
    config = inp.config.to_json_dict()
    if protocol == "json":
        record = {
            "input": header,
            "config": config,
            "result": _result_fields(result),
            "version": AUTOTVM_LOG_VERSION,
            "tvm_version": tvm.__version__,
        }
        return json.dumps(record)
    if protocol == "pickle":
        parts = (header[0], header[1:], config, _result_fields(result))
        return "\t".join(base64.b64encode(pickle.dumps(part)).decode() for part in parts)
    raise ValueError(f"autotvm record: unknown protocol {protocol!r}; there are json and pickle")


class _PlainUnpickler(pickle.Unpickler):
    """Numbers, texts and containers; anything that would call a function is refused."""

    def find_class(self, module: str, name: str) -> Any:
        raise pickle.UnpicklingError(f"a record holds {module}.{name}, which is no plain value")


def _unpickle(text: str) -> Any:
    return _PlainUnpickler(io.BytesIO(base64.b64decode(text, validate=True))).load()


def decode(row: str, protocol: str = "json") -> tuple[MeasureInput, MeasureResult] | None:
    """Inverse of `encode`; None for a blank line, a comment, and another version of the format.

    Raises
    ------
    ValueError : the line has another form, its template is not defined, or it holds more than
        plain values.
    """
    if not row.strip() or row.startswith("#"):
        return None
    try:
        if protocol == "json":
            record = json.loads(row)
            if record.get("v") is not None or record.get("version") != AUTOTVM_LOG_VERSION:
                logger.warning("autotvm: a record of another version is left out: %.80s", row)
                return None
            (target, *task), config, result = record["input"], record["config"], record["result"]
        elif protocol == "pickle":
            target, task, config, result = (_unpickle(part) for part in row.strip().split("\t"))
        else:
            raise ValueError(
                f"autotvm record: unknown protocol {protocol!r}; there are json and pickle"
            )
        return _input(target, task, config), _result(result)
    except (KeyError, TypeError, AttributeError, EOFError, pickle.UnpicklingError) as error:
        raise ValueError(f"autotvm record: {error} in {row[:80]!r}") from error


def _deep_tuple(value: Any) -> Any:
    return tuple(_deep_tuple(item) for item in value) if isinstance(value, (list, tuple)) else value


def _input(target: str, task: list[Any], config: dict[str, Any]) -> MeasureInput:
    name, args, kwargs = task
    found = Task(str(name), _deep_tuple(args))
    if kwargs:
        raise ValueError(f"template {name!r}: arguments by name are not recorded, got {kwargs}")
    found.target = Target(target)
    return MeasureInput(found.target, found, ConfigEntity.from_json_dict(config))


def _result(fields: Any) -> MeasureResult:
    costs, error_no, all_cost, timestamp = fields
    times = tuple(float(cost) for cost in costs)
    if not times or not all(cost >= 0 for cost in times):
        raise ValueError(f"autotvm record: costs are seconds, got {costs}")
    return MeasureResult(times, int(error_no), float(all_cost), float(timestamp))


def load_from_buffer(file: TextIO) -> Iterator[tuple[MeasureInput, MeasureResult]]:
    """The records of an open text file.

    Raises
    ------
    ValueError : a line is none; the message says which.
    """
    for number, row in enumerate(file, 1):
        try:
            record = decode(row)
        except ValueError as error:
            raise ValueError(f"{getattr(file, 'name', 'records')}:{number}: {error}") from error
        if record is not None:
            yield record


def load_from_file(
    filepath: str | os.PathLike[str],
) -> Iterator[tuple[MeasureInput, MeasureResult]]:
    """The records of a file; see `load_from_buffer`."""
    with open(filepath, encoding="utf-8") as file:
        yield from load_from_buffer(file)


def split_workload(in_file: str, clean: bool = True) -> list[str]:
    """Write the records of each workload into a file of its own beside the given one.

    Parameters
    ----------
    clean : leave out failures, and of points that were measured twice all but the first.

    Returns
    -------
    Paths of the files, the workload with most records first.
    """
    groups: dict[Any, list[tuple[MeasureInput, MeasureResult]]] = {}
    seen: set[str] = set()
    for inp, result in load_from_file(in_file):
        key = measure_str_key(inp)
        if clean and (int(result.error_no) != 0 or key in seen):
            continue
        seen.add(key)
        groups.setdefault(inp.task.workload, []).append((inp, result))
    paths = []
    for number, records in enumerate(sorted(groups.values(), key=len, reverse=True)):
        paths.append(f"{os.path.splitext(in_file)[0]}.{number:03d}.log")
        with open(paths[-1], "w", encoding="utf-8") as out:
            out.writelines(encode(inp, result) + "\n" for inp, result in records)
    return paths
