// SPDX-License-Identifier: Apache-2.0
// Parts of matrices, numbers in a row, bits.
#include <algorithm>
#include <cmath>

#include "cuda_ops/kernels/bitwise.h"
#include "cuda_ops/kernels/clip.h"
#include "cuda_ops/kernels/matrix_part.h"
#include "tests/cuda/device_case.h"

namespace onnxtrain {
namespace {

CaseResult RunTriangle(DType dtype, int64_t diagonal, bool upper, bool in_place) {
  constexpr int64_t kHeight = 7, kWidth = 33, kCount = 3 * kHeight * kWidth;
  Array x = Uniform(dtype, kCount, 1, 1, 9), k(DType::kInt64, std::vector<double>{static_cast<double>(diagonal)});
  CaseResult result;
  Array& y = result.outputs.emplace_back(in_place ? Uniform(dtype, kCount, 1, 1, 9) : Array(dtype, kCount));
  LaunchTriangle({in_place ? y.data() : x.data(), y.data(), diagonal == 0 ? nullptr : k.as<int64_t>(), kCount, kHeight,
                  kWidth, upper},
                 SizeOf(dtype), nullptr);
  auto& expected = result.expected.emplace_back();
  for (int64_t i = 0; i < kCount; ++i) {
    const int64_t beyond = i % kWidth - i / kWidth % kHeight - diagonal;
    expected.push_back((upper ? beyond >= 0 : beyond <= 0) ? x.At(i) : 0);
  }
  return result;
}

CaseResult RunEye(DType dtype, int64_t diagonal) {
  CaseResult result;
  Array& y = result.outputs.emplace_back(dtype, 9 * 5);
  Array one(dtype, std::vector<double>{1});
  uint64_t bits = 0;
  std::copy_n(one.data(), one.bytes(), reinterpret_cast<std::byte*>(&bits));
  LaunchEye(y.data(), 9, 5, diagonal, bits, SizeOf(dtype), nullptr);
  auto& expected = result.expected.emplace_back();
  for (int64_t i = 0; i < 45; ++i) expected.push_back(i % 5 - i / 5 == diagonal ? 1 : 0);
  return result;
}

CaseResult RunRange(DType dtype) {
  Array start(dtype, std::vector<double>{-30}), delta(dtype, std::vector<double>{3});
  CaseResult result;
  Array& y = result.outputs.emplace_back(dtype, 300);
  LaunchRange(start.data(), delta.data(), y.data(), 300, dtype, nullptr);
  auto& expected = result.expected.emplace_back();
  for (int i = 0; i < 300; ++i) expected.push_back(-30 + 3.0 * i);
  return result;
}

template <typename Bits>
CaseResult RunBitwise(BitwiseFunction function) {
  std::vector<Bits> a, b, y(7 * 5);
  for (uint64_t i = 0; i < 35; ++i) a.push_back(static_cast<Bits>(i * 0x9e3779b97f4a7c15u >> 3));
  for (uint64_t i = 0; i < 5; ++i) b.push_back(static_cast<Bits>(i * 17));
  BitwiseArguments g{a.data(), b.data(), y.data(), {}, sizeof(Bits)};
  MakeStridedLoop<3>({7, 5}, {std::vector<int64_t>{5, 1}, {0, 1}, {5, 1}}, {}, &g.loop);
  LaunchBitwise(function, g, nullptr);
  CaseResult result;
  std::vector<double> wrong;  // by bits, which doubles do not hold
  for (size_t i = 0; i < 35; ++i) {
    const uint64_t left = a[i], right = b[i % 5];
    const bool beyond = right >= sizeof(Bits) * 8;
    const uint64_t all[] = {left & right, left | right, left ^ right, beyond ? 0 : left << right,
                            beyond ? 0 : left >> right};
    wrong.push_back(y[i] == static_cast<Bits>(all[static_cast<size_t>(function)]) ? 0 : 1);
  }
  result.outputs.emplace_back(DType::kUint8, wrong);
  result.expected.emplace_back(35, 0.0);
  return result;
}

template <typename Bits>
CaseResult RunBitwiseNot() {
  std::vector<Bits> x, y(35);
  for (uint64_t i = 0; i < 35; ++i) x.push_back(static_cast<Bits>(i * 0x9e3779b97f4a7c15u >> 3));
  LaunchBitwiseNot(x.data(), y.data(), 35, sizeof(Bits), nullptr);
  CaseResult result;
  std::vector<double> wrong;
  for (size_t i = 0; i < 35; ++i) wrong.push_back((x[i] ^ y[i]) == static_cast<Bits>(~uint64_t{0}) ? 0 : 1);
  result.outputs.emplace_back(DType::kUint8, wrong);
  result.expected.emplace_back(35, 0.0);
  return result;
}

CaseResult RunIsInfinite(DType dtype, bool positive, bool negative) {
  Array x(dtype, std::vector<double>{0, INFINITY, -INFINITY, NAN, 3});
  CaseResult result;
  Array& y = result.outputs.emplace_back(DType::kUint8, 5);
  LaunchIsInfinite(x.data(), dtype, positive, negative, y.as<bool>(), 5, nullptr);
  result.expected.push_back({0, positive ? 1.0 : 0.0, negative ? 1.0 : 0.0, 0, 0});
  return result;
}

template <typename Bits>
void AddBitwise(DeviceCases& cases) {
  for (const BitwiseFunction function : {BitwiseFunction::kAnd, BitwiseFunction::kOr, BitwiseFunction::kXor,
                                         BitwiseFunction::kShiftLeft, BitwiseFunction::kShiftRight}) {
    cases.push_back({"Bitwise", [=] { return RunBitwise<Bits>(function); }});
  }
  cases.push_back({"BitwiseNot", RunBitwiseNot<Bits>});
}

}  // namespace

void AddMadeCases(DeviceCases& cases) {
  for (const DType dtype : {DType::kUint8, DType::kBfloat16, DType::kFloat, DType::kInt64}) {
    for (const int64_t diagonal : {-3, 0, 4}) {
      for (const bool upper : {false, true}) {
        cases.push_back({"Triangle", [=] { return RunTriangle(dtype, diagonal, upper, diagonal == 4); }});
      }
      cases.push_back({"Eye", [=] { return RunEye(dtype, diagonal); }});
    }
  }
  for (const DType dtype : {DType::kFloat, DType::kDouble, DType::kInt32, DType::kInt64}) {
    cases.push_back({"Range", [=] { return RunRange(dtype); }});
  }
  AddBitwise<uint8_t>(cases);
  AddBitwise<uint16_t>(cases);
  AddBitwise<uint32_t>(cases);
  AddBitwise<uint64_t>(cases);
  for (const DType dtype : kDeviceFloats) {
    for (const bool positive : {false, true}) {
      cases.push_back({"IsInfinite", [=] { return RunIsInfinite(dtype, positive, !positive); }});
    }
  }
}

}  // namespace onnxtrain
