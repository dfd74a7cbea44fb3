"""Where the weights that come with this package are."""

from __future__ import annotations

from pathlib import Path

from tvm.target import Target

__all__ = ["packaged_checkpoint"]

# Bits of the vector registers of the processors that a checkpoint of this package was trained on.
_WIDTHS = (256, 512)


def packaged_checkpoint(target: Target | str = "llvm") -> Path | None:
    """The checkpoint in this package that a search for `target` starts from; None if none fits.

    One is of processors with vector registers of 512 bits and one of those with 256, which those
    with narrower ones have, too; other targets have none. `LatencyModel.card` of it says what it
    was trained on, and docs/cost_model.md has the commands that make it anew. Programs for further
    training lie beside it.

    Raises
    ------
    ValueError : there is no such target.
    """
    target = target if isinstance(target, Target) else Target(target)
    if "cpu" not in target.keys:
        return None
    width = max((w for w in _WIDTHS if w <= target.vector_width), default=_WIDTHS[0])
    return Path(__file__).parent / "data" / f"cpu_mlp_{width}.ckpt"
