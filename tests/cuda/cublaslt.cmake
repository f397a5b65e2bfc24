# SPDX-License-Identifier: Apache-2.0
# Matrix products by cuBLASLt, on the simulated libraries.
find_path(CUBLASLT_INCLUDE_DIR cublasLt.h HINTS ${CUDAToolkit_INCLUDE_DIRS})
if(NOT TARGET nccl_test_cudart OR NOT CUBLASLT_INCLUDE_DIR)
  message(STATUS "Without the headers of cuBLASLt its matrix products are not tested")
  return()
endif()
add_executable(cublaslt_test cublaslt_product_test.cc simulated_cublaslt_test.cc
  ${PROJECT_SOURCE_DIR}/tests/simulated_cuda/cublaslt.cc ${PROJECT_SOURCE_DIR}/tests/simulated_cuda/cublaslt_compute.cc
  ${PROJECT_SOURCE_DIR}/cuda_ops/cublaslt_product.cc ${PROJECT_SOURCE_DIR}/cuda_ops/matmul_algorithms.cc
  ${PROJECT_SOURCE_DIR}/cuda_ops/cuda_error.cc)
onnxtrain_set_options(cublaslt_test)
target_include_directories(cublaslt_test SYSTEM PRIVATE ${CUBLASLT_INCLUDE_DIR})
target_link_libraries(cublaslt_test PRIVATE ${simulated_cudart} onnxtrain_test_support GTest::gtest_main)
onnxtrain_discover_tests(cublaslt_test cuda "*" cuda)

if(NOT TARGET CUDA::cublasLt)
  message(STATUS "Without cuBLASLt itself the descriptions of products are not tried on it")
  return()
endif()
add_executable(cublaslt_library_test cublaslt_library_test.cc
  ${PROJECT_SOURCE_DIR}/cuda_ops/cublaslt_product.cc ${PROJECT_SOURCE_DIR}/cuda_ops/matmul_algorithms.cc
  ${PROJECT_SOURCE_DIR}/cuda_ops/cuda_error.cc)
onnxtrain_set_options(cublaslt_library_test)
target_link_libraries(cublaslt_library_test PRIVATE
  ${simulated_cudart} CUDA::cublasLt onnxtrain_test_support GTest::gtest_main)
onnxtrain_discover_tests(cublaslt_library_test cuda "*" cuda)
