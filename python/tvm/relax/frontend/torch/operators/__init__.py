"""How ATen operators become graph operators; importing a module here registers its own."""

from . import complex_numbers as complex_numbers
from . import creation as creation
from . import elementwise as elementwise
from . import fourier as fourier
from . import image as image
from . import linear as linear
from . import linear_systems as linear_systems
from . import normalization as normalization
from . import program as program
from . import quantization as quantization
from . import random as random
from . import recurrent as recurrent
from . import reduction as reduction
from . import regions as regions
from . import selection as selection
from . import shape as shape
from . import window as window
