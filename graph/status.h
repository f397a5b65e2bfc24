// SPDX-License-Identifier: Apache-2.0
// Status and StatusOr: how everything that can happen at run time is reported. CHECK is for bugs only.
// A Status is a value: cheap to move, safe to copy between threads, never throws.
#ifndef ONNXTRAIN_GRAPH_STATUS_H_
#define ONNXTRAIN_GRAPH_STATUS_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace onnxtrain {

// The family of a failure. `ExitCode` maps it to the exit code of the command line (docs/training.md).
enum class StatusCode : uint8_t {
  kOk,
  kInternal,           // 1: failure at run time (verifier, device, disk full, memory limit)
  kUsage,              // 2: an option, feed name or setting that cannot be honoured
  kInvalidModel,       // 3: model invalid or not trainable
  kInvalidData,        // 4: data, feed or checkpoint of wrong type, shape or content
  kNonFinite,          // 5: loss or gradient not finite
  kCommunication,      // 6: ranks differ, a rank failed or timed out
  kResourceExhausted,  // 1: no memory, disk full
};

int ExitCode(StatusCode code);

class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(StatusCode code, std::string message) : code_(code), message_(std::move(message)) {}

  bool ok() const { return code_ == StatusCode::kOk; }
  StatusCode code() const { return code_; }
  // What happened, where, what was expected and found, and the way out. Empty when ok.
  const std::string& message() const { return message_; }
  // The same status with "context: " put before its message.
  Status Prepend(std::string_view context) const;

 private:
  StatusCode code_ = StatusCode::kOk;
  std::string message_;
};

inline Status OkStatus() { return Status(); }
Status InternalError(std::string message);
Status UsageError(std::string message);
Status InvalidModelError(std::string message);
Status InvalidDataError(std::string message);
Status NonFiniteError(std::string message);
Status CommunicationError(std::string message);
Status ResourceExhaustedError(std::string message);

// A value, or the reason why there is none. `value()` of a failed StatusOr is a bug and ends the program.
template <typename T>
class [[nodiscard]] StatusOr {
 public:
  StatusOr(Status status) : held_(std::move(status)) {}  // NOLINT: implicit by design
  StatusOr(T value) : held_(std::move(value)) {}         // NOLINT: implicit by design

  bool ok() const { return held_.index() == 1; }
  Status status() const { return ok() ? Status() : std::get<0>(held_); }
  T& value() &;
  const T& value() const&;
  T&& value() &&;
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

 private:
  std::variant<Status, T> held_;
};

namespace internal {
[[noreturn]] void CheckFailed(const char* file, int line, const char* condition, const std::string& detail);
}  // namespace internal

template <typename T>
T& StatusOr<T>::value() & {
  if (!ok()) internal::CheckFailed(__FILE__, __LINE__, "ok()", std::get<0>(held_).message());
  return std::get<1>(held_);
}
template <typename T>
const T& StatusOr<T>::value() const& {
  if (!ok()) internal::CheckFailed(__FILE__, __LINE__, "ok()", std::get<0>(held_).message());
  return std::get<1>(held_);
}
template <typename T>
T&& StatusOr<T>::value() && {
  if (!ok()) internal::CheckFailed(__FILE__, __LINE__, "ok()", std::get<0>(held_).message());
  return std::get<1>(std::move(held_));
}

}  // namespace onnxtrain

#define ONNXTRAIN_CONCAT_INNER(a, b) a##b
#define ONNXTRAIN_CONCAT(a, b) ONNXTRAIN_CONCAT_INNER(a, b)

// A broken promise of our own code: prints the place and ends the program. `detail` is a std::string, may be "".
#define CHECK_WITH(condition, detail) \
  ((condition) ? (void)0 : ::onnxtrain::internal::CheckFailed(__FILE__, __LINE__, #condition, (detail)))
#define CHECK(condition) CHECK_WITH(condition, "")

#define RETURN_IF_ERROR(expression)                                \
  do {                                                             \
    ::onnxtrain::Status onnxtrain_status = (expression);           \
    if (!onnxtrain_status.ok()) return onnxtrain_status;           \
  } while (false)

// ASSIGN_OR_RETURN(auto value, Call()): declares or assigns, or returns the error.
#define ASSIGN_OR_RETURN(target, expression) \
  ASSIGN_OR_RETURN_IMPL(ONNXTRAIN_CONCAT(onnxtrain_result_, __LINE__), target, expression)
#define ASSIGN_OR_RETURN_IMPL(result, target, expression) \
  auto result = (expression);                             \
  if (!result.ok()) return result.status();               \
  target = std::move(result).value()

#endif  // ONNXTRAIN_GRAPH_STATUS_H_
