"""Parameters, states and steps of a module that SetupTrainer has made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

import tvm
from tvm import error
from tvm.ir import IRModule
from tvm.runtime import Device, NDArray
from tvm.runtime.relax_vm import VirtualMachine

from ..struct_info import static_shape

__all__ = ["Trainer"]


class Trainer:
    """Trains the backbone of a module.

    Parameters
    ----------
    train_mod : what `SetupTrainer` gives.
    vm : a machine that runs the compiled module, on `device`.
    zero_init_param_state : begin with zeros; otherwise parameters and states have to be set.

    Raises
    ------
    ValueError : the module has not been set up.
    """

    BACKBONE_FUNC: str = "backbone"
    BACKBONE_LOSS_FUNC: str = "backbone_loss"
    ADJOINT_FUNC: str = "backbone_loss_adjoint"
    OPTIMIZER_FUNC: str = "optimizer"

    def __init__(
        self,
        train_mod: IRModule,
        vm: VirtualMachine,
        device: Device,
        zero_init_param_state: bool = True,
    ) -> None:
        attrs = dict(train_mod.attrs or {})
        missing = [n for n in ("param_num", "state_num", "optim_state") if n not in attrs]
        if missing:
            raise error.ValueError(
                f'Trainer: the module has no attribute "{missing[0]}"; make it by SetupTrainer'
            )
        self.mod, self.vm, self.device = train_mod, vm, device
        backbone = train_mod[self.BACKBONE_FUNC]
        count, states = int(attrs["param_num"]), int(attrs["state_num"])
        self._inputs = len(backbone.params) - count - states
        self._param_vars = list(backbone.params[self._inputs : self._inputs + count])
        self._state_vars = list(backbone.params[self._inputs + count :])
        self._optim_state = [tvm.nd.array(v.numpy(), device) for v in attrs["optim_state"]]
        self._params: list[NDArray | None] = [None] * count
        self._states: list[NDArray | None] = [None] * states
        if zero_init_param_state:
            self.zero_init_params()
            self.zero_init_states()

    @staticmethod
    def _shape(var: Any) -> tuple[int, ...]:
        return static_shape(var.struct_info)

    def _array(self, value: Any) -> NDArray:
        host = value.numpy() if isinstance(value, NDArray) else np.asarray(value)
        return tvm.nd.array(host, self.device)

    def xaiver_uniform_init_params(self, seed: int | None = None) -> None:
        """Draw parameters from the range of Glorot and Bengio; vectors are zeros.

        The name is spelled as in TVM, where draws have no seed.
        """
        random = np.random.default_rng(seed)
        for k, var in enumerate(self._param_vars):
            shape, dtype = self._shape(var), str(var.struct_info.dtype)
            if len(shape) < 2:
                self._params[k] = self._array(np.zeros(shape, dtype))
                continue
            field = int(np.prod(shape[2:]))
            bound = np.sqrt(6.0 / ((shape[0] + shape[1]) * field))
            self._params[k] = self._array(random.uniform(-bound, bound, shape).astype(dtype))

    def zero_init_params(self) -> None:
        """Set all parameters to zero."""
        self._params = [self._zeros(var) for var in self._param_vars]

    def zero_init_states(self) -> None:
        """Set all states to zero."""
        self._states = [self._zeros(var) for var in self._state_vars]

    def _zeros(self, var: Any) -> NDArray:
        return self._array(np.zeros(self._shape(var), str(var.struct_info.dtype)))

    def load_params(self, params: Sequence[Any] | Mapping[str, Any]) -> None:
        """Set parameters, all in their order or some by name.

        Raises
        ------
        ValueError : another number of them, an unknown name, or another shape.
        """
        self._load("parameter", self._params, self._param_vars, params)

    def load_states(self, states: Sequence[Any] | Mapping[str, Any]) -> None:
        """Set states, as `load_params` sets parameters."""
        self._load("state", self._states, self._state_vars, states)

    def _load(
        self,
        kind: str,
        kept: list[NDArray | None],
        variables: list[Any],
        values: Sequence[Any] | Mapping[str, Any],
    ) -> None:
        names = [str(var.name_hint) for var in variables]
        if not isinstance(values, Mapping):
            if len(values) != len(names):
                raise error.ValueError(
                    f"Trainer: there are {len(names)} {kind}s, got {len(values)} values"
                )
            values = dict(zip(names, values))
        for name, value in values.items():
            if name not in names:
                raise error.ValueError(
                    f"Trainer: there is no {kind} {name}; there are {', '.join(names)}"
                )
            place, array = names.index(name), self._array(value)
            wanted = self._shape(variables[place])
            if tuple(array.shape) != wanted:
                raise error.ValueError(
                    f"Trainer: the {kind} {name} has the shape {wanted}, got {tuple(array.shape)}"
                )
            kept[place] = array

    def export_params(self) -> dict[str, NDArray]:
        """Parameters by name."""
        return self._export(self._param_vars, self._ready("parameter", self._params))

    def export_states(self) -> dict[str, NDArray]:
        """States by name."""
        return self._export(self._state_vars, self._ready("state", self._states))

    @staticmethod
    def _export(variables: list[Any], values: list[NDArray]) -> dict[str, NDArray]:
        return {str(var.name_hint): value for var, value in zip(variables, values)}

    def _ready(self, kind: str, values: list[NDArray | None]) -> list[NDArray]:
        if any(value is None for value in values):
            raise error.ValueError(f"Trainer: a {kind} has no value yet; load or initialise them")
        return [value for value in values if value is not None]

    def _weights(self) -> list[NDArray]:
        return self._ready("parameter", self._params) + self._ready("state", self._states)

    def _given(self, inputs: Sequence[Any]) -> list[NDArray]:
        if len(inputs) != self._inputs:
            raise error.ValueError(
                f"Trainer: the backbone has {self._inputs} inputs, got {len(inputs)}"
            )
        return [self._array(value) for value in inputs]

    def predict(self, *input_instances: Any) -> Any:
        """What the backbone gives for its inputs; nothing changes."""
        return self.vm[self.BACKBONE_FUNC](*self._given(input_instances), *self._weights())

    def update(self, input_instances: Any, targets: Any) -> NDArray:
        """Make one step; the loss before it.

        Parameters
        ----------
        input_instances, targets : an array, or a list of several: inputs of the backbone, and what
            the loss takes behind the predictions.
        """
        inputs = (
            list(input_instances)
            if isinstance(input_instances, (list, tuple))
            else [input_instances]
        )
        wanted = list(targets) if isinstance(targets, (list, tuple)) else [targets]
        values, gradients = self.vm[self.ADJOINT_FUNC](
            *self._given(inputs), *self._weights(), *map(self._array, wanted)
        )
        loss = values
        if self._state_vars:
            loss, self._states = values[0], list(values)[1:]
        new, self._optim_state = self.vm[self.OPTIMIZER_FUNC](
            tuple(self._ready("parameter", self._params)),
            tuple(gradients),
            tuple(self._optim_state),
        )
        self._params = list(new)
        return loss

    def profile_adjoint(self, input_instances: Sequence[Any], targets: Sequence[Any]) -> Any:
        """A report of how long the parts of the gradient take, of a machine made to profile."""
        inputs = self._given(list(input_instances))
        return self.vm.profile(
            self.ADJOINT_FUNC, *inputs, *self._weights(), *map(self._array, targets)
        )
