"""Models that say which candidates are fast."""

from importlib import import_module
from typing import Any

from .cost_model import CostModel, PyCostModel, RandomModel
from .xgb_model import PackSum, XGBConfig, XGBModel


def create(kind: Any = "xgb", *args: Any, **kwargs: Any) -> CostModel | None:
    """A model by name: "xgb", "mlp" (which needs PyTorch), "random", or "none".

    Raises
    ------
    ValueError : another name.
    """
    if isinstance(kind, CostModel) or kind is None or kind == "none":
        return kind if isinstance(kind, CostModel) else None
    kinds: dict[str, Any] = {"xgb": XGBModel, "random": RandomModel}
    if kind == "mlp":
        return __getattr__("MLPModel")(*args, **kwargs)
    if kind not in kinds:
        raise ValueError(
            f"CostModel.create: unknown kind {kind!r}; there are {sorted([*kinds, 'mlp'])}, none"
        )
    return kinds[kind](*args, **kwargs)


CostModel.create = staticmethod(create)


def __getattr__(name: str) -> Any:
    """`MLPModel` is imported when it is asked for, since it needs PyTorch."""
    if name != "MLPModel":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module(".mlp_model", __name__).MLPModel
