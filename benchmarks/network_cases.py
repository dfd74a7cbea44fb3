"""The networks of `networks.py`, and the engines that they are compared with."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

Inputs = tuple[torch.Tensor, ...]
Runner = Callable[[], Any]


@dataclass(frozen=True)
class NetworkCase:
    """A network with random weights and its inputs, of batch 1 where the name says nothing else.

    Attributes
    ----------
    make : the module and its example inputs.
    """

    make: Callable[[], tuple[torch.nn.Module, Inputs]]


def _of_felix(name: str) -> Callable[[], tuple[torch.nn.Module, Inputs]]:
    def make() -> tuple[torch.nn.Module, Inputs]:
        from tvm.felix import nn

        return nn.load_network(name)

    return make


def _of_torchvision(name: str) -> Callable[[], tuple[torch.nn.Module, Inputs]]:
    def make() -> tuple[torch.nn.Module, Inputs]:
        import torchvision

        return getattr(torchvision.models, name)(), (torch.randn(1, 3, 224, 224),)

    return make


class _Logits(torch.nn.Module):
    """A model of transformers as one that returns a tensor."""

    def __init__(self, model: torch.nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.model(x, return_dict=False)[0]


def _mobilenet_v2_tf() -> tuple[torch.nn.Module, Inputs]:
    """Padded as TensorFlow does: at stride 2, a row and a column more behind than in front."""
    from transformers import MobileNetV2Config, MobileNetV2ForImageClassification

    model = MobileNetV2ForImageClassification(MobileNetV2Config(tf_padding=True))
    return _Logits(model), (torch.randn(1, 3, 224, 224),)


CASES = {
    "resnet50": NetworkCase(_of_felix("resnet50")),
    "mobilenet_v2": NetworkCase(_of_felix("mobilenet_v2")),
    "mobilenet_v2_tf": NetworkCase(_mobilenet_v2_tf),
    "regnet_y_800mf": NetworkCase(_of_torchvision("regnet_y_800mf")),
    "efficientnet_b0": NetworkCase(_of_torchvision("efficientnet_b0")),
    "convnext_tiny": NetworkCase(_of_torchvision("convnext_tiny")),
    "vit_b_32": NetworkCase(_of_felix("vit_b_32")),
    "bert_base": NetworkCase(_of_felix("bert_base")),
    "swin_t": NetworkCase(_of_torchvision("swin_t")),
    "llama_small": NetworkCase(_of_felix("llama_small")),
}


def _mlp(*widths: int, batch: int = 1) -> Callable[[], tuple[torch.nn.Module, Inputs]]:
    """Dense layers with a ReLU between any two."""

    def make() -> tuple[torch.nn.Module, Inputs]:
        layers: list[torch.nn.Module] = []
        for inputs, outputs in zip(widths, widths[1:]):
            layers += [torch.nn.Linear(inputs, outputs), torch.nn.ReLU()]
        return torch.nn.Sequential(*layers[:-1]), (torch.randn(batch, widths[0]),)

    return make


class _Classifier(torch.nn.Module):
    """Logistic regression: the class, and how probable each is."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(20, 3)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        shares = self.linear(x).softmax(1)
        return shares.argmax(1), shares


def _lenet() -> tuple[torch.nn.Module, Inputs]:
    nn = torch.nn
    features = [nn.Conv2d(1, 6, 5), nn.ReLU(), nn.MaxPool2d(2)]
    features += [nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten()]
    rest = [nn.Linear(256, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, 10)]
    return nn.Sequential(*features, *rest), (torch.randn(1, 1, 28, 28),)


def _recurrent(
    kind: str, batch: int, steps: int, units: int
) -> Callable[[], tuple[torch.nn.Module, Inputs]]:
    """One layer whose inputs are as wide as its state."""

    def make() -> tuple[torch.nn.Module, Inputs]:
        return getattr(torch.nn, kind)(units, units), (torch.randn(steps, batch, units),)

    return make


# Networks of which calling them is a good part, and recurrent ones: batch, steps and units.
SMALL_CASES = {
    "mlp_16_64_64_4": NetworkCase(_mlp(16, 64, 64, 4)),
    "mlp_16_64_64_4_batch_32": NetworkCase(_mlp(16, 64, 64, 4, batch=32)),
    "mlp_784_128_10": NetworkCase(_mlp(784, 128, 10)),
    "logistic_20_3": NetworkCase(lambda: (_Classifier(), (torch.randn(1, 20),))),
    "lenet": NetworkCase(_lenet),
} | {
    f"{kind.lower()}_{batch}_{steps}_{units}": NetworkCase(_recurrent(kind, batch, steps, units))
    for kind in ("LSTM", "GRU", "RNN")
    for batch, steps, units in ((1, 64, 64), (1, 64, 256), (1, 16, 1024), (16, 64, 256))
}


