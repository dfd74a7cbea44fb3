"""Networks compiled by the records of AutoTVM's templates.

Every call of an operator that has templates is a workload of each. Where a configuration is
recorded for one, the call is rewritten to the layouts that it chose, and its kernel gets its
schedule.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Collection, Mapping, Sequence
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
from ..expr import Call
from ..expr_functor import post_order_visit
from ..op.registry import find_row, settings_of
from ..transform import CanonicalizeOps, FoldConstant, FoldScaleAxis, SimplifyInference
from ..transform.base import relay_functions
from ..transform.layouts import LayoutRewriter
from ..ty import is_dynamic

__all__ = [
    "TunedProgram",
    "apply_records",
    "calls_with_templates",
    "conv2d_workloads",
    "in_blocks",
    "prepared",
    "workloads_of",
]

Workload = tuple[Any, ...]
Types = Sequence[TensorType]


def _tensor(type_: TensorType) -> Workload:
    return ("TENSOR", tuple(int(extent) for extent in type_.shape), str(type_.dtype))


def _is_float(*types: TensorType) -> bool:
    return all(str(type_.dtype).startswith("float") for type_ in types)


def conv2d_workloads(types: Types, out: TensorType, s: Mapping[str, Any]) -> list[Workload]:
    """The workload of a convolution, if a template serves it; `s` are all of its settings."""
    data, kernel = types
    plain = (s["data_layout"], s["kernel_layout"]) == ("NCHW", "OIHW")
    if not plain or s["out_layout"] not in ("", "NCHW") or not _is_float(data, kernel):
        return []
    channels, (filters, inputs, *_) = int(data.shape[1]), map(int, kernel.shape)
    if s["groups"] == 1:
        name = "conv2d_NCHWc.x86"
    elif s["groups"] == channels == filters and inputs == 1:
        name = "depthwise_conv2d_NCHWc.x86"
    else:
        return []
    sizes = [tuple(s[key]) for key in ("strides", "padding", "dilation")]
    return [(name, _tensor(data), _tensor(kernel), *sizes, "NCHW", "NCHW", str(out.dtype))]


def _dense(types: Types, out: TensorType, s: Mapping[str, Any]) -> list[Workload]:
    if len(types[0].shape) != 2 or not _is_float(*types):
        return []
    operands = [_tensor(type_) for type_ in types]
    names = ("dense_nopack.x86", "dense_pack.x86")
    return [(name, *operands, None, str(out.dtype)) for name in names]


def _batch_matmul(types: Types, out: TensorType, s: Mapping[str, Any]) -> list[Workload]:
    if s["transpose_a"] or not s["transpose_b"] or not _is_float(*types):
        return []
    a, b = (_tensor(type_) for type_ in types)
    if len(a[1]) != 3 or a[1][0] != b[1][0]:
        return []
    return [("batch_matmul.x86", a, b, _tensor(out)[1], str(out.dtype), False, True)]


_RULES: Mapping[str, Callable[[Types, TensorType, Mapping[str, Any]], list[Workload]]] = {
    "nn.conv2d": conv2d_workloads,
    "nn.dense": _dense,
    "nn.batch_matmul": _batch_matmul,
}


def workloads_of(call: Call, target: Target) -> list[Workload]:
    """Names of the templates for a call, whose type is known, with their arguments."""
    rule = _RULES.get(str(call.op.name)) if isinstance(call.op, Op) else None
    if rule is None or "cpu" not in [str(key) for key in target.keys]:
        return []
    types = [arg.checked_type for arg in call.args]
    if any(not isinstance(t, TensorType) or is_dynamic(t) for t in types):
        return []
    return rule(types, call.checked_type, _settings(call))


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
    choices : for kernels, as `_kernel_key` names them.
    """

    mod: IRModule
    choices: dict[Workload, _Choice] = field(default_factory=dict)

    def schedule(self, group: FusedGroup) -> GroupSchedule | None:
        """What records say of a kernel, None where they say nothing."""
        outputs = list(group.te.outputs)
        tag, anchor = topi.anchor_of(outputs)
        key = _key_of_group(group, tag, anchor)
        choice = None if key is None else self.choices.get(key)
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
    if choice.name == "batch_matmul.x86":
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


