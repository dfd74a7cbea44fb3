"""Questions about graph modules."""

from .purity import contains_impure_call
from .struct_info import *
from .well_formed import *
