"""Vision transformer."""

from __future__ import annotations

import tensorflow as tf
from tensorflow.keras import layers


class _Tokens(layers.Layer):
    """Puts the class token in front of the patches and adds the positions."""

    def build(self, shape: tuple[int, ...]) -> None:
        """Weights for patches of (batch, count, width)."""
        _, count, width = shape
        self.first = self.add_weight(shape=(1, 1, width), initializer="zeros", name="first")
        self.positions = self.add_weight(shape=(1, count + 1, width), name="positions")

    def call(self, x: tf.Tensor) -> tf.Tensor:
        """Float32 (batch, count, width) to float32 (batch, count + 1, width)."""
        first = tf.repeat(self.first, tf.shape(x)[0], 0)
        return tf.concat([first, x], 1) + self.positions


def _encoder(x: tf.Tensor, width: int, heads: int) -> tf.Tensor:
    y = layers.LayerNormalization(epsilon=1e-6)(x)
    x = x + layers.MultiHeadAttention(heads, width // heads)(y, y)
    y = layers.LayerNormalization(epsilon=1e-6)(x)
    return x + layers.Dense(width)(layers.Dense(4 * width, activation="gelu")(y))


def vit_b_32(
    image: int = 224,
    patch: int = 32,
    width: int = 768,
    depth: int = 12,
    heads: int = 12,
    num_classes: int = 1000,
) -> tf.keras.Model:
    """Float32 (batch, image, image, 3) to float32 (batch, num_classes)."""
    inputs = tf.keras.Input((image, image, 3))
    x = layers.Conv2D(width, patch, patch)(inputs)
    x = _Tokens()(layers.Reshape(((image // patch) ** 2, width))(x))
    for _ in range(depth):
        x = _encoder(x, width, heads)
    x = layers.LayerNormalization(epsilon=1e-6)(x)[:, 0]
    return tf.keras.Model(inputs, layers.Dense(num_classes)(x))
