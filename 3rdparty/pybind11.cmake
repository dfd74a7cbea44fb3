# pybind11, headers only: what the binding is written with.
# Found:   as the package of the interpreter, which says where its CMake files are, else on
#          CMAKE_PREFIX_PATH.
# Version: 2.12 or newer.
# Licence: BSD-3-Clause.
execute_process(COMMAND "${Python_EXECUTABLE}" -m pybind11 --cmakedir
                OUTPUT_VARIABLE TVM_PYBIND11_DIR OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
find_package(pybind11 2.12 CONFIG REQUIRED HINTS "${TVM_PYBIND11_DIR}")
