#!/usr/bin/env python3
"""Lines a second at which programs are printed and read as text.

usage: benchmarks/script.py [--lines 2000] [--repeat 5]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import tvm
from tvm import te, topi


def program(lines: int) -> tvm.IRModule:
    """A module of convolutions as blocks and as loops, of about so many lines of text."""
    functions = {}
    count = 0
    while count < lines:
        size = 8 + 4 * (len(functions) % 5)
        data = te.placeholder((1, size, 28, 28), name="data")
        kernel = te.placeholder((16, size, 3, 3), name="kernel")
        conv = topi.nn.relu(topi.nn.conv2d_nchw(data, kernel, 1, 1, 1))
        blocks = te.create_prim_func([data, kernel, conv])
        loops = tvm.lower(te.create_schedule(conv.op), [data, kernel, conv])["main"]
        for func in (blocks, loops):
            name = f"f{len(functions)}"
            functions[name] = func.with_attr("global_symbol", name)
            count += str(func).count("\n") + 1
    return tvm.IRModule(functions)


def best(run: Callable[[], object], repeat: int) -> float:
    """Processor seconds of the fastest run, which other programs on the machine do not change."""
    times = []
    for _ in range(repeat):
        start = time.process_time()
        run()
        times.append(time.process_time() - start)
    return min(times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--lines", type=int, default=2000)
    parser.add_argument("--repeat", type=int, default=5)
    options = parser.parse_args()
    mod = program(options.lines)
    text = mod.script()
    lines = text.count("\n") + 1
    printing = best(mod.script, options.repeat)
    reading = best(lambda: tvm.script.from_source(text), options.repeat)
    tvm.ir.assert_structural_equal(mod, tvm.script.from_source(text))
    print(f"{lines} lines; printing {lines / printing:.0f} lines/s, reading {lines / reading:.0f}")


if __name__ == "__main__":
    main()
