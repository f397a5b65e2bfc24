# SPDX-License-Identifier: Apache-2.0
# cmake --install: the program, the static libraries, the embedding header with what it includes, and a CMake package:
#   find_package(onnx-train CONFIG REQUIRED)
#   target_link_libraries(server PRIVATE onnx-train::runtime)
include(CMakePackageConfigHelpers)

# Appends to `result` the header `file` and every header of this project it includes, relative to the root.
function(onnxtrain_header_closure file result)
  set(seen ${${result}})
  if(file IN_LIST seen OR NOT EXISTS ${PROJECT_SOURCE_DIR}/${file})
    return()
  endif()
  list(APPEND seen ${file})
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${file})
  file(STRINGS ${PROJECT_SOURCE_DIR}/${file} lines REGEX "^#include \"")
  foreach(line IN LISTS lines)
    string(REGEX REPLACE "^#include \"([^\"]+)\".*" "\\1" included "${line}")
    onnxtrain_header_closure(${included} seen)
  endforeach()
  set(${result} ${seen} PARENT_SCOPE)
endfunction()

set(public_headers "")
onnxtrain_header_closure(runtime/training_session.h public_headers)
foreach(header IN LISTS public_headers)
  get_filename_component(folder ${header} DIRECTORY)
  install(FILES ${header} DESTINATION include/onnx-train/${folder})
endforeach()

foreach(folder graph passes runtime)
  set_target_properties(onnxtrain_${folder} PROPERTIES EXPORT_NAME ${folder})
  install(TARGETS onnxtrain_${folder} EXPORT onnx-train-targets ARCHIVE DESTINATION lib)
endforeach()
if(TARGET onnx-train)
  set_target_properties(onnx-train PROPERTIES INSTALL_RPATH_USE_LINK_PATH ON)
  install(TARGETS onnx-train RUNTIME DESTINATION bin)
endif()

set(package_folder lib/cmake/onnx-train)
install(EXPORT onnx-train-targets NAMESPACE onnx-train:: DESTINATION ${package_folder})
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/onnx-train-config.cmake.in
  ${PROJECT_BINARY_DIR}/onnx-train-config.cmake INSTALL_DESTINATION ${package_folder})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/onnx-train-config-version.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/onnx-train-config.cmake ${PROJECT_BINARY_DIR}/onnx-train-config-version.cmake
  cmake/OnnxTrainDependencies.cmake cmake/FindOneDNN.cmake DESTINATION ${package_folder})
