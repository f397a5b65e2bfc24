// SPDX-License-Identifier: Apache-2.0
// Checked index tensors of gathers and scatters: negative indices count from the end, others must lie inside.
#ifndef ONNXTRAIN_GRAPH_EVALUATE_INDEX_H_
#define ONNXTRAIN_GRAPH_EVALUATE_INDEX_H_

#include <vector>

#include "graph/evaluate/evaluation.h"

namespace onnxtrain::evaluation {

// Every element as an index from the front of an axis of `dim` elements.
StatusOr<std::vector<int64_t>> ReadIndices(const Call& call, const Tensor& indices, int64_t dim);

// GatherElements and ScatterElements: equal ranks, and no axis but `axis` longer than that of `data`.
Status CheckElementIndices(const Call& call, const Tensor& data, const Tensor& indices, size_t axis);

// The last axis of `indices` holds positions in the axes of `data` after the batch axes.
struct IndexTuples {
  int64_t depth = 0;             // length of a tuple
  int64_t slice = 1;             // elements that one tuple addresses
  std::vector<int64_t> offsets;  // first element of each slice of `data`
};
StatusOr<IndexTuples> ReadTuples(const Call& call, const Tensor& data, const Tensor& indices, int64_t batch_dims);

}  // namespace onnxtrain::evaluation

#endif  // ONNXTRAIN_GRAPH_EVALUATE_INDEX_H_
