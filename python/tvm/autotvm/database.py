"""Stores of measurements by what was measured."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from .measure import MeasureInput, MeasureResult
from .task.records import decode, encode

__all__ = ["Database", "DummyDatabase"]


class Database:
    """Base of stores; `load` and `save` by measure input."""

    def load(self, inp: MeasureInput, get_all: bool = False) -> Any:
        """The last result of a point, None if there is none; with `get_all` a list of all."""
        raise TypeError(f"{type(self).__name__} does not define load")

    def save(self, inp: MeasureInput, res: MeasureResult, extend: bool = False) -> None:
        """Keep a result; `extend` keeps those before it too."""
        raise TypeError(f"{type(self).__name__} does not define save")


class DummyDatabase(Database):
    """In memory, as lines of a record file."""

    def __init__(self) -> None:
        self.db: dict[str, list[str]] = {}

    @staticmethod
    def _key(inp: MeasureInput) -> str:
        config = inp.config.to_json_dict()
        return f"{inp.target}|{inp.task.workload}|{config['code_hash']}|{config['entity']}"

    @staticmethod
    def _decode(line: str) -> tuple[MeasureInput, MeasureResult]:
        pair = decode(line)
        assert pair is not None
        return pair

    def load(self, inp: MeasureInput, get_all: bool = False) -> Any:
        lines = self.db.get(self._key(inp))
        if not lines:
            return None
        results = [self._decode(line)[1] for line in lines]
        return results if get_all else results[-1]

    def save(self, inp: MeasureInput, res: MeasureResult, extend: bool = False) -> None:
        key = self._key(inp)
        before = self.db.get(key, []) if extend else []
        self.db[key] = [*before, encode(inp, res)]

    def flush(self) -> None:
        """Forget everything."""
        self.db.clear()

    def filter(
        self, func: Callable[[MeasureInput, list[MeasureResult]], bool]
    ) -> list[tuple[MeasureInput, list[MeasureResult]]]:
        """Points, with all their results, of which a predicate holds."""
        return [pair for pair in self._all() if func(*pair)]

    def _all(self) -> Iterator[tuple[MeasureInput, list[MeasureResult]]]:
        for lines in self.db.values():
            pairs = [self._decode(line) for line in lines]
            yield pairs[0][0], [result for _, result in pairs]
