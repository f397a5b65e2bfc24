// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/batch_loader.h"

#include <algorithm>
#include <utility>

namespace onnxtrain {

StatusOr<BatchLoader> BatchLoader::Create(const Dataset* dataset, Sampler sampler, const BatchLoaderOptions& options) {
  CHECK(options.ranks > 0 && options.accumulation > 0);
  CHECK(sampler.options().samples <= dataset->samples());
  BatchLoader loader(std::move(sampler));
  loader.options_ = options;
  if (options.columns.empty()) {
    for (const auto& column : dataset->columns()) loader.columns_.push_back(column.get());
  }
  for (const std::string& name : options.columns) {
    const Column* column = dataset->Find(name);
    if (column == nullptr) return UsageError("no data for '" + name + "': give --train " + name + "=FILE");
    loader.columns_.push_back(column);
  }
  for (const Column* column : loader.columns_) loader.scratch_.push_back(column->MakeScratch());
  loader.batch_.reserve(static_cast<size_t>(std::min(loader.sampler_.options().global_batch, dataset->samples())));
  return loader;
}

Slice BatchLoader::MicroBatch(SamplerPosition position, int64_t rank, int64_t micro) const {
  return MicroBatchSlice(sampler_.BatchSize(position), options_.ranks, rank, options_.accumulation, micro);
}

Status BatchLoader::CheckType(const Column& column, const BatchDestination& destination, int64_t samples) const {
  const TensorType type = column.BatchType(samples);
  CHECK(destination.bytes.size() >= destination.type.bytes());
  if (destination.type == type) return OkStatus();
  return InvalidDataError("'" + column.name() + "': expected " + ToString(destination.type) + ", the data gives " +
                          ToString(type));
}

Status BatchLoader::Fill(SamplerPosition position, int64_t rank, int64_t micro,
                         std::span<const BatchDestination> destinations) {
  CHECK(destinations.size() == columns_.size());
  if (batch_position_ != position) {
    sampler_.Batch(position, batch_);
    batch_position_ = position;
  }
  const Slice slice = MicroBatch(position, rank, micro);
  const auto samples =
      std::span<const int64_t>(batch_).subspan(static_cast<size_t>(slice.begin), static_cast<size_t>(slice.size));
  for (size_t i = 0; i < columns_.size(); ++i) {
    RETURN_IF_ERROR(CheckType(*columns_[i], destinations[i], slice.size));
    RETURN_IF_ERROR(columns_[i]->Gather(samples, scratch_[i], destinations[i].bytes.data()));
  }
  return OkStatus();
}

}  // namespace onnxtrain
