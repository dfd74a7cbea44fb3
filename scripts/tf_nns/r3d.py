"""ResNet over space and time."""

from __future__ import annotations

import tensorflow as tf
from tensorflow.keras import layers


def _conv(
    x: tf.Tensor, filters: int, kernel: int | tuple[int, ...], stride: int | tuple
) -> tf.Tensor:
    """Convolution and batch norm, with borders of half a window as in PyTorch."""
    sizes = (kernel,) * 3 if isinstance(kernel, int) else kernel
    x = layers.ZeroPadding3D(tuple(size // 2 for size in sizes))(x)
    return layers.BatchNormalization()(layers.Conv3D(filters, kernel, stride, use_bias=False)(x))


def _block(x: tf.Tensor, filters: int, stride: int) -> tf.Tensor:
    changes = stride != 1 or x.shape[-1] != filters
    shortcut = _conv(x, filters, 1, stride) if changes else x
    y = _conv(layers.ReLU()(_conv(x, filters, 3, stride)), filters, 3, 1)
    return layers.ReLU()(layers.Add()([y, shortcut]))


def r3d_18(num_classes: int = 400) -> tf.keras.Model:
    """Float32 (batch, frames, height, width, 3) to float32 (batch, num_classes)."""
    inputs = tf.keras.Input((16, 112, 112, 3))
    x = layers.ReLU()(_conv(inputs, 64, (3, 7, 7), (1, 2, 2)))
    for filters in (64, 128, 256, 512):
        x = _block(x, filters, 1 if filters == 64 else 2)
        x = _block(x, filters, 1)
    x = layers.Dense(num_classes)(layers.GlobalAveragePooling3D()(x))
    return tf.keras.Model(inputs, x)
