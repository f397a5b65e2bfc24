// SPDX-License-Identifier: Apache-2.0
// What an exporter did to a model that a user should know before training it.
#ifndef ONNXTRAIN_GRAPH_TRAPS_H_
#define ONNXTRAIN_GRAPH_TRAPS_H_

#include <span>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "graph/onnx_model.h"
#include "graph/status.h"

namespace onnxtrain {

// Sentences, each naming tensors or nodes and the way out: equal tensors merged behind Identity nodes, ties that
// folding has cut, weights whose names are lost, BatchNormalization and Dropout in inference form, a batch size that is
// fixed, a reduction of the loss that is no mean over samples. `losses` are values of the specialised graph (canonical
// form); empty where it has no loss. Fails only when an initializer cannot be read.
StatusOr<std::vector<std::string>> FindTraps(const OnnxModel& model, std::span<const Value* const> losses);

// Of one loss: "" when it is a mean over samples or counted labels, which ranks and micro-batches combine exactly.
std::string LossReductionTrap(const Value& loss);

}  // namespace onnxtrain

#endif  // ONNXTRAIN_GRAPH_TRAPS_H_
