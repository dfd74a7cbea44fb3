"""Operators on images."""

from .grid_sample import *
from .resize import *
