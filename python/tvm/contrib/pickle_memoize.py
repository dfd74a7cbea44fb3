"""Results of slow functions of tests and scripts, computed once a process.

TVM keeps such results as pickles in the user's folder. A pickle can run any code when it is read,
so here they stay in memory.
"""

from __future__ import annotations

import functools
import pickle
from collections.abc import Callable
from typing import Any

__all__ = ["memoize"]

_results: dict[tuple[str, str, bytes], Any] = {}


def memoize(key: str, save_at_exit: bool = False) -> Callable[[Callable], Callable]:
    """A decorator: calls with equal arguments give the result of the first one.

    Parameters
    ----------
    key : names the function's results; two functions of one key and place share them.
    save_at_exit : accepted as TVM's programs say it; nothing outlives the process either way.

    Raises
    ------
    TypeError : an argument of a call cannot be pickled, so that it cannot be told from others.
    """
    if callable(key):
        raise TypeError("memoize: give it a key, as in @memoize('name')")

    def decorate(function: Callable) -> Callable:
        @functools.wraps(function)
        def remembered(*args: Any, **kwargs: Any) -> Any:
            arguments = pickle.dumps((args, sorted(kwargs.items())))
            named = (key, function.__qualname__, arguments)
            if named not in _results:
                _results[named] = function(*args, **kwargs)
            return _results[named]

        return remembered

    return decorate
