// SPDX-License-Identifier: Apache-2.0
// A whole data set through the inference form of the model.
#ifndef ONNXTRAIN_TOOLS_EVALUATION_H_
#define ONNXTRAIN_TOOLS_EVALUATION_H_

#include <memory>
#include <string>
#include <vector>

#include "runtime/data/batch_loader.h"
#include "runtime/training_session.h"
#include "tools/run_data.h"

namespace onnxtrain {

// Global batches of a data set in buffers that are made once. With a fixed batch in the export, partial batches are
// left out.
class BatchFeeds {
 public:
  static StatusOr<std::unique_ptr<BatchFeeds>> Create(const Dataset& dataset, const SamplerOptions& sampler);
  const Sampler& sampler() const { return loader_.sampler(); }
  // Gathers the batch at a position. The feeds are valid until the next call.
  Status Load(SamplerPosition position);
  const Feeds& feeds() const { return feeds_; }
  int64_t samples() const { return samples_; }
  // Rows [begin, begin + count) of every per-sample feed, for writing them out.
  std::vector<std::pair<std::string, Tensor>> Rows(int64_t begin, int64_t count) const;

 private:
  explicit BatchFeeds(BatchLoader loader) : loader_(std::move(loader)) {}
  BatchLoader loader_;
  std::vector<Tensor> buffers_;  // by column, for a full batch
  Feeds feeds_;
  int64_t samples_ = 0;
};

class Evaluation {
 public:
  // `batch` samples at a time. Borrows the data set.
  static StatusOr<Evaluation> Create(const Dataset& dataset, int64_t batch, bool whole_batches);
  StatusOr<EvalResult> Run(TrainingSession& session);

 private:
  explicit Evaluation(std::unique_ptr<BatchFeeds> feeds) : feeds_(std::move(feeds)) {}
  std::unique_ptr<BatchFeeds> feeds_;
};

}  // namespace onnxtrain

#endif  // ONNXTRAIN_TOOLS_EVALUATION_H_
