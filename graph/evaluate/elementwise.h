// SPDX-License-Identifier: Apache-2.0
// Element-wise functions of two tensors with multi-directional broadcasting.
#ifndef ONNXTRAIN_GRAPH_EVALUATE_ELEMENTWISE_H_
#define ONNXTRAIN_GRAPH_EVALUATE_ELEMENTWISE_H_

#include "graph/evaluate/evaluation.h"
#include "graph/evaluate/strided.h"

namespace onnxtrain::evaluation {

// result[i] = function(a[i], b[i]); `A`, `B` and `R` are storage types that the tensors were checked to have.
template <typename A, typename B, typename R, typename Function>
StatusOr<Tensor> ZipAs(const Call& call, const Tensor& a, const Tensor& b, DType result_type, Function function) {
  const std::optional<Shape> shape = Broadcast(a.shape(), b.shape());
  if (!shape) return call.Error("shapes " + ToString(a.shape()) + " and " + ToString(b.shape()) + " do not broadcast");
  ASSIGN_OR_RETURN(Tensor result, call.NewTensor(result_type, *shape));
  Walk<2> walk(*shape, {BroadcastStrides(a.shape(), *shape), BroadcastStrides(b.shape(), *shape)});
  const std::span<const A> x = a.values<A>();
  const std::span<const B> y = b.values<B>();
  for (R& r : result.values<R>()) {
    r = function(x[static_cast<size_t>(walk.offset(0))], y[static_cast<size_t>(walk.offset(1))]);
    walk.Next();
  }
  return result;
}

}  // namespace onnxtrain::evaluation

#endif  // ONNXTRAIN_GRAPH_EVALUATE_ELEMENTWISE_H_
