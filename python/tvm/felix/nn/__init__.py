"""Example networks as plain torch modules, with random weights unless a file is given."""

from .mlp import MLP, mlp
from .mobilenet import MobileNetV2, mobilenet_v2
from .registry import NETWORKS, NetworkSpec, load_network
from .resnet import ResNet, resnet18

__all__ = [
    "MLP",
    "NETWORKS",
    "MobileNetV2",
    "NetworkSpec",
    "ResNet",
    "load_network",
    "mlp",
    "mobilenet_v2",
    "resnet18",
]
