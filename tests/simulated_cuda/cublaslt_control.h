// SPDX-License-Identifier: Apache-2.0
// How tests control the simulated cuBLASLt, and what they may ask of it. All of it is of the whole process.
#ifndef ONNXTRAIN_TESTS_SIMULATED_CUDA_CUBLASLT_CONTROL_H_
#define ONNXTRAIN_TESTS_SIMULATED_CUDA_CUBLASLT_CONTROL_H_

#include <cstdint>

extern "C" {
// The n-th call of heuristics, check or product from now on fails, 0 being the next; -1: none.
void simulated_cublaslt_fail_at(int64_t n);
// "heuristics", "checks", "products" (captured ones included), "executed_products" (replays included), "live_objects"
// (handles, descriptors, layouts, preferences); -1 for any other name.
int64_t simulated_cublaslt_counter(const char* name);
}

#endif  // ONNXTRAIN_TESTS_SIMULATED_CUDA_CUBLASLT_CONTROL_H_
