# LLVM 19 by its C API, linked statically: FLEXOR_LLVM_INCLUDE_DIR and the link target flexor_llvm.
# llvm-config is asked instead of find_package(LLVM), which would link zlib and zstd dynamically.

find_program(FLEXOR_LLVM_CONFIG NAMES llvm-config-19 llvm-config)
flexor_need(FLEXOR_LLVM_CONFIG llvm-config-19 "llvm-19-dev, or leave generated code out with -DFLEXOR_WITH_LLVM=OFF")
find_library(FLEXOR_ZSTD libzstd.a)
flexor_need(FLEXOR_ZSTD libzstd.a libzstd-dev)
find_library(FLEXOR_ZLIB libz.a)
flexor_need(FLEXOR_ZLIB libz.a zlib1g-dev)

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
target_link_libraries(flexor_llvm INTERFACE ${llvm_libfiles} ${FLEXOR_ZSTD} ${FLEXOR_ZLIB} rt dl m)
