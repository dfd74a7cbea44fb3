"""Changes to the decisions of traces."""

from .mutator import Mutator, PyMutator
from .mutators import (
    MutateComputeLocation,
    MutateParallel,
    MutateThreadBinding,
    MutateTileSize,
    MutateUnroll,
)

create = Mutator.create
