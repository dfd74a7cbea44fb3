"""Questions about graph modules."""

from .struct_info import *
from .well_formed import *
