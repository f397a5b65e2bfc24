// SPDX-License-Identifier: Apache-2.0
// A device whose streams are queues without threads: when the host waits, a seeded generator picks again and again one
// stream whose next command may run. Every seed is one legal interleaving, repeatable.
#ifndef ONNXTRAIN_TESTS_SUPPORT_INTERLEAVED_DEVICE_H_
#define ONNXTRAIN_TESTS_SUPPORT_INTERLEAVED_DEVICE_H_

#include <cstdint>
#include <memory>

#include "runtime/device.h"

namespace onnxtrain {

// Memory and kernels are those of `device`, which is borrowed. One thread.
std::unique_ptr<Device> MakeInterleavedDevice(Device& device, uint64_t seed);

}  // namespace onnxtrain

#endif  // ONNXTRAIN_TESTS_SUPPORT_INTERLEAVED_DEVICE_H_
