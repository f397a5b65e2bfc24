# SPDX-License-Identifier: Apache-2.0
# Finds cuDNN 9.8 or newer (plans from the properties of a GPU) by header and library, and defines CUDNN::cudnn. It may
# lie with the CUDA toolkit, in the system, or under CUDNN_ROOT.
find_path(CUDNN_INCLUDE_DIR cudnn_version.h HINTS ${CUDNN_ROOT} ${CUDAToolkit_INCLUDE_DIRS} PATH_SUFFIXES include)
find_library(CUDNN_LIBRARY NAMES cudnn libcudnn.so.9 HINTS ${CUDNN_ROOT} ${CUDAToolkit_LIBRARY_DIR}
  PATH_SUFFIXES lib lib64)

# The numbers stand in cudnn_version.h, or in the header of the major version that it includes.
file(GLOB cudnn_version_headers ${CUDNN_INCLUDE_DIR}/cudnn_version.h ${CUDNN_INCLUDE_DIR}/cudnn_version_v*.h)
foreach(header ${cudnn_version_headers})
  file(STRINGS "${header}" cudnn_version_lines REGEX "define CUDNN_(MAJOR|MINOR|PATCHLEVEL) [0-9]+")
  string(REGEX REPLACE "[^0-9;]" "" cudnn_version_numbers "${cudnn_version_lines}")
  if(cudnn_version_numbers)
    list(JOIN cudnn_version_numbers "." CUDNN_VERSION)
  endif()
endforeach()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(CUDNN REQUIRED_VARS CUDNN_LIBRARY CUDNN_INCLUDE_DIR VERSION_VAR CUDNN_VERSION)
mark_as_advanced(CUDNN_INCLUDE_DIR CUDNN_LIBRARY)
if(CUDNN_FOUND AND NOT TARGET CUDNN::cudnn)
  add_library(CUDNN::cudnn UNKNOWN IMPORTED)
  set_target_properties(CUDNN::cudnn PROPERTIES
    IMPORTED_LOCATION "${CUDNN_LIBRARY}"
    INTERFACE_INCLUDE_DIRECTORIES "${CUDNN_INCLUDE_DIR}")
endif()
