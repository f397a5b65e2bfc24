// SPDX-License-Identifier: Apache-2.0
#include "runtime/device.h"

namespace onnxtrain {

void Device::BeginRecording(Stream&) { CHECK_WITH(can_record(), "this device does not record"); }

std::unique_ptr<Recording> Device::EndRecording(Stream&) {
  CHECK_WITH(can_record(), "this device does not record");
  return nullptr;
}

}  // namespace onnxtrain
