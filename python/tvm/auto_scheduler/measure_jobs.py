"""What measure workers do: compile a candidate, and run one.

Each job takes and returns plain values and bytes, see `tvm.runtime.workers`. Expected failures are
part of the result, as an error number and a text.
"""

from __future__ import annotations

import base64
import json
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

import tvm
from tvm import te, tir, topi
from tvm.contrib import nvrtc
from tvm.driver import device_build, prepare, prepare_parts
from tvm.error import RPCError
from tvm.runtime import DataType
from tvm.runtime import _ffi_api as _runtime_api
from tvm.runtime.workers.lifetime import end_after_answer
from tvm.runtime.workers.serve import resolve
from tvm.target import Target, llvm_build
from tvm.target.machine import machine_features

from .compute_dag import LayoutRewriteOption, LayoutTransform, pack_array
from .machine_gauge import MachineGauge, gauge_here, undisturbed
from .measure_node import MeasureErrorNo, MeasureInput, load_input
from .utils import get_const_tuple
from .workload_registry import register_workload_tensors

__all__ = [
    "Inputs",
    "Program",
    "build",
    "describe_argument",
    "load_program",
    "probe",
    "run",
    "time_program",
]

_CPU = int(tvm.cpu().device_type)
# A candidate this much slower than the best one so far is not worth a precise figure.
_HOPELESS = 4.0
# What an array element may differ by, relative to the largest magnitude of the array: sums of a
# few thousand float32 products in another order stay well below.
_TOLERANCE = {"float64": 1e-9, "float32": 1e-3, "float16": 3e-2, "bfloat16": 1e-1}


# ---------------------------------------------------------------------------------------- building


# Workload key -> text of the tensors that are registered for it.
_workloads: dict[str, str] = {}


def _measure_input(text: str, workload: Sequence[str]) -> MeasureInput:
    """The candidate; its workload is registered first, since this process has not seen it."""
    key, tensors = workload
    if _workloads.get(key) != tensors:
        register_workload_tensors(key, list(tvm.ir.load_json(tensors)))
        _workloads[key] = tensors
    return load_input(text)


def describe_argument(tensor: te.Tensor) -> dict[str, Any]:
    """Shape, dtype and role of an argument."""
    return {
        "shape": list(get_const_tuple(tensor.shape)),
        "dtype": str(tensor.dtype),
        "output": not isinstance(tensor.op, te.PlaceholderOp),
    }


def _describe_transform(transform: LayoutTransform) -> dict[str, Any]:
    return {
        "index": int(transform.tensor_index),
        "placeholder": str(transform.placeholder),
        "original_shape": list(get_const_tuple(transform.original_shape)),
        "dims": [int(d) for d in transform.dims],
        "extents": list(get_const_tuple(transform.extents)),
        "strides": list(get_const_tuple(transform.strides)),
    }


def _failure(error_no: MeasureErrorNo, error: BaseException) -> tuple[dict[str, Any], bytes]:
    text = f"{type(error).__name__}: {error}"
    return {"error_no": int(error_no), "error_msg": text}, b""


@dataclass(frozen=True)
class Program:
    """A program that is ready to be compiled.

    Attributes
    ----------
    source, args : what `tvm.driver.prepare` takes.
    target : what it is compiled for.
    interface : shape, dtype and role of each argument.
    transforms : arguments that are laid out anew, and how.
    """

    source: Any
    args: list[Any] | None
    target: Target
    interface: list[dict[str, Any]]
    transforms: list[dict[str, Any]] = field(default_factory=list)


def program_of_state(arguments: dict[str, Any]) -> Program:
    """The program of a MeasureInput.

    Parameters
    ----------
    arguments : `input`, text of the candidate; `workload`, its key and its tensors as JSON;
        `default_schedule`, whether to make the program with nothing scheduled instead.
    """
    measure_input = _measure_input(arguments["input"], arguments["workload"])
    task, state = measure_input.task, measure_input.state
    dag = task.compute_dag
    rewrite = int(task.layout_rewrite_option)
    if arguments["default_schedule"]:
        state, rewrite = dag.init_state, LayoutRewriteOption.NO_REWRITE
    schedule, args = dag.apply_steps_from_state(state, rewrite)
    transforms = (
        dag.layout_transforms(state)
        if rewrite == LayoutRewriteOption.REWRITE_FOR_PRE_TRANSFORMED
        else []
    )
    return Program(
        schedule,
        list(args),
        Target(task.target),
        [describe_argument(arg) for arg in args],
        [_describe_transform(transform) for transform in transforms],
    )


