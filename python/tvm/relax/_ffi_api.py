"""Functions registered under "relax." by the native library."""

import tvm._ffi

tvm._ffi._init_api("relax", __name__)
