# Compiles the sources of a folder several at a time, as one translation unit: half of the time of a
# build from nothing goes into the headers, which such a unit parses and instantiates once. Editing
# a source compiles its whole batch, so this is to be turned off by who edits C++: `make build
# UNITY=OFF`, which the build folder remembers, and which gives compile_commands.json an entry for
# each source. Sources include what they use and compile either way; the price is that names in
# unnamed namespaces, and macros, are unique within a folder.
option(TVM_UNITY "Compile several sources of a folder as one translation unit" ON)

# Where a unit has more to inline, GCC falsely warns of strings and variants of the standard library.
# Builds of each source alone have these warnings.
set(TVM_UNITY_OPTIONS $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized;-Wno-restrict>)

# Larger batches save little more, and leave cores idle while the last ones are compiled.
set(TVM_UNITY_BATCH 8)

# The sources of `target`, which has all of them, in batches of nearly the same number.
function(tvm_unity_build target)
  if(NOT TVM_UNITY)
    return()
  endif()
  # By relative paths, ccache knows the units of another checkout.
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP
                                             UNITY_BUILD_RELOCATABLE ON)
  target_compile_options(${target} PRIVATE "${TVM_UNITY_OPTIONS}")
  get_target_property(sources ${target} SOURCES)
  set(folders "")
  foreach(source IN LISTS sources)
    get_source_file_property(alone "${source}" SKIP_UNITY_BUILD_INCLUSION)
    if(NOT alone)
      get_filename_component(folder "${source}" DIRECTORY)
      file(RELATIVE_PATH folder "${CMAKE_SOURCE_DIR}" "${folder}")
      string(MAKE_C_IDENTIFIER "${folder}" folder)
      list(APPEND folders ${folder})
      list(APPEND in_${folder} "${source}")
    endif()
  endforeach()
  list(REMOVE_DUPLICATES folders)
  foreach(folder IN LISTS folders)
    list(LENGTH in_${folder} count)
    math(EXPR batches "(${count} + ${TVM_UNITY_BATCH} - 1) / ${TVM_UNITY_BATCH}")
    set(position 0)
    foreach(source IN LISTS in_${folder})
      math(EXPR batch "${position} * ${batches} / ${count}")
      set_source_files_properties("${source}" PROPERTIES UNITY_GROUP ${folder}_${batch})
      math(EXPR position "${position} + 1")
    endforeach()
  endforeach()
endfunction()
