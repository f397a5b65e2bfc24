// SPDX-License-Identifier: Apache-2.0
#include "tools/evaluation.h"

#include <cstring>

namespace onnxtrain {

StatusOr<std::unique_ptr<BatchFeeds>> BatchFeeds::Create(const Dataset& dataset, const SamplerOptions& options) {
  ASSIGN_OR_RETURN(Sampler sampler, Sampler::Create(options));
  ASSIGN_OR_RETURN(BatchLoader loader, BatchLoader::Create(&dataset, std::move(sampler), {}));
  std::unique_ptr<BatchFeeds> made(new BatchFeeds(std::move(loader)));
  const std::vector<const Column*>& columns = made->loader_.columns();
  for (size_t i = 0; i < columns.size(); ++i) {
    made->buffers_.emplace_back(made->loader_.Type(i, options.global_batch));
  }
  for (size_t i = 0; i < columns.size(); ++i) made->feeds_[columns[i]->name()] = made->buffers_[i].data();
  return made;
}

Status BatchFeeds::Load(SamplerPosition position) {
  samples_ = loader_.sampler().BatchSize(position);
  std::vector<BatchDestination> destinations;
  for (size_t i = 0; i < buffers_.size(); ++i) {
    const TensorType type = loader_.Type(i, samples_);
    destinations.push_back({type, {buffers_[i].data(), type.bytes()}});
  }
  return loader_.Fill(position, 0, 0, destinations);
}

std::vector<std::pair<std::string, Tensor>> BatchFeeds::Rows(int64_t begin, int64_t count) const {
  std::vector<std::pair<std::string, Tensor>> rows;
  for (size_t i = 0; i < buffers_.size(); ++i) {
    const TensorType type = loader_.Type(i, count);
    const bool per_sample = !(loader_.Type(i, count + 1) == type);
    const size_t row_bytes = per_sample ? loader_.Type(i, 1).bytes() : 0;
    Tensor tensor(type);
    std::memcpy(tensor.data(), buffers_[i].data() + row_bytes * static_cast<size_t>(begin), type.bytes());
    rows.emplace_back(loader_.columns()[i]->name(), std::move(tensor));
  }
  return rows;
}

StatusOr<Evaluation> Evaluation::Create(const Dataset& dataset, int64_t batch, bool whole_batches) {
  SamplerOptions sampler;
  sampler.samples = dataset.samples();
  sampler.global_batch = batch;
  sampler.shuffle = false;
  sampler.drop_last = whole_batches;
  ASSIGN_OR_RETURN(std::unique_ptr<BatchFeeds> feeds, BatchFeeds::Create(dataset, sampler));
  return Evaluation(std::move(feeds));
}

StatusOr<EvalResult> Evaluation::Run(TrainingSession& session) {
  EvalResult total;
  SamplerPosition position;
  for (int64_t batch = 0; batch < feeds_->sampler().batches_per_epoch(); ++batch) {
    RETURN_IF_ERROR(feeds_->Load(position));
    ASSIGN_OR_RETURN(const EvalResult result, session.Evaluate(feeds_->feeds(), feeds_->samples()));
    total.Add(result);
    position = feeds_->sampler().Next(position);
  }
  return total;
}

}  // namespace onnxtrain
