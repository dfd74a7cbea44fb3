"""Where the weights that come with this package are."""

from __future__ import annotations

from pathlib import Path

__all__ = ["packaged_checkpoint"]


def packaged_checkpoint() -> Path:
    """The checkpoint in this package, for CPU tasks.

    Trained on 25 892 programs of 621 random operators (tvm.felix.workloads), half chosen as a
    search does and half drawn at random, measured on a Zen 5: code for registers of 512 and of 256
    bits. 896 of them lie beside it, for further training. docs/cost_model.md has the command that
    makes it anew.
    """
    return Path(__file__).parent / "data" / "cpu_mlp.ckpt"
