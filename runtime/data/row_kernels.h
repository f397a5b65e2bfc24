// SPDX-License-Identifier: Apache-2.0
// The loops behind the steps of a row mapping. Pointers may be unaligned for 8-bit elements only; scratch is aligned.
#ifndef ONNXTRAIN_RUNTIME_DATA_ROW_KERNELS_H_
#define ONNXTRAIN_RUNTIME_DATA_ROW_KERNELS_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "graph/dtype.h"

namespace onnxtrain {

// Element-wise conversion. Returns the first element that `to_type` cannot hold (a float out of the integer's range or
// not finite, an integer out of range), or -1.
int64_t ConvertElements(DType from_type, const std::byte* from, DType to_type, std::byte* to, int64_t count);

enum class RowArithmetic : uint8_t { kDivide, kMultiply, kSubtract };

// to = from op number, for float or double. Element e uses numbers[(e / inner) % numbers.size()].
void ApplyArithmetic(RowArithmetic operation, DType type, const std::byte* from, std::span<const double> numbers,
                     int64_t inner, std::byte* to, int64_t count);

// count class numbers of an integer type to count * classes floats. Returns the first that is not in
// 0..classes-1, or -1.
int64_t OneHot(DType from_type, const std::byte* from, int64_t count, int64_t classes, std::byte* to);

// [rows,h*w,c] to [rows,c,h*w] of elements of `width` bytes.
void ChannelsFirst(const std::byte* from, int64_t rows, int64_t pixels, int64_t channels, size_t width, std::byte* to);

}  // namespace onnxtrain

#endif  // ONNXTRAIN_RUNTIME_DATA_ROW_KERNELS_H_
