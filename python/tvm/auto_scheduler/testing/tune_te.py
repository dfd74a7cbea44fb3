"""Tune an operator: ``python -m tvm.auto_scheduler.testing.tune_te --help``."""

from tvm.testing.tuning_command import tune_operator

__all__ = ["main"]

main = tune_operator("tvm.auto_scheduler.testing.tune_te", "auto_scheduler")

if __name__ == "__main__":
    main()