def program_of_library(arguments: dict[str, Any]) -> Program:
    """The program of a LibraryCandidate.

    Parameters
    ----------
    arguments : `workload`, its key and its tensors as JSON; `target`, what it is for;
        `weights_are_constant`, whether weights may be stored as the schedule wants them.
    """
    _, tensors = arguments["workload"]
    args = list(tvm.ir.load_json(tensors))
    target = Target(arguments["target"])
    constants = _layout_free_positions(args) if arguments["weights_are_constant"] else ()
    known = topi.schedule_args_for(args, constants, target)
    interface = [describe_argument(arg) for arg in known.args]
    transforms = [
        {
            "index": position,
            "placeholder": str(args[position].op.name),
            "original_shape": list(get_const_tuple(args[position].shape)),
            "dims": list(packing.dims),
            "extents": list(get_const_tuple(packing.packed.shape)),
            "strides": list(packing.strides),
            "filled_shape": list(packing.filled or get_const_tuple(args[position].shape)),
        }
        for position, packing in known.packings.items()
    ]
    return Program(known.schedule, list(known.args), target, interface, transforms)


def _layout_free_positions(args: Sequence[te.Tensor]) -> list[int]:
    outputs = [tensor for tensor in args if not isinstance(tensor.op, te.PlaceholderOp)]
    free = {
        tensor
        for operation in topi.operations_of(outputs)
        for tensor in operation.attrs.get("layout_free_placeholders", ())
    }
    return [position for position, tensor in enumerate(args) if tensor in free]


def program_of_module(arguments: dict[str, Any]) -> Program:
    """The program of a ModuleCandidate: `module`, as JSON, and `target`."""
    mod = tvm.ir.load_json(arguments["module"])
    [(_, function)] = mod.functions.items()
    buffers = [function.buffer_map[param] for param in function.params]
    interface = [
        {
            "shape": list(get_const_tuple(buffer.shape)),
            "dtype": str(buffer.dtype),
            "output": position == len(buffers) - 1,
        }
        for position, buffer in enumerate(buffers)
    ]
    return Program(
        function.with_attr("global_symbol", "main"), None, Target(arguments["target"]), interface
    )


def build(arguments: dict[str, Any], _: bytes) -> tuple[dict[str, Any], bytes]:
    """Compile a candidate.

    Parameters
    ----------
    arguments : `program` and `arguments`, the function that makes the program and what it takes,
        see `ProgramRequest`.

    Returns
    -------
    Result with `functions` and `args` (shape, dtype and role of each), and the object file; or with
    `error_no` and `error_msg`. For a GPU, `kernels` has what each kernel takes by name, and the
    kernels' code follows the object file from byte `kernels_at` on.
    """
    try:
        program = resolve(arguments["program"])(arguments["arguments"])
    except Exception as error:
        return _failure(MeasureErrorNo.INSTANTIATION_ERROR, error)
    description = {"error_no": 0, "args": program.interface, "transforms": program.transforms}
    if program.target.kind.name == "cuda":
        return _build_kernels(program, description)
    try:
        lowered = prepare(program.source, program.args, program.target, name="main")
        code = llvm_build.compile_object(lowered, program.target)
    except Exception as error:
        return _failure(MeasureErrorNo.COMPILE_HOST, error)
    return {**description, "functions": list(code.functions)}, code.data


