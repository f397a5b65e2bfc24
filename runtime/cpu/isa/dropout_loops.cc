// SPDX-License-Identifier: Apache-2.0
#include "runtime/cpu/isa/dropout_loops.h"

#include "runtime/math/philox.h"

namespace onnxtrain::ONNXTRAIN_ISA_NAMESPACE {
namespace {

constexpr int kLanes = kDropoutBlock / 4;

// Words of the elements first .. first + kDropoutBlock - 1.
inline void DrawBlock(const DropoutDraw& draw, int64_t first, uint32_t* words) {
  uint32_t lanes[4][kLanes];
#pragma omp simd
  for (int lane = 0; lane < kLanes; ++lane) {
    const uint32_t block = static_cast<uint32_t>(first / 4 + lane);
    const math::PhiloxCounter drawn = math::Philox4x32({{block, draw.draw_id, draw.attempt, draw.slice}}, draw.seed);
    lanes[0][lane] = drawn.words[0];
    lanes[1][lane] = drawn.words[1];
    lanes[2][lane] = drawn.words[2];
    lanes[3][lane] = drawn.words[3];
  }
  for (int lane = 0; lane < kLanes; ++lane) {
    for (int word = 0; word < 4; ++word) words[lane * 4 + word] = lanes[word][lane];
  }
}

template <typename T>
inline void Drop(const DropoutDraw& draw, const T* x, T scale, int64_t begin, int64_t end, T* y, uint8_t* mask) {
  alignas(64) uint32_t words[kDropoutBlock];
  for (int64_t first = begin; first < end; first += kDropoutBlock) {
    DrawBlock(draw, first, words);
    const int64_t count = end - first < kDropoutBlock ? end - first : kDropoutBlock;
#pragma omp simd
    for (int64_t i = 0; i < count; ++i) y[first + i] = words[i] >= draw.threshold ? x[first + i] * scale : T{0};
    if (mask == nullptr) continue;
    for (int64_t i = 0; i < count; ++i) mask[first + i] = words[i] >= draw.threshold;
  }
}

template <typename T>
inline void Mask(const T* x, const uint8_t* mask, T scale, int64_t begin, int64_t end, T* y) {
#pragma omp simd
  for (int64_t i = begin; i < end; ++i) y[i] = mask[i] != 0 ? x[i] * scale : T{0};
}

}  // namespace

#define ONNXTRAIN_DEFINE_DROPOUT_LOOPS(T)                                                                          \
  void DropoutRun(const DropoutDraw& draw, const T* x, T scale, int64_t begin, int64_t end, T* y, uint8_t* mask) { \
    Drop(draw, x, scale, begin, end, y, mask);                                                                     \
  }                                                                                                                \
  void MaskRun(const T* x, const uint8_t* mask, T scale, int64_t begin, int64_t end, T* y) {                       \
    Mask(x, mask, scale, begin, end, y);                                                                           \
  }
ONNXTRAIN_DEFINE_DROPOUT_LOOPS(float)
ONNXTRAIN_DEFINE_DROPOUT_LOOPS(double)

}  // namespace onnxtrain::ONNXTRAIN_ISA_NAMESPACE