def load_case(name: str) -> tuple[torch.nn.Module, Inputs]:
    """The network in evaluation mode, whose activations have ordinary size.

    Batch norms get the statistics of a few random batches; with those of a fresh module the values
    of deep networks grow or vanish, and denormal numbers make some engines slow.
    """
    torch.manual_seed(0)
    model, inputs = (CASES | SMALL_CASES)[name].make()
    norms = [m for m in model.modules() if isinstance(m, torch.nn.modules.batchnorm._BatchNorm)]
    if norms:
        for norm in norms:
            norm.momentum = None
        with torch.no_grad():
            model.train()
            for _ in range(2):
                model(torch.randn(4, *inputs[0].shape[1:]))
    return model.eval(), inputs


def torch_compiled(model: torch.nn.Module, inputs: Inputs) -> Runner:
    """`torch.compile` as it is by default."""
    compiled = torch.compile(model)

    def run() -> Any:
        with torch.inference_mode():
            return compiled(*inputs)

    return run


def write_onnx(model: torch.nn.Module, inputs: Inputs, folder: Path) -> Path:
    """The model as PyTorch's own exporter writes it."""
    path = folder / "network.onnx"
    with torch.no_grad():
        torch.onnx.export(model, inputs, str(path), dynamo=True, verbose=False)
    return path


def onnxruntime_runner(path: Path, inputs: Sequence[torch.Tensor], threads: int) -> Runner:
    """ONNX Runtime on the processor, all optimisations on."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    feed = {
        slot.name: np.ascontiguousarray(tensor.numpy())
        for slot, tensor in zip(session.get_inputs(), inputs)
    }
    return lambda: session.run(None, feed)


def openvino_runner(path: Path, inputs: Sequence[torch.Tensor], threads: int) -> Runner:
    """OpenVINO on the processor, for latency, in float32 also where bfloat16 would be faster."""
    import openvino

    settings = {
        "INFERENCE_NUM_THREADS": threads,
        "PERFORMANCE_HINT": "LATENCY",
        "INFERENCE_PRECISION_HINT": "f32",
        # Pinned threads cannot make way for another process, which the other engines' can.
        "ENABLE_CPU_PINNING": False,
    }
    compiled = openvino.Core().compile_model(str(path), "CPU", settings)
    request = compiled.create_infer_request()
    arrays = [np.ascontiguousarray(tensor.numpy()) for tensor in inputs]
    return lambda: request.infer(arrays, share_inputs=True)


def ours_from_onnx(path: Path, inputs: Sequence[torch.Tensor], threads: int) -> Runner:
    """Our own network of the file, called as a session of ONNX Runtime is."""
    from tvm import felix

    network = felix.from_onnx(path, cache=False)
    feed = dict(zip(network.input_names, (tensor.numpy() for tensor in inputs)))
    return lambda: network.run(None, feed)


def engines(
    model: torch.nn.Module, inputs: Inputs, threads: int, with_ours: bool = False
) -> tuple[dict[str, Runner], str]:
    """The other engines that are installed, and what went wrong with the rest.

    Parameters
    ----------
    with_ours : whether our own from the ONNX file is one of them.
    """
    makers: dict[str, Callable[[Path, Inputs, int], Runner]] = {
        "onnxruntime": onnxruntime_runner,
        "openvino": openvino_runner,
    }
    if with_ours:
        makers["onnx"] = ours_from_onnx
    runners: dict[str, Runner] = {}
    failures = []
    with tempfile.TemporaryDirectory() as folder:
        try:
            path = write_onnx(model, inputs, Path(folder))
        except Exception as error:  # whatever an exporter raises costs the table two columns
            return runners, f"export to ONNX: {type(error).__name__}: {error}"
        for name, make in makers.items():
            try:
                runners[name] = make(path, inputs, threads)
                runners[name]()
            except Exception as error:  # an engine that refuses a network is named in the table
                runners.pop(name, None)
                failures.append(f"{name}: {type(error).__name__}: {error}")
    return runners, "; ".join(failures)


def use_threads(threads: int) -> None:
    """One number of threads for whatever is imported afterwards."""
    for variable in ("TVM_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[variable] = str(threads)
    torch.set_num_threads(threads)
