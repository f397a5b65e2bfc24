// SPDX-License-Identifier: Apache-2.0
#include "graph/ops/window.h"

#include <algorithm>
#include <string>

namespace onnxtrain {
namespace {

StatusOr<std::vector<int64_t>> ListOf(const Attributes& attributes, const char* name, size_t length, int64_t fallback,
                                      int64_t least) {
  std::vector<int64_t> list = attributes.Ints(name);
  if (list.empty()) return std::vector<int64_t>(length, fallback);
  if (list.size() != length || std::any_of(list.begin(), list.end(), [&](int64_t value) { return value < least; })) {
    return InvalidModelError("attribute '" + std::string(name) + "' is " + ToString(list) + ", expected " +
                             std::to_string(length) + " numbers of at least " + std::to_string(least));
  }
  return list;
}

void PadForSameSize(Window& window, const Shape& spatial, bool more_at_end) {
  for (size_t axis = 0; axis < window.axes(); ++axis) {
    const int64_t stride = window.strides[axis];
    const int64_t outputs = (spatial[axis] + stride - 1) / stride;
    const int64_t total = std::max<int64_t>(0, (outputs - 1) * stride + window.extent(axis) - spatial[axis]);
    window.pads_begin[axis] = more_at_end ? total / 2 : total - total / 2;
    window.pads_end[axis] = total - window.pads_begin[axis];
  }
}

}  // namespace

StatusOr<Window> WindowOf(const Attributes& attributes, const Shape& spatial, std::vector<int64_t> kernel) {
  const size_t axes = spatial.size();
  Window window;
  window.kernel = std::move(kernel);
  if (window.kernel.size() != axes) {
    return InvalidModelError("a window of shape " + ToString(window.kernel) + " slides over " + std::to_string(axes) +
                             " spatial axes");
  }
  ASSIGN_OR_RETURN(window.strides, ListOf(attributes, "strides", axes, 1, 1));
  ASSIGN_OR_RETURN(window.dilations, ListOf(attributes, "dilations", axes, 1, 1));
  ASSIGN_OR_RETURN(const std::vector<int64_t> pads, ListOf(attributes, "pads", 2 * axes, 0, 0));
  const auto middle = pads.begin() + static_cast<std::ptrdiff_t>(axes);
  window.pads_begin.assign(pads.begin(), middle);
  window.pads_end.assign(middle, pads.end());
  const std::string auto_pad = attributes.String("auto_pad", "NOTSET");
  if (auto_pad == "NOTSET") return window;
  window.pads_begin.assign(axes, 0);
  window.pads_end.assign(axes, 0);
  if (auto_pad == "VALID") return window;
  if (auto_pad != "SAME_UPPER" && auto_pad != "SAME_LOWER") {
    return InvalidModelError("attribute 'auto_pad' is \"" + auto_pad +
                             "\", expected NOTSET, VALID, SAME_UPPER or SAME_LOWER");
  }
  PadForSameSize(window, spatial, auto_pad == "SAME_UPPER");
  return window;
}

void SetWindow(const Window& window, Attributes& attributes) {
  std::vector<int64_t> pads = window.pads_begin;
  pads.insert(pads.end(), window.pads_end.begin(), window.pads_end.end());
  attributes.Set("kernel_shape", window.kernel);
  attributes.Set("strides", window.strides);
  attributes.Set("dilations", window.dilations);
  attributes.Set("pads", std::move(pads));
}

Shape SpatialOf(const Shape& shape) { return shape.size() < 2 ? Shape{} : Shape(shape.begin() + 2, shape.end()); }

}  // namespace onnxtrain
