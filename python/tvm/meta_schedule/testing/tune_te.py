"""Tune an operator: ``python -m tvm.meta_schedule.testing.tune_te --help``."""

from tvm.testing.tuning_command import tune_operator

__all__ = ["main"]

main = tune_operator("tvm.meta_schedule.testing.tune_te", "meta_schedule")

if __name__ == "__main__":
    main()
