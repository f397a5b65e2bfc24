// SPDX-License-Identifier: Apache-2.0
// Everything that decides what a training run computes. The names are those of the command line (docs/training.md); defaults
// are its defaults. Nothing here is read from the environment.
#ifndef ONNXTRAIN_RUNTIME_TRAINING_OPTIONS_H_
#define ONNXTRAIN_RUNTIME_TRAINING_OPTIONS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "graph/cost_model.h"
#include "graph/tensor.h"

namespace onnxtrain {

// A data input of a run. Per-sample inputs have the sample on axis 0, which is not part of `sample_shape`.
struct FeedSpec {
  DType dtype = DType::kUndefined;
  Shape sample_shape;       // per_sample: the shape of one sample; else the whole shape
  bool per_sample = true;
};

// 'GLOB:lr=..,weight-decay=..': the first group whose glob matches a parameter is its group.
struct ParameterGroup {
  std::string glob;
  std::optional<double> lr;
  std::optional<double> weight_decay;
};

struct TrainingOptions {
  // Loss.
  std::string loss = "auto";  // auto, ce, mse, bce, l1, smooth_l1, nll
  std::string loss_on;        // value of the graph; "" where there is only one candidate
  std::string labels;         // feed that holds the targets
  int64_t ignore_index = -100;
  double label_smoothing = 0;

  // What trains, and how.
  std::vector<std::string> trainable;  // globs; empty: the default set
  std::vector<std::string> freeze;     // globs
  std::string batch_norm = "as-exported";  // as-exported, train, frozen
  std::string dropout = "as-exported";     // as-exported, on, off
  bool untie = false;

  // Optimizer. Unset values take the optimizer's default.
  std::string optimizer = "adamw";  // sgd, adam, adamw, adagrad, lion
  std::optional<double> lr;
  std::optional<double> eps;
  std::optional<double> beta1;
  std::optional<double> beta2;
  std::optional<double> weight_decay;
  double momentum = 0;
  bool nesterov = false;
  std::vector<std::string> no_decay;  // globs, or "rank<2"
  std::vector<ParameterGroup> groups;
  double clip_grad = 0;  // 0: none
  std::string schedule = "constant";  // constant, linear, cosine, step, wsd
  int64_t warmup_steps = 0;
  double min_lr = 0;
  int64_t max_steps = 0;  // planned number of steps; schedules need it
  int64_t step_size = 0;
  double gamma = 0.1;
  std::optional<int64_t> decay_steps;

  // Batch and ranks.
  int64_t batch_size = 32;  // per rank and micro-batch
  int accumulation = 1;
  int ranks = 1;            // threads of this process
  int zero = 0;             // ZeRO stage 0, 1, 2
  std::optional<double> bucket_mb;  // 2^20 bytes each; infinity is one bucket; unset: cut by the cost model
  bool overlap = true;
  bool reduce_sum = false;  // multiplies the gradient by the number of ranks
  int64_t timeout_seconds = 600;

  // Numbers and machine.
  bool cuda_graphs = false;     // replays every step whole after its first run; --device cuda only
  bool tf32 = false;            // factors of float products may be rounded to ten bits; --device cuda only
  bool fallback_to_cpu = false;  // what --device cuda has no kernel for runs on the host
  std::string cache_folder;     // keeps the choices of algorithms from run to run; --device cuda only; empty: not kept
  std::string device = "cpu";   // "cuda": needs libonnxtrain_cuda.so (runtime/backend.h)
  DType dtype = DType::kFloat;  // kFloat, kDouble, or kBfloat16 over float parameters (passes/mixed_precision.h)
  DType reduce_dtype = DType::kFloat;  // of gradients between ranks: kFloat or kBfloat16
  uint64_t seed = 0;
  int threads = 0;              // compute threads of this process, shared by its ranks; 0: one per core
  int64_t memory_limit = 0;     // bytes per rank; 0: none
  CostModel machine;            // what buckets are cut and plans are ordered for; its world_size is not read

  // Only the inference form is made: nothing needs to be trainable, and Step is refused.
  bool evaluation_only = false;

  // Symbolic dimensions by name, beside what feeds and batch size bind.
  std::map<std::string, int64_t> dims;
  // What is fed. Names are graph inputs, or `labels`.
  std::map<std::string, FeedSpec> feeds;

  int64_t global_batch() const { return batch_size * ranks * accumulation; }
};

}  // namespace onnxtrain

#endif  // ONNXTRAIN_RUNTIME_TRAINING_OPTIONS_H_
