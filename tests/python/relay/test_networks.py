"""The networks of relay.testing."""

from __future__ import annotations

import pytest

from tvm import relay


@pytest.mark.parametrize(
    ("name", "settings", "weights"),
    [
        ("vgg", {"num_layers": 16}, 138_357_544),
        # Each of the 2752 channels has a running mean and variance beside its scale and shift.
        ("vgg", {"num_layers": 11, "batch_norm": True}, 132_868_840 + 2 * 2752),
        ("resnet_3d", {"num_layers": 18}, None),
        (
            "resnet_3d",
            {"num_layers": 50, "layout": "NDHWC", "image_shape": (16, 112, 112, 3)},
            None,
        ),
    ],
)
def test_networks_have_the_weights_of_their_papers(name, settings, weights):
    net = getattr(relay.testing, name).get_net(
        **{
            "batch_size": 1,
            "num_classes": 1000,
            "image_shape": (3, 224, 224) if name == "vgg" else (3, 16, 112, 112),
            "dtype": "float32",
            **settings,
        }
    )
    func = relay.testing.run_infer_type(net)
    assert [int(e) for e in func.body.checked_type.shape] == [1, 1000]
    count = 0
    for param in func.params[1:]:
        size = 1
        for extent in param.checked_type.shape:
            size *= int(extent)
        count += size
    assert weights is None or count == weights


def test_sizes_that_there_are_not_are_refused():
    for name in ("vgg", "resnet_3d"):
        with pytest.raises(ValueError, match=f"relay.testing.{name}: num_layers is one of"):
            getattr(relay.testing, name).get_workload(batch_size=1, num_layers=7)
