"""What is quantised, and how its range is found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from types import TracebackType
from typing import Any, ClassVar

from tvm import error

__all__ = ["QConfig", "current_qconfig", "qconfig"]

# Settings of TVM that have one value here, with what that means.
_FIXED = {
    "nbit_activation": (32, "sums are integers of 32 bits"),
    "dtype_input": ("int8", "data is stored in int8"),
    "dtype_weight": ("int8", "weights are stored in int8"),
    "dtype_activation": ("int32", "sums are integers of 32 bits"),
    "round_for_shift": (True, "scales are multiplied in float32 and rounded"),
    "rounding": ("UPWARD", "scales are multiplied in float32 and rounded to even"),
    "partition_conversions": ("disabled", "conversions stay where they are needed"),
}
_CHOICES = {
    "calibrate_mode": ("global_scale", "kl_divergence", "percentile"),
    "weight_scale": ("power2", "max"),
}


@dataclass(frozen=True)
class QConfig:
    """Settings of :func:`quantize`; entered with ``with``.

    Attributes
    ----------
    nbit_input, nbit_weight : bits of the integers, 2 to 8, with a sign.
    calibrate_mode : "global_scale" takes one range for all data; "kl_divergence" finds the range
        of each layer that loses least of the distribution of a dataset; "percentile" leaves out
        one absolute value in a hundred thousand of it, the largest ones.
    global_scale : the largest absolute value of data with "global_scale".
    weight_scale : the largest absolute weight is taken as it is, "max", or rounded up to a power of
        two, "power2".
    skip_dense_layer : leave dense layers.
    skip_conv_layers : numbers of convolutions to leave, the first is 0; None for none.
    debug_enabled_ops : operators to quantise alone, by name; None for all.
    do_simulation : round data and weights, but compute with floating-point numbers.
    calibrate_chunk_by : layers whose data is held at once while ranges are found; -1 for all.
    """

    nbit_input: int = 8
    nbit_weight: int = 8
    calibrate_mode: str = "global_scale"
    global_scale: float = 8.0
    weight_scale: str = "power2"
    skip_dense_layer: bool = True
    skip_conv_layers: Sequence[int] | None = (0,)
    debug_enabled_ops: Sequence[str] | None = None
    do_simulation: bool = False
    calibrate_chunk_by: int = -1

    # Innermost last.
    _entered: ClassVar[list[QConfig]] = []

    def __post_init__(self) -> None:
        for name, choices in _CHOICES.items():
            if getattr(self, name) not in choices:
                raise error.ValueError(
                    f"relay.quantize: {name} is one of {choices}, got {getattr(self, name)!r}"
                )
        for name in ("nbit_input", "nbit_weight"):
            if not 2 <= getattr(self, name) <= 8:
                raise error.ValueError(
                    f"relay.quantize: {name} is 2 to 8, got {getattr(self, name)}"
                )
        if not self.global_scale > 0:
            raise error.ValueError(
                f"relay.quantize: global_scale is positive, got {self.global_scale}"
            )
        if self.calibrate_chunk_by != -1 and self.calibrate_chunk_by < 1:
            raise error.ValueError(
                "relay.quantize: calibrate_chunk_by is a number of layers or -1, got "
                f"{self.calibrate_chunk_by}"
            )

    def __enter__(self) -> QConfig:
        QConfig._entered.append(self)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        QConfig._entered.pop()


def current_qconfig() -> QConfig:
    """The innermost configuration that was entered, or that of the defaults."""
    return QConfig._entered[-1] if QConfig._entered else QConfig()


def qconfig(**settings: Any) -> QConfig:
    """A configuration; see :class:`QConfig` for the settings.

    TVM's settings of the number types and roundings are taken with the one value that there is.

    Raises
    ------
    ValueError : a setting has another value. TypeError : there is no such setting.
    """
    known = {field.name for field in fields(QConfig)}
    for name, value in settings.items():
        if name in _FIXED:
            only, why = _FIXED[name]
            if value != only:
                raise error.ValueError(f"relay.quantize: {name} is {only!r}, got {value!r}: {why}")
        elif name not in known:
            raise error.TypeError(
                f"relay.quantize: there is no setting '{name}'; there are "
                f"{sorted(known | set(_FIXED))}"
            )
    return QConfig(**{name: value for name, value in settings.items() if name in known})
