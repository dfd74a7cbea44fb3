# ccache, if it is there: objects that were compiled before are not compiled again.
# Found:   on PATH; -DCMAKE_CXX_COMPILER_LAUNCHER names another launcher.
# Version: any.
# Licence: GPL-3.0-or-later; a tool, nothing of it is linked.
find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER "${CCACHE_PROGRAM}")
endif()
