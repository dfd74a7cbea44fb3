"""Tune an ONNX file: ``python -m tvm.auto_scheduler.testing.tune_onnx --help``."""

from tvm.testing.tuning_command import tune_file

__all__ = ["main"]

main = tune_file("tvm.auto_scheduler.testing.tune_onnx", "auto_scheduler")

if __name__ == "__main__":
    main()
