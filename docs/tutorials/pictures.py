"""Small pictures of clothes, drawn here, and a network of two layers that tells them apart.

They stand in for FashionMNIST, which the tutorials cannot count on to be at hand: ten classes under
the same names, 28 x 28 grey values from 0 to 1. The pictures are drawn and the parameters learnt
whenever a tutorial runs; nothing is stored.
"""

from __future__ import annotations

import numpy as np
import torch

__all__ = ["CLASSES", "draw", "learn"]

CLASSES = (
    *("T-shirt/top", "Trouser", "Pullover", "Dress", "Coat"),
    *("Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot"),
)

# Each class as boxes (top, left, bottom, right) of one grey value.
_SHAPES: tuple[tuple[tuple[int, int, int, int, float], ...], ...] = (
    ((4, 9, 24, 19, 0.8), (4, 4, 10, 24, 0.8)),
    ((3, 8, 7, 20, 0.7), (7, 8, 26, 13, 0.7), (7, 15, 26, 20, 0.7)),
    ((4, 9, 24, 19, 0.6), (4, 3, 22, 7, 0.6), (4, 21, 22, 25, 0.6), (4, 7, 8, 21, 0.6)),
    ((3, 11, 12, 17, 0.9), (12, 8, 26, 20, 0.9)),
    ((3, 8, 26, 20, 0.4), (3, 3, 24, 7, 0.4), (3, 21, 24, 25, 0.4), (3, 13, 26, 15, 1.0)),
    ((20, 3, 23, 25, 0.8), (14, 5, 20, 7, 0.5), (12, 15, 20, 17, 0.5)),
    ((4, 9, 24, 19, 0.5), (4, 4, 16, 24, 0.5), (6, 13, 22, 15, 0.9)),
    ((15, 3, 21, 25, 0.6), (12, 14, 15, 24, 0.6), (21, 3, 23, 25, 1.0)),
    ((11, 4, 25, 24, 0.7), (6, 9, 8, 19, 0.7), (6, 9, 11, 11, 0.7), (6, 17, 11, 19, 0.7)),
    ((4, 14, 16, 22, 0.7), (16, 4, 22, 22, 0.7), (22, 4, 24, 24, 1.0)),
)


def draw(label: int, random: np.random.Generator) -> np.ndarray:
    """A picture of a class: float32, shape (28, 28); moved by up to two pixels, and noisy."""
    picture = np.zeros((28, 28), "float32")
    for top, left, bottom, right, grey in _SHAPES[label]:
        picture[top:bottom, left:right] = grey
    picture = np.roll(picture, random.integers(-2, 3, size=2), axis=(0, 1))
    picture *= random.uniform(0.7, 1.0)
    noisy = picture + random.normal(0, 0.08, picture.shape)
    return np.clip(noisy, 0, 1).astype("float32")


def learn(pictures_a_class: int = 60, steps: int = 150, seed: int = 0) -> dict[str, np.ndarray]:
    """Parameters of ``relu(x @ w0.T + b0) @ w1.T + b1`` that tell the classes apart.

    Returns
    -------
    float32: w0 (128, 784), b0 (128,), w1 (10, 128), b1 (10,).
    """
    random = np.random.default_rng(seed)
    labels = np.arange(10).repeat(pictures_a_class)
    data = torch.from_numpy(np.stack([draw(label, random).reshape(784) for label in labels]))
    torch.manual_seed(seed)
    network = torch.nn.Sequential(
        torch.nn.Linear(784, 128), torch.nn.ReLU(), torch.nn.Linear(128, 10)
    )
    optimizer = torch.optim.Adam(network.parameters(), lr=3e-3)
    for _ in range(steps):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(network(data), torch.from_numpy(labels)).backward()
        optimizer.step()
    names = ("w0", "b0", "w1", "b1")
    return {name: p.detach().numpy() for name, p in zip(names, network.parameters())}
