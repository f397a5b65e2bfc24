// SPDX-License-Identifier: Apache-2.0
// Which initializers of a model train, and why.
//
// Neither exporter of PyTorch records requires_grad, so the rule reads the graph: a tensor trains when its elements are
// floating-point numbers, it reaches the loss through differentiable edges, and nothing says that it is no parameter:
// the label of the dynamo exporter, an input of running statistics, the name of a well-known buffer, a rank of 0, or
// contents that are computed and not learned (masks, tables of sines and cosines). Globs override the rule.
#ifndef ONNXTRAIN_GRAPH_TRAINABLE_SET_H_
#define ONNXTRAIN_GRAPH_TRAINABLE_SET_H_

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "graph/graph.h"
#include "graph/status.h"

namespace onnxtrain {

class OnnxModel;  // graph/onnx_model.h

enum class Verdict : uint8_t {
  kTrainable,
  kFrozen,    // could train, but --freeze or --trainable leaves it out
  kBuffer,    // running statistics and other state of a layer that has no gradient
  kConstant,  // cannot train, or is not meant to
};
std::string_view NameOf(Verdict verdict);  // "trainable", "frozen", "buffer", "constant"

// An initializer as the file has it.
struct InitializerFacts {
  std::string name;
  TensorType type;        // unknown for element types that are not held
  std::string type_text;  // for messages where the type is unknown
  std::string label;      // "PARAMETER", "BUFFER", or "": what the dynamo exporter wrote
};

struct TensorVerdict {
  std::string name;
  Verdict verdict = Verdict::kConstant;
  std::string reason;  // a sentence without a full stop: "the loss does not depend on it"
};

struct TrainableSetOptions {
  std::vector<std::string> trainable;  // globs; empty: the default set
  std::vector<std::string> freeze;     // globs
  bool allow_empty = false;            // `inspect` prints an empty set, training refuses it
};

struct TrainableSet {
  std::vector<TensorVerdict> tensors;  // in the order of the facts
  std::vector<std::string> notes;      // for people: tensors that a glob matches and that cannot train, doubtful cases

  const TensorVerdict* Find(std::string_view name) const;
  std::vector<std::string> Trainable() const;  // names, in order
};

// Bytes of an initializer, for the rules that look at contents. An error ends the search.
using ReadInitializer = std::function<StatusOr<Tensor>(const std::string& name)>;

// `graph` was specialised with every floating-point initializer as a state of its own name; those that nothing needs
// may be missing. `losses` are values of the graph: the loss, or every float output where there is none. Usage for a
// glob that matches no initializer; InvalidModel for one that matches only tensors that cannot train, and for an empty
// set.
StatusOr<TrainableSet> FindTrainableSet(const Graph& graph, std::span<const Value* const> losses,
                                        const std::vector<InitializerFacts>& facts, const ReadInitializer& read,
                                        const TrainableSetOptions& options = {});

// Of all initializers of a model, in the order of the file.
std::vector<InitializerFacts> FactsOf(const OnnxModel& model);
// The same with facts and bytes from the model.
StatusOr<TrainableSet> FindTrainableSet(const Graph& graph, std::span<const Value* const> losses,
                                        const OnnxModel& model, const TrainableSetOptions& options = {});

}  // namespace onnxtrain

#endif  // ONNXTRAIN_GRAPH_TRAINABLE_SET_H_
