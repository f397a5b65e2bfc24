# SPDX-License-Identifier: Apache-2.0
# Matrix products by cuBLASLt, on the simulated libraries.
find_path(CUBLASLT_INCLUDE_DIR cublasLt.h HINTS ${CUDAToolkit_INCLUDE_DIRS})
if(NOT TARGET nccl_test_cudart OR NOT CUBLASLT_INCLUDE_DIR)
  message(STATUS "Without the headers of cuBLASLt its matrix products are not tested")
  return()
endif()
set(cublaslt_simulation
  ${PROJECT_SOURCE_DIR}/tests/simulated_cuda/cublaslt.cc ${PROJECT_SOURCE_DIR}/tests/simulated_cuda/cublaslt_compute.cc)
set(cublaslt_module cublaslt_product.cc matmul_algorithms.cc cuda_error.cc)
list(TRANSFORM cublaslt_module PREPEND ${PROJECT_SOURCE_DIR}/cuda_ops/ OUTPUT_VARIABLE cublaslt_sources)

add_executable(cublaslt_test
  cublaslt_product_test.cc simulated_cublaslt_test.cc ${cublaslt_simulation} ${cublaslt_sources})
onnxtrain_set_options(cublaslt_test)
target_include_directories(cublaslt_test SYSTEM PRIVATE ${CUBLASLT_INCLUDE_DIR})
target_link_libraries(cublaslt_test PRIVATE ${simulated_cudart} onnxtrain_test_support GTest::gtest_main)
onnxtrain_discover_tests(cublaslt_test cuda "*" cuda)

# Errors planted in the products.
add_library(cublaslt_mutant_tests OBJECT EXCLUDE_FROM_ALL cublaslt_product_test.cc ${cublaslt_simulation})
onnxtrain_set_options(cublaslt_mutant_tests)
target_link_libraries(cublaslt_mutant_tests PRIVATE nccl_test_cudart onnxtrain_test_support)

function(onnxtrain_add_cublaslt_mutant name from to filter expected)
  onnxtrain_add_mutant(cublaslt_mutant_${name} SOURCE cublaslt_product FROM "${from}" TO "${to}" FILTER ${filter}
    EXPECTED "${expected}" TESTS cublaslt_mutant_tests MODULE ${cublaslt_module}
    LIBRARIES ${simulated_cudart} onnxtrain_test_support GTest::gtest_main)
endfunction()
onnxtrain_add_cublaslt_mutant(without_device
  "RETURN_IF_CUDA_ERROR(cudaSetDevice(context.device))" "(void)context.device" "*NeverAtARun*"
  "a handle of another GPU")
onnxtrain_add_cublaslt_mutant(without_stream
  "workspace_bytes_, stream)" "workspace_bytes_, nullptr)" "*BetaAdds*" "the default stream")
onnxtrain_add_cublaslt_mutant(without_bias
  "if (options_.bias_row) RETURN_IF_ERROR(Set(operation_, CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias))" "(void)bias"
  "*EpilogueAdds*" "a bias epilogue without bias")
onnxtrain_add_cublaslt_mutant(without_alignment
  "while (offsets.b % b_.alignment != 0) b_.alignment /= 2" "(void)0" "*AsFewCalls*" "less alignment")
onnxtrain_add_cublaslt_mutant(without_workspace
  "workspace_bytes_ = result.workspaceSize;\n  return OkStatus()" "return OkStatus()" "*AsFewCalls*"
  "less workspace than the algorithm wants")
onnxtrain_add_cublaslt_mutant(swapped_transposes
  "b_.transposed ? CUBLAS_OP_T" "a_.transposed ? CUBLAS_OP_T" "*TransposedOperands*" "FAILED")
onnxtrain_add_cublaslt_mutant(beta_of_nothing
  "static_cast<float>(options_.beta)" "1.0f" "*NotReadWithoutBeta*" "FAILED")
onnxtrain_add_cublaslt_mutant(overlapping_calls
  "offsets.c += coordinate" "offsets.c += 0 * coordinate" "*AsFewCalls*" "FAILED")

if(NOT TARGET CUDA::cublasLt)
  message(STATUS "Without cuBLASLt itself the descriptions of products are not tried on it")
  return()
endif()
add_executable(cublaslt_library_test cublaslt_library_test.cc ${cublaslt_sources})
onnxtrain_set_options(cublaslt_library_test)
target_link_libraries(cublaslt_library_test PRIVATE
  ${simulated_cudart} CUDA::cublasLt onnxtrain_test_support GTest::gtest_main)
onnxtrain_discover_tests(cublaslt_library_test cuda "*" cuda)
