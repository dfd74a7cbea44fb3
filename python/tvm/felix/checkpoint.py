"""Where the weights that come with this package are."""

from __future__ import annotations

from pathlib import Path

__all__ = ["packaged_checkpoint"]


def packaged_checkpoint() -> Path:
    """The checkpoint in this package, for CPU tasks.

    Trained on 3758 programs of 100 random operators (tvm.felix.workloads, seed 11), half chosen as
    a search does and half drawn at random, measured on two cores with AVX-512; 400 of them lie
    beside it, for further training. docs/cost_model.md has the commands.
    """
    return Path(__file__).parent / "data" / "cpu_mlp.ckpt"
