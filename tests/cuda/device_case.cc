// SPDX-License-Identifier: Apache-2.0
#include "tests/cuda/device_case.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

namespace onnxtrain {
namespace {

// body(T*) for the type that holds elements of `dtype`; 16-bit floats are handled by the caller.
template <typename Body>
void WithType(DType dtype, const Body& body) {
  switch (dtype) {
    case DType::kFloat:
      return body(float());
    case DType::kDouble:
      return body(double());
    case DType::kInt32:
      return body(int32_t());
    case DType::kInt64:
      return body(int64_t());
    default:
      return body(uint8_t());
  }
}

double RoundingOf(DType dtype) {
  return dtype == DType::kBfloat16 ? 1.0 / 256 : dtype == DType::kFloat16 ? 1.0 / 2048 : 1.2e-7;
}

bool Agrees(double found, double expected, double tolerance) {
  if (std::isnan(found) || std::isnan(expected)) return std::isnan(found) && std::isnan(expected);
  if (std::isinf(found) || std::isinf(expected)) return found == expected;
  return std::fabs(found - expected) <= tolerance * std::max(1.0, std::fabs(expected));
}

}  // namespace

Array::Array(DType dtype, int64_t count)
    : dtype_(dtype), count_(count), data_(new std::byte[static_cast<size_t>(count) * SizeOf(dtype)]) {
  std::memset(data_.get(), 0xff, bytes());
}

Array::Array(DType dtype, const std::vector<double>& values) : Array(dtype, static_cast<int64_t>(values.size())) {
  for (int64_t i = 0; i < count_; ++i) Set(i, values[static_cast<size_t>(i)]);
}

double Array::At(int64_t index) const {
  if (dtype_ == DType::kBfloat16) return Bfloat16ToFloat(reinterpret_cast<const uint16_t*>(data_.get())[index]);
  if (dtype_ == DType::kFloat16) return Float16ToFloat(reinterpret_cast<const uint16_t*>(data_.get())[index]);
  double value = 0;
  WithType(dtype_, [&]<typename T>(T) { value = static_cast<double>(reinterpret_cast<const T*>(data_.get())[index]); });
  return value;
}

void Array::Set(int64_t index, double value) {
  const auto narrow = static_cast<float>(value);
  if (dtype_ == DType::kBfloat16) {
    as<uint16_t>()[index] = FloatToBfloat16(narrow);
  } else if (dtype_ == DType::kFloat16) {
    as<uint16_t>()[index] = FloatToFloat16(narrow);
  } else {
    WithType(dtype_, [&]<typename T>(T) { as<T>()[index] = static_cast<T>(value); });
  }
}

std::vector<double> Array::Values() const {
  std::vector<double> values;
  for (int64_t i = 0; i < count_; ++i) values.push_back(At(i));
  return values;
}

Array Uniform(DType dtype, int64_t count, uint64_t seed, double low, double high) {
  std::mt19937_64 random(seed);
  Array array(dtype, count);
  for (int64_t i = 0; i < count; ++i) {
    const double unit = static_cast<double>(random() >> 11) / 9007199254740992.0;
    const double value = IsFloating(dtype) ? low + (high - low) * unit : std::floor(low + (high - low + 1) * unit);
    array.Set(i, value);
  }
  return array;
}

std::string Disagreement(const CaseResult& result) {
  if (result.outputs.size() != result.expected.size()) return "another number of outputs than expected";
  for (size_t output = 0; output < result.outputs.size(); ++output) {
    const Array& found = result.outputs[output];
    const std::vector<double>& expected = result.expected[output];
    const std::string where = "output " + std::to_string(output);
    if (found.count() != static_cast<int64_t>(expected.size())) return where + " has another size than expected";
    const double tolerance = IsFloating(found.dtype()) ? result.tolerance + RoundingOf(found.dtype()) : 0;
    for (int64_t i = 0; i < found.count(); ++i) {
      const double wanted = expected[static_cast<size_t>(i)];
      if (!Agrees(found.At(i), wanted, tolerance)) {
        return where + " element " + std::to_string(i) + " is " + std::to_string(found.At(i)) + ", expected " +
               std::to_string(wanted);
      }
    }
  }
  return "";
}

DeviceCases AllDeviceCases() {
  DeviceCases cases;
  AddBinaryLossCases(cases);
  AddCumulativeCases(cases);
  AddDropoutCases(cases);
  AddElementwiseCases(cases);
  AddGroupNormalizationCases(cases);
  AddIndexCases(cases);
  AddMadeCases(cases);
  AddReductionCases(cases);
  AddResizeCases(cases);
  AddRowCases(cases);
  AddSortCases(cases);
  AddStepCases(cases);
  AddWindowCases(cases);
  return cases;
}

}  // namespace onnxtrain
