// SPDX-License-Identifier: Apache-2.0
// What program and backend modules compare before they trust each other's interfaces (backend.h).
#ifndef ONNXTRAIN_RUNTIME_BACKEND_BUILD_H_
#define ONNXTRAIN_RUNTIME_BACKEND_BUILD_H_

namespace onnxtrain {

// Raise the number with every change to backend.h, device.h, kernel.h, communicator.h or the classes of graph/ they
// name.
inline constexpr const char kBackendBuildText[] = "interfaces 1, C++ " __VERSION__;

}  // namespace onnxtrain

#endif  // ONNXTRAIN_RUNTIME_BACKEND_BUILD_H_
