"""Intrinsics of LLVM by number, as programs of TVM look them up."""

from __future__ import annotations

__all__ = ["llvm_get_intrinsic_name", "llvm_lookup_intrinsic_id"]

# Names of LLVM intrinsics that were looked up; their numbers count from one.
_LLVM_NAMES: list[str] = []


def llvm_lookup_intrinsic_id(name: str) -> int:
    """A number that stands for an LLVM intrinsic where `call_llvm_pure_intrin` takes its name.

    Programs have the name in them, so the number matters to this process only.

    Raises
    ------
    ValueError : the name is none of an intrinsic; those begin with "llvm.".
    """
    if not name.startswith("llvm."):
        raise ValueError(f'llvm_lookup_intrinsic_id: "{name}" does not begin with "llvm."')
    if name not in _LLVM_NAMES:
        _LLVM_NAMES.append(name)
    return _LLVM_NAMES.index(name) + 1


def llvm_get_intrinsic_name(intrin_id: int) -> str:
    """The name that a number of `llvm_lookup_intrinsic_id` stands for.

    Raises
    ------
    ValueError : the number was not looked up.
    """
    number = int(intrin_id)
    if not 0 < number <= len(_LLVM_NAMES):
        raise ValueError(
            f"no LLVM intrinsic was looked up under the number {number}; give its name, such as "
            '"llvm.fma"'
        )
    return _LLVM_NAMES[number - 1]
