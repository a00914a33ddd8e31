# flexor_batch(target): compiles the sources of a target several at a time, as one file that includes them. What their
# headers cost is paid once a batch, so that a build from nothing takes half the time.
#
# A source that is being edited is compiled alone: its path is a line of <build>/alone.txt, which ./dev build keeps. The
# other sources stay in the batches that they were in. FLEXOR_BATCH=1 compiles every source alone.
# Names in anonymous namespaces are therefore unique in a folder; ./dev check names says where they are not.

set(FLEXOR_BATCH 8 CACHE STRING "How many sources are compiled as one; 1: each alone")

set(alone_file "${PROJECT_BINARY_DIR}/alone.txt")
if(NOT EXISTS "${alone_file}")
  file(TOUCH "${alone_file}")
endif()
set_property(DIRECTORY "${PROJECT_SOURCE_DIR}" APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${alone_file}")
file(STRINGS "${alone_file}" FLEXOR_ALONE)

function(flexor_batch target)
  if(FLEXOR_BATCH LESS_EQUAL 1)
    return()
  endif()
  get_target_property(sources ${target} SOURCES)
  set(index 0)
  foreach(source IN LISTS sources)
    math(EXPR batch "${index} / ${FLEXOR_BATCH}")
    math(EXPR index "${index} + 1")
    set_property(SOURCE "${source}" PROPERTY UNITY_GROUP ${batch})
    file(RELATIVE_PATH path "${PROJECT_SOURCE_DIR}" "${source}")
    if(path IN_LIST FLEXOR_ALONE)
      set_property(SOURCE "${source}" PROPERTY SKIP_UNITY_BUILD_INCLUSION ON)
    endif()
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  # The file that includes them is the main one: g++ takes a class that a source keeps to itself for one of a header.
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(${target} PRIVATE -Wno-subobject-linkage)
  endif()
endfunction()
