"""What a long run says of itself: a line as each of its phases begins, and a bar while it counts.

The lines go to this module's logger, which `init_logging` shows on the console if it is asked to.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator
from typing import TypeVar

from tqdm import tqdm

__all__ = ["counting", "phase", "steps"]

logger = logging.getLogger(__name__)

_Item = TypeVar("_Item")


def phase(text: str, *args: object) -> None:
    """Say what begins; `args` are put into the text as logging does it."""
    logger.info(text, *args)


def counting(total: int, text: str, *, show: bool = True) -> tqdm:
    """Say what begins, and count its steps by a bar that goes away with it; use it by `with`.

    show : whether there is a bar, where standard error is a terminal.
    """
    phase("%s", text)
    # None: only where standard error is a terminal.
    return tqdm(total=total, desc=text, leave=False, disable=None if show else True)


def steps(items: Collection[_Item], text: str, *, show: bool = True) -> Iterator[_Item]:
    """Items one after the other, counted as `counting` does."""
    with counting(len(items), text, show=show) as bar:
        for item in items:
            yield item
            bar.update(1)
