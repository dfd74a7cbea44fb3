"""Passes over relay programs."""

from tvm.ir.transform import ModulePass, Pass, PassContext, PassInfo, Sequential, module_pass

from .base import FunctionPass, function_pass
from .composite import MergeComposite
from .gradient import gradient
from .infer_type import InferType
from .regions import AnnotateTarget, PartitionGraph
from .rewrite import DefuseOps, FoldExplicitPadding, Legalize
from .simplify import CanonicalizeOps, FastMath, FoldConstant, SimplifyInference
from .structure import *
