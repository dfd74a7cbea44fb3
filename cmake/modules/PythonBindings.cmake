# The pybind11 module `tvm._ffi._core`, and where the shared libraries go.
include(python)
include(pybind11)

file(GLOB TVM_BINDING_SOURCES CONFIGURE_DEPENDS "${CMAKE_SOURCE_DIR}/src/bindings/*.cc")
if(TVM_BINDING_SOURCES)
  pybind11_add_module(_core NO_EXTRAS ${TVM_BINDING_SOURCES})
  # The compiler library is loaded by the package, if it is there: a machine that only runs
  # compiled programs needs libtvm_runtime.
  target_link_libraries(_core PRIVATE tvm_runtime ${CMAKE_DL_LIBS})
  add_dependencies(_core tvm)
  tvm_unity_build(_core)
  if(TVM_SANITIZE)
    # A package of its own, so that the sources' one keeps its module.
    add_custom_target(sanitized_package ALL COMMAND "${CMAKE_COMMAND}" -E copy_directory
                      "${CMAKE_SOURCE_DIR}/python/tvm" "${CMAKE_BINARY_DIR}/python/tvm"
                      COMMAND "${CMAKE_COMMAND}" -E create_symlink
                      "${CMAKE_SOURCE_DIR}/include" "${CMAKE_BINARY_DIR}/include")
    add_dependencies(_core sanitized_package)
    set_target_properties(_core PROPERTIES LIBRARY_OUTPUT_DIRECTORY
                          "${CMAKE_BINARY_DIR}/python/tvm/_ffi")
  elseif(TVM_DEV)
    set_target_properties(_core PROPERTIES LIBRARY_OUTPUT_DIRECTORY
                          "${CMAKE_SOURCE_DIR}/python/tvm/_ffi")
  endif()
  # An installed package keeps its libraries in tvm/lib; the loader finds them from the module.
  set_target_properties(_core PROPERTIES INSTALL_RPATH "$ORIGIN/../lib")
  set_target_properties(tvm tvm_stackvm PROPERTIES INSTALL_RPATH "$ORIGIN")
  set_target_properties(tvm_rpc_server PROPERTIES INSTALL_RPATH "$ORIGIN/../lib")
  install(TARGETS tvm_rpc_server RUNTIME DESTINATION tvm/bin)
  install(TARGETS _core LIBRARY DESTINATION tvm/_ffi)
  install(TARGETS tvm tvm_runtime tvm_stackvm LIBRARY DESTINATION tvm/lib)
  # All of them: passes, devices and code generators may be written in C++ outside of this tree.
  install(DIRECTORY "${CMAKE_SOURCE_DIR}/include/tvm" DESTINATION tvm/include)
endif()
