"""Networks written as modules, in the manner of PyTorch, and traced into graph modules."""

from . import core, llm, op, spec
from .core import Effect, Object, Parameter, Tensor
from .effects import IOEffect, KVCache
from .exporter import Exporter, add_extern
from .extern import ExternModule, ObjectModule, SourceModule
from .module import Module, ModuleDict, ModuleList
from .modules import *
from .op import *
from .subroutine import SubroutineMixin
from .tensor import get_default_dtype, set_default_dtype
from .torch_module import TorchModule
from .visitor import Mutator
