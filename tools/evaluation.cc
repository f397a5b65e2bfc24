// SPDX-License-Identifier: Apache-2.0
#include "tools/evaluation.h"

#include <cstring>

namespace onnxtrain {

StatusOr<std::unique_ptr<BatchFeeds>> BatchFeeds::Create(const Dataset& dataset, const SamplerOptions& options,
                                                         SamplerPosition start, int64_t batches) {
  ASSIGN_OR_RETURN(Sampler sampler, Sampler::Create(options));
  std::unique_ptr<BatchFeeds> made(new BatchFeeds());
  made->batches_per_epoch_ = sampler.batches_per_epoch();
  ASSIGN_OR_RETURN(BatchLoader loader, BatchLoader::Create(&dataset, std::move(sampler), {}));
  made->columns_ = loader.columns();
  for (const Column* column : made->columns_) made->feeds_[column->name()] = nullptr;
  PrefetchOptions prefetch;
  prefetch.start = start;
  prefetch.batches = batches;
  ASSIGN_OR_RETURN(made->loader_, PrefetchingLoader::Create(std::move(loader), prefetch));
  return made;
}

Status BatchFeeds::Next() {
  ASSIGN_OR_RETURN(const LoadedBatch* batch, loader_->Next());
  CHECK(batch != nullptr);
  batch_ = batch;
  for (size_t i = 0; i < columns_.size(); ++i) {
    feeds_.find(columns_[i]->name())->second = batch->micro_batches[0].feeds[i].bytes.data();
  }
  return OkStatus();
}

std::vector<std::pair<std::string, Tensor>> BatchFeeds::Rows(int64_t begin, int64_t count) const {
  std::vector<std::pair<std::string, Tensor>> rows;
  for (size_t i = 0; i < columns_.size(); ++i) {
    const TensorType type = columns_[i]->BatchType(count);
    const bool per_sample = !(columns_[i]->BatchType(count + 1) == type);
    const size_t row_bytes = per_sample ? columns_[i]->BatchType(1).bytes() : 0;
    Tensor tensor(type);
    const std::byte* from = batch_->micro_batches[0].feeds[i].bytes.data() + row_bytes * static_cast<size_t>(begin);
    if (tensor.bytes() != 0) std::memcpy(tensor.data(), from, tensor.bytes());
    rows.emplace_back(columns_[i]->name(), std::move(tensor));
  }
  return rows;
}

StatusOr<Evaluation> Evaluation::Create(const Dataset& dataset, int64_t batch, bool whole_batches) {
  SamplerOptions sampler;
  sampler.samples = dataset.samples();
  sampler.global_batch = batch;
  sampler.shuffle = false;
  sampler.drop_last = whole_batches;
  RETURN_IF_ERROR(Sampler::Create(sampler).status());
  return Evaluation(dataset, sampler);
}

StatusOr<EvalResult> Evaluation::Run(TrainingSession& session) const {
  ASSIGN_OR_RETURN(const Sampler sampler, Sampler::Create(sampler_));
  ASSIGN_OR_RETURN(const std::unique_ptr<BatchFeeds> feeds,
                   BatchFeeds::Create(*dataset_, sampler_, {}, sampler.batches_per_epoch()));
  EvalResult total;
  for (int64_t batch = 0; batch < feeds->batches_per_epoch(); ++batch) {
    RETURN_IF_ERROR(feeds->Next());
    ASSIGN_OR_RETURN(const EvalResult result, session.Evaluate(feeds->feeds(), feeds->samples()));
    total.Add(result);
  }
  return total;
}

}  // namespace onnxtrain
