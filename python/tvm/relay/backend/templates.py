"""Networks compiled by the records of AutoTVM's templates.

Every call of an operator that has templates is a workload of each. Where a configuration is
recorded for one, the call is rewritten to the layouts that it chose, and its kernel gets its
schedule.
"""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import tvm
from tvm import autotvm, relax, te, topi
from tvm.ir import IRModule, Op, RelayExpr, TensorType
from tvm.ir.transform import PassContext
from tvm.relax import GroupSchedule
from tvm.relax.fused_group import FusedGroup
from tvm.relax.op import attrs_of
from tvm.relax.struct_info import static_shape
from tvm.target import Target

from .. import op
from ..analysis.infer import infer_module
from ..expr import Call, Constant
from ..expr_functor import post_order_visit
from ..op.implementation import own_strategy
from ..op.registry import find_row
from ..transform import CanonicalizeOps, FoldConstant, FoldScaleAxis, SimplifyInference
from ..transform.base import relay_functions
from ..transform.layouts import LayoutRewriter
from ..ty import is_dynamic
from .transposed import PlainConvolutions
from .workloads import WINDOW, Workload, settings_with_defaults, workloads_of

__all__ = [
    "TunedProgram",
    "apply_records",
    "calls_with_templates",
    "in_blocks",
    "prepared",
]

# What convolutions over blocks are called among relax's operators, by the tag of their stage.
_BLOCKED = {
    "conv2d_NCHWc": "relay.nn.contrib_conv2d_NCHWc",
    "depthwise_conv2d_NCHWc": "relay.nn.contrib_depthwise_conv2d_NCHWc",
    "conv3d_NCDHWc": "relay.nn.conv3d",
}
# Operators of relax, with two tensors as operands, that templates compute.
_OF_TEMPLATES = {
    *_BLOCKED.values(),
    *(f"relay.nn.{name}" for name in ("conv2d", "conv3d", "dense", "batch_matmul")),
}
_TAGS = {
    "conv2d_NCHWc.x86": "conv2d_NCHWc",
    "depthwise_conv2d_NCHWc.x86": "depthwise_conv2d_NCHWc",
    "conv3d_ncdhw.x86": "conv3d_NCDHWc",
}


def calls_with_templates(mod: IRModule, target: Target) -> list[Call]:
    """The calls of a program, in the order in which they run, that are a workload of a template."""
    found: list[Call] = []

    def look(expr: RelayExpr) -> None:
        if isinstance(expr, Call) and workloads_of(expr, target):
            found.append(expr)

    for _, func in relay_functions(mod):
        post_order_visit(func, look)
    return found


def prepared(mod: IRModule) -> IRModule:
    """A program without batch norms, whose layouts are then changed."""
    # What records chose holds at every level, so these do not wait for one.
    with PassContext(opt_level=3, config=PassContext.current().config):
        for step in (SimplifyInference(), CanonicalizeOps(), FoldConstant(), FoldScaleAxis()):
            mod = step(mod)
    return infer_module(mod)


@tvm._ffi.register_func("relay.AutoTVMWorkloads")
def _workloads(mod: Any, params: Any, target: Target, names: Collection[str] | None) -> str:
    """The workloads of a program as JSON; `names` are of the operators that are asked about."""
    mod = infer_module(mod if isinstance(mod, IRModule) else IRModule.from_expr(mod))
    wanted = None if names is None else {str(name) for name in names}
    return json.dumps(
        [
            workload
            for call in calls_with_templates(mod, target)
            if wanted is None or str(call.op.name) in wanted
            for workload in workloads_of(call, target)
        ]
    )


@dataclass(frozen=True)
class _Choice:
    """A template, and a point of it."""

    name: str
    config: Any


@dataclass
class TunedProgram:
    """A program rewritten to what records chose.

    Attributes
    ----------
    mod : the program.
    choices : for kernels, as `_kernel_key` and `_key_of_call` name them.
    """

    mod: IRModule
    choices: dict[Workload, _Choice] = field(default_factory=dict)

    def keeps(self, call: Call) -> bool:
        """Whether an operator is computed as it stands, in its own layout, by what records say."""
        return isinstance(call.op, Op) and _key_of_call(call) in self.choices

    def schedule(self, group: FusedGroup) -> GroupSchedule | None:
        """What records say of a kernel, None where they say nothing."""
        if not self.choices:
            return None
        outputs = list(group.te.outputs)
        tag, anchor = topi.anchor_of(outputs)
        choice = next(filter(None, map(self.choices.get, _keys_of_group(group, tag, anchor))), None)
        if choice is None or not topi.is_elementwise_of(anchor, outputs):
            return None
        target = Target.current(allow_none=False)
        assert target is not None
        try:
            return _scheduled(choice, group, anchor, outputs, target)
        except ValueError as reason:
            # Records may come from other versions, whose spaces held other points.
            autotvm.utils.logger.warning(
                "the recorded configuration of %s does not fit, its default schedule is used: %s",
                choice.name,
                reason,
            )
            return None