def _build_kernels(program: Program, description: dict[str, Any]) -> tuple[dict[str, Any], bytes]:
    """Code that launches kernels, and the kernels; none that would be slow by what they take."""
    target = program.target
    try:
        host, kernels = prepare_parts(program.source, program.args, target, name="main")
        code = llvm_build.compile_object(host, target.host or Target("llvm"))
    except Exception as error:
        return _failure(MeasureErrorNo.COMPILE_HOST, error)
    try:
        with nvrtc.recorded_resources() as resources:
            device = device_build(kernels, target)
        for function in kernels.functions.values():
            # The compiler does not see what launches ask for.
            name = str(function.attrs["global_symbol"])
            shared = resources[name].shared_bytes + _dynamic_shared_bytes(function)
            resources[name] = replace(resources[name], shared_bytes=shared)
            _check_resources(name, resources[name], target)
    except Exception as error:
        return _failure(MeasureErrorNo.COMPILE_DEVICE, error)
    result = {
        **description,
        "functions": list(code.functions),
        "kernels_at": len(code.data),
        "kernels": {name: taken.to_json() for name, taken in resources.items()},
    }
    return result, code.data + bytes(_runtime_api.ModuleSerializeTree(device))


def _dynamic_shared_bytes(kernel: tir.PrimFunc) -> int:
    """Shared memory that a launch asks for."""
    total = 0

    def count(node: Any) -> None:
        nonlocal total
        if not isinstance(node, tir.Allocate):
            return
        if str(node.buffer_var.type_annotation.storage_scope) == "shared.dyn":
            element = DataType(str(node.dtype))
            total += element.bits * element.lanes // 8 * math.prod(map(int, node.extents))

    tir.stmt_functor.post_order_visit(kernel.body, count)
    return total


def _check_resources(name: str, taken: nvrtc.KernelResources, target: Target) -> None:
    """Raises for a kernel whose registers spill, or that no block can have."""
    if taken.spill_bytes:
        raise ValueError(
            f"kernel {name} spills {taken.spill_bytes} bytes: {taken.registers} registers a thread "
            "are not enough"
        )
    limit = int(target.gpu_facts["max_dynamic_shared_memory_per_block"])
    if taken.shared_bytes > limit:
        raise ValueError(
            f"kernel {name} takes {taken.shared_bytes} bytes of shared memory; a block has {limit}"
        )


def load_program(program: Mapping[str, Any], blob: bytes) -> Any:
    """The module of what `build` returned."""
    host = blob[: program.get("kernels_at", len(blob))]
    module = llvm_build.load_object(llvm_build.ObjectCode(host, tuple(program["functions"])))
    if len(host) < len(blob):
        module.import_module(_runtime_api.ModuleDeserializeTree(blob[len(host) :]))
    return module


# ----------------------------------------------------------------------------------------- running


class Inputs:
    """Arrays of one task, kept from candidate to candidate so that only new ones are filled."""

    def __init__(self) -> None:
        self._key = ""
        self._special: Mapping[str, str] = {}
        self._original: dict[tuple[int, str], np.ndarray] = {}
        self._device: dict[str, Any] = {}
        self.expected: dict[int, np.ndarray] | None = None

    def start_task(self, key: str, special: Mapping[str, str]) -> None:
        """Forget the arrays of another task.

        special : inputs that are not to be random, position to contents in base64.
        """
        if (key, special) != (self._key, self._special):
            self._key, self._special = key, special
            self._original.clear()
            self._device.clear()
            self.expected = None

    def original(self, index: int, shape: Sequence[int], dtype: str) -> np.ndarray:
        """Random values, the same for every candidate of the task.

        They stay away from zero, where divisions and logarithms blow up, and from denormal
        numbers, which are slow.
        """
        name = (index, f"{tuple(shape)} {dtype}")
        if name not in self._original:
            generator = np.random.default_rng([index, *shape])
            if str(index) in self._special:
                contents = base64.b64decode(self._special[str(index)])
                array = np.frombuffer(contents, dtype).reshape(shape)
            elif dtype == "bool":
                array = generator.integers(0, 2, shape).astype(bool)
            elif np.issubdtype(np.dtype(dtype), np.integer):
                array = generator.integers(0, 10, shape).astype(dtype)
            else:
                array = generator.uniform(0.1, 1.0, shape).astype(dtype)
            self._original[name] = array
        return self._original[name]

    def on_device(
        self, index: int, arg: dict[str, Any], transform: dict[str, Any] | None, device: Any
    ) -> Any:
        """The argument at a position, in the layout that the candidate wants."""
        name = json.dumps([index, arg, transform, str(device)])
        if name not in self._device:
            if transform is None:
                array = self.original(index, arg["shape"], arg["dtype"])
            else:
                array = self.original(index, transform["original_shape"], arg["dtype"])
                if "filled_shape" in transform:
                    fields = (transform[key] for key in ("dims", "strides", "filled_shape"))
                    array = topi.stored_array(array, transform["extents"], *fields)
                else:
                    layout: Any = _Layout(**transform)
                    array = pack_array(array, layout).reshape(arg["shape"])
            self._device[name] = tvm.nd.array(array, device)
        return self._device[name]


