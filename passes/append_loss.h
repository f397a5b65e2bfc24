// SPDX-License-Identifier: Apache-2.0
// Appends the loss and its weight.
//
// Before:  logits = ...                                        float[N,C]
// After:   loss = SoftmaxCrossEntropyLoss (logits, labels)     role loss: the mean over the local batch
//          loss_weight = onnxtrain.CountLabels (labels)        role loss_weight: what the mean was divided by
//
// The weight is the number of counted labels for ce and nll, also where the graph has its own SoftmaxCrossEntropyLoss
// or NegativeLogLikelihoodLoss with reduction mean right before the loss; otherwise the number of samples, a constant.
// Sums of loss * weight may be added over micro-batches and ranks; means may not.
//
// Formulas are PyTorch's: mse, l1, smooth_l1 (beta 1) and bce are means over all elements, bce is on
// logits; label_smoothing mixes the mean over the classes into ce.
#ifndef ONNXTRAIN_PASSES_APPEND_LOSS_H_
#define ONNXTRAIN_PASSES_APPEND_LOSS_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "passes/pass.h"

namespace onnxtrain {

enum class LossKind : uint8_t {
  kAuto,  // the graph's own scalar loss
  kCrossEntropy,
  kMeanSquaredError,
  kBinaryCrossEntropy,
  kL1,
  kSmoothL1,
  kNegativeLogLikelihood,
  // Reductions of any value, without labels and weighted by samples (`grad`).
  kSum,
  kMean,
  kHalfSumOfSquares,
};
// "auto", "ce", "mse", "bce", "l1", "smooth_l1", "nll", "sum", "mean", "l2".
std::optional<LossKind> LossKindFromName(std::string_view name);
std::string_view NameOf(LossKind kind);
// ce and nll: labels are class numbers.
inline bool HasClassLabels(LossKind kind) {
  return kind == LossKind::kCrossEntropy || kind == LossKind::kNegativeLogLikelihood;
}

struct AppendLossOptions {
  std::string graph = "step";
  LossKind kind = LossKind::kAuto;
  // Any value of the graph. Empty: for kAuto the only scalar float output, otherwise the only float output.
  std::string output;
  // The input that holds the targets; added when the graph has none of the name.
  std::string labels = "labels";
  // Type of a new labels input as it is fed. Unknown: int64 without the class axis 1 for class labels, else that of the
  // output.
  TensorType labels_type;
  int64_t ignore_index = -100;
  double label_smoothing = 0;
  // For the eval graph: adds the outputs loss_sum, loss_weight, status and, where labels are classes, correct and
  // counted.
  bool evaluation = false;
  // Receives one sentence for each thing that looks wrong and is done anyway: ce on the output of a Softmax, nll on
  // anything but a LogSoftmax. Borrowed; may be null.
  std::vector<std::string>* warnings = nullptr;
};

// Sets the roles loss and loss_weight, and accuracy_logits and labels where labels are classes. Fails with InvalidModel
// for a loss that is ambiguous, missing or not one floating-point number (the candidates are listed), with Usage for
// unknown names and for options that the loss does not use, with InvalidData for labels of a wrong type or shape.
std::unique_ptr<Pass> AppendLoss(const AppendLossOptions& options);

// The float outputs a loss could be made of, as "name: float[8,10]" lines: for messages, `check` and `inspect`.
std::string LossCandidates(const Graph& graph);

}  // namespace onnxtrain

#endif  // ONNXTRAIN_PASSES_APPEND_LOSS_H_
