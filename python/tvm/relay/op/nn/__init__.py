"""Operators of neural networks."""

from typing import TYPE_CHECKING, Any

from ..reshaping import batch_to_space_nd as batch_to_space_nd
from ..reshaping import space_to_batch_nd as space_to_batch_nd
from .backward import *
from .bitserial import *
from .convolution import *
from .layers import *
from .moving import *
from .pooling import *
from .sparse import *
from .winograd import *

if TYPE_CHECKING:
    # The operators are entered by name.
    def __getattr__(name: str) -> Any: ...
