"""What is searched: one computation on one target."""

from __future__ import annotations

import json
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import tvm
from tvm import te
from tvm.runtime import Object
from tvm.runtime.ndarray import NDArray
from tvm.target import Target

from . import _ffi_api
from .compute_dag import ComputeDAG, LayoutRewriteOption
from .json_fields import integer_of, malformed_is_value_error, parts_of, text_of, texts_of
from .loop_state import StateObject
from .task_input import (
    TASK_INPUT_BUFFER_TABLE,
    get_task_input_buffer,
    register_task_input_buffer,
    register_task_input_check_func,
)
from .workload_registry import (
    WORKLOAD_FUNC_REGISTRY,
    deserialize_workload_registry_entry,
    is_registered_function,
    make_workload_key,
    register_workload_tensors,
    serialize_workload_registry_entry,
)

__all__ = [
    "TASK_INPUT_BUFFER_TABLE",
    "HardwareParams",
    "SearchTask",
    "create_task",
    "dump_task",
    "get_task_input_buffer",
    "load_task",
    "register_task_input_buffer",
    "register_task_input_check_func",
    "task_from_header",
    "task_header",
]

# Building a DAG takes milliseconds, reading a line microseconds: one task serves all its records.
# With each task the tensors that it was made of.
_TASKS: dict[str, tuple[Any, SearchTask]] = {}


@tvm._ffi.register_object("auto_scheduler.HardwareParams")
class HardwareParams(Object):
    """Limits of a device that sketches, features and constraints read.

    What is left None is taken from `target`, by default this machine.

    Parameters
    ----------
    num_cores : cores that run parallel loops; -1 for a GPU.
    vector_unit_bytes, cache_line_bytes : width of a vector register and of a cache line.
    max_shared_memory_per_block, max_local_memory_per_block : bytes, GPU only.
    max_threads_per_block, max_vthread_extent, warp_size : GPU only.
    target : where the rest comes from.

    Raises
    ------
    ValueError : a value is none that a machine has; the message names its field.
    """

    def __init__(
        self,
        num_cores: int | None = None,
        vector_unit_bytes: int | None = None,
        cache_line_bytes: int | None = None,
        max_shared_memory_per_block: int | None = None,
        max_local_memory_per_block: int | None = None,
        max_threads_per_block: int | None = None,
        max_vthread_extent: int | None = None,
        warp_size: int | None = None,
        target: str | Target | None = None,
    ) -> None:
        defaults = _ffi_api.GetDefaultHardwareParams(_as_target(target or "llvm"))
        given = (
            num_cores,
            vector_unit_bytes,
            cache_line_bytes,
            max_shared_memory_per_block,
            max_local_memory_per_block,
            max_threads_per_block,
            max_vthread_extent,
            warp_size,
        )
        values = [
            int(getattr(defaults, name)) if value is None else _limit_of(value, name)
            for name, value in zip(_HARDWARE_FIELDS, given)
        ]
        self.__init_handle_by_constructor__(_ffi_api.HardwareParams, *values)

    def as_list(self) -> list[int]:
        """The values in the order of the record format."""
        return [int(getattr(self, name)) for name in _HARDWARE_FIELDS]

    def __str__(self) -> str:
        lines = [f"  {name}: {getattr(self, name)}" for name in _HARDWARE_FIELDS]
        return "\n".join(["HardwareParams", *lines])


_HARDWARE_FIELDS = (
    "num_cores",
    "vector_unit_bytes",
    "cache_line_bytes",
    "max_shared_memory_per_block",
    "max_local_memory_per_block",
    "max_threads_per_block",
    "max_vthread_extent",
    "warp_size",
)


def _limit_of(value: Any, field: str) -> int:
    # Numbers of numpy are integers too.
    number = operator.index(value) if hasattr(value, "__index__") else value
    return integer_of(number, f"HardwareParams: {field}")


def _as_target(target: str | Target) -> Target:
    return target if isinstance(target, Target) else Target(target)


