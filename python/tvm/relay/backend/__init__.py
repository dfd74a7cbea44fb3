"""From relay to what runs."""

from tvm._older_names import hints_for

from .executor import Executor, Runtime

__getattr__ = hints_for(__name__)
