// SPDX-License-Identifier: Apache-2.0
#include "tests/passes/sliced_training.h"

#include <cstring>

#include "graph/digest.h"

namespace onnxtrain {
namespace {

Tensor Rows(const Tensor& whole, int64_t begin, int64_t count) {
  Shape shape = whole.shape();
  const size_t row = whole.bytes() / static_cast<size_t>(shape[0]);
  shape[0] = count;
  Tensor part(TensorType{whole.dtype(), shape});
  std::memcpy(part.data(), whole.data() + static_cast<size_t>(begin) * row, part.bytes());
  return part;
}

}  // namespace

Tensor GlobalBatch(const Value& input, int64_t rows, int step) {
  Shape shape = input.type().shape;
  shape[0] = rows;
  const uint64_t seed = Fnv1a(input.name(), static_cast<uint64_t>(step));
  if (IsFloating(input.type().dtype)) return RandomTensor(input.type().dtype, shape, seed, -1, 1);
  Tensor labels = RandomTensor(DType::kInt64, shape, seed, 0, 4);
  const int64_t per_row = labels.elements() / rows;
  for (int64_t i = 0; i < labels.elements(); ++i) {
    if (i / per_row < rows / 5) labels.values<int64_t>()[static_cast<size_t>(i)] = -100;
  }
  return labels.CastTo(input.type().dtype);
}

FeedSource SliceOf(int64_t rows, int step, int accumulation) {
  return [=](const Value& input, int rank, int micro_batch) {
    const int64_t count = input.type().shape[0];
    return Rows(GlobalBatch(input, rows, step), (rank * accumulation + micro_batch) * count, count);
  };
}

StatusOr<NamedTensors> TrainSliced(const Program& program, int64_t rows, int steps) {
  ASSIGN_OR_RETURN(const std::unique_ptr<ProgramRunner> runner,
                   ProgramRunner::Create(program, SeededState(program, kStateSeed)));
  NamedTensors results;
  for (int step = 0; step < steps; ++step) {
    RETURN_IF_ERROR(runner->Step(SliceOf(rows, step, program.accumulation)));
    for (const char* name : {"loss", "grad_norm", "applied"}) {
      ASSIGN_OR_RETURN(Tensor value, runner->ValueOf(0, name));
      results.emplace(std::string(name) + std::to_string(step), std::move(value));
    }
  }
  ASSIGN_OR_RETURN(NamedTensors state, runner->CanonicalState());
  results.merge(state);
  return results;
}

}  // namespace onnxtrain
