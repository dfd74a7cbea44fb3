# Parses the standard library and the headers that nearly every source reads once, not once for each
# source: a fifth of the time of a build from nothing. ccache keeps no object that was made with
# precompiled headers, unless told to be sloppy, and what it keeps saves more; so they are for
# builds without a launcher. Sources still include what they use, and compile either way.
set(precompile TRUE)
if(CMAKE_CXX_COMPILER_LAUNCHER)
  set(precompile FALSE)
endif()
option(TVM_PRECOMPILED_HEADERS "Parse common headers once for all sources" ${precompile})

# Changing one of these recompiles nearly everything with or without them being precompiled.
set(TVM_COMMON_HEADERS
    <algorithm> <atomic> <cmath> <cstdint> <cstring> <functional> <limits> <map> <memory> <mutex>
    <numeric> <optional> <set> <sstream> <string> <tuple> <unordered_map> <unordered_set> <utility>
    <vector> <tvm/node/construct.h> <tvm/node/reflection.h> <tvm/runtime/container.h>
    <tvm/runtime/registry.h>)

# Around the functions of strings, libstdc++ turns off what GCC falsely warns of, and GCC forgets that
# where a header is precompiled. Builds without precompiled headers have these warnings.
set(TVM_PRECOMPILED_OPTIONS
    $<$<CXX_COMPILER_ID:GNU>:-Wno-array-bounds;-Wno-stringop-overflow;-Wno-stringop-overread>)

# Sources of `target` see the common headers, and those given after it; the result may be used by
# targets that are compiled with the same flags.
function(tvm_precompile_headers target)
  if(TVM_PRECOMPILED_HEADERS)
    target_precompile_headers(${target} PRIVATE ${TVM_COMMON_HEADERS} ${ARGN})
    target_compile_options(${target} PRIVATE "${TVM_PRECOMPILED_OPTIONS}")
  endif()
endfunction()

# Sources of `target` see what those of `owner` see.
function(tvm_reuse_precompiled_headers target owner)
  if(TVM_PRECOMPILED_HEADERS)
    target_precompile_headers(${target} REUSE_FROM ${owner})
    target_compile_options(${target} PRIVATE "${TVM_PRECOMPILED_OPTIONS}")
  endif()
endfunction()
