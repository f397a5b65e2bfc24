// SPDX-License-Identifier: Apache-2.0
// Why something that many threads use has failed: the first reason stays. Any thread.
#ifndef ONNXTRAIN_CUDA_OPS_FIRST_FAILURE_H_
#define ONNXTRAIN_CUDA_OPS_FIRST_FAILURE_H_

#include <atomic>
#include <mutex>

#include "graph/status.h"

namespace onnxtrain {

class FirstFailure {
 public:
  bool failed() const { return failed_.load(std::memory_order_acquire); }
  // OK until then.
  Status reason() const {
    if (!failed()) return OkStatus();
    const std::lock_guard<std::mutex> lock(mutex_);
    return reason_;
  }
  // Returns whether this reason is the first one.
  bool Keep(const Status& reason) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (failed()) return false;
    reason_ = reason;
    failed_.store(true, std::memory_order_release);
    return true;
  }

 private:
  std::atomic<bool> failed_{false};
  mutable std::mutex mutex_;
  Status reason_;
};

}  // namespace onnxtrain

#endif  // ONNXTRAIN_CUDA_OPS_FIRST_FAILURE_H_
