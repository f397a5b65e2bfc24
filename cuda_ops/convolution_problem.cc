// SPDX-License-Identifier: Apache-2.0
#include "cuda_ops/convolution_problem.h"

namespace onnxtrain {
namespace {

std::string Joined(const std::vector<int64_t>& values, const char* separator) {
  std::string text;
  for (const int64_t value : values) text += (text.empty() ? "" : separator) + std::to_string(value);
  return text;
}

Shape Prefixed(int64_t first, int64_t second, const Shape& spatial) {
  Shape shape = {first, second};
  shape.insert(shape.end(), spatial.begin(), spatial.end());
  return shape;
}

}  // namespace

std::string_view NameOf(ConvolutionDirection direction) {
  constexpr std::string_view kNames[] = {"forward", "input gradient", "weight gradient"};
  return kNames[static_cast<size_t>(direction)];
}

std::string ConvolutionProblem::ToString() const {
  std::string text = "convolution " + std::string(onnxtrain::NameOf(direction)) + " " +
                     std::string(onnxtrain::NameOf(dtype)) + " x " + Joined(x(), "x") + " w " +
                     Joined(w(), "x") + " y " + Joined(y(), "x") + " stride " +
                     Joined(window.strides, ",") + " pad " + Joined(window.pads_begin, ",");
  if (window.pads_end != window.pads_begin) text += " to " + Joined(window.pads_end, ",");
  for (const int64_t dilation : window.dilations) {
    if (dilation != 1) return text + " dilation " + Joined(window.dilations, ",");
  }
  return text;
}

Shape ConvolutionProblem::x() const { return Prefixed(batch, channels, input); }
Shape ConvolutionProblem::w() const { return Prefixed(filters, channels / groups, window.kernel); }
Shape ConvolutionProblem::y() const { return Prefixed(batch, filters, output); }

}  // namespace onnxtrain
