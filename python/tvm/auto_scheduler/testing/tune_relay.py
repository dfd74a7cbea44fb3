"""Tune a network: ``python -m tvm.auto_scheduler.testing.tune_relay --help``."""

from tvm.testing.tuning_command import tune_network

__all__ = ["main"]

main = tune_network("tvm.auto_scheduler.testing.tune_relay", "auto_scheduler")

if __name__ == "__main__":
    main()
