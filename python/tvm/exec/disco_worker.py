"""A worker of a `tvm.runtime.disco.ProcessSession`, which starts it.

An entry point of one's own imports what registers its functions and calls `main`.
"""

from __future__ import annotations

import sys

import tvm.runtime.disco.builtin  # noqa: F401 - registers what sessions call
from tvm.runtime.disco.process import serve_pipes

__all__ = ["main"]


def main() -> None:
    """Serve the session that started this process; the command line says how to reach it."""
    serve_pipes(sys.argv[1:])


if __name__ == "__main__":
    main()
