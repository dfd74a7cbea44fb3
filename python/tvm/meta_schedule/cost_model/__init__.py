"""Models that say which candidates are fast."""

from typing import Any

from .cost_model import CostModel, PyCostModel, RandomModel
from .xgb_model import PackSum, XGBConfig, XGBModel


def create(kind: Any = "xgb", *args: Any, **kwargs: Any) -> CostModel | None:
    """A model by name: "xgb", "random", or "none".

    Raises
    ------
    ValueError : another name.
    """
    if isinstance(kind, CostModel) or kind is None or kind == "none":
        return kind if isinstance(kind, CostModel) else None
    kinds: dict[str, Any] = {"xgb": XGBModel, "random": RandomModel}
    if kind not in kinds:
        raise ValueError(
            f"CostModel.create: unknown kind {kind!r}; there are {sorted(kinds)}, none"
        )
    return kinds[kind](*args, **kwargs)
