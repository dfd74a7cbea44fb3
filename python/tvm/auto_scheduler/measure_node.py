"""What is handed to builders and runners, and what comes back."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np

import tvm
from tvm import te
from tvm.runtime import Object
from tvm.target import Target

from . import _ffi_api
from .compute_dag import ComputeDAG, LayoutRewriteOption
from .json_fields import elements_of, malformed_is_value_error, parts_of
from .loop_state import State, StateObject, state_object_of
from .search_task import SearchTask, task_from_header, task_header
from .step_records import steps_from_json, steps_to_json
from .task_input import get_task_input_buffer, names_of_inputs
from .utils import get_const_tuple, shorten_error_text
from .workload_registry import (
    deserialize_workload_registry_entry,
    serialize_workload_registry_entry,
)

__all__ = [
    "MAX_FLOAT",
    "BuildResult",
    "Candidate",
    "LibraryCandidate",
    "MeasureErrorNo",
    "MeasureInput",
    "MeasureResult",
    "ModuleCandidate",
    "ProgramRequest",
    "dump_input",
    "input_from_json",
    "input_to_json",
    "load_input",
    "recover_measure_input",
]

# Cost in seconds of a program that could not be measured.
MAX_FLOAT = 1e10


class MeasureErrorNo(IntEnum):
    """Why a measurement gave no cost; the values are those of the record format."""

    NO_ERROR = 0
    INSTANTIATION_ERROR = 1
    COMPILE_HOST = 2
    COMPILE_DEVICE = 3
    RUNTIME_DEVICE = 4
    WRONG_ANSWER = 5
    BUILD_TIMEOUT = 6
    RUN_TIMEOUT = 7
    UNKNOWN_ERROR = 8


@dataclass(frozen=True)
class ProgramRequest:
    """How a worker, which knows nothing of this process, makes a program.

    Attributes
    ----------
    function : ``module:name`` of a function that takes `arguments` and returns a
        `measure_jobs.Program`.
    arguments : whatever JSON can say.
    """

    function: str
    arguments: dict[str, Any]


@tvm._ffi.register_object("auto_scheduler.Candidate")
class Candidate(Object):
    """A program to measure, whatever describes it; the kinds are subclasses."""

    def request(self, unscheduled: bool = False) -> ProgramRequest:
        """What a worker needs to make the program.

        Parameters
        ----------
        unscheduled : the same computation with nothing scheduled instead.
        """
        raise TypeError(f"{type(self).__name__} does not say how its program is made")

    @property
    def workload_key(self) -> str:
        """Name of the computation; only latencies of equal keys compare."""
        return str(_ffi_api.CandidateWorkloadKey(self))

    @property
    def build_target(self) -> Target:
        """What the program is compiled for."""
        return _ffi_api.CandidateTarget(self)

    def special_inputs(self) -> dict[str, str]:
        """Inputs that are not to be random: position of the argument to its bytes in base64."""
        return {}

    def record(self, result: MeasureResult) -> str:
        """The line of a record file that says this program took that long."""
        return str(_ffi_api.CandidateRecord(self, result))


@tvm._ffi.register_object("auto_scheduler.MeasureInput")
class MeasureInput(Candidate):
    """A loop state of a search task: `task` and `state`."""

    def __init__(self, task: SearchTask, state: State | StateObject) -> None:
        self.__init_handle_by_constructor__(_ffi_api.MeasureInput, task, state_object_of(state))

    def __repr__(self) -> str:
        task, n_steps = self.task, len(self.state.transform_steps)
        what = " ".join(filter(None, (str(task.desc), str(task.workload_key))))
        return f"MeasureInput({what} for {task.target}, {n_steps} steps)"

    def request(self, unscheduled: bool = False) -> ProgramRequest:
        arguments = {
            "input": dump_input(self),
            "workload": _workload(self.task),
            "default_schedule": unscheduled,
        }
        return ProgramRequest("tvm.auto_scheduler.measure_jobs:program_of_state", arguments)

    def special_inputs(self) -> dict[str, str]:
        """Arrays that its inputs must have: position of the argument to a text that workers read.

        Raises
        ------
        ValueError : a name is no input of the computation, or has no array of its shape and dtype.
        """
        tensors = list(self.task.compute_dag.tensors)
        positions = names_of_inputs(tensors) if len(self.task.task_input_names) else {}
        found = {}
        for name in map(str, self.task.task_input_names):
            position = positions.get(name)
            data = get_task_input_buffer(str(self.task.workload_key), name).numpy()
            if position is None:
                raise ValueError(
                    f"task input {name!r} is no input of {self.task.workload_key}; its tensors are "
                    f"{list(positions)}"
                )
            shape, dtype = get_const_tuple(tensors[position].shape), str(tensors[position].dtype)
            if data.shape != shape or str(data.dtype) != dtype:
                raise ValueError(
                    f"task input {name!r} is {data.dtype} of shape {data.shape}, the computation "
                    f"reads {dtype} of shape {shape}"
                )
            found[str(position)] = base64.b64encode(np.ascontiguousarray(data).tobytes()).decode()
        return found

    def serialize(self) -> tuple[str, tuple[str, Any]]:
        """A form that another process can `deserialize`, the workload included."""
        return dump_input(self), serialize_workload_registry_entry(self.task.workload_key)

    @staticmethod
    def deserialize(data: tuple[str, tuple[str, Any]]) -> MeasureInput:
        """Inverse of `serialize`."""
        text, entry = data
        deserialize_workload_registry_entry(entry)
        return load_input(text)

    def __reduce__(self) -> tuple[Any, ...]:
        return MeasureInput.deserialize, (self.serialize(),)


def input_to_json(measure_input: MeasureInput) -> list[Any]:
    """The field "i" of a record."""
    return [task_header(measure_input.task), [[], steps_to_json(measure_input.state)]]


def input_from_json(data: Sequence[Any]) -> MeasureInput:
    """Inverse of `input_to_json`; a ValueError names a field that is not what it must be."""
    header, state = parts_of(data, "the input", "task", "state")
    _, steps = parts_of(state, "the state", "stages", "steps")
    for i, step in enumerate(elements_of(steps, "steps")):
        elements_of(step, f"steps[{i}]")
    task = task_from_header(header)
    state = task.compute_dag.replay_steps(steps_from_json(steps))
    return MeasureInput(task, state)


@tvm._ffi.register_func("auto_scheduler.SerializeMeasureInput")
def dump_input(measure_input: MeasureInput) -> str:
    """JSON text of a measure input."""
    return json.dumps(input_to_json(measure_input))


@tvm._ffi.register_func("auto_scheduler.DeserializeMeasureInput")
def load_input(text: str) -> MeasureInput:
    """Inverse of `dump_input`.

    Raises
    ------
    ValueError : the text is no measure input, or its workload is not registered in this process.
    """
    with malformed_is_value_error("measure input"):
        return input_from_json(json.loads(text))


# Workload key -> the DAG that stood under it last, and the text of its tensors.
_workload_texts: dict[str, tuple[ComputeDAG, str]] = {}


def _workload(task: SearchTask) -> list[str]:
    """Key and tensors of a task, for a process that has not got them."""
    key = str(task.workload_key)
    dag, text = _workload_texts.get(key, (None, ""))
    if dag is None or not dag.same_as(task.compute_dag):
        text = tvm.ir.save_json(list(task.compute_dag.tensors))
        _workload_texts[key] = (task.compute_dag, text)
    return [key, text]


@tvm._ffi.register_object("auto_scheduler.ModuleCandidate")
class ModuleCandidate(Candidate):
    """A function that somebody else scheduled, such as one of `tir.Schedule`.

    Parameters
    ----------
    mod : module of one function over buffers, or the function itself.
    target : what it is compiled for.
    workload_key : name of what it computes; candidates of one name are compared.
    origin : how it was made, in terms of JSON; becomes part of the record.
    flop : operations of one run, for figures of throughput.

    Raises
    ------
    ValueError : there is not exactly one function.
    """

    def __init__(
        self,
        mod: tvm.ir.IRModule | tvm.tir.PrimFunc,
        target: str | Target,
        workload_key: str,
        origin: Any = None,
        flop: float = 0.0,
    ) -> None:
        if not isinstance(mod, tvm.ir.IRModule):
            mod = tvm.ir.IRModule({"main": mod})
        self.__init_handle_by_constructor__(
            _ffi_api.ModuleCandidate,
            mod,
            target if isinstance(target, Target) else Target(target),
            workload_key,
            json.dumps(origin),
            float(flop),
        )

    def request(self, unscheduled: bool = False) -> ProgramRequest:
        if unscheduled:
            raise ValueError(
                f"ModuleCandidate of {self.workload_key}: there is no unscheduled form to compare "
                "with; measure without check_correctness"
            )
        arguments = {"module": tvm.ir.save_json(self.mod), "target": str(self.target)}
        return ProgramRequest("tvm.auto_scheduler.measure_jobs:program_of_module", arguments)


@tvm._ffi.register_object("auto_scheduler.LibraryCandidate")
class LibraryCandidate(Candidate):
    """A task's computation under the schedule of ``topi.schedule_for``: what a search has to beat.

    Parameters
    ----------
    task : the search task.
    """

    def __init__(self, task: SearchTask) -> None:
        self.__init_handle_by_constructor__(_ffi_api.LibraryCandidate, task)

    def request(self, unscheduled: bool = False) -> ProgramRequest:
        if unscheduled:
            return MeasureInput(self.task, self.task.compute_dag.init_state).request(True)
        option = int(self.task.layout_rewrite_option)
        arguments = {
            "workload": _workload(self.task),
            "target": str(self.task.target),
            "weights_are_constant": option != LayoutRewriteOption.NO_REWRITE,
        }
        return ProgramRequest("tvm.auto_scheduler.measure_jobs:program_of_library", arguments)

    def special_inputs(self) -> dict[str, str]:
        """As of a MeasureInput of the task."""
        return MeasureInput(self.task, self.task.compute_dag.init_state).special_inputs()


def recover_measure_input(inp: MeasureInput, rebuild_state: bool = False) -> MeasureInput:
    """A record's input with its task and, if asked for, its state made anew.

    Readers give whole tasks and states already; the task made here is the caller's own.

    Parameters
    ----------
    rebuild_state : replay the steps and infer the ranges of all loops.
    """
    task = inp.task
    task = SearchTask(
        compute_dag=ComputeDAG(list(task.compute_dag.tensors)),
        workload_key=str(task.workload_key),
        target=task.target,
        target_host=task.target_host,
        hardware_params=task.hardware_params,
        layout_rewrite_option=int(task.layout_rewrite_option),
        task_inputs=[str(name) for name in task.task_input_names],
        desc=str(task.desc),
    )
    state = inp.state
    if rebuild_state:
        dag = task.compute_dag
        replayed = dag.replay_steps(list(state.transform_steps))
        state = dag.infer_bound_from_state(replayed) if len(state.transform_steps) else replayed
    return MeasureInput(task, state)


@tvm._ffi.register_object("auto_scheduler.BuildResult")
class BuildResult(Object):
    """A compiled program: a library file with its arguments, or object code with a description.

    Parameters
    ----------
    filename : path of a library with the function "default_function", None if there is none.
    args : the arguments of that function.
    error_no, error_msg : what went wrong.
    time_cost : seconds that the build took.
    code : object file.
    description : what the runner must know about the code: functions, arguments, layouts.
    """

    def __init__(
        self,
        filename: str | None,
        args: Sequence[te.Tensor],
        error_no: int,
        error_msg: str | None,
        time_cost: float,
        code: bytes = b"",
        description: Mapping[str, Any] | None = None,
    ) -> None:
        self.__init_handle_by_constructor__(
            _ffi_api.BuildResult,
            filename or "",
            list(args),
            int(error_no),
            None if not error_msg else shorten_error_text(error_msg),
            float(time_cost),
            code,
            json.dumps(description or {}),
        )


class Cost(float):
    """Seconds: a float that is also its own `value`, as TVM's literals are read."""

    __slots__ = ()

    @property
    def value(self) -> float:
        """The number."""
        return float(self)


