"""Native functions registered as `felix.*`."""

import tvm._ffi

tvm._ffi._init_api("felix", __name__)
