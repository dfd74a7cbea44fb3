"""The command ``felix`` as ``python -m tvm.felix``."""

from .command import command_line

command_line()
