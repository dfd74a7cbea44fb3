"""Tune an ONNX file: ``python -m tvm.meta_schedule.testing.tune_onnx --help``."""

from tvm.testing.tuning_command import tune_file

__all__ = ["main"]

main = tune_file("tvm.meta_schedule.testing.tune_onnx", "meta_schedule")

if __name__ == "__main__":
    main()
