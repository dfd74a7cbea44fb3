"""Example networks as plain torch modules, with random weights unless a file is given."""

from .bert import Bert, bert_base
from .convnext import ConvNeXt, convnext_tiny
from .dcgan import Generator, dcgan
from .efficientnet import EfficientNet, efficientnet_b0
from .llama import Llama, llama_small
from .mlp import MLP, mlp
from .mobilenet import MobileNetV2, mobilenet_v2
from .registry import NETWORKS, NetworkSpec, load_network
from .resnet import ResNet, resnet18, resnet50
from .unet import UNet, unet_small
from .video import VideoResNet, r3d_18
from .vit import VisionTransformer, vit_b_32

__all__ = [
    "MLP",
    "NETWORKS",
    "Bert",
    "ConvNeXt",
    "EfficientNet",
    "Generator",
    "Llama",
    "MobileNetV2",
    "NetworkSpec",
    "ResNet",
    "UNet",
    "VideoResNet",
    "VisionTransformer",
    "bert_base",
    "convnext_tiny",
    "dcgan",
    "efficientnet_b0",
    "llama_small",
    "load_network",
    "mlp",
    "mobilenet_v2",
    "r3d_18",
    "resnet18",
    "resnet50",
    "unet_small",
    "vit_b_32",
]
