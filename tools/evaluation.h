// SPDX-License-Identifier: Apache-2.0
// A whole data set through the inference form of the model.
#ifndef ONNXTRAIN_TOOLS_EVALUATION_H_
#define ONNXTRAIN_TOOLS_EVALUATION_H_

#include <memory>
#include <string>
#include <vector>

#include "runtime/data/prefetching_loader.h"
#include "runtime/training_session.h"
#include "tools/run_data.h"

namespace onnxtrain {

// Global batches of a data set, one after the other, gathered ahead by a thread of its own.
class BatchFeeds {
 public:
  // `batches` of them from `start` on. Borrows the data set. InvalidData when an epoch gives no batch.
  static StatusOr<std::unique_ptr<BatchFeeds>> Create(const Dataset& dataset, const SamplerOptions& sampler,
                                                      SamplerPosition start, int64_t batches);
  int64_t batches_per_epoch() const { return batches_per_epoch_; }
  // Waits for the next batch, of which there must be one. What follows speaks of it, and feeds are valid until the next
  // call.
  Status Next();
  const Feeds& feeds() const { return feeds_; }
  int64_t samples() const { return batch_->samples; }
  // Where the batch after it begins.
  SamplerPosition next_position() const { return batch_->next; }
  // Rows [begin, begin + count) of every per-sample feed, for writing them out.
  std::vector<std::pair<std::string, Tensor>> Rows(int64_t begin, int64_t count) const;

 private:
  BatchFeeds() = default;

  std::vector<const Column*> columns_;
  int64_t batches_per_epoch_ = 0;
  std::unique_ptr<PrefetchingLoader> loader_;
  const LoadedBatch* batch_ = nullptr;
  Feeds feeds_;
};

class Evaluation {
 public:
  // `batch` samples at a time; `whole_batches` leaves out a partial one. Borrows the data set.
  static StatusOr<Evaluation> Create(const Dataset& dataset, int64_t batch, bool whole_batches);
  StatusOr<EvalResult> Run(TrainingSession& session) const;

 private:
  Evaluation(const Dataset& dataset, const SamplerOptions& sampler) : dataset_(&dataset), sampler_(sampler) {}
  const Dataset* dataset_;
  SamplerOptions sampler_;
};

}  // namespace onnxtrain

#endif  // ONNXTRAIN_TOOLS_EVALUATION_H_
