"""Templates with knobs, and a runner that times nothing."""

from __future__ import annotations

import time
from typing import Any

from tvm import autotvm, te
from tvm.autotvm.measure import MeasureResult, Runner


@autotvm.template("tests/matmul")
def matmul(n: int, m: int, k: int) -> Any:
    a, b = te.placeholder((n, k), name="A"), te.placeholder((k, m), name="B")
    r = te.reduce_axis((0, k), name="k")
    c = te.compute((n, m), lambda i, j: te.sum(a[i, r] * b[r, j], axis=r), name="C")
    s = te.create_schedule(c.op)
    y, x = c.op.axis
    cfg = autotvm.get_config()
    cfg.define_split("tile_y", y, num_outputs=2)
    cfg.define_split("tile_x", x, num_outputs=2)
    yo, yi = cfg["tile_y"].apply(s, c, y)
    xo, xi = cfg["tile_x"].apply(s, c, x)
    s[c].reorder(yo, xo, r, yi, xi)
    s[c].vectorize(xi)
    return s, [a, b, c]


def matmul_task(n: int = 64, m: int = 64, k: int = 64, target: str = "llvm") -> autotvm.task.Task:
    return autotvm.task.create("tests/matmul", (n, m, k), target)


class TileRunner(Runner):
    """Says that square-ish tiles of 16 x 16 are the fastest, to the nanosecond."""

    def __init__(self) -> None:
        super().__init__(1, 1)
        self.count = 0

    def run(self, measure_inputs: Any, build_results: Any) -> list[MeasureResult]:
        self.count += len(measure_inputs)
        return [
            MeasureResult((tile_seconds(entry.config),), 0, 0.0, time.time())
            for entry in measure_inputs
        ]


def tile_seconds(config: Any) -> float:
    y, x = config["tile_y"].size[1], config["tile_x"].size[1]
    away = abs(y.bit_length() - 5) + abs(x.bit_length() - 5)
    return 1e-6 * (1 + away)


class NoBuilder(autotvm.measure.Builder):
    def build(self, measure_inputs: Any) -> list[Any]:
        return list(measure_inputs)


def imaginary() -> dict[str, Any]:
    return autotvm.measure_option(NoBuilder(n_parallel=4), TileRunner())
