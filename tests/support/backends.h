// SPDX-License-Identifier: Apache-2.0
// The backends that the conformance suites run on. A new backend adds one line in backends.cc and nothing else.
#ifndef ONNXTRAIN_TESTS_SUPPORT_BACKENDS_H_
#define ONNXTRAIN_TESTS_SUPPORT_BACKENDS_H_

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "runtime/communicator.h"
#include "runtime/device.h"

namespace onnxtrain {

// The communicators of one group, with whatever owns them.
class TestGroup {
 public:
  virtual ~TestGroup() = default;
  virtual Communicator& communicator(int rank) = 0;
};

struct Backend {
  std::string name;
  std::function<std::unique_ptr<Device>()> make_device;
  std::function<std::unique_ptr<TestGroup>(int ranks, std::chrono::milliseconds timeout)> make_group;
};

const std::vector<Backend>& AllBackends();

}  // namespace onnxtrain

#endif  // ONNXTRAIN_TESTS_SUPPORT_BACKENDS_H_
