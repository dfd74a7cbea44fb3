"""Finishing touches on candidates."""

from .cpu_postprocs import (
    DisallowDynamicLoop,
    RewriteParallelVectorizeUnroll,
    RewriteReductionBlock,
)
from .postproc import Postproc, PyPostproc

create = Postproc.create
