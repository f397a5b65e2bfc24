// SPDX-License-Identifier: Apache-2.0
// How a CPU kernel reports a fault of the data it works on (runtime/kernel.h, DeviceFault). Any thread of the kernel's
// team may call it; the first report stands.
#ifndef ONNXTRAIN_RUNTIME_STATUS_WORD_H_
#define ONNXTRAIN_RUNTIME_STATUS_WORD_H_

#include <atomic>
#include <cstdint>

#include "runtime/kernel.h"

namespace onnxtrain {

inline uint64_t StatusWordOf(DeviceFault fault, int node_index) {
  return static_cast<uint64_t>(fault) << 32 | (static_cast<uint32_t>(node_index) + 1);
}
inline DeviceFault FaultOf(uint64_t status_word) { return static_cast<DeviceFault>(status_word >> 32); }
// -1 when no fault is recorded.
inline int NodeIndexOf(uint64_t status_word) { return static_cast<int>(status_word & 0xffffffff) - 1; }

// Null: nobody wants to know.
inline void SetStatusWord(uint64_t* status_word, DeviceFault fault, int node_index) {
  if (status_word == nullptr) return;
  uint64_t expected = 0;
  std::atomic_ref<uint64_t>(*status_word)
      .compare_exchange_strong(expected, StatusWordOf(fault, node_index), std::memory_order_relaxed);
}

}  // namespace onnxtrain

#endif  // ONNXTRAIN_RUNTIME_STATUS_WORD_H_