_inputs = Inputs()


@dataclass(frozen=True)
class _Layout:
    """The fields of a LayoutTransform as they came from the builder."""

    index: int
    placeholder: str
    original_shape: list[int]
    dims: list[int]
    extents: list[int]
    strides: list[int]


def _arrays(
    inputs: Inputs,
    args: Sequence[dict[str, Any]],
    transforms: Sequence[dict[str, Any]],
    device: Any,
) -> list:
    by_index = {transform["index"]: transform for transform in transforms}
    return [
        inputs.on_device(index, arg, by_index.get(index), device) for index, arg in enumerate(args)
    ]


def _outputs(args: Sequence[dict[str, Any]], arrays: Sequence[Any]) -> dict[int, np.ndarray]:
    return {i: arrays[i].numpy() for i, arg in enumerate(args) if arg["output"]}


def _mismatch(actual: dict[int, np.ndarray], expected: dict[int, np.ndarray]) -> str | None:
    """What differs between outputs, or None if nothing does."""
    for index, wanted in expected.items():
        found = actual[index]
        tolerance = _TOLERANCE.get(str(wanted.dtype), 0.0)
        difference = float(np.max(np.abs(found.astype(float) - wanted.astype(float)), initial=0.0))
        scale = float(np.max(np.abs(wanted.astype(float)), initial=0.0))
        if not difference <= tolerance * max(scale, 1e-6):
            return (
                f"argument {index} differs from the unscheduled program by {difference:g} "
                f"where values reach {scale:g}"
            )
    return None


def _flush_bytes() -> int:
    """Twice the last-level cache: writing that much evicts everything."""
    return 2 * int(machine_features()["l3_cache_bytes"])


def run(arguments: dict[str, Any], blob: bytes) -> tuple[dict[str, Any], bytes]:
    """Time a compiled candidate.

    Parameters
    ----------
    arguments : what `build` returned under `functions`, `args` and `transforms`; `key`, the task;
        `device`, its kind and index; `number`, `repeat`, `min_repeat_ms`, `cooldown_interval`,
        `flush`; `best_seconds`, the best so far or None; `special_inputs`, position to contents in
        base64 of inputs that are not to be random; `gauge_seconds`, the least that other processes
        read off the machine's gauge, infinite or left out where none has; `file`, of a library that
        holds the function, or ""; `reference`, None or the result of building the unscheduled
        program, whose object file then follows the candidate's in the blob, which begins at
        `reference_at`.
    blob : object file.

    Returns
    -------
    Result with `costs` in seconds and `error_no`, or `error_no` and `error_msg`; with the
    `gauge_seconds` of a processor. Where the device does not answer this process any more after an
    error, `device_failed` says why, and the process ends: it is of no more use.
    """
    reference = arguments["reference"]
    split = arguments["reference_at"] if reference is not None else len(blob)

    def load() -> Any:
        if arguments["file"]:
            return tvm.runtime.load_module(arguments["file"])
        return load_program(arguments, blob[:split])

    def load_reference() -> Any:
        return load_program(reference, blob[split:])

    device = tvm.device(*arguments["device"])
    is_cpu = device.device_type == _CPU
    result = time_program(
        arguments, load, load_reference, device, _inputs, gauge_here if is_cpu else None
    )
    if is_cpu:
        result["gauge_seconds"] = gauge_here.usual
    reason = _why_silent(device) if result["error_no"] and not is_cpu else ""
    if reason:
        result["device_failed"] = reason
        end_after_answer()
    return result, b""


