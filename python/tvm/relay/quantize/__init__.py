"""Networks of floating-point numbers computed with integers."""

from .calibrate import (
    activation_thresholds,
    divergence_threshold,
    percentile_threshold,
    weight_threshold,
)
from .config import QConfig, current_qconfig, qconfig
from .quantize import prerequisite_optimize, quantize
