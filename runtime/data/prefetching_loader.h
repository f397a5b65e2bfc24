// SPDX-License-Identifier: Apache-2.0
// A thread that gathers the next global batches while the current one is trained on.
#ifndef ONNXTRAIN_RUNTIME_DATA_PREFETCHING_LOADER_H_
#define ONNXTRAIN_RUNTIME_DATA_PREFETCHING_LOADER_H_

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "graph/status.h"
#include "graph/tensor.h"
#include "runtime/data/batch_loader.h"

namespace onnxtrain {

struct PrefetchOptions {
  SamplerPosition start;
  int64_t batches = 0;  // to deliver in all
  // The ranks of this process.
  int64_t first_rank = 0;
  int64_t local_ranks = 1;
  int depth = 2;  // batches gathered ahead of the one in use
};

// One column of a micro-batch, in the order of the loader's columns. The bytes belong to the loader.
struct LoadedFeed {
  TensorType type;
  std::span<const std::byte> bytes;
};

struct LoadedMicroBatch {
  int64_t samples = 0;
  std::vector<LoadedFeed> feeds;
};

struct LoadedBatch {
  SamplerPosition position;  // of this batch
  SamplerPosition next;      // to resume from after it
  int64_t samples = 0;       // of the global batch
  // Local rank * accumulation + micro-batch.
  std::vector<LoadedMicroBatch> micro_batches;
};

// Next from one thread. All buffers are made in Create; the thread ends with the object.
class PrefetchingLoader {
 public:
  static StatusOr<std::unique_ptr<PrefetchingLoader>> Create(BatchLoader loader, const PrefetchOptions& options);
  virtual ~PrefetchingLoader() = default;

  // Waits for the next batch; null after the last one. It is valid until the following call of Next. What goes wrong in
  // the thread is returned in place of the batch it happened in, and by every later call.
  virtual StatusOr<const LoadedBatch*> Next() = 0;
};

}  // namespace onnxtrain

#endif  // ONNXTRAIN_RUNTIME_DATA_PREFETCHING_LOADER_H_
