# cmake -DSOURCE=python/flexor -DTARGET=build/python/flexor -P LinkPackage.cmake
# Links every entry of the source package into the build's package folder, where the compiled modules lie, so that one
# PYTHONPATH entry makes the package importable and an edit needs no build.

cmake_minimum_required(VERSION 3.25)
file(MAKE_DIRECTORY "${TARGET}")
file(GLOB present LIST_DIRECTORIES true RELATIVE "${TARGET}" "${TARGET}/*")
file(GLOB wanted LIST_DIRECTORIES true RELATIVE "${SOURCE}" "${SOURCE}/*")
list(REMOVE_ITEM wanted __pycache__)
foreach(entry IN LISTS present)
  if(IS_SYMLINK "${TARGET}/${entry}" AND NOT entry IN_LIST wanted)
    file(REMOVE "${TARGET}/${entry}")
  endif()
endforeach()
foreach(entry IN LISTS wanted)
  if(NOT entry IN_LIST present)
    file(CREATE_LINK "${SOURCE}/${entry}" "${TARGET}/${entry}" SYMBOLIC)
  endif()
endforeach()
