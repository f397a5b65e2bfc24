// SPDX-License-Identifier: Apache-2.0
#include "graph/ops/slice_ranges.h"

#include <algorithm>

#include "graph/ops/op_rules.h"

namespace onnxtrain {
namespace {

// One axis. `end` is exclusive; ends beyond the data are clamped, as NumPy does.
Status AddRange(int64_t start, int64_t end, int64_t step, int64_t size, size_t axis, SliceRanges& ranges) {
  if (step == 0) return InvalidModelError("step 0 of Slice on axis " + std::to_string(axis));
  if (start < 0) start += size;
  if (end < 0) end = end < -size ? -1 : end + size;
  if (step > 0) {
    start = std::clamp<int64_t>(start, 0, size);
    end = std::clamp<int64_t>(end, 0, size);
  } else {
    start = std::clamp<int64_t>(start, 0, std::max<int64_t>(size - 1, 0));
    end = std::clamp<int64_t>(end, -1, size - 1);
  }
  const int64_t distance = step > 0 ? end - start : start - end;
  // The magnitude of the smallest int64 does not fit; a step that long takes one element at most.
  const int64_t stride = step > 0 ? step : (step == INT64_MIN ? INT64_MAX : -step);
  ranges.starts[axis] = start;
  ranges.lengths[axis] = distance <= 0 ? 0 : (distance - 1) / stride + 1;
  ranges.steps[axis] = ranges.lengths[axis] <= 1 ? 1 : step;
  return OkStatus();
}

StatusOr<std::vector<int64_t>> OptionalInts(const Node& node, size_t index, std::vector<int64_t> fallback) {
  if (node.input(index) == nullptr) return fallback;
  return ConstantInts(node, index);
}

}  // namespace

StatusOr<SliceRanges> SliceRangesOf(const Node& slice) {
  const Shape& shape = slice.input(0)->type().shape;
  ASSIGN_OR_RETURN(std::vector<int64_t> starts, ConstantInts(slice, 1));
  ASSIGN_OR_RETURN(std::vector<int64_t> ends, ConstantInts(slice, 2));
  std::vector<int64_t> first_axes;
  for (size_t i = 0; i < starts.size(); ++i) first_axes.push_back(static_cast<int64_t>(i));
  ASSIGN_OR_RETURN(std::vector<int64_t> axes, OptionalInts(slice, 3, first_axes));
  ASSIGN_OR_RETURN(std::vector<int64_t> steps, OptionalInts(slice, 4, std::vector<int64_t>(starts.size(), 1)));
  if (ends.size() != starts.size() || axes.size() != starts.size() || steps.size() != starts.size()) {
    return InvalidModelError("starts, ends, axes and steps of " + slice.Describe() + " differ in length");
  }
  SliceRanges ranges{std::vector<int64_t>(shape.size(), 0), std::vector<int64_t>(shape.size(), 1), shape};
  for (size_t i = 0; i < starts.size(); ++i) {
    const int64_t axis = NonNegativeAxis(axes[i], slice.input(0)->type().rank());
    if (axis < 0 || axis >= slice.input(0)->type().rank()) {
      return InvalidModelError("axis " + std::to_string(axes[i]) + " of " + slice.Describe() + " is out of range");
    }
    const size_t place = static_cast<size_t>(axis);
    RETURN_IF_ERROR(AddRange(starts[i], ends[i], steps[i], shape[place], place, ranges));
  }
  return ranges;
}

StatusOr<std::vector<TensorType>> SplitTypes(const Node& split) {
  const TensorType& whole = split.input(0)->type();
  const auto axis = static_cast<size_t>(NonNegativeAxis(split.attributes().Int("axis", 0), whole.rank()));
  const int64_t size = whole.shape[axis];
  std::vector<int64_t> sizes;
  if (split.input(1) != nullptr) {
    ASSIGN_OR_RETURN(sizes, ConstantInts(split, 1));
  } else {
    const int64_t count = split.attributes().Int("num_outputs", static_cast<int64_t>(split.outputs().size()));
    const int64_t part = (size + count - 1) / count;
    for (int64_t i = 0; i < count; ++i) sizes.push_back(std::clamp<int64_t>(size - i * part, 0, part));
  }
  std::vector<TensorType> types;
  for (int64_t part : sizes) {
    types.push_back(whole);
    types.back().shape[axis] = part;
  }
  return types;
}

}  // namespace onnxtrain
