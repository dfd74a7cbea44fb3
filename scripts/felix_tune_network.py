#!/usr/bin/env python3
"""Tune a network for this machine by gradient descent, and compare it with PyTorch.

The same as ``felix tune``.
"""

from __future__ import annotations

import sys

from tvm.felix.command import main

if __name__ == "__main__":
    sys.exit(main(["tune", *sys.argv[1:]]))
