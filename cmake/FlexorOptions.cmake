# Language, warnings, linker and optimisation for every target of the project (through the target flexor_options).

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "Build type" FORCE)
endif()

# The development build compiles for short compile times; FlexorFolder.cmake raises the folders on the call path to -O2.
# Under sanitizers a unit test takes less time than the compiler saves without optimisation; a fuzzer has its whole minute.
if(FLEXOR_SANITIZE AND NOT FLEXOR_BUILD_FUZZERS)
  set(CMAKE_CXX_FLAGS_RELWITHDEBINFO "-O0 -g1")
else()
  set(CMAKE_CXX_FLAGS_RELWITHDEBINFO "-O1 -g1")
endif()

add_library(flexor_options INTERFACE)
# What nobody uses stays out of libflexor (FlexorLibrary.cmake: --gc-sections).
target_compile_options(flexor_options INTERFACE $<$<CONFIG:Release>:-ffunction-sections> $<$<CONFIG:Release>:-fdata-sections>)
target_include_directories(flexor_options INTERFACE "${PROJECT_SOURCE_DIR}/include")
# pip leaves it off: what a newer compiler warns of is no reason not to install.
option(FLEXOR_WARNINGS_AS_ERRORS "A warning fails the build" ON)
target_compile_options(flexor_options INTERFACE -Wall -Wextra -Wpedantic $<$<BOOL:${FLEXOR_WARNINGS_AS_ERRORS}>:-Werror>
  -ffp-contract=off)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  if(FLEXOR_SANITIZE)
    # What sanitizers add to the code makes g++ warn of what is not so.
    target_compile_options(flexor_options INTERFACE -Wno-error=maybe-uninitialized -Wno-error=stringop-overflow
      -Wno-error=array-bounds -Wno-error=dangling-pointer -Wno-error=free-nonheap-object -Wno-error=restrict)
  else()
    # g++ 12 reports this of operator+(const char*, std::string&&) once it is inlined at -O3.
    target_compile_options(flexor_options INTERFACE $<$<CONFIG:Release>:-Wno-error=restrict>)
  endif()
else()
  # clang reports this of std::stable_sort in the headers of g++.
  target_compile_options(flexor_options INTERFACE -Wno-error=deprecated-declarations)
endif()

if(FLEXOR_SANITIZE)
  target_compile_options(flexor_options INTERFACE -fsanitize=${FLEXOR_SANITIZE} -fno-omit-frame-pointer
    -fno-sanitize-recover=all)
  target_link_options(flexor_options INTERFACE -fsanitize=${FLEXOR_SANITIZE})
endif()

if(FLEXOR_BUILD_FUZZERS)
  # Coverage of the whole library steers the fuzzer; fuzz/ adds its main.
  target_compile_options(flexor_options INTERFACE -fsanitize=fuzzer-no-link)
  if(FLEXOR_SANITIZE MATCHES undefined)
    # Before a call it reads what stands in front of the function; nothing stands in front of code that is made at run time.
    target_compile_options(flexor_options INTERFACE -fno-sanitize=function)
  endif()
endif()

find_program(FLEXOR_MOLD mold)
find_program(FLEXOR_LLD NAMES ld.lld-19 ld.lld)
if(FLEXOR_MOLD)
  target_link_options(flexor_options INTERFACE -fuse-ld=mold)
elseif(FLEXOR_LLD)
  target_link_options(flexor_options INTERFACE -fuse-ld=lld)
endif()

# flexor_need(found what package): one sentence where something is missing that Debian has in that package.
function(flexor_need found what package)
  if(NOT ${found})
    message(FATAL_ERROR "${what} was not found: install ${package} (./dev setup installs all that is needed on Debian)")
  endif()
endfunction()

find_package(Threads REQUIRED)
find_path(FLEXOR_XXHASH_DIR xxhash.h)
flexor_need(FLEXOR_XXHASH_DIR xxhash.h libxxhash-dev)
target_link_libraries(flexor_options INTERFACE Threads::Threads ${CMAKE_DL_LIBS})
