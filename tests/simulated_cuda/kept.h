// SPDX-License-Identifier: Apache-2.0
// What later work may still name and the simulation therefore never takes back: events that queued work waits for,
// captures that events name, arguments of recorded host functions. All of it stays reachable to the end of the process,
// so that a leak checker reports only what was forgotten.
#ifndef ONNXTRAIN_TESTS_SIMULATED_CUDA_KEPT_H_
#define ONNXTRAIN_TESTS_SIMULATED_CUDA_KEPT_H_

#include <mutex>
#include <vector>

namespace simulated_cuda {

// Returns the object. Any thread.
template <typename T>
T* Keep(T* object) {
  static auto* const mutex = new std::mutex;
  static auto* const kept = new std::vector<T*>;
  const std::lock_guard<std::mutex> lock(*mutex);
  kept->push_back(object);
  return object;
}

}  // namespace simulated_cuda

#endif  // ONNXTRAIN_TESTS_SIMULATED_CUDA_KEPT_H_
