"""Names of modules in generated code."""

from __future__ import annotations

from tvm import error

__all__ = ["mangle_module_name"]


def mangle_module_name(mod_name: str | None) -> str:
    """The prefix of a module's functions: "tvmgen_" and its name.

    Raises
    ------
    ValueError : the name has other characters than ASCII's.
    """
    if not mod_name:
        return "tvmgen"
    if not mod_name.isascii():
        raise error.ValueError(f"{mod_name} contains invalid characters")
    return f"tvmgen_{mod_name}"
