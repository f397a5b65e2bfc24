// SPDX-License-Identifier: Apache-2.0
// Batches as the ranks are fed them: rank r of N takes the r-th contiguous slice of each global batch, and cuts it by
// the same rule into micro-batches. A rank or micro-batch may be without samples.
#ifndef ONNXTRAIN_RUNTIME_DATA_BATCH_LOADER_H_
#define ONNXTRAIN_RUNTIME_DATA_BATCH_LOADER_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "graph/status.h"
#include "graph/tensor.h"
#include "runtime/data/dataset.h"
#include "runtime/data/sampler.h"

namespace onnxtrain {

struct BatchLoaderOptions {
  int64_t ranks = 1;
  int64_t accumulation = 1;
  // Names of the columns that Fill delivers, in this order; empty: all of the data set in its order.
  std::vector<std::string> columns;
};

// Where one column of one micro-batch goes. `type` is what the caller has planned for; it must be the column's
// BatchType.
struct BatchDestination {
  TensorType type;
  std::span<std::byte> bytes;
};

// Used by one thread at a time, which may be another than the one that made it.
class BatchLoader {
 public:
  // Borrows `dataset`. kUsage: a column that the data set does not have.
  static StatusOr<BatchLoader> Create(const Dataset* dataset, Sampler sampler, const BatchLoaderOptions& options);

  const Sampler& sampler() const { return sampler_; }
  const BatchLoaderOptions& options() const { return options_; }
  const std::vector<const Column*>& columns() const { return columns_; }

  Slice MicroBatch(SamplerPosition position, int64_t rank, int64_t micro) const;
  // What column `index` of a micro-batch of `samples` is.
  TensorType Type(size_t index, int64_t samples) const { return columns_[index]->BatchType(samples); }
  // Writes each column of that micro-batch; allocates nothing within an epoch. kInvalidData where a destination does
  // not fit the data, or a row does not fit its map.
  Status Fill(SamplerPosition position, int64_t rank, int64_t micro, std::span<const BatchDestination> destinations);

 private:
  BatchLoader(Sampler sampler) : sampler_(std::move(sampler)) {}  // NOLINT: private
  Status CheckType(const Column& column, const BatchDestination& destination, int64_t samples) const;

  Sampler sampler_;
  BatchLoaderOptions options_;
  std::vector<const Column*> columns_;
  std::vector<ColumnScratch> scratch_;
  SamplerPosition batch_position_ = {-1, 0};
  std::vector<int64_t> batch_;  // the samples of the global batch at batch_position_
};

}  // namespace onnxtrain

#endif  // ONNXTRAIN_RUNTIME_DATA_BATCH_LOADER_H_
