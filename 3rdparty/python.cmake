# CPython's headers, for the binding.
# Found:   beside the interpreter; -DPython_EXECUTABLE names another.
# Version: 3.10 or newer.
# Licence: PSF-2.0.
find_package(Python 3.10 COMPONENTS Interpreter Development.Module REQUIRED)