@tvm._ffi.register_object("auto_scheduler.SearchTask")
class SearchTask(Object):
    """A computation to be tuned for a target.

    The computation is given in one of three ways: a registered function with its arguments, a
    ComputeDAG, or a workload key.

    Parameters
    ----------
    func, args : registered function or its name, and its arguments.
    compute_dag : the computation itself, or its io tensors, inputs first. Its tensors are
        registered under its workload key, so that records can be read back.
    workload_key : key of a registered workload.
    target, target_host : what is compiled for; `target` may carry the host. The task's own target
        names the machine, see Target.with_machine.
    hardware_params : limits; by default those of the target.
    layout_rewrite_option : see LayoutRewriteOption; by default what is usual for the target.
    task_inputs : names of inputs that measurements must not fill with random numbers, registered
        with `register_task_input_buffer`; or a mapping from names to their arrays.
    task_inputs_overwrite, task_inputs_save_to_file : see `register_task_input_buffer`.
    desc : text for tables.

    Raises
    ------
    ValueError : no computation or no target is given.
    """

    def __init__(
        self,
        func: str | Callable[..., Any] | None = None,
        args: Any = None,
        compute_dag: ComputeDAG | Sequence[te.Tensor] | None = None,
        workload_key: str | None = None,
        target: str | Target | None = None,
        target_host: str | Target | None = None,
        hardware_params: HardwareParams | None = None,
        layout_rewrite_option: int | None = None,
        task_inputs: Mapping[str, NDArray] | Sequence[str] | None = None,
        task_inputs_overwrite: bool = False,
        task_inputs_save_to_file: bool = False,
        desc: str = "",
    ) -> None:
        if target is None:
            raise ValueError("SearchTask: give a target, such as 'llvm'")
        if func is not None:
            workload_key = make_workload_key(func, () if args is None else args)
        if compute_dag is not None and not isinstance(compute_dag, ComputeDAG):
            compute_dag = ComputeDAG(compute_dag)
        if workload_key is None:
            if compute_dag is None:
                raise ValueError(
                    "SearchTask: give a function with arguments, a ComputeDAG or a workload key"
                )
            workload_key = compute_dag.workload_key()
        if compute_dag is not None and not is_registered_function(workload_key):
            register_workload_tensors(workload_key, compute_dag.tensors)
        if compute_dag is None:
            compute_dag = ComputeDAG(workload_key)
        inputs = task_inputs if task_inputs is not None else ()
        if isinstance(inputs, Mapping):
            for name, data in inputs.items():
                register_task_input_buffer(
                    workload_key, name, data, task_inputs_overwrite, task_inputs_save_to_file
                )
        host = _as_target(target_host) if target_host is not None else None
        target = _as_target(target) if host is None else Target(_as_target(target), host)
        if layout_rewrite_option is None:
            layout_rewrite_option = LayoutRewriteOption.get_target_default(target)
        self.__init_handle_by_constructor__(
            _ffi_api.SearchTask,
            compute_dag,
            workload_key,
            desc,
            target,
            target.host,
            hardware_params,
            layout_rewrite_option,
            list(inputs),
        )

    def tune(
        self,
        tuning_options: Object,
        search_policy: Object | str | None = None,
        adaptive_training: bool = False,
    ) -> None:
        """Search for a fast program and measure as the options say; `apply_best` reads the result.

        Parameters
        ----------
        tuning_options : TuningOptions.
        search_policy : a policy, or the name of one as `TaskScheduler.tune` takes them; by default
            Ansor's search with a model of boosted trees.
        adaptive_training : train that model less often as measurements grow.
        """
        # Policies stand on tasks, hence by its registered name.
        tune = tvm._ffi.get_global_func("auto_scheduler.TuneTask")
        tune(self, search_policy, tuning_options, adaptive_training)

    def apply_best(
        self,
        log_file: str,
        include_compatible: bool = False,
        layout_rewrite_option: int | None = None,
    ) -> tuple[te.Schedule, list[te.Tensor]]:
        """Schedule and arguments of the best record of this task in a file.

        Raises
        ------
        RuntimeError : the file has no valid record of the task.
        """
        state = self._best_state(log_file, include_compatible)
        if layout_rewrite_option is None:
            layout_rewrite_option = int(self.layout_rewrite_option)
        return self.compute_dag.apply_steps_from_state(state, layout_rewrite_option)

    def print_best(
        self, log_file: str, include_compatible: bool = False, print_mode: str = "schedule"
    ) -> str:
        """The best record of this task in a file as text.

        Parameters
        ----------
        print_mode : "schedule" for Python code on a te schedule, "cuda" for the kernels' source.

        Raises
        ------
        RuntimeError : the file has no valid record of the task.
        ValueError : the mode is unknown.
        """
        if print_mode not in ("schedule", "cuda"):
            raise ValueError(
                f"print_best: unknown print_mode {print_mode!r}; known are schedule, cuda"
            )
        state = self._best_state(log_file, include_compatible)
        if print_mode == "schedule":
            return self.compute_dag.print_python_code_from_state(state)
        schedule, args = self.compute_dag.apply_steps_from_state(state)
        return tvm.build(schedule, args, target=self.target).imported_modules[0].get_source()

    def _best_state(self, log_file: str, include_compatible: bool) -> StateObject:
        # Records are read by what stands on tasks, hence by its registered name.
        load = tvm._ffi.get_global_func("auto_scheduler.LoadBestState")
        state = load(log_file, self.workload_key, self.target, include_compatible)
        if state is None:
            raise RuntimeError(
                f"{log_file} has no valid record of {self.workload_key} for {self.target}"
            )
        return state

    def __reduce__(self) -> tuple[Any, ...]:
        # The DAG is rebuilt from the registry, which travels along.
        entry = serialize_workload_registry_entry(self.workload_key)
        return task_from_header, (task_header(self), str(self.desc), entry)


