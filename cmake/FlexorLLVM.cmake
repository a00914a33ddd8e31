# LLVM 19 by its C API, linked statically: FLEXOR_LLVM_INCLUDE_DIR and the link target flexor_llvm.
# llvm-config is asked instead of find_package(LLVM), which would link zlib and zstd dynamically.

find_program(FLEXOR_LLVM_CONFIG NAMES llvm-config-19 llvm-config)
if(NOT FLEXOR_LLVM_CONFIG)
  message(FATAL_ERROR "llvm-config-19 was not found: install llvm-19-dev, or configure with -DFLEXOR_WITH_LLVM=OFF")
endif()

function(flexor_llvm_config result)
  execute_process(COMMAND ${FLEXOR_LLVM_CONFIG} ${ARGN} OUTPUT_VARIABLE out OUTPUT_STRIP_TRAILING_WHITESPACE
    COMMAND_ERROR_IS_FATAL ANY)
  set(${result} "${out}" PARENT_SCOPE)
endfunction()

flexor_llvm_config(llvm_version --version)
if(NOT llvm_version MATCHES "^19\\.")
  message(FATAL_ERROR "LLVM 19 is needed, ${FLEXOR_LLVM_CONFIG} is ${llvm_version}")
endif()
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64)$")
  set(llvm_target aarch64codegen)
else()
  set(llvm_target x86codegen)
endif()
flexor_llvm_config(llvm_includedir --includedir)
flexor_llvm_config(llvm_libfiles --link-static --libfiles orcjit passes ${llvm_target})
set(FLEXOR_LLVM_INCLUDE_DIR "${llvm_includedir}")
separate_arguments(llvm_libfiles UNIX_COMMAND "${llvm_libfiles}")

add_library(flexor_llvm INTERFACE)
target_link_libraries(flexor_llvm INTERFACE ${llvm_libfiles} -l:libzstd.a -l:libz.a rt dl m)
