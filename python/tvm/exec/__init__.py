"""Programs that others start, as ``python -m tvm.exec.NAME``."""

from tvm._older_names import hints_for

__getattr__ = hints_for(__name__)
