"""Models of public libraries, nothing tuned, against PyTorch, interleaved in one process each.

One of each family of timm, and others of torchvision: which of them compile, how far their results
are from PyTorch's, and how fast they run. Weights are random, as the library starts them. PyTorch
runs in inference mode; the faster of contiguous and channels_last counts.

    python benchmarks/public_models.py --threads 1 --json models.json
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from network_cases import use_threads

_TIMM_NAMES = """
    resnet18 resnext50_32x4d seresnet50 res2net50_26w_4s densenet121 dla34 vgg11_bn
    mobilenetv3_large_100 mobilenetv4_conv_small efficientnet_lite0 efficientnetv2_rw_t
    tf_efficientnet_b0 ghostnet_100 mixnet_s hrnet_w18_small inception_v3 inception_v4
    regnetx_002 regnety_002 repvgg_a0 rexnet_100 skresnet18 vovnet39a cspdarknet53 dpn68
    botnet26t_256 lambda_resnet26t nf_regnet_b0 nfnet_l0 resnetv2_50 resnest14d convnext_atto
    convnextv2_atto convmixer_768_32 convit_tiny coat_tiny coatnet_nano_rw_224 crossvit_9_240
    cait_xxs24_224 deit_tiny_patch16_224 davit_tiny edgenext_xx_small efficientformer_l1
    efficientvit_b0 eva02_tiny_patch14_224 fastvit_t8 focalnet_tiny_srf gcvit_xxtiny
    gmlp_ti16_224 hgnetv2_b0 inception_next_tiny levit_128s maxvit_nano_rw_256 mixer_s16_224
    mobileone_s0 mobilevit_xxs mobilevitv2_050 mvitv2_tiny nest_tiny pit_ti_224 poolformer_s12
    pvt_v2_b0 repvit_m0_9 resmlp_12_224 swin_tiny_patch4_window7_224 swinv2_tiny_window8_256
    tiny_vit_5m_224 tnt_s_patch16_224 twins_pcpvt_small vit_tiny_patch16_224 visformer_tiny
    volo_d1_224 xcit_nano_12_p8_224
"""
TIMM = _TIMM_NAMES.split()
_TORCHVISION_NAMES = """
    googlenet shufflenet_v2_x1_0 squeezenet1_1 alexnet maxvit_t fcn_resnet50
    lraspp_mobilenet_v3_large deeplabv3_mobilenet_v3_large r3d_18 r2plus1d_18 mc3_18 swin3d_t
