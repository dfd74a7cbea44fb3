#!/usr/bin/env python3
"""Tune a network for this machine by gradient descent, and compare it with PyTorch.

The same as ``felix tune``.
"""

from __future__ import annotations

import sys

from tvm.felix.command import main
from tvm.felix.console import end_process

if __name__ == "__main__":
    end_process(main(["tune", *sys.argv[1:]]))
