"""Tune a network: ``python -m tvm.meta_schedule.testing.tune_relay --help``."""

from tvm.testing.tuning_command import tune_network

__all__ = ["main"]

main = tune_network("tvm.meta_schedule.testing.tune_relay", "meta_schedule")

if __name__ == "__main__":
    main()
