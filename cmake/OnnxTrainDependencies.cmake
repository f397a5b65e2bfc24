# SPDX-License-Identifier: Apache-2.0
# Finds everything onnx-train links; installed with it, since who links its static libraries links these. tools/setup installs it: packages of the distribution, and ONNX and oneDNN into
# versioned folders of a cache outside the clone. CMAKE_PREFIX_PATH comes first and may name others.

if(DEFINED ENV{XDG_CACHE_HOME} AND NOT "$ENV{XDG_CACHE_HOME}" STREQUAL "")
  set(ONNXTRAIN_CACHE "$ENV{XDG_CACHE_HOME}/onnx-train")
else()
  set(ONNXTRAIN_CACHE "$ENV{HOME}/.cache/onnx-train")
endif()

find_package(Threads REQUIRED)
find_package(ZLIB REQUIRED)
find_package(fmt REQUIRED)
find_package(Protobuf REQUIRED)  # before ONNX, whose own config does not look for it

# The folder's name holds the protobuf whose compiler made ONNX's headers, as tools/setup writes it.
execute_process(COMMAND ${Protobuf_PROTOC_EXECUTABLE} --version
                OUTPUT_VARIABLE protoc_version OUTPUT_STRIP_TRAILING_WHITESPACE)
string(REGEX REPLACE "^libprotoc " "" protoc_version "${protoc_version}")
find_package(ONNX 1.23 CONFIG QUIET HINTS "${ONNXTRAIN_CACHE}/onnx-1.23.2-protobuf-${protoc_version}")
if(NOT ONNX_FOUND)
  message(FATAL_ERROR "ONNX 1.23 built against protobuf ${protoc_version} was not found in ${ONNXTRAIN_CACHE} "
                      "or CMAKE_PREFIX_PATH: run tools/setup")
endif()

find_package(OneDNN)
if(NOT OneDNN_FOUND)
  message(FATAL_ERROR "oneDNN (2.6 or newer, OpenMP build) was not found: run tools/setup")
endif()
if(NOT ONNXTRAIN_SERIAL_KERNELS)
  find_package(OpenMP REQUIRED COMPONENTS CXX)
endif()
