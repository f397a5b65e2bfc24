// SPDX-License-Identifier: Apache-2.0
// Index inputs of gather and scatter kernels: checked, with negative values counted from the end.
#ifndef ONNXTRAIN_RUNTIME_CPU_KERNELS_INDICES_H_
#define ONNXTRAIN_RUNTIME_CPU_KERNELS_INDICES_H_

#include <cstdint>

#include "runtime/cpu/strided_rows.h"
#include "runtime/status_word.h"

namespace onnxtrain {

template <typename Index>
class IndexReader {
 public:
  IndexReader(const LaunchArgs& args, size_t input, int node_index)
      : values_(args.input<Index>(input)), status_word_(args.status_word), node_index_(node_index) {}

  // Index `i` into an axis of `size` elements; -1, with the status word set, when it is out of range.
  int64_t At(int64_t i, int64_t size) const {
    int64_t index = values_[i];
    if (index < 0) index += size;
    if (index >= 0 && index < size) return index;
    SetStatusWord(status_word_, DeviceFault::kIndexOutOfRange, node_index_);
    return -1;
  }

 private:
  const Index* values_;
  uint64_t* status_word_;
  int node_index_;
};

// Indices [batch..., n..., m] into data [batch..., d1..dm, inner...]: each last axis is a tuple that names a slice.
class IndexTuples {
 public:
  IndexTuples(const Shape& data, const Shape& indices, int64_t batch_axes) {
    const auto batch_rank = static_cast<size_t>(batch_axes);
    const auto length = static_cast<size_t>(indices.back());
    const Strides strides = DenseStrides(data);
    for (size_t i = 0; i + 1 < indices.size(); ++i) count_ *= indices[i];
    int64_t batches = 1;
    for (size_t i = 0; i < batch_rank; ++i) batches *= data[i];
    per_batch_ = batches == 0 ? 1 : std::max<int64_t>(1, count_ / batches);
    batch_stride_ = batch_rank == 0 ? 0 : strides[batch_rank - 1];
    for (size_t i = 0; i < length; ++i) {
      sizes_.push_back(data[batch_rank + i]);
      strides_.push_back(strides[batch_rank + i]);
    }
    for (size_t i = batch_rank + length; i < data.size(); ++i) inner_ *= data[i];
  }

  int64_t count() const { return count_; }
  int64_t inner() const { return inner_; }  // elements of a slice
  // Where slice `i` begins in the data; -1 when an index is out of range.
  int64_t Offset(const IndexReader<int64_t>& indices, int64_t i) const {
    int64_t offset = i / per_batch_ * batch_stride_;
    for (size_t axis = 0; axis < sizes_.size(); ++axis) {
      const int64_t index =
          indices.At(i * static_cast<int64_t>(sizes_.size()) + static_cast<int64_t>(axis), sizes_[axis]);
      if (index < 0) return -1;
      offset += index * strides_[axis];
    }
    return offset;
  }

 private:
  int64_t count_ = 1;
  int64_t per_batch_ = 1;
  int64_t batch_stride_ = 0;
  int64_t inner_ = 1;
  Shape sizes_;
  Strides strides_;
};

}  // namespace onnxtrain

#endif  // ONNXTRAIN_RUNTIME_CPU_KERNELS_INDICES_H_
