// SPDX-License-Identifier: Apache-2.0
#include "tests/conformance/parity_cases.h"
#include "tests/conformance/parity_inputs.h"

namespace onnxtrain {
namespace {

using Cases = std::vector<ParityCase>;

void AddGroupNormalizations(Cases& cases) {
  for (const auto& [x, groups] : std::vector<std::pair<Shape, int64_t>>{
           {{3, 6, 5, 7}, 2}, {{2, 6, 33, 37}, 3}, {{5, 9}, 9}, {{2, 3, 1031}, 1}, {{0, 4, 3}, 2}, {{2, 4, 0}, 2}}) {
    const Shape parameter{x[1]};
    const Attributes attributes{{"num_groups", groups}, {"epsilon", 1e-3f}};
    cases.push_back({"GroupNormalization",
                     {Fed(Floats(x)), Fed(Floats(parameter)), Fed(Floats(parameter))},
                     attributes,
                     1,
                     false,
                     2e-5});
    cases.push_back({"onnxtrain.GroupNormalizationGrad",
                     {Fed(Floats(x)), Fed(Floats(x)), Fed(Floats(parameter))},
                     attributes,
                     3,
                     false,
                     2e-4});
    if (x.size() < 3) continue;
    cases.push_back({"InstanceNormalization",
                     {Fed(Floats(x)), Fed(Floats(parameter)), Fed(Floats(parameter))},
                     {},
                     1,
                     false,
                     2e-5});
  }
}

void AddAveragePools(Cases& cases) {
  using Ints = std::vector<int64_t>;
  struct Geometry {
    Shape x, y;
    Attributes window;
  };
  const Ints three{3, 2};
  for (const Geometry& g : std::vector<Geometry>{
           {{2, 3, 7, 8}, {2, 3, 3, 4}, {{"kernel_shape", Ints{2, 2}}, {"strides", Ints{2, 2}}}},
           {{2, 3, 7, 8}, {2, 3, 7, 4}, {{"kernel_shape", three}, {"pads", Ints{1, 0, 1, 1}}, {"strides", Ints{1, 2}}}},
           {{1, 2, 9, 8},
            {1, 2, 6, 6},
            {{"kernel_shape", three}, {"pads", Ints{1, 0, 0, 0}}, {"dilations", Ints{2, 2}}}},
           {{3, 1, 9}, {3, 1, 5}, {{"kernel_shape", Ints{2}}, {"strides", Ints{2}}, {"ceil_mode", int64_t{1}}}},
           {{1, 2, 3, 4, 5}, {1, 2, 4, 2, 3}, {{"kernel_shape", Ints{2, 3, 3}}, {"pads", Ints{1, 0, 0, 1, 0, 0}}}}}) {
    for (const int64_t count_padding : {0, 1}) {
      Attributes attributes = g.window;
      attributes.Set("count_include_pad", count_padding);
      cases.push_back({"AveragePool", {Fed(Floats(g.x))}, attributes, 1, false, 4e-6});
      Attributes gradient = attributes;
      gradient.Erase("ceil_mode");
      gradient.Set("input_shape", Ints(g.x));
      cases.push_back({"onnxtrain.AveragePoolGrad", {Fed(Floats(g.y))}, gradient, 1, false, 4e-6});
    }
  }
}

// x to the sizes of y in every way that the operator knows, and the gradient of it.
void AddResize(Cases& cases, const Shape& x, const Shape& y, const Attributes& attributes) {
  cases.push_back(
      {"Resize", {Fed(Floats(x)), Omitted(), Omitted(), Constant(Tensor::Ints(y))}, attributes, 1, false, 1e-5});
  Attributes gradient = attributes;
  gradient.Set("shape", x);
  cases.push_back({"onnxtrain.ResizeGrad", {Fed(Floats(y))}, gradient, 1, false, 3e-5});
}

void AddResizes(Cases& cases) {
  for (const char* mode : {"nearest", "linear", "cubic"}) {
    for (const char* coordinates : {"half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners",
                                    "asymmetric", "tf_half_pixel_for_nn"}) {
      const Attributes attributes{{"mode", std::string(mode)},
                                  {"coordinate_transformation_mode", std::string(coordinates)}};
      AddResize(cases, {2, 3, 5, 7}, {2, 3, 9, 13}, attributes);
      AddResize(cases, {2, 3, 9, 7}, {2, 3, 4, 16}, attributes);
    }
    const Attributes plain{{"mode", std::string(mode)}};
    AddResize(cases, {3, 5}, {3, 1}, plain);
    AddResize(cases, {2, 3, 4}, {2, 3, 4}, plain);
    AddResize(cases, {1, 2, 3, 5, 4}, {1, 2, 5, 3, 7}, plain);
    AddResize(cases, {3, 4, 5, 3}, {5, 3, 4, 7}, plain);  // more axes than one pass takes
    for (const char* refinement : {"exclude_outside", "antialias"}) {
      Attributes refined = plain;
      refined.Set(refinement, int64_t{1});
      if (std::string(mode) != "nearest") AddResize(cases, {1, 2, 9, 11}, {1, 2, 4, 17}, refined);
    }
  }
  for (const char* nearest : {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"}) {
    AddResize(cases, {1, 2, 6, 5}, {1, 2, 4, 10}, {{"nearest_mode", std::string(nearest)}});
  }
  cases.push_back({"onnxtrain.ResizeGrad", {Fed(Floats({2, 0}))}, {{"shape", Shape{2, 3}}}});
  // Scales are float, whatever x is.
  const std::vector<float> scales = {1, 1, 1.7f, 0.6f};
  const Attributes linear{{"mode", std::string("linear")}};
  cases.push_back({"Resize",
                   {Fed(Floats({1, 2, 5, 7})), Omitted(), Constant(Tensor::FromVector<float>({4}, scales))},
                   linear,
                   1,
                   true,
                   1e-5});
  Attributes gradient = linear;
  gradient.Set("shape", Shape{1, 2, 5, 7});
  gradient.Set("scales", scales);
  cases.push_back({"onnxtrain.ResizeGrad", {Fed(Floats({1, 2, 8, 4}))}, gradient, 1, false, 3e-5});
}

}  // namespace

void AddImageParityCases(std::vector<ParityCase>& cases) {
  AddGroupNormalizations(cases);
  AddAveragePools(cases);
  AddResizes(cases);
}

}  // namespace onnxtrain
