// SPDX-License-Identifier: Apache-2.0
// Launches of our CUDA kernels with what they should give, computed in double by the formula itself: run on the host by
// tests/simulated_cuda/host_cuda.h. Shared by the test of results and thread orders and by the programs that run under
// sanitizers, hence without GoogleTest.
#ifndef ONNXTRAIN_TESTS_CUDA_DEVICE_CASE_H_
#define ONNXTRAIN_TESTS_CUDA_DEVICE_CASE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "graph/dtype.h"

namespace onnxtrain {

// Elements of any type in memory of exactly their size, so that AddressSanitizer sees what is read or written beyond.
class Array {
 public:
  Array() = default;
  // All bits set: NaN, -1, 255.
  Array(DType dtype, int64_t count);
  Array(DType dtype, const std::vector<double>& values);

  DType dtype() const { return dtype_; }
  int64_t count() const { return count_; }
  size_t bytes() const { return static_cast<size_t>(count_) * SizeOf(dtype_); }
  std::byte* data() { return data_.get(); }
  const std::byte* data() const { return data_.get(); }
  template <typename T>
  T* as() {
    return reinterpret_cast<T*>(data_.get());
  }
  double At(int64_t index) const;
  void Set(int64_t index, double value);
  std::vector<double> Values() const;

 private:
  DType dtype_ = DType::kUndefined;
  int64_t count_ = 0;
  std::unique_ptr<std::byte[]> data_;
};

// Uniform in [low, high), of integers low..high; rounded to the type. Depends on the seed alone.
Array Uniform(DType dtype, int64_t count, uint64_t seed, double low = -2, double high = 2);

struct CaseResult {
  std::vector<Array> outputs;
  std::vector<std::vector<double>> expected;  // one an output
  double tolerance = 0;                       // relative to max(1, |expected|), beside one rounding to the type
};

struct DeviceCase {
  std::string name;
  std::function<CaseResult()> run;  // the same inputs every time
};
using DeviceCases = std::vector<DeviceCase>;

void AddBinaryLossCases(DeviceCases& cases);
void AddCumulativeCases(DeviceCases& cases);
void AddDropoutCases(DeviceCases& cases);
void AddElementwiseCases(DeviceCases& cases);
void AddGroupNormalizationCases(DeviceCases& cases);
void AddIndexCases(DeviceCases& cases);
void AddMadeCases(DeviceCases& cases);
void AddReductionCases(DeviceCases& cases);
void AddResizeCases(DeviceCases& cases);
void AddRowCases(DeviceCases& cases);
void AddSortCases(DeviceCases& cases);
void AddStepCases(DeviceCases& cases);
void AddWindowCases(DeviceCases& cases);
DeviceCases AllDeviceCases();

// Empty where they agree, else the first element that does not.
std::string Disagreement(const CaseResult& result);

inline constexpr DType kDeviceFloats[] = {DType::kFloat, DType::kBfloat16, DType::kFloat16};

}  // namespace onnxtrain

#endif  // ONNXTRAIN_TESTS_CUDA_DEVICE_CASE_H_