@tvm._ffi.register_object("auto_scheduler.MeasureResult")
class MeasureResult(Object):
    """Times of one program.

    Parameters
    ----------
    costs : seconds per run, one value a repeat; [1e10] on failure, zeros where the program is
        still to be measured. Read as a list of `Cost`.
    error_no, error_msg : what went wrong.
    all_cost : seconds for build and run together.
    timestamp : seconds since the epoch.
    kernels : what each kernel of a GPU takes, by name: numbers under `registers` (of a thread),
        `shared_bytes` (of a block), `stack_bytes` and `spill_bytes` (of a thread).
    """

    def __init__(
        self,
        costs: Sequence[float],
        error_no: int,
        error_msg: str | None,
        all_cost: float,
        timestamp: float,
        kernels: Mapping[str, Mapping[str, int]] | None = None,
    ) -> None:
        self.__init_handle_by_constructor__(
            _ffi_api.MeasureResult,
            [float(cost) for cost in costs],
            int(error_no),
            None if not error_msg else shorten_error_text(error_msg),
            float(all_cost),
            float(timestamp),
            json.dumps(kernels) if kernels else "",
        )

    @property
    def costs(self) -> list[Cost]:
        """Seconds per run, one value a repeat."""
        return [Cost(cost) for cost in _ffi_api.MeasureResultCosts(self)]

    @property
    def kernel_resources(self) -> dict[str, dict[str, int]]:
        """What each kernel of a GPU takes, by name; empty for processors."""
        return json.loads(str(self.kernels)) if str(self.kernels) else {}

    @property
    def mean_cost(self) -> float:
        """Mean of the costs in seconds; 1e10 on failure and where nothing was measured."""
        return _ffi_api.MeasureResultMeanCost(self)

    def __reduce__(self) -> tuple[Any, ...]:
        error_msg = None if self.error_msg is None else str(self.error_msg)
        values = (
            list(map(float, self.costs)),
            int(self.error_no),
            error_msg,
            self.all_cost,
            self.timestamp,
            self.kernel_resources,
        )
        return MeasureResult, values
