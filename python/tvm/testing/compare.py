"""A test of a pass as three parts: a program before, a pass, and the program after."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable
from typing import Any, ClassVar

import pytest

import tvm

__all__ = ["CompareBeforeAfter"]


def _is_fixture(value: Any) -> bool:
    # A class of its own since pytest 8.4, a marked function before.
    made = type(pytest.fixture(lambda: None))
    return (
        inspect.isclass(made) and made is not type(_is_fixture) and isinstance(value, made)
    ) or (hasattr(value, "_pytestfixturefunction"))


def _takes_self(value: Any) -> bool:
    return inspect.isfunction(value) and "self" in inspect.signature(value).parameters


def _is_error(value: Any) -> bool:
    return inspect.isclass(value) and issubclass(value, BaseException)


def _read(function: Callable[..., Any], check_well_formed: bool) -> tvm.tir.PrimFunc:
    text = "@T.prim_func\n" + textwrap.dedent(inspect.getsource(function))
    return tvm.script.from_source(text, check_well_formed=check_well_formed)


def _read_module(table: type, check_well_formed: bool) -> tvm.IRModule:
    functions = {}
    for name, value in vars(table).items():
        if name.startswith("_"):
            continue
        if not isinstance(value, tvm.ir.BaseFunc):
            value = _read(value, check_well_formed)
        functions[name] = value.with_attr("global_symbol", name)
    return tvm.IRModule(functions)


def _program(value: Any) -> Any:
    """A fixture that gives a program, made of what stands in the class."""

    def given(self: Any) -> Any:
        if _is_error(value) or isinstance(value, (tvm.tir.PrimFunc, tvm.IRModule)):
            return value
        if _takes_self(value):
            return value(self)
        read = _read_module if inspect.isclass(value) else _read
        return read(value, self.check_well_formed)

    return pytest.fixture(given)


def _on_either(apply: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A pass over modules as a function of modules and of functions."""

    def transform(program: Any) -> Any:
        if isinstance(program, tvm.tir.PrimFunc):
            return apply(tvm.IRModule({"main": program}))["main"]
        return apply(program)

    return transform


def _of_fixture(self: Any, given_transform: Any) -> Any:
    return _on_either(given_transform)


class CompareBeforeAfter:
    """Tests that `transform` makes `expected` of `before`; derive from it and define these three.

    Attributes
    ----------
    before, expected : a program: a PrimFunc or an IRModule; the text of a function, as under
        ``@T.prim_func`` but without it; a class of such functions, for a module (by custom written
        ``Before`` and ``Expected``); a method that returns a program; or a fixture that does.
        `expected` may be a class of errors, which the pass must raise.
    transform : a pass, a method that returns one, or a fixture that does.
    check_well_formed : whether programs that are read here must be well formed.

    Programs are read when the test runs, so that an error in one fails one test.
    """

    check_well_formed: bool = True
    transform: ClassVar[Any]
    given_transform: ClassVar[Any]

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        for name in ("before", "expected"):
            spellings = [key for key in (name, name.capitalize()) if key in vars(cls)]
            if len(spellings) > 1:
                raise TypeError(f"{cls.__name__} has both {name} and {name.capitalize()}")
            if spellings:
                setattr(cls, name, cls._normalize_before(vars(cls)[spellings[0]]))
        if "transform" in vars(cls):
            cls._set_transform(vars(cls)["transform"])

    @classmethod
    def _normalize_before(cls, value: Any) -> Any:
        """The fixture that gives the program described by `value`, which may be one already."""
        return value if _is_fixture(value) else _program(value)

    @classmethod
    def _set_transform(cls, value: Any) -> None:
        if _is_fixture(value):
            # Under another name, so that the fixture made here can ask for it.
            cls.given_transform = value
            cls.transform = pytest.fixture(_of_fixture)
        elif isinstance(value, tvm.ir.transform.Pass) or _takes_self(value):

            def transform(self: Any) -> Any:
                return _on_either(value(self) if _takes_self(value) else value)

            cls.transform = pytest.fixture(transform)
        else:
            raise TypeError(
                f"{cls.__name__}.transform must be a pass, a method that returns one or a fixture, "
                f"got {type(value).__name__}"
            )

    def test_compare(self, transform: Any, before: Any, expected: Any) -> None:
        """The test itself; the names of functions do not matter."""
        if _is_error(expected):
            with pytest.raises(expected):
                transform(before)
            return
        after = transform(before)
        if isinstance(after, tvm.tir.PrimFunc):
            expected, after = (f.with_attr("global_symbol", "main") for f in (expected, after))
        try:
            tvm.ir.assert_structural_equal(after, expected)
        except ValueError as error:
            texts = {"before": before, "after": after, "expected": expected}
            shown = "\n".join(f"# {name}\n{text.script()}" for name, text in texts.items())
            raise ValueError(f"the pass made something else:\n{shown}") from error
