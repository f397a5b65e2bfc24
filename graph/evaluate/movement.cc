// SPDX-License-Identifier: Apache-2.0
// Operators that move elements whole: Concat, Split, Slice, Transpose, Expand, Tile, Pad, Trilu, Where.
#include <algorithm>
#include <numeric>

#include "graph/evaluate/evaluation.h"
#include "graph/evaluate/strided.h"

namespace onnxtrain::evaluation {
namespace {

Result RunConcat(const Call& call) {
  const Tensor& first = call.input(0);
  ASSIGN_OR_RETURN(const int64_t given, call.Int("axis", 0));
  ASSIGN_OR_RETURN(const int64_t axis, call.Axis(given, first.type().rank()));
  const auto at = static_cast<size_t>(axis);
  Shape shape = first.shape();
  shape[at] = 0;
  for (const Tensor* input : call.inputs) {
    if (input == nullptr || input->dtype() != first.dtype() || input->type().rank() != first.type().rank()) {
      return call.Error("inputs must agree in element type and rank");
    }
    for (size_t i = 0; i < shape.size(); ++i) {
      if (i != at && input->shape()[i] != shape[i]) return call.Error("inputs differ in axis " + std::to_string(i));
    }
    shape[at] += input->shape()[at];
  }
  ASSIGN_OR_RETURN(Tensor result, call.NewTensor(first.dtype(), shape));
  const size_t inner = SizeOf(first.dtype()) * static_cast<size_t>(ElementsOf(std::span(shape).subspan(at + 1)));
  const int64_t outer = ElementsOf(std::span(shape).first(at));
  std::byte* to = result.data();
  for (int64_t i = 0; i < outer; ++i) {
    for (const Tensor* input : call.inputs) {
      const size_t bytes = inner * static_cast<size_t>(input->shape()[at]);
      if (bytes != 0) std::memcpy(to, input->data() + static_cast<size_t>(i) * bytes, bytes);
      to += bytes;
    }
  }
  return One(std::move(result));
}

StatusOr<std::vector<int64_t>> SplitSizes(const Call& call, int64_t dim) {
  if (call.Has(1)) {
    ASSIGN_OR_RETURN(std::vector<int64_t> sizes, call.IntsInput(1));
    int64_t total = 0;
    for (const int64_t size : sizes) {
      if (size < 0 || size > dim) return call.Error("a part of " + std::to_string(size) + " elements");
      total += size;
    }
    if (total != dim) return call.Error("parts add up to " + std::to_string(total) + ", not " + std::to_string(dim));
    return sizes;
  }
  ASSIGN_OR_RETURN(const int64_t count, call.Int("num_outputs", static_cast<int64_t>(call.outputs)));
  if (count < 1 || count > std::max<int64_t>(dim, 1))
    return call.Error("cannot make " + std::to_string(count) + " parts");
  const int64_t size = (dim + count - 1) / count;
  std::vector<int64_t> sizes;
  for (int64_t i = 0; i < count; ++i) sizes.push_back(std::clamp<int64_t>(dim - i * size, 0, size));
  return sizes;
}

Result RunSplit(const Call& call) {
  const Tensor& data = call.input(0);
  ASSIGN_OR_RETURN(const int64_t given, call.Int("axis", 0));
  ASSIGN_OR_RETURN(const int64_t axis, call.Axis(given, data.type().rank()));
  const auto at = static_cast<size_t>(axis);
  ASSIGN_OR_RETURN(const std::vector<int64_t> sizes, SplitSizes(call, data.shape()[at]));
  const Strides strides = StridesOf(data.shape());
  std::vector<Tensor> parts;
  int64_t start = 0;
  for (const int64_t size : sizes) {
    Shape shape = data.shape();
    shape[at] = size;
    ASSIGN_OR_RETURN(Tensor part, call.NewTensor(data.dtype(), std::move(shape)));
    CopyStrided(data, start * strides[at], strides, part);
    parts.push_back(std::move(part));
    start += size;
  }
  return parts;
}

struct SliceAxis {
  int64_t start = 0;
  int64_t step = 1;
  int64_t count = 0;
};

// numpy's slice of an axis with `dim` elements, for every int64 start, end and step.
SliceAxis ResolveSlice(int64_t start, int64_t end, int64_t step, int64_t dim) {
  const int64_t low = step > 0 ? 0 : -1;
  const int64_t high = step > 0 ? dim : dim - 1;
  const auto resolve = [&](int64_t at) { return std::clamp(at < 0 ? at + dim : at, low, high); };
  start = resolve(start);
  end = resolve(end);
  if (step > 0 ? start >= end : start <= end) return {0, 1, 0};
  const auto distance = static_cast<uint64_t>(step > 0 ? end - start : start - end);
  const uint64_t stride = step > 0 ? static_cast<uint64_t>(step) : 0 - static_cast<uint64_t>(step);
  const auto count = static_cast<int64_t>((distance - 1) / stride + 1);
  return {start, count == 1 ? 1 : step, count};
}

Result RunSlice(const Call& call) {
  const Tensor& data = call.input(0);
  ASSIGN_OR_RETURN(const std::vector<int64_t> starts, call.IntsInput(1));
  ASSIGN_OR_RETURN(const std::vector<int64_t> ends, call.IntsInput(2));
  std::vector<int64_t> axes(starts.size());
  std::iota(axes.begin(), axes.end(), 0);
  std::vector<int64_t> steps(starts.size(), 1);
  if (call.Has(3)) {
    ASSIGN_OR_RETURN(axes, call.IntsInput(3));
  }
  if (call.Has(4)) {
    ASSIGN_OR_RETURN(steps, call.IntsInput(4));
  }
  if (ends.size() != starts.size() || axes.size() != starts.size() || steps.size() != starts.size()) {
    return call.Error("starts, ends, axes and steps differ in length");
  }
  ASSIGN_OR_RETURN(axes, call.Axes(axes, data.type().rank()));
  Shape shape = data.shape();
  Strides strides = StridesOf(data.shape());
  int64_t offset = 0;
  for (size_t i = 0; i < axes.size(); ++i) {
    const auto at = static_cast<size_t>(axes[i]);
    if (steps[i] == 0) return call.Error("a step is 0");
    const SliceAxis slice = ResolveSlice(starts[i], ends[i], steps[i], shape[at]);
    offset += slice.start * strides[at];
    strides[at] *= slice.step;
    shape[at] = slice.count;
  }
  ASSIGN_OR_RETURN(Tensor result, call.NewTensor(data.dtype(), std::move(shape)));
  CopyStrided(data, offset, strides, result);
  return One(std::move(result));
}

Result RunTranspose(const Call& call) {
  const Tensor& data = call.input(0);
  ASSIGN_OR_RETURN(std::vector<int64_t> permutation, call.Ints("perm"));
  if (!call.attributes.Has("perm")) {
    permutation.resize(data.shape().size());
    std::iota(permutation.rbegin(), permutation.rend(), 0);
  }
  ASSIGN_OR_RETURN(permutation, call.Axes(permutation, data.type().rank()));
  if (permutation.size() != data.shape().size()) return call.Error("'perm' does not list every axis");
  const Strides own = StridesOf(data.shape());
  Shape shape;
  Strides strides;
  for (const int64_t axis : permutation) {
    shape.push_back(data.shape()[static_cast<size_t>(axis)]);
    strides.push_back(own[static_cast<size_t>(axis)]);
  }
  ASSIGN_OR_RETURN(Tensor result, call.NewTensor(data.dtype(), std::move(shape)));
  CopyStrided(data, 0, strides, result);
  return One(std::move(result));
}

Result RunExpand(const Call& call) {
  const Tensor& data = call.input(0);
  ASSIGN_OR_RETURN(const Shape wanted, call.IntsInput(1));
  const std::optional<Shape> shape = Broadcast(data.shape(), wanted);
  if (!shape) return call.Error("cannot expand " + ToString(data.type()) + " to " + ToString(wanted));
  ASSIGN_OR_RETURN(Tensor result, call.NewTensor(data.dtype(), *shape));
  CopyStrided(data, 0, BroadcastStrides(data.shape(), *shape), result);
  return One(std::move(result));
}

// Tile is a broadcast: [a, b] tiled by [m, n] is [1, a, 1, b] expanded to [m, a, n, b].
Result RunTile(const Call& call) {
  const Tensor& data = call.input(0);
  ASSIGN_OR_RETURN(const std::vector<int64_t> repeats, call.IntsInput(1));
  if (repeats.size() != data.shape().size()) return call.Error("'repeats' does not list every axis");
  const Strides own = StridesOf(data.shape());
  Shape expanded;
  Shape shape;
  Strides strides;
  for (size_t i = 0; i < repeats.size(); ++i) {
    if (repeats[i] < 0) return call.Error("a negative number of repeats");
    if (data.shape()[i] != 0 && repeats[i] > INT64_MAX / data.shape()[i]) return call.Error("too many repeats");
    expanded.insert(expanded.end(), {repeats[i], data.shape()[i]});
    strides.insert(strides.end(), {0, own[i]});
    shape.push_back(repeats[i] * data.shape()[i]);
  }
  ASSIGN_OR_RETURN(Tensor result, call.NewTensor(data.dtype(), std::move(expanded)));
  CopyStrided(data, 0, strides, result);
  return One(result.Reshaped(std::move(shape)));
}

struct PadAxis {
  int64_t before = 0;
  int64_t after = 0;
};

// The element of an axis of `dim` elements that position `at` shows (before padding: at < 0); -1 for the constant.
int64_t PadSource(int64_t at, int64_t dim, std::string_view mode) {
  if (at >= 0 && at < dim) return at;
  if (mode == "constant" || dim == 0) return -1;
  if (mode == "edge") return at < 0 ? 0 : dim - 1;
  if (mode == "wrap") return (at % dim + dim) % dim;
  const int64_t period = std::max<int64_t>(1, 2 * (dim - 1));
  const int64_t folded = (at % period + period) % period;
  return folded < dim ? folded : period - folded;
}

StatusOr<std::vector<PadAxis>> ReadPads(const Call& call) {
  const int64_t rank = call.input(0).type().rank();
  ASSIGN_OR_RETURN(const std::vector<int64_t> pads, call.IntsInput(1));
  std::vector<int64_t> axes(static_cast<size_t>(rank));
  std::iota(axes.begin(), axes.end(), 0);
  if (call.Has(3)) {
    ASSIGN_OR_RETURN(axes, call.IntsInput(3));
    ASSIGN_OR_RETURN(axes, call.Axes(axes, rank));
  }
  if (pads.size() != 2 * axes.size()) return call.Error("'pads' must hold two numbers an axis");
  std::vector<PadAxis> result(static_cast<size_t>(rank));
  for (size_t i = 0; i < axes.size(); ++i) {
    const PadAxis pad{pads[i], pads[i + axes.size()]};
    if (std::max(pad.before, pad.after) > INT32_MAX || std::min(pad.before, pad.after) < -INT32_MAX) {
      return ResourceExhaustedError("Pad: padding is too large");
    }
    result[static_cast<size_t>(axes[i])] = pad;
  }
  return result;
}

Result RunPad(const Call& call) {
  const Tensor& data = call.input(0);
  ASSIGN_OR_RETURN(const std::string mode, call.String("mode", "constant"));
  if (mode != "constant" && mode != "edge" && mode != "reflect" && mode != "wrap") return call.Error("mode " + mode);
  ASSIGN_OR_RETURN(const std::vector<PadAxis> pads, ReadPads(call));
  if (call.Has(2) && (call.input(2).elements() != 1 || call.input(2).dtype() != data.dtype())) {
    return call.Error("the constant must be one element of the input's type");
  }
  Shape shape = data.shape();
  for (size_t i = 0; i < shape.size(); ++i) shape[i] += pads[i].before + pads[i].after;
  ASSIGN_OR_RETURN(Tensor result, call.NewTensor(data.dtype(), shape));
  const Strides strides = StridesOf(data.shape());
  Walk<1> walk(shape, {Strides(shape.size(), 0)});
  for (int64_t i = 0; i < result.elements(); ++i, walk.Next()) {
    int64_t offset = 0;
    for (size_t axis = 0; axis < shape.size() && offset >= 0; ++axis) {
      const int64_t source = PadSource(walk.position()[axis] - pads[axis].before, data.shape()[axis], mode);
      offset = source < 0 ? -1 : offset + source * strides[axis];
    }
    if (offset >= 0) {
      CopyElement(data, offset, result, i);
    } else if (call.Has(2)) {
      CopyElement(call.input(2), 0, result, i);
    }
  }
  return One(std::move(result));
}

Result RunTrilu(const Call& call) {
  const Tensor& data = call.input(0);
  if (data.type().rank() < 2) return call.Error("input must have two axes or more, found " + ToString(data.type()));
  ASSIGN_OR_RETURN(const int64_t upper, call.Int("upper", 1));
  int64_t k = 0;
  if (call.Has(1)) {
    ASSIGN_OR_RETURN(k, call.IntInput(1));
  }
  Tensor result(data);
  const int64_t columns = data.shape().back();
  const int64_t rows = data.shape()[data.shape().size() - 2];
  k = std::clamp(k, -rows - 1, columns + 1);
  const size_t size = SizeOf(data.dtype());
  for (int64_t i = 0; i < data.elements(); ++i) {
    const int64_t diagonal = i % columns - i / columns % rows;
    if (upper != 0 ? diagonal < k : diagonal > k) std::memset(result.data() + static_cast<size_t>(i) * size, 0, size);
  }
  return One(std::move(result));
}

Result RunWhere(const Call& call) {
  const Tensor& condition = call.input(0);
  const Tensor& yes = call.input(1);
  const Tensor& no = call.input(2);
  if (condition.dtype() != DType::kBool || yes.dtype() != no.dtype()) {
    return call.Error("needs a bool condition and two branches of one type");
  }
  std::optional<Shape> shape = Broadcast(yes.shape(), no.shape());
  if (shape) shape = Broadcast(condition.shape(), *shape);
  if (!shape) return call.Error("shapes do not broadcast");
  ASSIGN_OR_RETURN(Tensor result, call.NewTensor(yes.dtype(), *shape));
  Walk<3> walk(*shape, {BroadcastStrides(condition.shape(), *shape), BroadcastStrides(yes.shape(), *shape),
                        BroadcastStrides(no.shape(), *shape)});
  const std::span<const uint8_t> choose = condition.values<uint8_t>();
  for (int64_t i = 0; i < result.elements(); ++i, walk.Next()) {
    const bool first = choose[static_cast<size_t>(walk.offset(0))] != 0;
    CopyElement(first ? yes : no, walk.offset(first ? 1 : 2), result, i);
  }
  return One(std::move(result));
}

constexpr Row kRows[] = {
    {"Concat", RunConcat, 1}, {"Split", RunSplit, 1}, {"Slice", RunSlice, 3},
    {"Expand", RunExpand, 2}, {"Tile", RunTile, 2},   {"Transpose", RunTranspose, 1},
    {"Pad", RunPad, 2},       {"Trilu", RunTrilu, 1}, {"Where", RunWhere, 3},
};

}  // namespace

std::span<const Row> MovementRows() { return kRows; }

}  // namespace onnxtrain::evaluation
