// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/array.h"

#include <cstring>
#include <utility>

namespace onnxtrain {

Array::Array(Tensor tensor) : holder_(std::move(tensor)), type_(std::get<Tensor>(holder_).type()) {
  MeasureRows();
  row_stride_ = row_bytes_;
}

Array::Array(FileContents file, size_t offset, TensorType type, size_t row_stride)
    : holder_(std::move(file)), type_(std::move(type)), offset_(offset), row_stride_(row_stride) {
  MeasureRows();
  const size_t size = std::get<FileContents>(holder_).bytes().size();
  CHECK(row_stride_ >= row_bytes_ && offset_ <= size);
  if (rows_ > 0 && row_bytes_ > 0) {
    CHECK(row_bytes_ <= size - offset_);
    CHECK(static_cast<size_t>(rows_ - 1) <= (size - offset_ - row_bytes_) / row_stride_);
  }
}

Array::Array(FileContents file, size_t offset, TensorType type)
    : Array(std::move(file), offset, type,
            type.shape.empty() ? type.bytes()
                               : static_cast<size_t>(ElementsOf(std::span<const int64_t>(type.shape).subspan(1))) *
                                     SizeOf(type.dtype)) {}

void Array::MeasureRows() {
  const std::span<const int64_t> shape(type_.shape);
  rows_ = shape.empty() ? 1 : shape[0];
  const int64_t row_elements = shape.empty() ? 1 : ElementsOf(shape.subspan(1));
  row_bytes_ = static_cast<size_t>(row_elements) * SizeOf(type_.dtype);
}

const std::byte* Array::base() const {
  if (const Tensor* tensor = std::get_if<Tensor>(&holder_)) return tensor->data();
  return std::get<FileContents>(holder_).bytes().data() + offset_;
}

const std::byte* Array::row(int64_t index) const {
  CHECK(index >= 0 && index < rows_);
  return base() + static_cast<size_t>(index) * row_stride_;
}

Tensor Array::ToTensor() const& {
  if (const Tensor* tensor = std::get_if<Tensor>(&holder_)) return *tensor;
  Tensor result(type_);
  if (row_stride_ == row_bytes_) {
    if (result.bytes() > 0) std::memcpy(result.data(), base(), result.bytes());
    return result;
  }
  for (int64_t i = 0; i < rows_; ++i) {
    std::memcpy(result.data() + static_cast<size_t>(i) * row_bytes_, row(i), row_bytes_);
  }
  return result;
}

Tensor Array::ToTensor() && {
  if (Tensor* tensor = std::get_if<Tensor>(&holder_)) return std::move(*tensor);
  return static_cast<const Array&>(*this).ToTensor();
}

}  // namespace onnxtrain
