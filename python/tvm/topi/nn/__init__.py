"""Neural-network operators, written in te."""

from ..dense import *
from .adaptive_pooling import *
from .attention import *
from .batch_matmul import *
from .bitserial import *
from .bnn import *
from .conv import conv, depthwise_conv
from .conv1d import *
from .conv2d import *
from .conv2d_blocked import *
from .conv2d_transpose import *
from .conv2d_winograd import *
from .conv3d import *
from .conv_transpose import *
from .correlation import *
from .deformable_conv2d import *
from .depthwise_grad import *
from .dilate import *
from .elemwise import *
from .fifo_buffer import *
from .grouped_matmul import *
from .layout_rules import *
from .loss import *
from .lstm import *
from .normalization import *
from .pad import *
from .pool_grad import *
from .pooling import *
from .simulated_quantization import *
from .softmax import *
from .sparse import *
from .spatial import *
from .strassen import *
from .upsampling import *
from .winograd_stages import *
from .winograd_util import *
