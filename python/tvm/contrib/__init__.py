"""Bridges to what other projects provide."""

from tvm._older_names import hints_for

__getattr__ = hints_for(__name__)
