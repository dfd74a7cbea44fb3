"""How well operators are supported, as their authors grade them: 1 for the basic ones."""

from __future__ import annotations

__all__ = ["SUPPORT_LEVELS"]

_LEVELS = {
    1: """log log2 log10 exp erf sqrt rsqrt sigmoid tanh tan cos cosh sin sinh acos acosh asin asinh
        atan atanh fast_exp fast_erf fast_tanh add subtract multiply divide floor_divide
        trunc_divide mod floor_mod trunc_mod expand_dims concatenate nn.bias_add nn.dense nn.matmul
        nn.relu nn.softmax nn.fast_softmax nn.log_softmax nn.dropout nn.batch_norm nn.instance_norm
        nn.layer_norm nn.group_norm""",
    2: """nn.conv1d nn.conv2d nn.conv3d nn.conv1d_transpose nn.conv2d_transpose nn.conv3d_transpose
        nn.max_pool1d nn.max_pool2d nn.max_pool3d nn.avg_pool1d nn.avg_pool2d nn.avg_pool3d
        nn.global_max_pool2d nn.global_avg_pool2d nn.pad nn.mirror_pad nn.upsampling
        nn.upsampling3d nn.batch_flatten nn.lrn nn.l2_normalize nn.bitserial_conv2d
        nn.bitserial_dense""",
    3: """floor ceil trunc round sign abs negative copy clip isnan isfinite isinf cast cast_like
        reinterpret transpose reshape squeeze stack take full zeros ones arange repeat tile reverse
        reverse_sequence split gather gather_nd meshgrid adv_index unravel_index scatter_nd
        scatter_elements nn.leaky_relu nn.prelu sparse_to_dense sparse_reshape segment_sum""",
    4: """equal not_equal less less_equal greater greater_equal maximum minimum power right_shift
        left_shift logical_and logical_or logical_xor logical_not bitwise_and bitwise_or bitwise_xor
        bitwise_not where full_like zeros_like ones_like strided_slice strided_set argmax argmin sum
        all any max min mean prod variance logsumexp broadcast_to collapse_sum_like collapse_sum_to
        """,
    5: """image.resize1d image.resize2d image.resize3d image.crop_and_resize image.grid_sample
        image.affine_grid image.dilation2d vision.multibox_prior vision.multibox_transform_loc
        vision.get_valid_counts vision.non_max_suppression vision.roi_align vision.roi_pool
        vision.yolo_reorg nn.deformable_conv2d layout_transform""",
    6: "argsort sort topk searchsorted",
}

SUPPORT_LEVELS = {name: level for level, names in _LEVELS.items() for name in names.split()}
"""The level of operators by name; others have none."""
