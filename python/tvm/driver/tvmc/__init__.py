"""Networks from files: load, tune, compile and run, from Python and as ``python -m``.

>>> from tvm.driver import tvmc
>>> model = tvmc.load("net.onnx")  # doctest: +SKIP
>>> package = tvmc.compile(model, target="llvm")  # doctest: +SKIP
>>> print(tvmc.run(package, device="cpu", benchmark=True))  # doctest: +SKIP
"""

from .compiler import compile
from .errors import TVMCException
from .frontends import load_model as load
from .model import TVMCModel, TVMCPackage
from .result import TVMCResult
from .runner import run
from .tuner import tune

__all__ = [
    "TVMCException",
    "TVMCModel",
    "TVMCPackage",
    "TVMCResult",
    "compile",
    "load",
    "run",
    "tune",
]
