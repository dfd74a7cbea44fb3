"""Random programs under random transformations, against references; failures are made small.

``python tests/python/testing_fuzz.py --cases 100000`` draws cases of all families in turn: programs
under schedules of symbolic sketches with random knobs, functions of blocks under random traces,
networks under graph passes; on the processor and on the emulated GPU. A case is a family, a seed
and a size, and the least size that fails is written as a program that shows it.
"""

from __future__ import annotations

import argparse
import functools
import os
import random
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import nn

import testing_sketches as sketches
import tvm
from testing_blocks import check
from testing_gpu import inputs_of, random_states, run_emulated, run_plain, sym_task
from testing_random_blocks import (
    GPU_STEPS,
    PROGRAMS,
    REFUSED,
    STEPS,
    bind_the_rest,
    random_schedule,
)
from tvm import auto_scheduler, relax
from tvm.auto_scheduler import LayoutRewriteOption, pack_array
from tvm.felix import ffi
from tvm.relax.frontend.torch import export_for_inference, from_exported_program

MAX_SIZE = 12


def trace_on_processor(seed: int, size: int) -> None:
    """`size` random primitives on a function of blocks."""
    func, answer = _random_function(seed)
    check(random_schedule(func, seed, steps=size, table=STEPS), func, answer)


def trace_on_gpu(seed: int, size: int) -> None:
    """`size` random primitives of GPUs, in the emulator, which looks for races."""
    func, answer = _random_function(seed)
    sch = random_schedule(func, seed, steps=size, table=GPU_STEPS)
    if not bind_the_rest(sch, random.Random(seed)):
        return
    try:
        check(sch, func, answer, target=tvm.target.emulated("cuda"))
    except tvm.error.TVMError as error:
        # What no GPU can run is refused by name.
        if not any(word in str(error) for word in REFUSED):
            raise


def _random_function(seed: int):
    rng = random.Random(seed)
    sizes = [rng.randint(2, 20) for _ in range(3)]
    return PROGRAMS[rng.choice(sorted(PROGRAMS))](*sizes)


