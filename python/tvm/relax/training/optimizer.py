"""Optimizers: functions from parameters, gradients and a state to new ones."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np

import tvm
from tvm import error
from tvm.ir import RelayExpr
from tvm.runtime import NDArray

from .. import op
from ..block_builder import BlockBuilder
from ..expr import Function, Tuple, TupleGetItem, Var, const
from ..struct_info import TensorStructInfo, TupleStructInfo, static_shape

__all__ = ["SGD", "Adam", "MomentumSGD", "Optimizer"]


class Optimizer(ABC):
    """What trains parameters; `init` says which, and `get_function` gives the step.

    The step takes three tuples, parameters, their gradients and the state, and returns two: the new
    parameters and the new state. The state begins with the number of steps made, int64.

    Attributes
    ----------
    state : arrays on the processor to begin with.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.dtype = ""
        self.param_list: list[Var] = []
        self.state: list[NDArray] = []

    def init(self, params: Var | Sequence[Var]) -> Optimizer:
        """Name the parameters.

        Raises
        ------
        ValueError : there are none, one is named twice, or they are not float tensors of one type
            and of known shapes.
        """
        self.param_list = [params] if isinstance(params, Var) else list(params)
        if not self.param_list or len(set(self.param_list)) != len(self.param_list):
            raise error.ValueError(
                f"{self.name}: parameters are named once each, and there are some"
            )
        dtypes = set()
        for param in self.param_list:
            info = param.struct_info
            if not isinstance(info, TensorStructInfo) or "float" not in str(info.dtype):
                raise error.ValueError(
                    f"{self.name}: parameters are float tensors, {param.name_hint} is {info}"
                )
            dtypes.add(str(info.dtype))
        if len(dtypes) != 1:
            raise error.ValueError(f"{self.name}: parameters are of one type, got {sorted(dtypes)}")
        self.dtype = dtypes.pop()
        self.state = [tvm.nd.array(np.zeros((), "int64")), *self._first_state()]
        return self

    def get_function(self) -> Function:
        """The step as a graph function of the optimizer's name.

        Raises
        ------
        ValueError : `init` has not been called.
        """
        if not self.param_list:
            raise error.ValueError(f"{self.name}: call init first, with the parameters")
        infos = [param.struct_info for param in self.param_list]
        state = [TensorStructInfo(v.shape, str(v.dtype)) for v in self.state]
        params = Var("params", TupleStructInfo(infos))
        gradients = Var("gradients", TupleStructInfo(infos))
        states = Var("optim_states", TupleStructInfo(state))
        builder = BlockBuilder()
        with builder.function(self.name, [params, gradients, states]):
            with builder.dataflow():
                step = _Step(builder, states, len(self.param_list), self.dtype)
                steps = builder.emit(TupleGetItem(states, 0), "num_steps")
                step.kept.append(builder.emit(op.add(steps, const(1, "int64")), "num_steps_new"))
                self._begin(step)
                new = []
                for k, param in enumerate(self.param_list):
                    name = str(param.name_hint)
                    value = builder.emit(TupleGetItem(params, k), name)
                    gradient = builder.emit(TupleGetItem(gradients, k), f"{name}_grad")
                    new.append(builder.emit(self._update(step, k, value, gradient), f"{name}_new"))
                params_new = builder.emit_output(Tuple(new), "params_new")
                state_new = builder.emit_output(Tuple(step.state()), "optim_states_new")
            builder.emit_func_output(Tuple([params_new, state_new]))
        return builder.get()[self.name]

    def _zeros(self) -> list[NDArray]:
        return [
            tvm.nd.array(np.zeros(static_shape(param.struct_info), self.dtype))
            for param in self.param_list
        ]

    def _first_state(self) -> list[NDArray]:
        """The state behind the number of steps."""
        return []

    def _begin(self, step: _Step) -> None:
        """Emit what all parameters share: nothing by default."""
        del step

    @abstractmethod
    def _update(self, step: _Step, k: int, value: Var, gradient: Var) -> RelayExpr:
        """The new value of a parameter."""


class _Step:
    """A step under construction, and the new state: for all parameters, and for each by kind."""

    def __init__(self, builder: BlockBuilder, states: Var, count: int, dtype: str) -> None:
        self.builder = builder
        self.kept: list[Var] = []
        self._states = states
        self._dtype = dtype
        self._by_kind: list[list[Var]] = []
        self._count = count

    def number(self, value: float) -> RelayExpr:
        return const(value, self._dtype)

    def old(self, place: int, name: str) -> Var:
        return self.builder.emit(TupleGetItem(self._states, place), name)

    def keep(self, kind: int, value: RelayExpr, name: str) -> Var:
        """Bind a new part of the state of one parameter."""
        while len(self._by_kind) <= kind:
            self._by_kind.append([])
        var = self.builder.emit(value, name)
        self._by_kind[kind].append(var)
        return var

    def state(self) -> list[Var]:
        return [*self.kept, *(var for kind in self._by_kind for var in kind)]

    def decayed(self, weight_decay: float, value: Var, gradient: Var) -> Var:
        """The gradient with the weight's own pull towards zero."""
        if not weight_decay:
            return gradient
        pull = op.multiply(self.number(weight_decay), value)
        return self.builder.emit(op.add(pull, gradient), f"{gradient.name_hint}_new")


