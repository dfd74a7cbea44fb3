"""Losses: functions from predictions and targets to a number."""

from __future__ import annotations

from collections.abc import Callable

from tvm import error
from tvm.ir import RelayExpr

from .. import op
from ..block_builder import BlockBuilder
from ..expr import Function, Var
from ..struct_info import StructInfo

__all__ = ["CategoricalCrossEntropyLoss", "CrossEntropyLoss", "L1Loss", "Loss", "MSELoss"]

Operand = Var | StructInfo


class Loss:
    """A loss; called with variables or struct info of its parameters it gives a graph function.

    Parameters
    ----------
    loss_name : name of the function.
    reduction : "mean", "sum" or "none", over all elements.

    Raises
    ------
    ValueError : another reduction.
    """

    __call__: Callable[..., Function]

    def __init__(self, loss_name: str, reduction: str = "mean") -> None:
        if reduction not in ("mean", "sum", "none"):
            raise error.ValueError(
                f"{loss_name}: reduction is 'mean', 'sum' or 'none', got {reduction!r}"
            )
        self._loss_name = loss_name
        self._reduction = reduction

    def _reduced(self, value: RelayExpr) -> RelayExpr:
        if self._reduction == "none":
            return value
        return op.mean(value) if self._reduction == "mean" else op.sum(value)

    def _function(
        self,
        operands: dict[str, Operand | None],
        compute: Callable[..., RelayExpr],
    ) -> Function:
        params = [
            Var(name, given.struct_info if isinstance(given, Var) else given)
            for name, given in operands.items()
            if given is not None
        ]
        builder = BlockBuilder()
        with builder.function(self._loss_name, params):
            with builder.dataflow():
                out = builder.emit_output(compute(builder, *params))
            builder.emit_func_output(out)
        return builder.get()[self._loss_name]


class L1Loss(Loss):
    """``|predictions - targets|``."""

    def __init__(self, reduction: str = "mean") -> None:
        super().__init__("l1_loss", reduction)

    def __call__(self, predictions: Operand, targets: Operand) -> Function:
        def compute(builder: BlockBuilder, x: Var, t: Var) -> RelayExpr:
            return self._reduced(op.abs(op.subtract(x, t)))

        return self._function({"predictions": predictions, "targets": targets}, compute)


class MSELoss(Loss):
    """The square of ``predictions - targets``."""

    def __init__(self, reduction: str = "mean") -> None:
        super().__init__("mse_loss", reduction)

    def __call__(self, predictions: Operand, targets: Operand) -> Function:
        def compute(builder: BlockBuilder, x: Var, t: Var) -> RelayExpr:
            apart = builder.emit(op.subtract(x, t))
            return self._reduced(op.multiply(apart, apart))

        return self._function({"predictions": predictions, "targets": targets}, compute)


class CrossEntropyLoss(Loss):
    """Minus the logarithm of the probability of the target class.

    Parameters
    ----------
    reduction : as in `Loss`; the mean is weighted.
    ignore_index : the class of targets that do not count.
    """

    def __init__(self, reduction: str = "mean", ignore_index: int = -100) -> None:
        super().__init__("cross_entropy_loss", reduction)
        self._ignore_index = ignore_index

    def __call__(
        self, predictions: Operand, targets: Operand, weights: Operand | None = None
    ) -> Function:
        """The function of logits (N, C, ...), classes (N, ...) and weights (C,)."""

        def compute(builder: BlockBuilder, x: Var, t: Var, w: Var | None = None) -> RelayExpr:
            logits = builder.emit(op.nn.log_softmax(x, _class_axis(x)))
            return op.nn.nll_loss(logits, t, w, self._reduction, self._ignore_index)

        operands = {"predictions": predictions, "targets": targets, "weights": weights}
        return self._function(operands, compute)


class CategoricalCrossEntropyLoss(Loss):
    """Minus the logarithm of the probability of the target class, of targets as one-hot rows.

    Parameters
    ----------
    reduction : as in `Loss`.
    ignore_index : the class that does not count.
    """

    def __init__(self, reduction: str = "mean", ignore_index: int = -100) -> None:
        super().__init__("categorical_cross_entropy_loss", reduction)
        self._ignore_index = ignore_index

    def __call__(
        self, predictions: Operand, targets: Operand, weights: Operand | None = None
    ) -> Function:
        """The function of logits and targets of one shape, and weights that broadcast to it."""

        def compute(builder: BlockBuilder, x: Var, t: Var, w: Var | None = None) -> RelayExpr:
            logits: RelayExpr = builder.emit(op.nn.log_softmax(x, _class_axis(x)))
            if self._ignore_index >= 0:
                # The columns before and behind the class that does not count.
                split = op.split
                axis, k = _class_axis(x), self._ignore_index
                logits, t = (
                    op.concat(
                        [builder.emit(split(v, [k, k + 1], axis))[part] for part in (0, 2)], axis
                    )
                    for v in (logits, t)
                )
            value = op.multiply(logits, t)
            if w is not None:
                value = op.multiply(value, w)
            return self._reduced(op.negative(value))

        operands = {"predictions": predictions, "targets": targets, "weights": weights}
        return self._function(operands, compute)


def _class_axis(predictions: Var) -> int:
    return 1 if predictions.struct_info.ndim > 2 else -1
