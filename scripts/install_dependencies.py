#!/usr/bin/env python3
"""Install what building, running and testing need, as pyproject.toml lists it, into this Python."""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

EXTRAS = ("felix", "xgboost", "ray", "cuda", "test", "docs")
# Tools that the build calls from the environment because it runs without build isolation.
BUILD_TOOLS = ("cmake>=3.25", "ninja>=1.11")


def _load_project() -> dict:
    text = (Path(__file__).resolve().parent.parent / "pyproject.toml").read_text()
    try:
        import tomllib
    except ModuleNotFoundError:  # Python 3.10 has no tomllib; pip carries its predecessor
        from pip._vendor import tomli as tomllib
    return tomllib.loads(text)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--list", action="store_true", help="print the requirements and install nothing"
    )
    parser.add_argument(
        "--build-tools", action="store_true", help="only what compiling the libraries needs"
    )
    args = parser.parse_args()
    project = _load_project()
    requirements = [*project["build-system"]["requires"], *BUILD_TOOLS]
    if not args.build_tools:
        requirements += project["project"]["dependencies"]
        for extra in EXTRAS:
            requirements += project["project"]["optional-dependencies"][extra]
    if args.list:
        print("\n".join(requirements))
        return
    subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", *requirements], check=True)


if __name__ == "__main__":
    main()
