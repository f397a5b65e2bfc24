// SPDX-License-Identifier: Apache-2.0
// IDX, the format of MNIST: bytes 0 0 TYPE RANK, big-endian uint32 dimensions, big-endian elements.
// Types 08 u8, 09 i8, 0B i16, 0C i32, 0D f32, 0E f64. Plain or gzip.
#ifndef ONNXTRAIN_RUNTIME_DATA_IDX_H_
#define ONNXTRAIN_RUNTIME_DATA_IDX_H_

#include <cstddef>
#include <span>
#include <string_view>

#include "graph/status.h"
#include "graph/tensor.h"
#include "runtime/data/array.h"

namespace onnxtrain {

bool IsIdx(std::span<const std::byte> bytes);
bool IsGzip(std::span<const std::byte> bytes);

// A whole file in memory, plain or gzip.
StatusOr<Tensor> ParseIdx(std::span<const std::byte> bytes, std::string_view file);

// 8-bit elements of a plain file stay mapped.
StatusOr<Array> OpenIdx(FileContents file);

}  // namespace onnxtrain

#endif  // ONNXTRAIN_RUNTIME_DATA_IDX_H_
