# Builds the expression simplifier (rust/egg_simpl) with cargo and exposes it as target `egg_simpl`.
include(cargo)

set(EGG_SIMPL_DIR "${CMAKE_SOURCE_DIR}/rust/egg_simpl")
set(EGG_SIMPL_TARGET_DIR "${CMAKE_BINARY_DIR}/egg_simpl")
set(EGG_SIMPL_LIBRARY "${EGG_SIMPL_TARGET_DIR}/release/libegg_simpl.a")
file(GLOB_RECURSE EGG_SIMPL_SOURCES CONFIGURE_DEPENDS "${EGG_SIMPL_DIR}/src/*.rs")
list(APPEND EGG_SIMPL_SOURCES "${EGG_SIMPL_DIR}/build.rs"
     "${CMAKE_SOURCE_DIR}/include/tvm/felix/tape_ops.def")
add_custom_command(
  OUTPUT "${EGG_SIMPL_LIBRARY}"
  COMMAND "${CARGO_PROGRAM}" build --release --quiet --locked
          --manifest-path "${EGG_SIMPL_DIR}/Cargo.toml" --target-dir "${EGG_SIMPL_TARGET_DIR}"
  DEPENDS ${EGG_SIMPL_SOURCES} "${EGG_SIMPL_DIR}/Cargo.toml" "${EGG_SIMPL_DIR}/Cargo.lock"
  COMMENT "Building the egg_simpl crate"
  VERBATIM)
add_custom_target(egg_simpl_build DEPENDS "${EGG_SIMPL_LIBRARY}")
add_library(egg_simpl INTERFACE)
add_dependencies(egg_simpl egg_simpl_build)
target_link_libraries(egg_simpl INTERFACE "${EGG_SIMPL_LIBRARY}" Threads::Threads ${CMAKE_DL_LIBS} m)
add_dependencies(tvm egg_simpl_build)
