"""Programs that others start, as ``python -m tvm.exec.NAME``."""