def _scheduled(
    choice: _Choice,
    group: FusedGroup,
    anchor: te.Tensor,
    outputs: list[te.Tensor],
    target: Target,
) -> GroupSchedule | None:
    config = choice.config
    if _is_for_gpu(choice.name):
        schedule = autotvm.cuda.schedule_template(config, choice.name, anchor, outputs)
    elif choice.name == "batch_matmul.x86":
        schedule = autotvm.x86.schedule_batch_matmul(config, anchor, outputs, target)
    elif choice.name == "dense_pack.x86":
        return _packed_dense(config, group, anchor, outputs, target)
    elif choice.name == "dense_nopack.x86":
        schedule = autotvm.x86.schedule_dense(config, choice.name, anchor, outputs, target)
    else:
        schedule = autotvm.x86.schedule_blocked_conv2d(config, anchor, outputs, target)
    return GroupSchedule(schedule, group.args)


def _packed_dense(
    config: Any,
    group: FusedGroup,
    product: te.Tensor,
    outputs: list[te.Tensor],
    target: Target,
) -> GroupSchedule | None:
    """A dense layer with its constant weights in panels; None for weights that are computed."""
    weight = product.op.input_tensors[1]
    inputs = list(group.te.inputs)
    position = next((k for k, tensor in enumerate(inputs) if tensor.same_as(weight)), None)
    if position is None or position not in group.constant_inputs:
        return None
    packing = topi.x86.pack_dense_weight(weight, int(config["tile_x"].size[-1]))
    results = list(te.replace_tensors(outputs, [(weight, packing.weight)]))
    _, anchor = topi.anchor_of(results)
    schedule = autotvm.x86.schedule_dense(config, "dense_pack.x86", anchor, results, target)
    inputs[position] = packing.packed
    return GroupSchedule(schedule, [*inputs, *results], {position: packing.pack})


def _kernel_key(tag: str, data: Sequence[int], weight: Sequence[int], *sizes: Any) -> Workload:
    """What tells kernels of one kind apart: shapes of the operands, and sizes of the window."""
    return (tag, tuple(data), tuple(weight), *(tuple(map(int, size)) for size in sizes))


def _is_for_gpu(name: str) -> bool:
    return not name.endswith(".x86")


def _key_of_call(call: Call) -> Workload | None:
    """What tells a kernel that computes one of relay's operators as it stands from others."""
    if find_row(call.op) is None:
        return None
    types = [arg.checked_type_ for arg in call.args]
    if any(not isinstance(t, TensorType) or is_dynamic(t) for t in types):
        return None
    shapes = [[int(extent) for extent in type_.shape] for type_ in types]
    return _own_key(f"relay.{call.op.name}", shapes, settings_with_defaults(call))


def _own_key(name: str, shapes: Sequence[Sequence[int]], settings: Mapping[str, Any]) -> Workload:
    def frozen(value: Any) -> Any:
        return tuple(map(frozen, value)) if isinstance(value, (list, tuple)) else value

    given = {key: frozen(value) for key, value in settings.items() if value is not None}
    return (name, tuple(map(tuple, shapes)), tuple(sorted(given.items())))


def _keys_of_group(group: FusedGroup, tag: str, anchor: te.Tensor) -> list[Workload]:
    """The names that a kernel may have in a program's choices."""
    keys = []
    if tag in (topi.tag.DENSE, topi.tag.BATCH_MATMUL):
        tensors = anchor.op.input_tensors
        if len(tensors) == 2:
            keys.append(_kernel_key(tag, *(topi.utils.const_shape(t.shape) for t in tensors)))
    # A convolution's stage reads padded data, so sizes are those of the call.
    for block in group.function.body.blocks:
        for binding in block.bindings:
            call = binding.value
            if not isinstance(call, relax.Call):
                continue
            name = str(call.op.name).removeprefix("relax.")
            if name not in _OF_TEMPLATES:
                continue
            shapes = [static_shape(arg.struct_info) for arg in call.args]
            settings = attrs_of(call)
            if name == _BLOCKED.get(tag):
                keys.append(_kernel_key(tag, *shapes, *(settings[key] for key in WINDOW)))
            keys.append(_own_key(name, shapes, settings))
    return keys


