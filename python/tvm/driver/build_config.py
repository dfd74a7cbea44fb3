"""Options of lowering under their names of TVM 0.6."""

from __future__ import annotations

from typing import Any

from tvm.ir.transform import PassContext

__all__ = ["BuildConfig", "build_config"]

BuildConfig = PassContext

# Old name: the option, and the entry in it where the option is a dict.
_OPTIONS: dict[str, tuple[str, str | None]] = {
    "auto_unroll_max_step": ("tir.UnrollLoop", "auto_max_step"),
    "auto_unroll_max_depth": ("tir.UnrollLoop", "auto_max_depth"),
    "auto_unroll_max_extent": ("tir.UnrollLoop", "auto_max_extent"),
    "unroll_explicit": ("tir.UnrollLoop", "explicit_unroll"),
    "double_buffer_split_loop": ("tir.InjectDoubleBuffer", "split_loop"),
    "partition_const_loop": ("tir.LoopPartition", "partition_const_loop"),
    "restricted_func": ("tir.noalias", None),
    "instrument_bound_checkers": ("tir.instrument_bound_checkers", None),
    "disable_select_rewriting": ("tir.disable_select_rewriting", None),
    "disable_vectorize": ("tir.disable_vectorize", None),
    "disable_assert": ("tir.disable_assert", None),
    "add_lower_pass": ("tir.add_lower_pass", None),
}


def build_config(**options: Any) -> PassContext:
    """The PassContext for options named as in TVM 0.6, for use in a ``with`` statement.

    Parameters
    ----------
    options : ``auto_unroll_max_step``, ``auto_unroll_max_depth``, ``auto_unroll_max_extent``,
        ``unroll_explicit``, ``double_buffer_split_loop``, ``partition_const_loop``,
        ``restricted_func``, ``instrument_bound_checkers``, ``disable_select_rewriting``,
        ``disable_vectorize``, ``disable_assert``, ``add_lower_pass``.

    Raises
    ------
    ValueError : an option of another name.
    """
    config: dict[str, Any] = {}
    for name, value in options.items():
        if name not in _OPTIONS:
            raise ValueError(
                f"build_config: no option {name}; there are {', '.join(sorted(_OPTIONS))}"
            )
        key, entry = _OPTIONS[name]
        if entry is None:
            config[key] = value
        else:
            config.setdefault(key, {})[entry] = value
    return PassContext(config=config)
