"""Patterns over graphs: what to look for, how to find it, what to put in its place."""

from .context import PatternContext
from .pattern import *
from .rewrite import rewrite_bindings, rewrite_call
from .rewriter import ExprPatternRewriter, OrRewriter, PatternMatchingRewriter, TupleRewriter
