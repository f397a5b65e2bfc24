// SPDX-License-Identifier: Apache-2.0
#include "tests/support/backends.h"

namespace onnxtrain {

const std::vector<std::string>& AllBackends() {
  static const std::vector<std::string> backends = {
      "cpu",
      "cuda",
  };
  return backends;
}

std::string WhyNot(const std::string& backend) {
  BackendOptions options;
  const StatusOr<std::unique_ptr<Backend>> opened = OpenBackend(backend, options);
  return opened.ok() ? "" : opened.status().message();
}

StatusOr<std::unique_ptr<Backend>> TryTestBackend(const std::string& name, int ranks,
                                                  std::chrono::milliseconds timeout) {
  BackendOptions options;
  options.ranks = ranks;
  options.timeout = timeout;
  return OpenBackend(name, options);
}

std::unique_ptr<Backend> OpenTestBackend(const std::string& name, int ranks, std::chrono::milliseconds timeout) {
  StatusOr<std::unique_ptr<Backend>> backend = TryTestBackend(name, ranks, timeout);
  CHECK_WITH(backend.ok(), backend.status().message());
  return *std::move(backend);
}

}  // namespace onnxtrain
