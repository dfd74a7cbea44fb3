"""Strategies of relay's operators, and what programs write theirs with."""

from . import generic
from .generic import *
