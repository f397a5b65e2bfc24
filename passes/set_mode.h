// SPDX-License-Identifier: Apache-2.0
// Brings Dropout and BatchNormalization into their training or inference form.
//
// Before:  y = Dropout(x, ratio, training_mode)
//          z, ... = BatchNormalization(y, scale, bias, mean, var)
// After, training:   y = onnxtrain.Dropout <ratio, draw_id, seed> (x, attempt)
//                    z, mean_new, var_new = BatchNormalization <training_mode = 1> (y, scale, bias, mean, var)
//                    with the updates mean := mean_new, var := var_new
// After, inference:  y is x;  z = BatchNormalization <training_mode = 0> (x, scale, bias, mean, var)
//
// draw_id counts the drawing nodes of the graph, so that clones of one graph draw the same numbers. `attempt` is the
// counter of attempted steps. The states behind mean and var get class buffer. Two nodes that share statistics update
// them in turn.
#ifndef ONNXTRAIN_PASSES_SET_MODE_H_
#define ONNXTRAIN_PASSES_SET_MODE_H_

#include <cstdint>
#include <memory>
#include <string>

#include "passes/pass.h"

namespace onnxtrain {

enum class BatchNormMode : uint8_t {
  kAsExported,  // the node's own training_mode
  kTrain,       // batch statistics; running ones are updated
  kFrozen,      // running statistics are used and stay
};
enum class DropoutMode : uint8_t { kAsExported, kOn, kOff };

struct SetModeOptions {
  std::string graph = "step";
  BatchNormMode batch_norm = BatchNormMode::kAsExported;
  DropoutMode dropout = DropoutMode::kAsExported;
  // Of all draws. A Dropout node's own `seed` attribute wins.
  int64_t seed = 0;

  // The inference form, whatever the file says.
  static SetModeOptions Inference(std::string graph) {
    return {std::move(graph), BatchNormMode::kFrozen, DropoutMode::kOff, 0};
  }
};

// Fails with InvalidModel for batch_norm kTrain or dropout kOn when the graph has no such node (the export has removed
// or folded them), for a Dropout whose ratio is not constant or not in [0, 1), and for training statistics that are
// constants.
std::unique_ptr<Pass> SetMode(const SetModeOptions& options);

}  // namespace onnxtrain

#endif  // ONNXTRAIN_PASSES_SET_MODE_H_
