// SPDX-License-Identifier: Apache-2.0
// The view a gradient rule has of the node it differentiates.
//
// For y = f(x1, ..., xn) and a scalar L the rule receives dL/dy for each output (null where L does not depend on it)
// and sets dL/dx for each input that wants one. A rule emits standard nodes where that is exact and fast, or an
// onnxtrain.*Grad operator where fusing is more stable or faster. It may read inputs and outputs of the node.
#ifndef ONNXTRAIN_GRAPH_GRADIENT_H_
#define ONNXTRAIN_GRAPH_GRADIENT_H_

#include <vector>

#include "graph/graph_builder.h"

namespace onnxtrain {

class GradientContext {
 public:
  GradientContext(const Node& node, GraphBuilder& builder, std::vector<Value*> output_gradients,
                  std::vector<bool> wanted)
      : node_(node),
        build(builder),
        output_gradients_(std::move(output_gradients)),
        wanted_(std::move(wanted)),
        input_gradients_(wanted_.size(), nullptr) {}

  const Node& node() const { return node_; }
  const Attributes& attributes() const { return node_.attributes(); }
  Value* input(size_t index) const { return node_.input(index); }
  Value* output(size_t index) const { return node_.output(index); }
  // dL/d output; null when L does not depend on it. At least one is not null.
  Value* output_gradient(size_t index) const {
    return index < output_gradients_.size() ? output_gradients_[index] : nullptr;
  }
  // Whether anybody wants dL/d input. False for integer inputs and stop_gradient_inputs.
  bool wanted(size_t index) const { return index < wanted_.size() && wanted_[index]; }
  // Must have the type of the input. Null leaves it without a contribution.
  void SetInputGradient(size_t index, Value* gradient) { input_gradients_[index] = gradient; }
  const std::vector<Value*>& input_gradients() const { return input_gradients_; }

 private:
  const Node& node_;

 public:
  GraphBuilder& build;

 private:
  std::vector<Value*> output_gradients_;
  std::vector<bool> wanted_;
  std::vector<Value*> input_gradients_;
};

}  // namespace onnxtrain

#endif  // ONNXTRAIN_GRAPH_GRADIENT_H_
