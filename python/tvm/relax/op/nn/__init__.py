"""Graph operators of neural networks."""

from .activation import *
from .attention import *
from .composed import *
from .convolution import (
    conv1d,
    conv1d_transpose,
    conv2d,
    conv2d_transpose,
    conv3d,
    frame_windows,
)
from .loss import *
from .normalization import *
from .pooling import (
    adaptive_avg_pool1d,
    adaptive_avg_pool2d,
    adaptive_avg_pool3d,
    avg_pool1d,
    avg_pool2d,
    avg_pool3d,
    max_pool1d,
    max_pool2d,
    max_pool3d,
)
from .recurrent import *
from .winograd import *
