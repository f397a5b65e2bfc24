// SPDX-License-Identifier: Apache-2.0
// Training on slices of one global batch: rank r of N takes the r-th slice, micro-batch m of A the m-th slice of that.
#ifndef ONNXTRAIN_TESTS_PASSES_SLICED_TRAINING_H_
#define ONNXTRAIN_TESTS_PASSES_SLICED_TRAINING_H_

#include "tests/support/program_runner.h"

namespace onnxtrain {

inline constexpr uint64_t kStateSeed = 11;

// `rows` rows for an input, by its name and the step alone: floats in [-1, 1), integers in 0..4, where a fifth of the
// rows of integers is -100 (a label that does not count).
Tensor GlobalBatch(const Value& input, int64_t rows, int step);
// Each input is the slice of its own length.
FeedSource SliceOf(int64_t rows, int step, int accumulation);

// `steps` training steps from seeded state. Canonical state, and "loss<k>", "grad_norm<k>", "applied<k>" of every step.
StatusOr<NamedTensors> TrainSliced(const Program& program, int64_t rows, int steps);

}  // namespace onnxtrain

#endif  // ONNXTRAIN_TESTS_PASSES_SLICED_TRAINING_H_
