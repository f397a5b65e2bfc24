// SPDX-License-Identifier: Apache-2.0
// How tests control the simulated cuDNN, and what they may ask of it. All of it is of the whole process.
#ifndef ONNXTRAIN_TESTS_SIMULATED_CUDA_CUDNN_CONTROL_H_
#define ONNXTRAIN_TESTS_SIMULATED_CUDA_CUDNN_CONTROL_H_

#include <cstdint>

extern "C" {
// The n-th call that can fail from now on fails, 0 being the next; -1: none.
void simulated_cudnn_fail_at(int64_t n);
// "plans" (chosen by heuristics), "plans_from_json", "executed" (replays included), "live_objects" (handles and
// descriptors); -1 for any other name.
int64_t simulated_cudnn_counter(const char* name);
}

#endif  // ONNXTRAIN_TESTS_SIMULATED_CUDA_CUDNN_CONTROL_H_
