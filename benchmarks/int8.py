#!/usr/bin/env python3
"""Quantised networks against float32, and against ONNX Runtime, interleaved in one process.

Networks of torchvision are written to ONNX, quantised by ONNX Runtime with random data (bytes for
activations, a scale for each output channel of weights), and run in both forms, as topi schedules
the kernels. Figures are the least of all rounds. Needs the extra "peers".

    python benchmarks/int8.py --threads 1 --cpu haswell
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from network_cases import load_case, onnxruntime_runner, use_threads, write_onnx


class _Linear(torch.nn.Module):
    """The matrix products of a transformer's layer: 768 wide, 128 tokens."""

    def __init__(self) -> None:
        super().__init__()
        sizes = [(768, 768)] * 4 + [(768, 3072), (3072, 768)]
        self.layers = torch.nn.Sequential(
            *(layer for a, b in sizes for layer in (torch.nn.Linear(a, b), torch.nn.ReLU()))
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layers(x)


def load(name: str) -> tuple[torch.nn.Module, tuple[torch.Tensor, ...]]:
    """A network and its inputs."""
    if name != "linear":
        return load_case(name)
    torch.manual_seed(0)
    return _Linear().eval(), (torch.randn(128, 768),)


def write_quantised(path: Path, inputs: tuple[torch.Tensor, ...]) -> Path:
    """The model of a file with QuantizeLinear and DequantizeLinear around its operators."""
    import onnx
    from onnxruntime.quantization import (
        CalibrationDataReader,
        QuantFormat,
        QuantType,
        quantize_static,
    )
    from onnxruntime.quantization.shape_inference import quant_pre_process

    class Random(CalibrationDataReader):
        def __init__(self, name: str) -> None:
            samples = [inputs[0], *(torch.randn_like(inputs[0]) for _ in range(2))]
            self._rest: Iterator[dict[str, Any]] = iter([{name: x.numpy()} for x in samples])

        def get_next(self) -> dict[str, Any] | None:
            return next(self._rest, None)

    prepared, quantised = path.with_name("prepared.onnx"), path.with_name("quantised.onnx")
    # Weights of a file of their own are refused by what prepares the model.
    onnx.save(onnx.load(str(path)), str(prepared))
    quant_pre_process(str(prepared), str(prepared), skip_symbolic_shape=True)
    name = onnx.load(str(prepared), load_external_data=False).graph.input[0].name
    quantize_static(
        str(prepared),
        str(quantised),
        Random(name),
        quant_format=QuantFormat.QDQ,
        per_channel=True,
        activation_type=QuantType.QUInt8,
        weight_type=QuantType.QInt8,
    )
    return quantised


def least_seconds(functions: dict[str, Callable[[], Any]], rounds: int) -> dict[str, float]:
    """For each function the least of its times, taken in turns."""
    least = {name: float("inf") for name in functions}
    for _ in range(rounds):
        for name, function in functions.items():
            start = time.perf_counter()
            function()
            least[name] = min(least[name], time.perf_counter() - start)
    return least


def measure(name: str, options: argparse.Namespace) -> str:
    """A row of the table."""
    import tvm
    from tvm import felix

    tvm.runtime.config_threadpool(options.threads)
    model, inputs = load(name)
    target = f"llvm -mcpu={options.cpu}" if options.cpu else "llvm"
    with tempfile.TemporaryDirectory() as folder:
        path = write_onnx(model, inputs, Path(folder))
        quantised = write_quantised(path, inputs)
        networks = {
            "int8": felix.compile(felix.from_onnx(quantised), inputs, target, cache=False),
            "float32": felix.compile(model, inputs, target, cache=False),
        }
        peers = {
            "ONNX Runtime int8": onnxruntime_runner(quantised, inputs, options.threads),
            "ONNX Runtime float32": onnxruntime_runner(path, inputs, options.threads),
        }
        functions = {key: lambda n=network: n(*inputs) for key, network in networks.items()}
        least = least_seconds({**functions, **peers}, options.rounds)
        result = networks["int8"](*inputs)
        ours = np.asarray(result[0] if isinstance(result, (tuple, list)) else result)
        theirs = np.asarray(peers["ONNX Runtime int8"]()[0])
    difference = np.abs(ours - theirs).max() / np.abs(theirs).max()
    cells = [f"{1e3 * least[key]:.2f}" for key in (*networks, *peers)]
    ratios = [
        f"{least['float32'] / least['int8']:.2f}",
        f"{least['ONNX Runtime int8'] / least['int8']:.2f}",
        f"{difference:.1e}",
    ]
    return f"| {name} | {' | '.join([*cells, *ratios])} |"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--networks", nargs="+", default=["resnet50", "mobilenet_v2", "linear"])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--cpu", default="", help="LLVM's name of a processor to compile for")
    options = parser.parse_args()
    use_threads(options.threads)
    print(
        "| network | int8, ms | float32, ms | ONNX Runtime int8 | ONNX Runtime float32 "
        "| float32 / int8 | ONNX Runtime int8 / int8 | relative difference |"
    )
    print("| --- " * 8 + "|")
    for name in options.networks:
        print(measure(name, options), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