class SGD(Optimizer):
    """Steps of ``lr * gradient``.

    Parameters
    ----------
    weight_decay : what of the parameter is added to its gradient.
    """

    def __init__(self, lr: float, weight_decay: float = 0) -> None:
        super().__init__("SGD")
        self.lr, self.weight_decay = float(lr), float(weight_decay)

    def _update(self, step: _Step, k: int, value: Var, gradient: Var) -> RelayExpr:
        gradient = step.decayed(self.weight_decay, value, gradient)
        return op.subtract(value, op.multiply(step.number(self.lr), gradient))


class MomentumSGD(Optimizer):
    """SGD with a velocity ``v = momentum * v + (1 - dampening) * gradient``.

    Parameters
    ----------
    weight_decay : what of the parameter is added to its gradient.
    nesterov : step by ``gradient + momentum * v`` instead of ``v``.
    """

    def __init__(
        self,
        lr: float,
        momentum: float,
        dampening: float = 0,
        weight_decay: float = 0,
        nesterov: bool = False,
    ) -> None:
        super().__init__("MomentumSGD")
        self.lr, self.momentum, self.dampening = float(lr), float(momentum), float(dampening)
        self.weight_decay, self.nesterov = float(weight_decay), bool(nesterov)

    def _first_state(self) -> list[NDArray]:
        return self._zeros()

    def _update(self, step: _Step, k: int, value: Var, gradient: Var) -> RelayExpr:
        name = str(value.name_hint)
        old = step.old(k + 1, f"{name}_v")
        gradient = step.decayed(self.weight_decay, value, gradient)
        fresh: RelayExpr = gradient
        if self.dampening:
            fresh = op.multiply(step.number(1 - self.dampening), gradient)
        new = step.keep(
            0, op.add(op.multiply(step.number(self.momentum), old), fresh), f"{name}_v_new"
        )
        way: RelayExpr = new
        if self.nesterov:
            way = op.add(gradient, op.multiply(step.number(self.momentum), new))
        return op.subtract(value, op.multiply(step.number(self.lr), way))


class Adam(Optimizer):
    """Steps by the mean of gradients over the root of the mean of their squares.

    Parameters
    ----------
    betas : how much of the two means stays in a step.
    eps : added to the root.
    weight_decay : what of the parameter is added to its gradient.
    """

    def __init__(
        self,
        lr: float,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-08,
        weight_decay: float = 0,
    ) -> None:
        super().__init__("Adam")
        self.lr, self.betas, self.eps = float(lr), (float(betas[0]), float(betas[1])), float(eps)
        self.weight_decay = float(weight_decay)

    def _first_state(self) -> list[NDArray]:
        one = np.ones((), self.dtype)
        return [tvm.nd.array(one), tvm.nd.array(one), *self._zeros(), *self._zeros()]

    def _begin(self, step: _Step) -> None:
        for k, beta in enumerate(self.betas):
            old = step.old(k + 1, f"beta_{k}_prod")
            new = op.multiply(old, step.number(beta))
            step.kept.append(step.builder.emit(new, f"beta_{k}_prod_new"))

    def _update(self, step: _Step, k: int, value: Var, gradient: Var) -> RelayExpr:
        name, count = str(value.name_hint), len(self.param_list)
        first = step.old(k + 3, f"{name}_m")
        second = step.old(k + 3 + count, f"{name}_v")
        gradient = step.decayed(self.weight_decay, value, gradient)
        square = op.multiply(gradient, gradient)
        means = []
        for kind, (old, sample) in enumerate(((first, gradient), (second, square))):
            beta = self.betas[kind]
            kept = op.multiply(step.number(beta), old)
            added = op.multiply(step.number(1 - beta), sample)
            new = step.keep(kind, op.add(kept, added), f"{old.name_hint}_new")
            rest = op.subtract(step.number(1), step.kept[kind + 1])
            means.append(step.builder.emit(op.divide(new, rest), f"{old.name_hint}_hat"))
        root = op.add(op.sqrt(means[1]), step.number(self.eps))
        return op.subtract(value, op.multiply(step.number(self.lr), op.divide(means[0], root)))