def sketch_on_processor(seed: int, size: int) -> None:
    """A random program under a random sketch, of which `size` knobs are not 1."""
    rng = random.Random(seed)
    task, found, inputs, expected = _random_task(seed // len(TURN))
    sketch = rng.choice(found)
    config = sketches.random_config(sketch, rng)
    for name in sorted(config)[size:]:
        config[name] = 1
    state = ffi.state_from_config(task, sketch, config)
    schedule, args = task.compute_dag.apply_steps_from_state(
        state, LayoutRewriteOption.REWRITE_FOR_PRE_TRANSFORMED
    )
    arrays = list(inputs)
    for transform in task.compute_dag.layout_transforms(state):
        index = int(transform.tensor_index)
        arrays[index] = pack_array(arrays[index], transform)
    out = tvm.nd.array(np.full([int(s) for s in args[-1].shape], np.nan, "float32"))
    tvm.build(schedule, args, target="llvm")(*map(tvm.nd.array, arrays), out)
    # Sums of at most some hundred products of values below 1, in another order.
    np.testing.assert_allclose(
        out.numpy(), expected, rtol=1e-4, atol=1e-4, err_msg=f"{config}\n{state}"
    )


class _Task(NamedTuple):
    task: auto_scheduler.SearchTask
    sketches: list[auto_scheduler.StateObject]
    inputs: list[np.ndarray]
    expected: np.ndarray


@functools.lru_cache(1)
def _random_task(seed: int) -> _Task:
    """What the cases of one turn share: a task, its symbolic sketches, arrays, the answer."""
    task = auto_scheduler.SearchTask(
        compute_dag=_random_tensors(random.Random(seed)),
        target="llvm",
        layout_rewrite_option=LayoutRewriteOption.REWRITE_FOR_PRE_TRANSFORMED,
    )
    found, failures = sketches.sketches_of(task)
    assert failures == [], failures
    inputs = inputs_of(task, seed)
    return _Task(task, found, inputs, run_plain(task, inputs))


def _random_tensors(rng: random.Random) -> list[tvm.te.Tensor]:
    n = functools.partial(rng.randint, 1)
    return rng.choice(
        [
            lambda: sketches.conv(
                n(8) + 2, n(12), n(20), rng.choice([1, 3]), rng.choice([1, 2]), 1
            ),
            lambda: sketches.depthwise(n(8) + 2, n(20), rng.choice([1, 2])),
            lambda: sketches.dense(n(16), n(40), n(40)),
            lambda: sketches.matmul(n(24), n(24), n(40)),
            lambda: sketches.two_matmuls(n(24)),
            lambda: sketches.max_pool(n(8) + 2, n(20), rng.choice([0, 1])),
            lambda: sketches.softmax(n(12), n(48)),
            lambda: sketches.chain(n(16), n(48)),
        ]
    )()


# Those whose sketches the emulator runs in little time.
_ON_GPU = ("matmul", "softmax", "chain")


def sketch_on_gpu(seed: int, size: int) -> None:
    """A program under a random sketch and knobs that keep to the limits of a GPU."""
    rng = random.Random(seed)
    name = rng.choice(_ON_GPU)
    task = sym_task(name)
    index = rng.randrange(len(task.sketches))
    inputs = inputs_of(task.ansor_task)
    for state in random_states(name, index, 1, seed):
        np.testing.assert_allclose(
            run_emulated(task.ansor_task, state, inputs),
            _plain(name),
            rtol=1e-4,
            atol=1e-4,
            err_msg=str(state),
        )


@functools.cache
def _plain(name: str) -> np.ndarray:
    task = sym_task(name).ansor_task
    return run_plain(task, inputs_of(task))


class RandomNetwork(nn.Module):
    """`size` random layers over images; some have a second input from earlier on."""

    def __init__(self, rng: random.Random, size: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList()
        self.joins: list[tuple[str, int]] = []
        channels = self.channels = rng.choice([2, 3, 8])
        shapes = [channels]
        for _ in range(size):
            kind = rng.choice(["conv", "depthwise", "norm", "act", "pool", "act", "conv"])
            out = channels
            if kind == "conv":
                out, kernel = rng.choice([channels, 4, 8]), rng.choice([1, 3])
                layer: nn.Module = nn.Conv2d(
                    channels, out, kernel, padding=kernel // 2, bias=rng.random() < 0.5
                )
            elif kind == "depthwise":
                layer = nn.Conv2d(channels, channels, 3, padding=1, groups=channels)
            elif kind == "norm":
                layer = nn.BatchNorm2d(channels)
                nn.init.uniform_(layer.running_mean, -1, 1)
                nn.init.uniform_(layer.running_var, 0.5, 2)
            elif kind == "pool":
                layer = rng.choice([nn.MaxPool2d, nn.AvgPool2d])(3, 1, 1)
            else:
                layer = rng.choice([nn.ReLU, nn.Sigmoid, nn.Tanh, nn.SiLU, nn.GELU, nn.Hardswish])()
            self.layers.append(layer)
            same = [i for i, c in enumerate(shapes) if c == out]
            join = rng.choice(["", "", "add", "multiply", "concat"])
            if join == "concat" and out < 16:
                self.joins.append((join, rng.randrange(len(shapes))))
                out += shapes[self.joins[-1][1]]
            elif join in ("add", "multiply") and same:
                self.joins.append((join, rng.choice(same)))
            else:
                self.joins.append(("", 0))
            channels = out
            shapes.append(out)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        values = [x]
        for layer, (join, other) in zip(self.layers, self.joins):
            x = layer(x)
            if join == "add":
                x = x + values[other]
            elif join == "multiply":
                x = x * torch.tanh(values[other])
            elif join == "concat":
                x = torch.cat([x, values[other]], 1)
            values.append(x)
        return x


def graph_passes(seed: int, size: int) -> None:
    """A random network of `size` layers, as it is imported and under random graph passes."""
    rng = random.Random(seed)
    torch.manual_seed(seed)
    network = RandomNetwork(rng, size).eval()
    x = torch.randn(rng.choice([1, 2]), network.channels, rng.randint(3, 9), rng.randint(3, 9))
    with torch.no_grad():
        expected = network(x).numpy()
    mod = from_exported_program(export_for_inference(network, (x,)))
    t = relax.transform
    choices = [
        t.FoldBatchnorm(),
        t.DeadCodeElimination(),
        t.ConvertLayout(),
        t.FoldConstant(),
        t.CanonicalizeBindings(),
        t.EliminateCommonSubexpr(),
    ]
    for chosen in rng.sample(choices, rng.randint(0, len(choices))):
        mod = chosen(mod)
    mod = t.OptimizeForInference(rng.random() < 0.5)(mod)
    machine = relax.VirtualMachine(relax.build(mod, "llvm"))
    found = machine["main"](tvm.nd.array(x.numpy())).numpy()
    scale = max(1.0, float(np.abs(expected).max()))
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-4 * scale)


FAMILIES: dict[str, Callable[[int, int], None]] = {
    function.__name__: function
    for function in (
        trace_on_processor,
        sketch_on_processor,
        trace_on_gpu,
        sketch_on_gpu,
        graph_passes,
    )
}
# A network costs as much as twenty traces, half of it for its export, so fewer are drawn.
TURN = [name for name in FAMILIES if name != graph_passes.__name__] * 8 + [graph_passes.__name__]


def run_case(family: str, seed: int, folder: Path) -> str:
    """ "" or what is wrong, after a program that shows it at its smallest was written."""
    size = random.Random(seed).randint(1, MAX_SIZE)
    error = _error(family, seed, size)
    if not error:
        return ""
    for smaller in range(size):
        if found := _error(family, seed, smaller):
            size, error = smaller, found
            break
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{family}_{seed}.py"
    comment = "\n".join(f"# {line}" for line in error.splitlines())
    path.write_text(
        "import sys\n"
        f"sys.path.insert(0, {str(Path(__file__).parent)!r})\n"
        f"import testing_fuzz\n\ntesting_fuzz.{family}({seed}, {size})\n{comment}\n"
    )
    return f"{path}: {error.splitlines()[-1][:300]}"


def _error(family: str, seed: int, size: int) -> str:
    try:
        FAMILIES[family](seed, size)
    except Exception as error:
        # The last line says what is wrong; a message can have several.
        what = f"{type(error).__name__}: {(str(error).splitlines() or [''])[0]}"
        return f"{traceback.format_exc().strip()}\n{what}"
    return ""


def run_cases(numbers: range, folder: Path) -> list[str]:
    """What is wrong in the cases of these numbers."""
    wrong, begin = [], time.monotonic()
    for done, number in enumerate(numbers, start=1):
        text = run_case(TURN[number % len(TURN)], number, folder)
        if text:
            wrong.append(text)
            print(text, flush=True)
        if done % 500 == 0:
            print(f"{done} cases, {len(wrong)} wrong, {time.monotonic() - begin:.0f} s", flush=True)
    return wrong


def main(arguments: list[str] | None = None) -> int:
    """Run; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=100000)
    parser.add_argument("--seed", type=int, default=0, help="number of the first case")
    parser.add_argument("--jobs", type=int, default=1, help="cases at a time")
    parser.add_argument("--out", type=Path, default=Path("build/fuzz"), help="of failing programs")
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    numbers = range(options.seed, options.seed + options.cases)
    processes = []
    for job in range(options.jobs):
        pid = os.fork()
        if pid == 0:
            wrong = run_cases(numbers[job :: options.jobs], options.out)
            os._exit(min(len(wrong), 100))
        processes.append(pid)
    statuses = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in processes]
    crashed = [status for status in statuses if status < 0]
    wrong = sum(status for status in statuses if status > 0)
    print(f"{options.cases} cases, {wrong} wrong, {len(crashed)} processes crashed")
    return int(bool(wrong or crashed))


if __name__ == "__main__":
    sys.exit(main())
