// SPDX-License-Identifier: Apache-2.0
#include "graph/status.h"

#include <cstdio>
#include <cstdlib>

namespace onnxtrain {

int ExitCode(StatusCode code) {
  switch (code) {
    case StatusCode::kOk: return 0;
    case StatusCode::kUsage: return 2;
    case StatusCode::kInvalidModel: return 3;
    case StatusCode::kInvalidData: return 4;
    case StatusCode::kNonFinite: return 5;
    case StatusCode::kCommunication: return 6;
    case StatusCode::kInternal:
    case StatusCode::kResourceExhausted: return 1;
  }
  return 1;
}

Status Status::Prepend(std::string_view context) const {
  if (ok()) return *this;
  return Status(code_, std::string(context) + ": " + message_);
}

Status InternalError(std::string message) { return Status(StatusCode::kInternal, std::move(message)); }
Status UsageError(std::string message) { return Status(StatusCode::kUsage, std::move(message)); }
Status InvalidModelError(std::string message) { return Status(StatusCode::kInvalidModel, std::move(message)); }
Status InvalidDataError(std::string message) { return Status(StatusCode::kInvalidData, std::move(message)); }
Status NonFiniteError(std::string message) { return Status(StatusCode::kNonFinite, std::move(message)); }
Status CommunicationError(std::string message) { return Status(StatusCode::kCommunication, std::move(message)); }
Status ResourceExhaustedError(std::string message) {
  return Status(StatusCode::kResourceExhausted, std::move(message));
}

namespace internal {

void CheckFailed(const char* file, int line, const char* condition, const std::string& detail) {
  std::fprintf(stderr, "%s:%d: CHECK failed: %s%s%s\n", file, line, condition, detail.empty() ? "" : ": ",
               detail.c_str());
  std::abort();
}

}  // namespace internal
}  // namespace onnxtrain