_HEADER = ("workload_key", "target", "hardware", "target_host", "layout_rewrite", "task_inputs")


def task_header(task: SearchTask) -> list[Any]:
    """The part of a record that says what was searched."""
    return [
        str(task.workload_key),
        str(task.target),
        task.hardware_params.as_list(),
        "" if task.target_host is None else str(task.target_host),
        int(task.layout_rewrite_option),
        [str(name) for name in task.task_input_names],
    ]


def task_from_header(
    header: Sequence[Any], desc: str = "", registry_entry: tuple[str, Any] | None = None
) -> SearchTask:
    """Inverse of `task_header`; fields missing at the end take their defaults.

    Raises
    ------
    ValueError : a field is not what it must be, which the message names, or the workload is not
        registered in this process.
    """
    if registry_entry is not None:
        deserialize_workload_registry_entry(registry_entry)
    key, target, hardware, host, layout, inputs = parts_of(header, "the task", *_HEADER, least=2)
    key = text_of(key, "workload_key")
    cache_key = json.dumps([*header, desc])
    tensors = WORKLOAD_FUNC_REGISTRY.get(key)
    made_of, task = _TASKS.get(cache_key, (None, None))
    # A workload may be registered anew under its name, so a function's tasks are not kept.
    if task is None or tensors is None or made_of is not tensors:
        parts_of(hardware or [], "hardware", *_HARDWARE_FIELDS, least=0)
        limits: list[Any] = [
            integer_of(limit, f"hardware: {name}")
            for limit, name in zip(hardware or (), _HARDWARE_FIELDS)
        ]
        task = SearchTask(
            workload_key=key,
            target=Target(text_of(target, "target")),
            target_host=Target(text_of(host, "target_host")) if host else None,
            hardware_params=HardwareParams(*limits) if hardware else None,
            layout_rewrite_option=None if layout is None else integer_of(layout, "layout_rewrite"),
            task_inputs=texts_of([] if inputs is None else inputs, "task_inputs"),
            desc=desc,
        )
        _TASKS[cache_key] = (WORKLOAD_FUNC_REGISTRY.get(key), task)
    return task


@tvm._ffi.register_func("auto_scheduler.SerializeSearchTask")
def dump_task(task: SearchTask) -> str:
    """JSON text of a task, the part of its records that says what was searched."""
    return json.dumps(task_header(task))


@tvm._ffi.register_func("auto_scheduler.DeserializeSearchTask")
def load_task(text: str) -> SearchTask:
    """Inverse of `dump_task`; fields missing at the end take their defaults.

    Raises
    ------
    ValueError : the text is no task, or its workload is not registered in this process.
    """
    with malformed_is_value_error("search task"):
        return task_from_header(json.loads(text))


def create_task(func: str | Callable[..., Any], args: Any, target: str | Target) -> SearchTask:
    """A task of a registered function; `SearchTask(func=..., args=..., target=...)` is the same."""
    return SearchTask(func=func, args=args, target=target)
