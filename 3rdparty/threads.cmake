# POSIX threads and the dynamic loader: the pool, and libraries opened at run time.
# Found:   with the C library, by CMake's module FindThreads; the loader as CMAKE_DL_LIBS.
# Version: any.
# Licence: that of the system's C library.
find_package(Threads REQUIRED)
