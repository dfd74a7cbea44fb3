#!/usr/bin/env python3
"""Train felix's cost model on a data set and print metrics."""

from __future__ import annotations

from train_cost_model import main

from tvm.felix.console import end_process

if __name__ == "__main__":
    end_process(main(command="train_mlp"))
