"""Networks of felix.nn written for TensorFlow, channels last; the same layers and weights."""

from __future__ import annotations

from typing import Any

try:
    import tensorflow as tf
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        f"tf_nns: its networks are TensorFlow's ({error}); pip install tensorflow, or take those "
        "of tvm.felix.nn",
        name=error.name,
    ) from error

from .dcgan import dcgan
from .r3d import r3d_18
from .vit import vit_b_32

__all__ = ["NETWORKS", "load_network"]

_IMAGES = (224, 224, 3)

# Name in felix.nn: what makes the network, and the shape of one example.
NETWORKS = {
    "dcgan": (dcgan, (1, 1, 100)),
    "mobilenet_v2": (lambda: tf.keras.applications.MobileNetV2(weights=None), _IMAGES),
    "r3d_18": (r3d_18, (16, 112, 112, 3)),
    "resnet50": (lambda: tf.keras.applications.ResNet50(weights=None), _IMAGES),
    "vit_b_32": (vit_b_32, _IMAGES),
}


def load_network(name: str, batch: int = 1) -> tuple[tf.keras.Model, Any]:
    """A network of ``NETWORKS`` with random weights, and a float32 input (batch, ...) for it."""
    make, shape = NETWORKS[name]
    return make(), tf.random.normal((batch, *shape))
