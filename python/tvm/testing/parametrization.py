"""Tests over several values: of parameters, of targets, of what is expensive to make.

What is made here takes effect under the plugin, ``pytest_plugins = ["tvm.testing.plugin"]``.
"""

from __future__ import annotations

import copy
import functools
import inspect
import os
import pickle
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

__all__ = [
    "exclude_targets",
    "fixture",
    "known_failing_targets",
    "parameter",
    "parameters",
    "parametrize_targets",
    "skip_parameterizations",
    "xfail_parameterizations",
]

_KEPT = 16


def parameter(
    *values: Any, ids: Sequence[str] | None = None, by_dict: Mapping[str, Any] | None = None
) -> Any:
    """A fixture with several values; a test that takes it runs with each.

    Parameters
    ----------
    values : the values. Tests that take several such fixtures run with all combinations.
    ids : a name for each in the names of tests.
    by_dict : the values by name, in place of both.

    Raises
    ------
    ValueError : `by_dict` together with the others.

    Examples
    --------
    At the top of a file of tests or of a class::

        size = tvm.testing.parameter(1, 128)

        def test_sum(size): ...
    """
    if by_dict is not None:
        if values or ids:
            raise ValueError("parameter: give values and ids, or by_dict, not both")
        ids, values = tuple(by_dict), tuple(by_dict.values())

    @pytest.fixture(params=values, ids=ids)
    def value(*_self: Any, request: Any) -> Any:
        return request.param

    return value


def parameters(*value_sets: Sequence[Any], ids: Sequence[str] | None = None) -> list[Any]:
    """Several fixtures whose values belong together; a test runs once for each set of values.

    Parameters
    ----------
    value_sets : tuples of one length, a value for each fixture.
    ids : a name for each set.

    Returns
    -------
    A fixture for each position, to be unpacked: ``n, dtype = tvm.testing.parameters((4, "int8"),
    (16, "float32"))``.

    Raises
    ------
    ValueError : sets of several lengths.
    """
    if len({len(values) for values in value_sets}) > 1:
        raise ValueError(f"parameters: all sets must have one length, got {value_sets}")

    def one(position: int) -> Any:
        def value(*_self: Any, request: Any) -> Any:
            return request.param

        value.__dict__["tvm_parameters"] = (value_sets, ids, position)
        return pytest.fixture(value)

    return [one(position) for position in range(len(value_sets[0]) if value_sets else 0)]


def _key(arguments: Any) -> Any:
    try:
        hash(arguments)
    except TypeError:
        return pickle.dumps(arguments)
    return arguments


def _kept(function: Callable[..., Any]) -> Callable[..., Any]:
    if inspect.isgeneratorfunction(function):
        raise TypeError(
            f"fixture: {function.__name__} cleans up after its value, which cannot be kept; leave "
            "cache_return_value out"
        )
    values: OrderedDict[Any, Any] = OrderedDict()

    @functools.wraps(function)
    def cached(*given: Any, **arguments: Any) -> Any:
        # Of a method's object only its class says something: each test has its own.
        key = _key((tuple(type(self) for self in given), tuple(sorted(arguments.items()))))
        if key not in values:
            values[key] = function(*given, **arguments)
            if len(values) > _KEPT:
                values.popitem(last=False)
        # A test may write to what it gets.
        return copy.deepcopy(values[key])

    return cached


def fixture(function: Callable[..., Any] | None = None, *, cache_return_value: bool = False) -> Any:
    """A fixture of pytest, which may take parameters and other fixtures.

    Parameters
    ----------
    cache_return_value : whether the value is made once for each combination of arguments, of which
        tests get copies. The last sixteen are kept; with ``TVM_TEST_DISABLE_CACHE=1`` none.

    Raises
    ------
    TypeError : a value to be kept comes from a generator.
    """
    if function is None:
        return functools.partial(fixture, cache_return_value=cache_return_value)
    if cache_return_value and os.environ.get("TVM_TEST_DISABLE_CACHE", "0") in ("", "0"):
        function = _kept(function)
    return pytest.fixture(function)


def parametrize_targets(*targets: Any) -> Any:
    """Run a test that takes `target` (and `dev`) for these targets, not for all enabled ones.

    As a plain decorator without targets it changes nothing.
    """
    if len(targets) == 1 and callable(targets[0]):
        return targets[0]
    return pytest.mark.parametrize("target", list(targets))


def _noting(name: str, value: Any) -> Callable[[Any], Any]:
    def note(function: Any) -> Any:
        setattr(function, name, value)
        return function

    return note


def exclude_targets(*targets: str) -> Callable[[Any], Any]:
    """Skip the test for these targets; a kind alone stands for all of its targets."""
    return _noting("tvm_excluded_targets", targets)


def known_failing_targets(*targets: str) -> Callable[[Any], Any]:
    """Expect the test to fail for these targets; a kind alone stands for all of its targets."""
    return _noting("tvm_known_failing_targets", targets)


def skip_parameterizations(*names: str, reason: str) -> Callable[[Any], Any]:
    """Skip the runs of a test whose names in brackets are these."""
    return _noting("tvm_skipped_runs", (names, reason))


def xfail_parameterizations(*names: str, reason: str) -> Callable[[Any], Any]:
    """Expect the runs of a test to fail whose names in brackets are these."""
    return _noting("tvm_failing_runs", (names, reason))
