# flexor_add_folder(name): the OBJECT library flexor_<name> over src/<name>/. Sources are globbed, so a new file needs no
# edit here; a folder without sources compiles one empty file.

# Recursive folders; the folders on the call path, which the development build compiles at -O2; and those that work once a
# program or a region, which shall be small in a release.
set(FLEXOR_RECURSIVE_FOLDERS runtime codegen)
set(FLEXOR_HOT_FOLDERS support tensor runtime executable vm)
set(FLEXOR_SMALL_FOLDERS types loopir bytecode specialised executable specialize transform lower codegen driver)
# Sources of those folders that work once a call.
set(FLEXOR_HOT_SOURCES bytecode/value.cpp executable/frame.cpp executable/signature.cpp driver/session.cpp
  codegen/cpu_llvm/row_kernel_launch.cpp codegen/triton/device_launcher.cpp)

file(WRITE "${PROJECT_BINARY_DIR}/empty.cpp.in" "// Stands in for a folder without sources.\n")
configure_file("${PROJECT_BINARY_DIR}/empty.cpp.in" "${PROJECT_BINARY_DIR}/empty.cpp" COPYONLY)

function(flexor_add_folder name)
  set(root "${PROJECT_SOURCE_DIR}/src/${name}")
  if(name IN_LIST FLEXOR_RECURSIVE_FOLDERS)
    file(GLOB_RECURSE sources CONFIGURE_DEPENDS "${root}/*.cpp")
  else()
    file(GLOB sources CONFIGURE_DEPENDS "${root}/*.cpp")
  endif()
  if(NOT FLEXOR_WITH_LLVM)
    list(FILTER sources EXCLUDE REGEX "/codegen/cpu_llvm/")
  endif()
  if(NOT sources)
    set(sources "${PROJECT_BINARY_DIR}/empty.cpp")
  endif()
  add_library(flexor_${name} OBJECT ${sources})
  target_link_libraries(flexor_${name} PUBLIC flexor_options)
  flexor_batch(flexor_${name})
  target_include_directories(flexor_${name} PUBLIC "${PROJECT_SOURCE_DIR}/src")
  if(FLEXOR_WITH_LLVM AND name STREQUAL "codegen")
    target_include_directories(flexor_codegen SYSTEM PRIVATE ${FLEXOR_LLVM_INCLUDE_DIR})
  endif()
  # The stages meet in driver/: nobody else asks. All other objects are the same in a build without LLVM.
  if(FLEXOR_WITH_LLVM AND name STREQUAL "driver")
    target_compile_definitions(flexor_driver PRIVATE FLEXOR_WITH_LLVM=1)
  endif()
  if(name IN_LIST FLEXOR_HOT_FOLDERS AND NOT FLEXOR_SANITIZE)
    target_compile_options(flexor_${name} PRIVATE $<$<CONFIG:RelWithDebInfo>:-O2>)
  endif()
  if(name IN_LIST FLEXOR_SMALL_FOLDERS)
    target_compile_options(flexor_${name} PRIVATE $<$<CONFIG:Release>:-Os>)
    foreach(source IN LISTS FLEXOR_HOT_SOURCES)
      set_property(SOURCE "${PROJECT_SOURCE_DIR}/src/${source}" PROPERTY COMPILE_OPTIONS $<$<CONFIG:Release>:-O3>)
    endforeach()
  endif()
endfunction()
