"""Convolutions by Winograd's minimal filtering, where that is estimated to be less work."""

from __future__ import annotations

from tvm.ir import IRModule, RelayExpr
from tvm.topi.nn import winograd_tiles, winograd_transformed_weight

from .. import op
from ..expr import Call, Constant, Function, Var
from ..rewriter import FunctionRewriter, map_functions
from ..struct_info import static_shape
from .forms import Forms
from .graph_pass import graph_pass

__all__ = ["ConvertWinograd"]

_KERNEL = 3
# Rounding errors grow with the tile; of 4 they stay near 1e-5 of the largest result.
_TILE_SIZES = (2, 4)
# Floating-point operations that take as long as one byte of weights from memory, and as one element
# of a transform. Measured: a core does about 100 GFLOP/s and loads about 10 GB/s.
_FLOP_PER_BYTE = 10
_FLOP_PER_TRANSFORMED = 16
# Where the estimate sees less gain, three kernels are not worth the trouble.
_LEAST_GAIN = 1.05


class _Converter(FunctionRewriter):
    def __init__(self, func: Function, forms: Forms) -> None:
        super().__init__(func)
        self._forms = forms

    def rewrite(self, var: Var, value: RelayExpr) -> RelayExpr:
        if not isinstance(value, Call) or not op.has_op(value.op):
            return value
        if str(value.op.name) != "relax.nn.conv2d" or not _is_suitable(value):
            return value
        tile_size = _best_tile_size(value)
        if not tile_size:
            return value
        sizes = (*static_shape(value.args[0].struct_info), static_shape(value.struct_info)[-1])
        if not self._forms.rewrites("winograd", *sizes):
            return value
        return self._convert(value, tile_size)

    def _convert(self, call: Call, tile_size: int) -> RelayExpr:
        data, weight = call.args
        padding = op.attrs_of(call)["padding"]
        shape = static_shape(data.struct_info)
        out_h, out_w, _, _ = winograd_tiles(shape, tile_size, _KERNEL, padding)
        transformed = self._forms.constant(
            weight,
            ("winograd", tile_size),
            lambda: winograd_transformed_weight(weight.values(), tile_size),
        )
        tiles = self.emit(
            op.nn.winograd_input_transform(data, tile_size, _KERNEL, padding), "tiles"
        )
        product = self.emit(op.nn.winograd_product(tiles, transformed), "product")
        return op.nn.winograd_output_transform(product, (out_h, out_w), tile_size, _KERNEL)


def _is_suitable(call: Call) -> bool:
    settings = op.attrs_of(call)
    if settings["data_layout"] != "NHWC" or settings["kernel_layout"] != "HWIO":
        return False
    if any(size != 1 for size in (*settings["strides"], *settings["dilation"], settings["groups"])):
        return False
    weight = call.args[1]
    if not isinstance(weight, Constant) or weight.struct_info.dtype != "float32":
        return False
    kernel_h, kernel_w, channels, filters = static_shape(weight.struct_info)
    # The transforms work on whole vectors of channels.
    whole = channels % 16 == 0 and filters % 16 == 0
    return (kernel_h, kernel_w) == (_KERNEL, _KERNEL) and whole


def _best_tile_size(call: Call) -> int | None:
    """The tile size that is the least work, None if that is the convolution as it is."""
    data, weight = call.args
    batch, *_ = shape = static_shape(data.struct_info)
    *_, channels, filters = static_shape(weight.struct_info)
    padding = op.attrs_of(call)["padding"]

    def product_cost(points: int, positions: int) -> int:
        return points * channels * filters * (2 * positions + 4 * _FLOP_PER_BYTE)

    def cost(tile_size: int) -> int:
        _, _, rows, columns = winograd_tiles(shape, tile_size, _KERNEL, padding)
        points, tiles = (tile_size + _KERNEL - 1) ** 2, batch * rows * columns
        transforms = _FLOP_PER_TRANSFORMED * points * tiles * (channels + filters)
        return product_cost(points, tiles) + transforms

    out_h, out_w, _, _ = winograd_tiles(shape, 1, _KERNEL, padding)
    direct = product_cost(_KERNEL**2, batch * out_h * out_w)
    best = min(_TILE_SIZES, key=cost)
    return best if direct > _LEAST_GAIN * cost(best) else None


@graph_pass("ConvertWinograd")
def ConvertWinograd(mod: IRModule, forms: Forms | None = None) -> IRModule:
    """The module with 3x3 convolutions of stride 1 in three steps, after Lavin and Gray, CVPR 2016.

    Only NHWC convolutions whose weights are float32 constants, with channels and filters in
    multiples of 16, and only where an estimate of the work, weights that come from memory included,
    says that it is less. The weights are transformed here. Results differ from the convolution's by
    rounding, about 1e-5 of the largest. The steps have schedules for processors only.

    Parameters
    ----------
    forms : which convolutions stay; they are "winograd" with batch, height, width, channels and
        filters.
    """
    return map_functions(mod, lambda func: _Converter(func, forms or Forms()).run())
