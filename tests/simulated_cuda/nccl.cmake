# SPDX-License-Identifier: Apache-2.0
# The simulated NCCL: simulated_cuda/libnccl.so.2 of the build folder. It finds the CUDA runtime's functions in the
# program that opens it.
if(TARGET onnxtrain_simulated_nccl)
  return()
endif()
set(simulated_nccl_folder ${CMAKE_CURRENT_LIST_DIR})
add_library(onnxtrain_simulated_nccl SHARED
  ${simulated_nccl_folder}/nccl.cc ${simulated_nccl_folder}/nccl_compute.cc ${simulated_nccl_folder}/nccl_control.cc
  ${simulated_nccl_folder}/nccl_run.cc)
onnxtrain_set_options(onnxtrain_simulated_nccl)
target_include_directories(onnxtrain_simulated_nccl
  SYSTEM PUBLIC ${NCCL_INCLUDE_DIR} ${CUDAToolkit_INCLUDE_DIRS})
target_include_directories(onnxtrain_simulated_nccl PRIVATE ${PROJECT_SOURCE_DIR})
target_link_libraries(onnxtrain_simulated_nccl PRIVATE Threads::Threads)
target_link_options(onnxtrain_simulated_nccl PRIVATE
  LINKER:--version-script=${simulated_nccl_folder}/nccl.map)
set_target_properties(onnxtrain_simulated_nccl PROPERTIES
  OUTPUT_NAME nccl VERSION 2 SOVERSION 2 LINK_DEPENDS ${simulated_nccl_folder}/nccl.map
  LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/simulated_cuda)
