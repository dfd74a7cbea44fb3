#!/usr/bin/env python3
"""Look records up by workload and target, the fastest first, as a table or as JSON lines.

The same as ``felix records``.
"""

from __future__ import annotations

import sys

from tvm.felix.command import main
from tvm.felix.console import end_process

if __name__ == "__main__":
    end_process(main(["records", *sys.argv[1:]]))
