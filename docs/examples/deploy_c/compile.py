"""Write add.so and network.so into the folder given as the argument."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

import tvm
from tvm import relax, te


def add_kernel(size: int = 8) -> tvm.runtime.Module:
    a = te.placeholder((size,), name="a")
    b = te.placeholder((size,), name="b")
    c = te.compute((size,), lambda i: a[i] + b[i], name="c")
    return tvm.build(te.create_schedule(c.op), [a, b, c], "llvm", name="add")


def small_network(target: str = "llvm") -> relax.Executable:
    """relu(x @ weight) for x of shape (2, 4), where weight[i, j] is i - j."""
    weight = np.subtract.outer(np.arange(4), np.arange(3)).astype("float32")
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorStructInfo((2, 4), "float32"))
    with builder.function("main", [x]):
        with builder.dataflow():
            product = builder.emit(relax.op.matmul(x, relax.const(weight)))
            out = builder.emit_output(relax.op.nn.relu(product))
        builder.emit_func_output(out)
    return relax.build(builder.get(), target)


def main() -> None:
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    add_kernel().export_library(folder / "add.so")
    small_network().export_library(folder / "network.so")


if __name__ == "__main__":
    main()
