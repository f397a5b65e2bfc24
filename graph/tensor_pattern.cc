// SPDX-License-Identifier: Apache-2.0
#include "graph/tensor_pattern.h"

#include <algorithm>
#include <cmath>

namespace onnxtrain {
namespace {

constexpr double kMaskedOut = -1e4;
constexpr double kTolerance = 1e-3;

// Where column pairs (sine, cosine) of a table lie.
struct PairLayout {
  int64_t sine = 0;    // first sine column
  int64_t cosine = 0;  // first cosine column
  int64_t stride = 1;  // to the next pair
};

bool Near(double a, double b) { return std::abs(a - b) < kTolerance; }

// Rows 0, 1, 2, ... turn pair by pair by a constant angle, from angle 0 on.
bool Turns(const Tensor& tensor, int64_t rows, int64_t columns, const PairLayout& layout) {
  for (int64_t pair = 0; pair < columns / 2; ++pair) {
    const int64_t sine = layout.sine + pair * layout.stride;
    const int64_t cosine = layout.cosine + pair * layout.stride;
    const double angle = std::atan2(tensor.DoubleAt(columns + sine), tensor.DoubleAt(columns + cosine));
    for (int64_t row = 0; row < rows; ++row) {
      const double turned = angle * static_cast<double>(row);
      const double slack = kTolerance * (1.0 + 1e-3 * static_cast<double>(row));
      if (std::abs(tensor.DoubleAt(row * columns + sine) - std::sin(turned)) > slack) return false;
      if (std::abs(tensor.DoubleAt(row * columns + cosine) - std::cos(turned)) > slack) return false;
    }
  }
  return true;
}

}  // namespace

bool LooksLikeMask(const Tensor& tensor) {
  const Shape& shape = tensor.shape();
  if (shape.size() < 2 || shape.back() != shape[shape.size() - 2] || !IsFloating(tensor.dtype())) return false;
  bool zero = false;
  bool one = false;
  bool masked = false;
  for (int64_t i = 0; i < tensor.elements(); ++i) {
    const double value = tensor.DoubleAt(i);
    if (value != 0.0 && value != 1.0 && !(value <= kMaskedOut)) return false;
    zero = zero || value == 0.0;
    one = one || value == 1.0;
    masked = masked || value <= kMaskedOut;
    if (one && masked) return false;
  }
  return zero && (one || masked);
}

bool IsUniform(const Tensor& tensor) {
  const size_t size = SizeOf(tensor.dtype());
  return tensor.bytes() <= size || std::memcmp(tensor.data(), tensor.data() + size, tensor.bytes() - size) == 0;
}

bool LooksLikeSinusoids(const Tensor& tensor) {
  const Shape& shape = tensor.shape();
  if (shape.size() < 2 || !IsFloating(tensor.dtype())) return false;
  const int64_t columns = shape.back();
  const int64_t rows = shape[shape.size() - 2];
  if (rows < 3 || columns < 2 || columns % 2 != 0 || tensor.elements() != rows * columns) return false;
  // Row 0 is all sin(0) and cos(0): weights are turned down here, before any trigonometry.
  const bool halves = Near(tensor.DoubleAt(0), 0.0) && Near(tensor.DoubleAt(columns / 2), 1.0);
  const bool halves_reversed = Near(tensor.DoubleAt(0), 1.0) && Near(tensor.DoubleAt(columns / 2), 0.0);
  const bool alternating = Near(tensor.DoubleAt(0), 0.0) && Near(tensor.DoubleAt(1), 1.0);
  return (halves && Turns(tensor, rows, columns, {0, columns / 2, 1})) ||
         (halves_reversed && Turns(tensor, rows, columns, {columns / 2, 0, 1})) ||
         (alternating && Turns(tensor, rows, columns, {0, 1, 2}));
}

}  // namespace onnxtrain
