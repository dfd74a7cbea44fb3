#!/usr/bin/env python3
"""Time networks in PyTorch and, where it is installed, in TensorFlow."""

from __future__ import annotations

import argparse
import importlib.util
import statistics
from collections.abc import Callable
from typing import Any

from tvm.felix.command import Help
from tvm.felix.console import end_process, run_command


def tf_variants(name: str, batch: int) -> dict[str, Callable[[], Any]]:
    """TensorFlow's network as a traced function, and the same compiled by XLA."""
    import tensorflow as tf
    from tf_nns import load_network

    model, example = load_network(name, batch)

    def runner(jit: bool) -> Callable[[], Any]:
        traced = tf.function(lambda x: model(x, training=False), jit_compile=jit)
        return lambda: traced(example).numpy()

    return {"tensorflow graph": runner(False), "tensorflow xla": runner(True)}


def time_networks(options: argparse.Namespace) -> None:
    """Time what can be timed, and say what cannot."""
    import torch

    from tvm.felix import nn
    from tvm.felix.timing import interleaved_seconds, torch_variants

    has_tensorflow = importlib.util.find_spec("tensorflow") is not None
    if not has_tensorflow:
        print("tensorflow: skipped, it is not installed (pip install tensorflow)")
    torch.set_num_threads(options.threads or torch.get_num_threads())
    if has_tensorflow:
        import tensorflow as tf
        from tf_nns import NETWORKS

        tf.config.threading.set_intra_op_parallelism_threads(torch.get_num_threads())
    for name in options.networks:
        model, inputs = nn.load_network(name, batch=options.batch_size)
        functions = {f"pytorch {way}": run for way, run in torch_variants(model, inputs).items()}
        if has_tensorflow and name in NETWORKS:
            functions.update(tf_variants(name, options.batch_size))
        elif has_tensorflow:
            print(f"{name}: tensorflow: skipped, the networks it has are {', '.join(NETWORKS)}")
        for way, samples in interleaved_seconds(functions, options.repeat).items():
            print(f"{name:>14} {way:>22}: {statistics.median(samples) * 1e3:9.3f} ms", flush=True)


def main(arguments: list[str] | None = None) -> int:
    """Run; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=Help)
    parser.add_argument("networks", nargs="+", help="names of felix.nn")
    parser.add_argument("--batch-size", type=int, default=1, help="examples a run")
    parser.add_argument(
        "--threads", type=int, default=0, help="of each framework; 0: its own choice"
    )
    parser.add_argument("--repeat", type=int, default=15, help="timed runs of each")
    options = parser.parse_args(arguments)
    for name, least in (("threads", 0), ("batch_size", 1), ("repeat", 1)):
        value = getattr(options, name)
        if value < least:
            parser.error(f"--{name.replace('_', '-')} must be >= {least}, got {value}")
    return run_command(lambda: time_networks(options))


if __name__ == "__main__":
    end_process(main())