_WINDOW = ("strides", "padding", "dilation")


def _key_of_group(group: FusedGroup, tag: str, anchor: te.Tensor) -> Workload | None:
    if tag in (topi.tag.DENSE, topi.tag.BATCH_MATMUL):
        shapes = [topi.utils.const_shape(tensor.shape) for tensor in anchor.op.input_tensors]
        return _kernel_key(tag, *shapes) if len(shapes) == 2 else None
    if tag not in ("conv2d_NCHWc", "depthwise_conv2d_NCHWc"):
        return None
    # The stage reads padded data, so sizes are those of the call.
    for block in group.function.body.blocks:
        for binding in block.bindings:
            call = binding.value
            if isinstance(call, relax.Call) and str(call.op.name).endswith(tag):
                shapes = [static_shape(arg.struct_info) for arg in call.args]
                settings = attrs_of(call)
                return _kernel_key(tag, *shapes, *(settings[key] for key in _WINDOW))
    return None


def apply_records(mod: IRModule, target: Target) -> TunedProgram:
    """A program, whose types are known, as the records of the current context have it.

    It is the program itself where nothing is recorded for any of its operators.
    """
    if not _recorded(calls_with_templates(mod, target), target):
        return TunedProgram(mod)
    mod = prepared(mod)
    tuned = TunedProgram(mod)
    blocks: dict[Call, RelayExpr] = {}
    for call, choice in _recorded(calls_with_templates(mod, target), target).items():
        shapes = [[int(extent) for extent in arg.checked_type.shape] for arg in call.args]
        if str(call.op.name) == "nn.conv2d":
            key = _block(call, choice, shapes, blocks)
        else:
            tag = topi.tag.DENSE if "dense" in choice.name else topi.tag.BATCH_MATMUL
            key = _kernel_key(tag, *shapes)
        tuned.choices.setdefault(key, choice)

    def alter(call: Call, args: Sequence[RelayExpr]) -> RelayExpr | None:
        changed = blocks.get(call)
        return None if changed is None else Call(changed.op, list(args), changed.attrs)

    result = mod.clone()
    for gvar, func in relay_functions(mod):
        result[str(gvar.name_hint)] = LayoutRewriter(alter).visit(func)
    tuned.mod = infer_module(result)
    return tuned


def _recorded(calls: Sequence[Call], target: Target) -> dict[Call, _Choice]:
    """The fastest configuration that is recorded for each call."""
    context = autotvm.DispatchContext.current
    found: dict[Call, _Choice] = {}
    for call in calls:
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
    blocks[call] = in_blocks(call.args, _settings(call), inner, outer)
    return _kernel_key(
        choice.name.removesuffix(".x86"),
        (batch, channels // inner, *image, inner),
        (filters // outer, inputs // per_group, *window, per_group, outer),
        *(_settings(call)[key] for key in _WINDOW),
    )


def _settings(call: Call) -> dict[str, Any]:
    row = find_row(call.op)
    assert row is not None
    return {**row.settings, **settings_of(call)}


def in_blocks(
    args: Sequence[RelayExpr], settings: Mapping[str, Any], inner: int, outer: int
) -> Call:
    """A convolution in NCHW that reads blocks of `inner` channels and gives blocks of `outer`.

    With groups it is depthwise, and both blocks are the same.
    """
    depthwise = settings["groups"] > 1
    make = op.nn.contrib_depthwise_conv2d_nchwc if depthwise else op.nn.contrib_conv2d_nchwc
    layouts = {
        "data_layout": f"NCHW{inner}c",
        "kernel_layout": f"OIHW{1 if depthwise else inner}i{outer}o",
        "out_layout": f"NCHW{outer}c",
    }
    return make(*args, **{**settings, **layouts})
