"""Passes over graph modules."""

from .graph_pass import graph_pass as graph_pass
from .transform import *
