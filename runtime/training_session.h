// SPDX-License-Identifier: Apache-2.0
// The one header an embedding program includes: load an exported model, train steps from your own buffers, read and write
// parameters, evaluate, save and export. Several sessions may live in one process; one thread at a time uses a session.
//
//   onnxtrain::TrainingOptions options;
//   options.loss = "ce"; options.labels = "labels"; options.batch_size = 64;
//   auto session = onnxtrain::TrainingSession::Create("model.onnx", options);
//   if (!session.ok()) { ... session.status().message() ... }
//   auto result = (*session)->Step({{"x", images}, {"labels", classes}}, 64);
#ifndef ONNXTRAIN_RUNTIME_TRAINING_SESSION_H_
#define ONNXTRAIN_RUNTIME_TRAINING_SESSION_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "graph/status.h"
#include "graph/tensor.h"
#include "runtime/training_options.h"

namespace onnxtrain {

// Host bytes of the inputs of one global batch by name: per-sample inputs hold all samples, axis 0 first. Borrowed for
// the duration of the call.
using Feeds = std::map<std::string, const void*, std::less<>>;

struct StepResult {
  int64_t step = 0;          // number of this step, from 0
  double loss = 0;           // mean over the global batch, before the update
  double grad_norm = 0;      // 2-norm of the mean gradient before clipping
  double learning_rate = 0;
  bool applied = true;       // false: loss or gradient not finite; the state is as before
};

struct EvalResult {
  double loss_sum = 0;   // weighted; loss = loss_sum / weight
  double weight = 0;
  int64_t correct = 0;   // counted labels whose arg max is right
  int64_t counted = 0;   // 0: no classes, no accuracy
  int64_t samples = 0;
  void Add(const EvalResult& other);
};

// An initializer and what this run does with it.
struct TensorInfo {
  std::string name;
  TensorType type;
  std::string verdict;  // trainable, frozen, buffer, constant
  std::string reason;
};

class TrainingSession {
 public:
  // Loads, differentiates, plans, verifies the plans, allocates. Fails with InvalidModel, Usage or ResourceExhausted.
  static StatusOr<std::unique_ptr<TrainingSession>> Create(const std::string& model_path,
                                                           const TrainingOptions& options);
  virtual ~TrainingSession() = default;

  // One training step on a global batch of `samples` (at most batch_size * ranks * accumulation; fewer is a partial batch, weighted
  // by samples). A label or index out of range is InvalidData and changes nothing; a non-finite loss or gradient is
  // applied = false.
  virtual StatusOr<StepResult> Step(const Feeds& feeds, int64_t samples) = 0;
  // Loss and accuracy of up to batch_size * ranks samples in the inference form; nothing is updated.
  virtual StatusOr<EvalResult> Evaluate(const Feeds& feeds, int64_t samples) = 0;

  // Every tensor that a checkpoint holds, by canonical name: "parameter/<initializer>", "frozen/..", "buffer/..",
  // "moment1/..", "counter/step".
  virtual std::vector<std::string> StateNames() const = 0;
  virtual StatusOr<Tensor> ReadState(std::string_view canonical_name) = 0;
  virtual Status WriteState(std::string_view canonical_name, const Tensor& tensor) = 0;
  // The same for a weight or buffer under its name in the file.
  virtual StatusOr<Tensor> ReadTensor(std::string_view initializer) = 0;
  virtual Status WriteTensor(std::string_view initializer, const Tensor& tensor) = 0;
  virtual const std::vector<TensorInfo>& tensors() const = 0;
  virtual int64_t step() const = 0;  // updates done

  // Whole or not at all: folder/step-NNNNNNNN. `metadata_json` is kept as it is.
  virtual Status SaveCheckpoint(const std::string& folder, const std::string& metadata_json) = 0;
  // A folder step-NNNNNNNN; ranks, ZeRO stage and buckets may differ from those it was written with.
  virtual Status LoadCheckpoint(const std::string& folder) = 0;
  // The user's own file with the present weights: equal to the original in every other field.
  virtual Status SaveModel(const std::string& path) = 0;
  // The inference form: BatchNormalization and Dropout for inference, loss and labels removed, weights under their old names.
  virtual Status ExportInference(const std::string& path) = 0;

  // After a step that was not applied, or before any step: runs that batch node by node and names the first node and tensor
  // that is not finite. Nothing is updated.
  virtual Status ExplainNonFinite(const Feeds& feeds, int64_t samples) = 0;

  // For people: the plan of a graph ("step", "eval", ...) as text, and notes collected at creation.
  virtual StatusOr<std::string> PlanText(std::string_view graph) const = 0;
  virtual const std::vector<std::string>& notes() const = 0;
  // Bytes of one rank by plan: states, constants and the largest transient region so far.
  virtual int64_t planned_bytes() const = 0;
  // Nodes without a gradient rule of ours that are differentiated through their ONNX function body.
  virtual const std::vector<std::string>& decomposed() const = 0;
};

}  // namespace onnxtrain

#endif  // ONNXTRAIN_RUNTIME_TRAINING_SESSION_H_