"""
TORCHVISION = _TORCHVISION_NAMES.split()
SEGMENTATION = {
    "fcn_resnet50",
    "lraspp_mobilenet_v3_large",
    "deeplabv3_mobilenet_v3_large",
}
# Frames of those of torchvision that take videos.
VIDEO = {"r3d_18": 8, "r2plus1d_18": 8, "mc3_18": 8, "swin3d_t": 8}
# The largest difference to PyTorch, relative to the largest element, that rounding explains in
# networks whose weights nobody trained.
TOLERANCE = 2e-3


def load(name: str) -> tuple[Any, tuple[Any, ...]]:
    """A model in evaluation mode, and an input of the size that it is made for."""
    import torch

    torch.manual_seed(0)
    if name in TORCHVISION:
        import torchvision

        # Those of segmentation would fetch the weights of what they are built on.
        options = {"weights_backbone": None} if name in SEGMENTATION else {}
        model = torchvision.models.get_model(name, weights=None, **options).eval()
        frames = (VIDEO[name], 112, 112) if name in VIDEO else (224, 224)
        return model, (torch.randn(1, 3, *frames),)
    import timm

    model = timm.create_model(name, pretrained=False).eval()
    return model, (torch.randn(1, *model.pretrained_cfg["input_size"]),)


def measure(name: str, options: argparse.Namespace) -> dict[str, Any]:
    """One row of the table."""
    use_threads(options.threads)
    import torch

    import tvm
    from tvm import felix
    from tvm.felix.timing import interleaved_seconds, output_difference, torch_variants

    tvm.runtime.config_threadpool(options.threads)
    model, inputs = load(name)
    start = time.perf_counter()
    network = felix.compile(model, inputs, cache=False)
    row: dict[str, Any] = {"model": name, "compile_seconds": time.perf_counter() - start}
    with torch.inference_mode():
        row["max_rel_diff"] = output_difference(network(*inputs), model(*inputs))[1]
    variants = torch_variants(model, inputs)
    functions = {**variants, "ours": lambda: network(*inputs)}
    samples = interleaved_seconds(functions, options.rounds, options.budget)
    row["seconds"] = {
        "torch": min(min(samples[key]) for key in variants),
        "ours": min(samples["ours"]),
    }
    return row


def markdown(rows: Sequence[Mapping[str, Any]], failed: Mapping[str, str]) -> str:
    """The rows as a table, the slowest against PyTorch first, and what failed."""
    lines = ["| model | PyTorch, ms | ours, ms | ratio | difference | compiled in, s |",
             "| --- | --- | --- | --- | --- | --- |"]  # fmt: skip
    ratios = {row["model"]: row["seconds"]["torch"] / row["seconds"]["ours"] for row in rows}
    for row in sorted(rows, key=lambda row: ratios[row["model"]]):
        seconds = row["seconds"]
        lines.append(
            f"| {row['model']} | {seconds['torch'] * 1e3:.2f} | {seconds['ours'] * 1e3:.2f} | "
            f"{ratios[row['model']]:.2f} | {row['max_rel_diff']:.1e} | "
            f"{row['compile_seconds']:.1f} |"
        )
    lines += [f"{name}: {reason}" for name, reason in failed.items()]
    if rows:
        mean = math.exp(sum(map(math.log, ratios.values())) / len(ratios))
        wrong = [row["model"] for row in rows if not row["max_rel_diff"] <= TOLERANCE]
        lines.append(
            f"{len(rows)} models, {mean:.2f} times as fast as PyTorch in the geometric mean, "
            f"{sum(r < 1 for r in ratios.values())} of them slower; {len(failed)} failed; "
            f"beyond {TOLERANCE:g}: {', '.join(wrong) or 'none'}"
        )
    return "\n".join(lines)


def main() -> int:
    """Run the models and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", nargs="*", default=[*TIMM, *TORCHVISION])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--budget", type=float, default=6.0, help="seconds to time a model")
    parser.add_argument("--limit", type=float, default=300.0, help="seconds a model may take")
    parser.add_argument("--json", type=Path, help="file for the figures")
    parser.add_argument("--worker", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        (name,) = options.models
        options.worker.write_text(json.dumps(measure(name, options)))
        return 0
    rows: list[dict[str, Any]] = []
    failed: dict[str, str] = {}
    with tempfile.TemporaryDirectory() as scratch:
        for name in options.models:
            part = Path(scratch) / f"{name}.json"
            command = [sys.executable, __file__, "--models", name, "--worker", str(part)]
            for key in ("threads", "rounds", "budget"):
                command += [f"--{key}", str(getattr(options, key))]
            try:
                done = subprocess.run(
                    command, check=False, capture_output=True, text=True, timeout=options.limit
                )
            except subprocess.TimeoutExpired:
                failed[name] = f"took more than {options.limit:g} s"
                continue
            if done.returncode or not part.exists():
                last = done.stderr.strip().splitlines()[-1:] or [f"ended with {done.returncode}"]
                failed[name] = last[0]
                continue
            rows.append(json.loads(part.read_text()))
            if options.json:
                document = {"rows": rows, "failed": failed}
                options.json.write_text(json.dumps(document, indent=2) + "\n")
    print(markdown(rows, failed))
    return 0


if __name__ == "__main__":
    sys.exit(main())
