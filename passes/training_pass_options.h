// SPDX-License-Identifier: Apache-2.0
// Options of the passes that build a training step, from text. Names are those of the command line, so that what a pass
// list leaves out can come from there.
#ifndef ONNXTRAIN_PASSES_TRAINING_PASS_OPTIONS_H_
#define ONNXTRAIN_PASSES_TRAINING_PASS_OPTIONS_H_

#include "passes/pass_registry.h"

namespace onnxtrain {

// set_mode, append_evaluation, append_loss, mixed_precision, append_optimizer, accumulate_gradients, insert_all_reduce,
// bucket_gradients, shard_optimizer, contribute_zero.
void AddTrainingPasses(PassRegistry& registry);

}  // namespace onnxtrain

#endif  // ONNXTRAIN_PASSES_TRAINING_PASS_OPTIONS_H_
