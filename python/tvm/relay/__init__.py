"""TVM's older spelling of the graph level, over relax."""

import tvm.contrib.graph_executor
from tvm._older_names import hints_for
from tvm.ir import SourceName, Span
from tvm.ir.transform import PassContext as build_config

from . import (
    adt,
    analysis,
    backend,
    build_module,
    calibration,
    data_dep_optimization,
    dataflow_pattern,
    expr,
    expr_functor,
    frontend,
    loops,
    op,
    param_dict,
    parser,
    prelude,
    qnn,
    quantize,
    scope_builder,
    testing,
    text_printer,
    transform,
    ty,
    type_functor,
)
from .adt import *
from .backend import c_compiler, interpreter, layout_graph, layout_rules, te_compiler, vm
from .binding import bind
from .build_module import bind_params_by_name, build, create_executor, optimize
from .expr import *
from .expr_functor import ExprFunctor, ExprMutator, ExprVisitor
from .loops import while_loop
from .op import *
from .param_dict import load_param_dict, save_param_dict
from .parser import fromtext, parse, parse_expr
from .prelude import Prelude
from .scope_builder import ScopeBuilder
from .text_printer import astext, pretty_print
from .ty import *
from .type_functor import TypeFunctor, TypeMutator, TypeVisitor

__getattr__ = hints_for(__name__)
