// SPDX-License-Identifier: Apache-2.0
#include "tests/support/backends.h"

#include "runtime/cpu/cpu_device.h"
#include "runtime/cpu/local_communicator.h"

namespace onnxtrain {
namespace {

class LocalTestGroup : public TestGroup {
 public:
  LocalTestGroup(int ranks, std::chrono::milliseconds timeout) : group_(ranks, timeout) {}
  Communicator& communicator(int rank) override { return group_.communicator(rank); }

 private:
  LocalGroup group_;
};

}  // namespace

const std::vector<Backend>& AllBackends() {
  static const std::vector<Backend> backends = {
      {"cpu", [] { return std::make_unique<CpuDevice>(); },
       [](int ranks, std::chrono::milliseconds timeout) { return std::make_unique<LocalTestGroup>(ranks, timeout); }},
  };
  return backends;
}

}  // namespace onnxtrain
