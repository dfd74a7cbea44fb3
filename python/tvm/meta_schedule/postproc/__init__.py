"""Finishing touches on candidates."""

from .gpu_postprocs import RewriteCooperativeFetch, RewriteUnboundBlock, VerifyGPUCode
from .loop_postprocs import (
    DisallowDynamicLoop,
    RewriteParallelVectorizeUnroll,
    RewriteReductionBlock,
)
from .postproc import Postproc, PyPostproc
from .rewrite_layout import RewriteLayout
from .rewrite_tensorize import RewriteTensorize

create = Postproc.create
