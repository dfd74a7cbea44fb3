"""Passes over graph modules."""

from .transform import *
