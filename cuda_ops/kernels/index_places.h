// SPDX-License-Identifier: Apache-2.0
// Where index tensors point: along one axis (Gather), an element each (GatherElements, ScatterElements) or by tuples
// (GatherND, ScatterND). A negative index counts from the end; one out of range gives -1, and whoever asked reports it
// in an IndexFault. And where the elements of a padded tensor come from, which no tensor says.
#ifndef ONNXTRAIN_CUDA_OPS_KERNELS_INDEX_PLACES_H_
#define ONNXTRAIN_CUDA_OPS_KERNELS_INDEX_PLACES_H_

#include <cstdint>

#include "cuda_ops/kernels/strided_loop.h"
#include "graph/dtype.h"

namespace onnxtrain {

struct IndexFault {
  uint64_t* status_word = nullptr;
  int node_index = 0;
};

// Row indices[i] of an axis.
struct AxisPlaces {
  const void* indices = nullptr;  // int32 or int64
  DType index_dtype = DType::kInt64;
  int64_t size = 1;  // of the axis

  ONNXTRAIN_HOST_DEVICE inline int64_t At(int64_t i) const {
    const int64_t given = index_dtype == DType::kInt32 ? static_cast<const int32_t*>(indices)[i]
                                                       : static_cast<const int64_t*>(indices)[i];
    const int64_t index = given < 0 ? given + size : given;
    return index >= 0 && index < size ? index : -1;
  }
};

// The element of the data at the coordinates of index i, with that of the axis replaced by indices[i].
struct ElementPlaces {
  AxisPlaces axis;
  int64_t axis_stride = 1;    // of the data
  StridedLoop<1> other_axes;  // over the indices' shape: data, with stride 0 along the axis

  ONNXTRAIN_HOST_DEVICE inline int64_t At(int64_t i) const {
    const int64_t index = axis.At(i);
    return index < 0 ? -1 : other_axes.At(i).at[0] + index * axis_stride;
  }
};

// The slice of the data that tuple i names: slices are numbered in the order in which they lie.
struct TuplePlaces {
  const int64_t* indices = nullptr;  // [count, length]
  int length = 0;
  int64_t sizes[kMaxLoopAxes] = {};
  int64_t strides[kMaxLoopAxes] = {};  // in slices
  Divisor per_batch;                   // tuples
  int64_t batch_stride = 0;

  ONNXTRAIN_HOST_DEVICE inline int64_t At(int64_t i) const {
    int64_t place = per_batch.Quotient(i) * batch_stride;
    bool inside = true;
    for (int axis = 0; axis < length; ++axis) {
      const AxisPlaces along{indices, DType::kInt64, sizes[axis]};
      const int64_t index = along.At(i * length + axis);
      inside = inside && index >= 0;
      place += index * strides[axis];
    }
    return inside ? place : -1;
  }
};

enum class PadMode : uint8_t { kEdge, kReflect, kWrap };

// The element of the inner tensor that stands at element i of the padded one (ONNX, Pad). No axis is empty.
struct PadPlaces {
  struct Axis {
    Divisor padded;      // its length
    Divisor period;      // after which the inner elements repeat; unused with kEdge
    int64_t lift = 0;    // from a padded coordinate to an inner one; with a period a multiple more, never below 0
    int64_t size = 1;    // of the inner tensor
    int64_t stride = 1;  // the same
  };
  PadMode mode = PadMode::kEdge;
  int axes = 0;  // outermost first
  Axis axis[kMaxLoopAxes] = {};

  ONNXTRAIN_HOST_DEVICE inline int64_t At(int64_t i) const {
    int64_t place = 0;
    for (int n = axes - 1; n >= 0; --n) {
      const Axis& a = axis[n];
      int64_t at = a.padded.Split(&i) + a.lift;
      if (mode == PadMode::kEdge) {
        at = at < 0 ? 0 : at < a.size ? at : a.size - 1;
      } else {
        const int64_t folded = a.period.Split(&at);
        at = folded < a.size ? folded : a.period.value() - folded;
      }
      place += at * a.stride;
    }
    return place;
  }
};

}  // namespace onnxtrain

#endif  // ONNXTRAIN_CUDA_OPS_KERNELS_INDEX_PLACES_H_
