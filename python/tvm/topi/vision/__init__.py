"""Operators of object detection: boxes, their suppression, and regions of images."""

from .all_class import *
from .boxes import *
from .priors import *
from .regions import *
from .reorg import *
