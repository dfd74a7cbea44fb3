"""Attributes of other formats' operators as settings of relay's."""

from __future__ import annotations

import ast
import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from tvm import error
from tvm.ir import RelayExpr

from .inference import get_relay_op

__all__ = ["AttrCvt", "Renamer", "RequiredAttr", "StrAttrsDict"]

logger = logging.getLogger("relay.frontend")


class RequiredAttr:
    """Stands for the default of an attribute that has to be there."""


_REQUIRED = RequiredAttr()


class StrAttrsDict:
    """Attributes that a format keeps as text, read as what they are.

    Each method takes the name of an attribute and what it is where it is absent; without that, an
    absent one raises an AttributeError.

    Parameters
    ----------
    attrs : text by name.
    """

    def __init__(self, attrs: Mapping[str, str]) -> None:
        self.attrs = attrs

    def _read(self, key: str, default: Any, read: Callable[[str], Any]) -> Any:
        if key in self.attrs:
            return read(self.attrs[key])
        if isinstance(default, RequiredAttr):
            raise error.AttributeError(f"Required attribute {key} not found.")
        return default

    def has_attr(self, key: str) -> bool:
        """Whether there is such an attribute."""
        return key in self.attrs

    def get_float(self, key: str, default: Any = _REQUIRED) -> Any:
        """A number."""
        return self._read(key, default, float)

    def get_int(self, key: str, default: Any = _REQUIRED) -> Any:
        """A whole number, or the default for the text "None"."""
        return self._read(key, default, lambda text: default if text == "None" else int(text))

    def get_str(self, key: str, default: Any = _REQUIRED) -> Any:
        """The text itself."""
        return self._read(key, default, str)

    def get_int_tuple(self, key: str, default: Any = _REQUIRED) -> Any:
        """Whole numbers, such as "(2, 2)"; None stays where it is written."""
        return self._read(key, default, lambda text: _numbers(text, int))

    def get_float_tuple(self, key: str, default: Any = _REQUIRED) -> Any:
        """Numbers, such as "(0.5, 2)"."""
        return self._read(key, default, lambda text: _numbers(text, float))

    def get_tuple_tuple_int(self, key: str, default: Any = _REQUIRED) -> Any:
        """Tuples of whole numbers, such as "((1, 1), (2, 2))"."""
        return self._read(
            key,
            default,
            lambda text: tuple(tuple(int(v) for v in row) for row in ast.literal_eval(text)),
        )

    def get_int_list(self, key: str, default: Any = _REQUIRED) -> Any:
        """Whole numbers as a list."""
        return self._read(key, default, lambda text: list(_numbers(text, int)))

    def get_bool(self, key: str, default: Any = _REQUIRED) -> Any:
        """A truth value: "True", "true" and "1" are true."""
        return self._read(key, default, lambda text: text.strip().lower() in ("true", "1"))


def _numbers(text: str, kind: type) -> tuple[Any, ...]:
    value = ast.literal_eval(text)
    items = value if isinstance(value, (tuple, list)) else (value,)
    return tuple(None if item is None else kind(item) for item in items)


class AttrCvt:
    """Makes calls of an operator of relay from operands and attributes of another format.

    Parameters
    ----------
    op_name : the operator's name, or a function from the attributes to it.
    transforms : for an attribute, its name here, or that with a default and a function of the
        value: ``{"pads": ("padding", (0, 0), lambda pads: pads[:2])}``. Where it is absent and
        there is no default, the operator's own holds.
    excludes : attributes that raise a NotImplementedError.
    disables : attributes that are left out with a warning.
    ignores : attributes that are left out.
    extras : settings that every call gets.
    custom_check : a function that the attributes have to pass, and what the error says otherwise.
    """

    def __init__(
        self,
        op_name: str | Callable[[Mapping[str, Any]], str],
        transforms: Mapping[str, Any] | None = None,
        excludes: Collection[str] | None = None,
        disables: Collection[str] | None = None,
        ignores: Collection[str] | None = None,
        extras: Mapping[str, Any] | None = None,
        custom_check: tuple[Callable[[Mapping[str, Any]], bool], str] | None = None,
    ) -> None:
        self._op_name = op_name
        self._transforms = {key: _rule(value) for key, value in (transforms or {}).items()}
        self._excludes = set(excludes or ())
        self._disables = set(disables or ())
        self._ignores = set(ignores or ())
        self._extras = dict(extras or {})
        self._custom_check = custom_check

    def __call__(
        self, inputs: Sequence[RelayExpr], attrs: Mapping[str, Any], *args: Any
    ) -> RelayExpr:
        """The call.

        Raises
        ------
        NotImplementedError : an attribute is one of `excludes`.
        AttributeError : there is no such operator.
        RuntimeError : the check failed.
        """
        if self._custom_check is not None:
            check, message = self._custom_check
            if not check(attrs):
                raise error.RuntimeError(f"Check failed: {message}")
        name = self._op_name(attrs) if callable(self._op_name) else self._op_name
        settings: dict[str, Any] = {}
        for key, value in attrs.items():
            if key in self._excludes:
                raise error.NotImplementedError(
                    f"Attribute {key} in operator {name} is not supported."
                )
            if key in self._disables:
                logger.warning("Attribute %s is disabled in relay.sym.%s", key, name)
            elif key not in self._transforms and key not in self._ignores and key != "tvm_custom":
                settings[key] = value
        for key, (target, default, transform) in self._transforms.items():
            value = attrs.get(key)
            if value is not None:
                settings[target] = transform(value)
            elif default is not None:
                settings[target] = default
        settings.update(self._extras)
        return get_relay_op(name)(*inputs, **settings)


def _rule(value: Any) -> tuple[str, Any, Callable[[Any], Any]]:
    parts = list(value) if isinstance(value, (tuple, list)) else [value]
    if not parts or not isinstance(parts[0], str):
        raise error.ValueError(f"AttrCvt: {value} is no name of a setting, nor one with a default")
    default = parts[1] if len(parts) > 1 else None
    transform = parts[2] if len(parts) > 2 else (lambda found: found)
    return parts[0], default, transform


class Renamer:
    """Makes calls of an operator that has the same attributes under another name.

    Parameters
    ----------
    new_name : the operator's name in relay.
    """

    def __init__(self, new_name: str) -> None:
        self._new_name = new_name

    def __call__(
        self, inputs: Sequence[RelayExpr], attrs: Mapping[str, Any], *args: Any
    ) -> RelayExpr:
        settings = {key: value for key, value in attrs.items() if key != "tvm_custom"}
        return get_relay_op(self._new_name)(*inputs, **settings)
