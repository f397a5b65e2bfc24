// SPDX-License-Identifier: Apache-2.0
// What nodes that read or write at indices have in common: where their indices point, and what is left to fill in when
// they are launched.
#ifndef ONNXTRAIN_CUDA_OPS_OPS_INDEXING_H_
#define ONNXTRAIN_CUDA_OPS_OPS_INDEXING_H_

#include <string>

#include "cuda_ops/kernels/index_places.h"
#include "cuda_ops/kernels/index_sort.h"
#include "runtime/kernel.h"

namespace onnxtrain {

// Data seen as [outer, size, inner], of which `count` rows are named. Pointers of `places` are set at launch.
template <typename Places>
struct Indexed {
  Places places;
  int64_t outer = 1;
  int64_t size = 1;
  int64_t inner = 1;
  int64_t count = 0;
};

// Gather along the attribute `axis`.
Indexed<AxisPlaces> IndexedAlongAxis(const Node& node, const Shape& data, const TensorType& indices);
// GatherElements, ScatterElements. Fails where the shapes have more axes than a loop.
StatusOr<Indexed<ElementPlaces>> IndexedElements(const KernelContext& context, const Shape& data,
                                                 const TensorType& indices);
// GatherND, ScatterND. Fails for tuples that are longer than a loop has axes.
StatusOr<Indexed<TuplePlaces>> IndexedTuples(const KernelContext& context, const Shape& data, const Shape& indices,
                                             int64_t batch_axes);

inline void SetIndices(const std::byte* indices, AxisPlaces* places) { places->indices = indices; }
inline void SetIndices(const std::byte* indices, ElementPlaces* places) { places->axis.indices = indices; }
inline void SetIndices(const std::byte* indices, TuplePlaces* places) {
  places->indices = reinterpret_cast<const int64_t*>(indices);
}

// Refuses what the sort of the updates cannot count.
template <typename Places>
Status CheckSortable(const KernelContext& context, const Indexed<Places>& indexed) {
  if (indexed.count <= kMostSortedKeys && indexed.size <= kMostSortedKeys) return OkStatus();
  return InvalidModelError(context.node.Describe() + " has " + std::to_string(indexed.count) + " updates of " +
                           std::to_string(indexed.size) + " rows; the CUDA kernels serve up to " +
                           std::to_string(kMostSortedKeys) + " of each");
}

}  // namespace onnxtrain

#endif  // ONNXTRAIN_CUDA_OPS_OPS_INDEXING_H_
