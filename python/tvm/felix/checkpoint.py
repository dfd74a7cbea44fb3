"""Where the weights that come with this package are."""

from __future__ import annotations

from pathlib import Path

__all__ = ["packaged_checkpoint"]


def packaged_checkpoint() -> Path:
    """The checkpoint in this package, for CPU tasks.

    Trained on 1056 random programs of 44 random operators (tvm.felix.workloads, seed 7), none of
    them a network's, measured on two cores with AVX2. docs/cost_model.md has the commands.
    """
    return Path(__file__).parent / "data" / "cpu_mlp.ckpt"
