# SPDX-License-Identifier: Apache-2.0
# Operation graphs of cuDNN: planned by the library itself without a GPU (L2). That our convolutions run is shown by the
# conformance suite on the simulated libraries.
add_executable(cudnn_plan_files_test cudnn_plan_files_test.cc ${PROJECT_SOURCE_DIR}/cuda_ops/cudnn_plan_files.cc)
onnxtrain_set_options(cudnn_plan_files_test)
target_link_libraries(cudnn_plan_files_test PRIVATE onnxtrain_test_support GTest::gtest_main)
onnxtrain_discover_tests(cudnn_plan_files_test cuda "*" cuda)

find_package(CUDNN 9.8 QUIET)
if(NOT CUDNN_FOUND)
  message(STATUS "Without cuDNN no operation graphs are planned by it")
  return()
endif()
include(${PROJECT_SOURCE_DIR}/cuda_ops/cudnn.cmake)
set(cudnn_sources ${ONNXTRAIN_CUDNN_SOURCES} convolution_problem.cc cuda_error.cc)
list(TRANSFORM cudnn_sources PREPEND ${PROJECT_SOURCE_DIR}/cuda_ops/)
add_executable(cudnn_graph_test cudnn_graph_test.cc ${cudnn_sources})
onnxtrain_set_options(cudnn_graph_test)
target_link_libraries(cudnn_graph_test PRIVATE
  CUDNN::cudnn CUDA::cudart onnxtrain_test_support nlohmann_json::nlohmann_json GTest::gtest_main)
onnxtrain_discover_tests(cudnn_graph_test cuda "*" cuda)
