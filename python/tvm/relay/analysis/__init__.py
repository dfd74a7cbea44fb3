"""What can be told of relay programs."""

from .infer import infer_function, infer_module
from .variables import *
