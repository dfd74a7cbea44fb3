"""A module with everything that a training step calls."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm import error
from tvm.ir import GlobalVar, IRModule

from ..analysis import BaseCheckResult, struct_info_base_check
from ..expr import Function
from ..struct_info import TensorStructInfo, TupleStructInfo
from ..transform import DecomposeOpsForInference, DecomposeOpsForTraining, Gradient, LegalizeOps
from ..transform.graph_pass import graph_pass
from .loss import Loss
from .optimizer import Optimizer
from .utils import AppendLoss

__all__ = ["SetupTrainer"]

BACKBONE = "backbone"


def _numbers(mod: IRModule) -> tuple[int, int]:
    """How many parameters and states the backbone has.

    Raises
    ------
    ValueError : the module has no such function, or does not say.
    """
    attrs = dict(mod.attrs or {})
    if BACKBONE not in [str(gvar.name_hint) for gvar in mod.get_global_vars()]:
        raise error.ValueError('SetupTrainer: the module needs a function "backbone"')
    for name in ("param_num", "state_num"):
        if name not in attrs:
            raise error.ValueError(
                f'SetupTrainer: the attribute "{name}" of the module says how many parameters '
                "of the backbone are trained, and how many states it updates"
            )
    return int(attrs["param_num"]), int(attrs["state_num"])


@graph_pass("SetupTrainer")
def SetupTrainer(
    mod: IRModule,
    loss: Loss,
    optimizer: Optimizer,
    loss_args: Sequence[TensorStructInfo | TupleStructInfo],
    legalize: bool = True,
) -> IRModule:
    """The module of a backbone with its loss, the gradient of that, and the optimizer's step.

    The backbone takes inputs, parameters to train and states, in this order; the attributes
    "param_num" and "state_num" of the module count the last two. It returns what the loss takes,
    and behind it the new states. Added are ``backbone_loss``, ``backbone_loss_adjoint`` and
    ``optimizer``, and the attribute "optim_state", the state to begin with.

    Parameters
    ----------
    loss_args : struct info of what the loss takes: of the predictions, and of what is behind them.
    legalize : make kernels of operators.

    Raises
    ------
    ValueError : the module has no backbone, or does not have these attributes, or `loss_args` do
        not begin with what the backbone predicts.
    """
    param_num, state_num = _numbers(mod)
    backbone = mod[BACKBONE]
    result = backbone.ret_struct_info
    fields = list(result.fields) if isinstance(result, TupleStructInfo) else [result]
    predictions = fields[: len(fields) - state_num]
    fitting = len(loss_args) > len(predictions) and all(
        struct_info_base_check(arg, prediction) != BaseCheckResult.FAIL_L0
        for arg, prediction in zip(loss_args, predictions)
    )
    if not fitting:
        raise error.ValueError(
            f"SetupTrainer: loss_args are {', '.join(map(str, loss_args)) or 'empty'}; give the "
            f"struct info of the predictions, {', '.join(map(str, predictions))}, and behind it "
            "that of the targets"
        )
    losses = loss(*loss_args)
    mod = DecomposeOpsForTraining(BACKBONE)(mod)
    mod = AppendLoss(BACKBONE, losses, len(predictions))(mod)
    func = mod[f"{BACKBONE}_loss"]
    inputs = len(backbone.params) - param_num - state_num
    trained = list(func.params[inputs : inputs + param_num])
    mod = Gradient(f"{BACKBONE}_loss", trained)(mod)
    mod = DecomposeOpsForInference(BACKBONE)(mod)
    optimizer.init(trained)
    functions: dict[Any, Any] = dict(mod.functions.items())
    step: Function = optimizer.get_function()
    functions[GlobalVar("optimizer")] = step.with_attr("global_symbol", "optimizer")
    mod = mod.with_functions(functions).with_attr("optim_state", list(optimizer.state))
    return LegalizeOps()(mod) if legalize else mod
