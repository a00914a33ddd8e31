# flexor_core: every folder in one static library. flexor_shared: libflexor, which exports the FLEXOR_API surface only.

add_library(flexor_core STATIC)
add_library(flexor_shared SHARED)
# One file, named as programs that link to it ask for it: interfaces may change with the minor version.
set(abi_version "${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR}")
set_target_properties(flexor_shared PROPERTIES OUTPUT_NAME flexor LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/lib"
  VERSION ${abi_version} SOVERSION ${abi_version})
foreach(folder IN LISTS FLEXOR_FOLDERS)
  target_sources(flexor_core PRIVATE $<TARGET_OBJECTS:flexor_${folder}>)
  target_sources(flexor_shared PRIVATE $<TARGET_OBJECTS:flexor_${folder}>)
endforeach()
target_link_libraries(flexor_core PUBLIC flexor_options)
target_link_libraries(flexor_shared PRIVATE flexor_options)
target_include_directories(flexor_shared PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:include>)
target_compile_features(flexor_shared PUBLIC cxx_std_20)
if(FLEXOR_WITH_LLVM)
  target_link_libraries(flexor_core PUBLIC flexor_llvm)
  target_link_libraries(flexor_shared PRIVATE flexor_llvm)
endif()
target_link_options(flexor_shared PRIVATE -Wl,--exclude-libs,ALL "-Wl,--version-script=${PROJECT_SOURCE_DIR}/cmake/exports.map")
set_property(TARGET flexor_shared APPEND PROPERTY LINK_DEPENDS "${PROJECT_SOURCE_DIR}/cmake/exports.map")
if(NOT FLEXOR_SANITIZE)
  target_link_options(flexor_shared PRIVATE -Wl,--gc-sections -Wl,-z,defs)
endif()

# cmake --install BUILD --component sdk --prefix DIR: what a C++ user needs for find_package(flexor) and flexor::flexor.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
set_target_properties(flexor_shared PROPERTIES EXPORT_NAME flexor)
add_library(flexor::flexor ALIAS flexor_shared)
set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/flexor")
install(TARGETS flexor_shared EXPORT flexor LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT sdk)
install(DIRECTORY "${PROJECT_SOURCE_DIR}/include/flexor" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}" COMPONENT sdk
  PATTERN stress.h EXCLUDE)
install(EXPORT flexor NAMESPACE flexor:: FILE flexorConfig.cmake DESTINATION "${package_dir}" COMPONENT sdk)
write_basic_package_version_file("${PROJECT_BINARY_DIR}/flexorConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/flexorConfigVersion.cmake" DESTINATION "${package_dir}" COMPONENT sdk)
