// SPDX-License-Identifier: Apache-2.0
// What a kernel may report of the data it works on; for host and device code.
#ifndef ONNXTRAIN_RUNTIME_KERNEL_FAULT_H_
#define ONNXTRAIN_RUNTIME_KERNEL_FAULT_H_

#include <cstdint>

namespace onnxtrain {

enum class DeviceFault : uint32_t {
  kNone = 0,
  kIndexOutOfRange = 1,
  kNonFinite = 2,
  kLabelOutOfRange = 3,
  kHostKernel = 4,  // one that ran on the host for a device failed; its next launch says why
};

}  // namespace onnxtrain

#endif  // ONNXTRAIN_RUNTIME_KERNEL_FAULT_H_
