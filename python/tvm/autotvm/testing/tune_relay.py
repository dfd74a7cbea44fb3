"""Tune a network: ``python -m tvm.autotvm.testing.tune_relay --help``."""

from tvm.testing.tuning_command import tune_network

__all__ = ["main"]

main = tune_network("tvm.autotvm.testing.tune_relay", "autotvm")

if __name__ == "__main__":
    main()
