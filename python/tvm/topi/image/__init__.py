"""Operators on images."""

from .dilation2d import *
from .grid_sample import *
from .resize import *
