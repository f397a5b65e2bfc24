# SPDX-License-Identifier: Apache-2.0
# Finds oneDNN 2.6 or newer by header and library, and defines DNNL::dnnl. The packages' own config files are not used:
# Debian's asks for OpenCL headers that a CPU program does not need. Which API the code sees (v2 or v3) is told by
# oneDNN's own version header.
if(OneDNN_LIBRARY AND NOT EXISTS "${OneDNN_LIBRARY}")  # the cache folder was emptied since
  unset(OneDNN_LIBRARY CACHE)
  unset(OneDNN_INCLUDE_DIR CACHE)
endif()
set(onednn_hints "${ONNXTRAIN_CACHE}/onednn-3.2.0")
find_path(OneDNN_INCLUDE_DIR oneapi/dnnl/dnnl.hpp HINTS ${onednn_hints} PATH_SUFFIXES include)
find_library(OneDNN_LIBRARY dnnl HINTS ${onednn_hints} PATH_SUFFIXES lib)

if(OneDNN_INCLUDE_DIR AND EXISTS "${OneDNN_INCLUDE_DIR}/oneapi/dnnl/dnnl_version.h")
  file(STRINGS "${OneDNN_INCLUDE_DIR}/oneapi/dnnl/dnnl_version.h" version_lines
       REGEX "define DNNL_VERSION_(MAJOR|MINOR|PATCH) [0-9]+")
  string(REGEX REPLACE "[^0-9;]" "" version_numbers "${version_lines}")
  list(JOIN version_numbers "." OneDNN_VERSION)
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(OneDNN REQUIRED_VARS OneDNN_LIBRARY OneDNN_INCLUDE_DIR VERSION_VAR OneDNN_VERSION)
mark_as_advanced(OneDNN_INCLUDE_DIR OneDNN_LIBRARY)
if(OneDNN_FOUND AND NOT TARGET DNNL::dnnl)
  add_library(DNNL::dnnl UNKNOWN IMPORTED)
  set_target_properties(DNNL::dnnl PROPERTIES
    IMPORTED_LOCATION "${OneDNN_LIBRARY}"
    INTERFACE_INCLUDE_DIRECTORIES "${OneDNN_INCLUDE_DIR}")
endif()
