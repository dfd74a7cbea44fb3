"""Run add.so where only the runtime library is installed: python run_without_compiler.py add.so"""

from __future__ import annotations

import os
import sys

import numpy as np

os.environ["TVM_USE_RUNTIME_LIB"] = "1"
import tvm


def main() -> None:
    add = tvm.runtime.load_module(sys.argv[1])["add"]
    a = tvm.nd.array(np.arange(8, dtype="float32"))
    c = tvm.nd.empty((8,), "float32")
    add(a, a, c)
    print(*c.numpy(), sep="\n")


if __name__ == "__main__":
    main()
