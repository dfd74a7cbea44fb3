"""DCGAN's generator."""

from __future__ import annotations

import tensorflow as tf
from tensorflow.keras import layers


def dcgan(noise: int = 100, width: int = 64, channels: int = 3) -> tf.keras.Model:
    """Float32 (batch, 1, 1, noise) to float32 (batch, 64, 64, channels)."""
    x = inputs = tf.keras.Input((1, 1, noise))
    for i, filters in enumerate((8 * width, 4 * width, 2 * width, width)):
        stride, padding = (1, "valid") if i == 0 else (2, "same")
        x = layers.Conv2DTranspose(filters, 4, stride, padding, use_bias=False)(x)
        x = layers.ReLU()(layers.BatchNormalization()(x))
    x = layers.Conv2DTranspose(channels, 4, 2, "same", use_bias=False, activation="tanh")(x)
    return tf.keras.Model(inputs, x)
