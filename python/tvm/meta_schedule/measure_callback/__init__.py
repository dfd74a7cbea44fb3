"""What happens after each batch of measurements."""

from .measure_callback import (
    AddToDatabase,
    MeasureCallback,
    PyMeasureCallback,
    RemoveBuildArtifact,
    UpdateCostModel,
)

create = MeasureCallback.create