def apply_records(mod: IRModule, target: Target) -> TunedProgram:
    """A program, whose types are known, as the records of the current context have it.

    It is the program itself where nothing is recorded for any of its operators.
    """
    if not _recorded(calls_with_templates(mod, target), target):
        return TunedProgram(mod)
    mod = _with_plain_convolutions(prepared(mod), target)
    tuned = TunedProgram(mod)
    blocks: dict[Call, RelayExpr] = {}
    for call, choice in _recorded(calls_with_templates(mod, target), target).items():
        if str(call.op.name) == "nn.conv2d_transpose":
            continue  # Its weights are computed, so it stayed as it is.
        shapes = [[int(extent) for extent in arg.checked_type.shape] for arg in call.args]
        key: Workload | None
        if _is_for_gpu(choice.name):
            key = _key_of_call(call)
        elif choice.name in _TAGS:
            key = _block(call, choice, shapes, blocks)
        else:
            tag = topi.tag.DENSE if "dense" in choice.name else topi.tag.BATCH_MATMUL
            key = _kernel_key(tag, *shapes)
        if key is not None:
            tuned.choices.setdefault(key, choice)

    def alter(call: Call, args: Sequence[RelayExpr]) -> RelayExpr | None:
        changed = blocks.get(call)
        return None if changed is None else Call(changed.op, list(args), changed.attrs)

    result = mod.clone()
    for gvar, func in relay_functions(mod):
        result[str(gvar.name_hint)] = LayoutRewriter(alter).visit(func)
    tuned.mod = infer_module(result)
    return tuned


def _with_plain_convolutions(mod: IRModule, target: Target) -> IRModule:
    """The program whose transposed convolutions are plain ones where something is recorded."""
    transposed = [
        call
        for call in _recorded(calls_with_templates(mod, target), target)
        if str(call.op.name) == "nn.conv2d_transpose" and isinstance(call.args[1], Constant)
    ]
    if not transposed:
        return mod
    result = mod.clone()
    for gvar, func in relay_functions(mod):
        result[str(gvar.name_hint)] = PlainConvolutions(transposed).visit(func)
    return infer_module(result)


def _recorded(calls: Sequence[Call], target: Target) -> dict[Call, _Choice]:
    """The fastest configuration that is recorded for each call."""
    context = autotvm.DispatchContext.current
    found: dict[Call, _Choice] = {}
    for call in calls:
        if own_strategy(call.op, target) is not None:
            continue  # Its implementations look for records themselves.
        configs = [(w[0], context.recorded(target, w)) for w in workloads_of(call, target)]
        choices = [_Choice(name, config) for name, config in configs if config is not None]
        if choices:
            found[call] = min(
                choices, key=lambda c: math.inf if c.config.cost is None else c.config.cost
            )
    return found


def _block(
    call: Call, choice: _Choice, shapes: Sequence[Sequence[int]], blocks: dict[Call, RelayExpr]
) -> Workload:
    """Enter what a convolution becomes, and name its kernel."""
    (batch, channels, *image), (filters, inputs, *window) = shapes
    outer, inner = (int(choice.config[knob].size[-1]) for knob in ("tile_oc", "tile_ic"))
    depthwise = choice.name.startswith("depthwise")
    inner = outer if depthwise else inner
    per_group = 1 if depthwise else inner
    blocks[call] = in_blocks(call.args, settings_with_defaults(call), inner, outer)
    return _kernel_key(
        _TAGS[choice.name],
        (batch, channels // inner, *image, inner),
        (filters // outer, inputs // per_group, *window, per_group, outer),
        *(settings_with_defaults(call)[key] for key in WINDOW),
    )


def in_blocks(
    args: Sequence[RelayExpr], settings: Mapping[str, Any], inner: int, outer: int
) -> Call:
    """A convolution in NCHW or NCDHW that reads blocks of `inner` channels and gives `outer`.

    With groups it is depthwise, and both blocks are the same.
    """
    if settings["data_layout"] == "NCDHW":
        layouts = {
            "data_layout": f"NCDHW{inner}c",
            "kernel_layout": f"OIDHW{inner}i{outer}o",
            "out_layout": f"NCDHW{outer}c",
        }
        return op.nn.conv3d(*args, **{**settings, **layouts})
    depthwise = settings["groups"] > 1
    make = op.nn.contrib_depthwise_conv2d_nchwc if depthwise else op.nn.contrib_conv2d_nchwc
    layouts = {
        "data_layout": f"NCHW{inner}c",
        "kernel_layout": f"OIHW{1 if depthwise else inner}i{outer}o",
        "out_layout": f"NCHW{outer}c",
    }
    return make(*args, **{**settings, **layouts})
