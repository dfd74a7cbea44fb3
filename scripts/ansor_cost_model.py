#!/usr/bin/env python3
"""Train Ansor's cost model, boosted trees or a perceptron, on record files and print metrics."""

from __future__ import annotations

from train_cost_model import main

from tvm.felix.console import end_process

if __name__ == "__main__":
    end_process(main(command="train_ansor"))
