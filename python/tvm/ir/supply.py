"""Names that nothing has yet."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import tvm.error

from .expr import GlobalVar
from .module import IRModule

__all__ = ["GlobalVarSupply", "NameSupply"]


class NameSupply:
    """Gives names out, each once.

    Parameters
    ----------
    prefix : what every name begins with, and an underscore after it; none if empty.

    Examples
    --------
    >>> names = NameSupply("net")
    >>> names.fresh_name("conv"), names.fresh_name("conv")
    ('net_conv', 'net_conv_1')
    """

    def __init__(self, prefix: str = "") -> None:
        self.prefix = prefix
        # The number that was tried last after each name.
        self._taken: dict[str, int] = {}

    def fresh_name(self, name: str, add_prefix: bool = True, add_underscore: bool = True) -> str:
        """`name` if it is free, else with the first number that makes it so.

        Parameters
        ----------
        add_prefix : whether the prefix stands before it.
        add_underscore : whether one stands before a number.
        """
        wanted = self._whole(name, add_prefix)
        found = wanted
        while found in self._taken:
            self._taken[wanted] += 1
            separator = "_" if add_underscore else ""
            found = f"{wanted}{separator}{self._taken[wanted]}"
        self._taken[found] = 0
        return found

    def reserve_name(self, name: str, add_prefix: bool = True) -> str:
        """Take a name, whether or not it is free; the name as it is taken."""
        wanted = self._whole(name, add_prefix)
        self._taken.setdefault(wanted, 0)
        return wanted

    def contains_name(self, name: str, add_prefix: bool = True) -> bool:
        """Whether a name is taken."""
        return self._whole(name, add_prefix) in self._taken

    def _whole(self, name: str, add_prefix: bool) -> str:
        whole = f"{self.prefix}_{name}" if add_prefix and self.prefix else name
        # What is no identifier of C would be none of the compiled library.
        return re.sub(r"[^0-9A-Za-z_]", "_", whole)


class GlobalVarSupply:
    """Gives out the variables of a module's functions.

    Parameters
    ----------
    value : the supply of their names; or a module, or several, whose functions keep theirs; None
        for names without a prefix.
    """

    def __init__(self, value: NameSupply | IRModule | Iterable[IRModule] | None = None) -> None:
        self.name_supply = value if isinstance(value, NameSupply) else NameSupply()
        self._known: dict[str, GlobalVar] = {}
        if value is None or isinstance(value, NameSupply):
            return
        for mod in [value] if isinstance(value, IRModule) else value:
            for var in mod.get_global_vars():
                self.reserve_global(var)

    def fresh_global(self, name: str, add_prefix: bool = True) -> GlobalVar:
        """A variable of a name that no other has."""
        found = self.name_supply.fresh_name(name, add_prefix)
        self._known[found] = GlobalVar(found)
        return self._known[found]

    def unique_global_for(self, name: str, add_prefix: bool = True) -> GlobalVar:
        """The variable of this very name, the same one for the same name."""
        whole = self.name_supply.reserve_name(name, add_prefix)
        return self._known.setdefault(whole, GlobalVar(whole))

    def reserve_global(self, global_var: GlobalVar, allow_conflict: bool = False) -> None:
        """Take a variable with its name.

        Raises
        ------
        ValueError : another variable has that name, and `allow_conflict` is false.
        """
        name = str(global_var.name_hint)
        other: Any = self._known.get(name)
        if other is not None and not other.same_as(global_var) and not allow_conflict:
            raise tvm.error.ValueError(
                f'GlobalVarSupply: two variables are called "{name}"; give one another name'
            )
        self.name_supply.reserve_name(name, add_prefix=False)
        self._known.setdefault(name, global_var)
