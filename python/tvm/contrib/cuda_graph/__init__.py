"""Launching the kernels of a network as one CUDA graph."""