def probe(arguments: dict[str, Any], _: bytes) -> tuple[dict[str, Any], bytes]:
    """Look whether a device can be used.

    Parameters
    ----------
    arguments : `device`, its kind and index.

    Returns
    -------
    Result with `reason`, why it cannot, which is empty where it can. Where it cannot the process
    ends, so that the next one asks anew.
    """
    reason = _why_silent(tvm.device(*arguments["device"]))
    if reason:
        end_after_answer()
    return {"reason": reason}, b""


def _why_silent(device: Any) -> str:
    """Why a device does not take a copy and give it back, or ""."""
    sent = np.arange(64, dtype="float32")
    try:
        received = tvm.nd.array(sent, device).numpy()
        device.sync()
    except Exception as error:
        return str(error).strip().splitlines()[0]
    return "" if np.array_equal(sent, received) else "it does not keep what is copied to it"


def time_program(
    arguments: dict[str, Any],
    load: Callable[[], Any],
    load_reference: Callable[[], Any],
    device: Any,
    inputs: Inputs,
    gauge: MachineGauge | None = None,
) -> dict[str, Any]:
    """Time a program on a device of this machine, or of a session.

    Parameters
    ----------
    arguments : as of `run`, but for `device`.
    load, load_reference : give the modules of the candidate and of the unscheduled program.
    inputs : arrays of earlier candidates on the same device.
    gauge : tells whether what runs the program is disturbed; None where that is not known.

    Returns
    -------
    The result as of `run`.
    """
    reference = arguments["reference"]
    try:
        module = load()
        function = module[arguments["functions"][0]]
    except RPCError:
        raise
    except Exception as error:
        return _failure(MeasureErrorNo.COMPILE_DEVICE, error)[0]
    try:
        inputs.start_task(arguments["key"], arguments["special_inputs"])
        arrays = _arrays(inputs, arguments["args"], arguments["transforms"], device)
        if reference is not None and inputs.expected is None:
            inputs.expected = _reference_outputs(reference, load_reference(), device, inputs)
        start = time.perf_counter()
        function(*arrays)
        device.sync()
        once = time.perf_counter() - start
        if reference is not None:
            difference = _mismatch(_outputs(arguments["args"], arrays), inputs.expected or {})
            if difference is not None:
                return {"error_no": int(MeasureErrorNo.WRONG_ANSWER), "error_msg": difference}
        return {"error_no": 0, "costs": _time(module, arrays, device, arguments, once, gauge)}
    except RPCError:
        raise
    except Exception as error:
        return _failure(MeasureErrorNo.RUNTIME_DEVICE, error)[0]


def _reference_outputs(
    reference: dict[str, Any], module: Any, device: Any, inputs: Inputs
) -> dict[int, np.ndarray]:
    arrays = _arrays(inputs, reference["args"], [], device)
    module[reference["functions"][0]](*arrays)
    device.sync()
    return _outputs(reference["args"], arrays)


def _time(
    module: Any,
    arrays: Sequence[Any],
    device: Any,
    arguments: dict[str, Any],
    once: float,
    gauge: MachineGauge | None,
) -> list[float]:
    """Seconds of one call, one value a repeat. `once` is what the first, cold call took."""
    name = arguments["functions"][0]
    flush = _flush_bytes() if arguments["flush"] else 0
    best = arguments["best_seconds"]
    if best is not None and once > 2 * _HOPELESS * best:
        # On a busy machine single calls may be disturbed, but hardly all of them.
        brief = module.time_evaluator(name, device, number=1, repeat=5, cache_flush_bytes=flush)
        least = min(brief(*arrays).results)
        if least > _HOPELESS * best:
            return [least]
    number, min_repeat_ms = arguments["number"], arguments["min_repeat_ms"]
    if flush:
        # Only the first call after a flush is a cold one.
        number, min_repeat_ms = 1, 0

    def timed(repeat: int) -> list[float]:
        evaluator = module.time_evaluator(
            name,
            device,
            number=number,
            repeat=repeat,
            min_repeat_ms=min_repeat_ms,
            cooldown_interval_ms=arguments["cooldown_interval"] * 1e3,
            cache_flush_bytes=flush,
        )
        return list(evaluator(*arrays).results)

    if gauge is None:
        return timed(arguments["repeat"])
    gauge.learn(arguments.get("gauge_seconds", math.inf))
    gauge.start_program()
    return undisturbed(gauge, arguments["repeat"], timed)
