// SPDX-License-Identifier: Apache-2.0
// What a test expects of a Status or StatusOr, with its message in the failure.
#ifndef ONNXTRAIN_TESTS_SUPPORT_STATUS_MATCHERS_H_
#define ONNXTRAIN_TESTS_SUPPORT_STATUS_MATCHERS_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "graph/status.h"

namespace onnxtrain {

inline Status StatusOf(const Status& status) { return status; }
template <typename T>
Status StatusOf(const StatusOr<T>& result) {
  return result.status();
}

inline ::testing::AssertionResult IsOk(const Status& status) {
  if (status.ok()) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << "status " << static_cast<int>(status.code()) << ": " << status.message();
}

inline ::testing::AssertionResult Fails(const Status& status, StatusCode code, const std::string& part) {
  if (status.ok()) return ::testing::AssertionFailure() << "no error; expected one with: " << part;
  if (status.code() != code) {
    return ::testing::AssertionFailure() << "code " << static_cast<int>(status.code()) << " instead of "
                                         << static_cast<int>(code) << ": " << status.message();
  }
  if (status.message().find(part) != std::string::npos) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << "expected '" << part << "' in: " << status.message();
}

}  // namespace onnxtrain

#define EXPECT_OK(expression) EXPECT_TRUE(::onnxtrain::IsOk(::onnxtrain::StatusOf(expression)))
#define ASSERT_OK(expression) ASSERT_TRUE(::onnxtrain::IsOk(::onnxtrain::StatusOf(expression)))
#define EXPECT_DATA_ERROR(expression, part) \
  EXPECT_TRUE(::onnxtrain::Fails(::onnxtrain::StatusOf(expression), ::onnxtrain::StatusCode::kInvalidData, part))
#define EXPECT_USAGE_ERROR(expression, part) \
  EXPECT_TRUE(::onnxtrain::Fails(::onnxtrain::StatusOf(expression), ::onnxtrain::StatusCode::kUsage, part))

#endif  // ONNXTRAIN_TESTS_SUPPORT_STATUS_MATCHERS_H_
