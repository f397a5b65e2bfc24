// SPDX-License-Identifier: Apache-2.0
// A read-only array in host memory: an owned tensor, or a region of a mapped file that is never expanded as a whole.
#ifndef ONNXTRAIN_RUNTIME_DATA_ARRAY_H_
#define ONNXTRAIN_RUNTIME_DATA_ARRAY_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <variant>

#include "graph/status.h"
#include "graph/tensor.h"
#include "runtime/data/file_contents.h"

namespace onnxtrain {

// Rows are the slices along axis 0; each is dense, little endian, *not aligned*: use memcpy. Move-only.
class Array {
 public:
  explicit Array(Tensor tensor);
  // `type` at `offset` of the file, consecutive rows `row_stride` bytes apart (at least a row's own bytes).
  // CHECKs that every row lies inside the file: parsers establish that before.
  Array(FileContents file, size_t offset, TensorType type, size_t row_stride);
  // Dense: row_stride is the size of a row.
  Array(FileContents file, size_t offset, TensorType type);

  const TensorType& type() const { return type_; }
  // Dimension 0; 1 for rank 0.
  int64_t rows() const { return rows_; }
  size_t row_bytes() const { return row_bytes_; }
  // `index` in [0, rows()).
  const std::byte* row(int64_t index) const;
  // A dense copy, or the owned tensor itself.
  Tensor ToTensor() const&;
  Tensor ToTensor() &&;

 private:
  const std::byte* base() const;
  void MeasureRows();

  std::variant<Tensor, FileContents> holder_;
  TensorType type_;
  size_t offset_ = 0;
  size_t row_stride_ = 0;
  int64_t rows_ = 0;
  size_t row_bytes_ = 0;
};

}  // namespace onnxtrain

#endif  // ONNXTRAIN_RUNTIME_DATA_ARRAY_H_
