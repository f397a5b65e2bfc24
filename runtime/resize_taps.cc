// SPDX-License-Identifier: Apache-2.0
#include "runtime/resize_taps.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>

namespace onnxtrain {
namespace {

struct Rules {
  std::string mode;
  std::string coordinates;
  std::string nearest;
  double cubic_a;
  bool exclude_outside;
  bool antialias;

  explicit Rules(const Attributes& attributes)
      : mode(attributes.String("mode", "nearest")),
        coordinates(attributes.String("coordinate_transformation_mode", "half_pixel")),
        nearest(attributes.String("nearest_mode", "round_prefer_floor")),
        cubic_a(DecimalValue(attributes.Float("cubic_coeff_a", -0.75f))),
        exclude_outside(attributes.Int("exclude_outside", 0) != 0),
        antialias(attributes.Int("antialias", 0) != 0) {}

  Status Check() const {
    for (const char* known : {"half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric",
                              "tf_half_pixel_for_nn"}) {
      if (coordinates == known) return CheckModes();
    }
    return InvalidModelError("coordinate_transformation_mode '" + coordinates + "' of Resize is not supported");
  }

 private:
  Status CheckModes() const {
    if (mode != "nearest" && mode != "linear" && mode != "cubic") {
      return InvalidModelError("mode '" + mode + "' of Resize is not defined");
    }
    for (const char* known : {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"}) {
      if (nearest == known) return OkStatus();
    }
    return InvalidModelError("nearest_mode '" + nearest + "' of Resize is not defined");
  }
};

// Where element `x` of the result lies in the original.
double OriginalCoordinate(const Rules& rules, double x, double scale, int64_t from, int64_t to) {
  const double size = scale * static_cast<double>(from);  // of the result, before it was rounded down
  if (rules.coordinates == "asymmetric") return x / scale;
  if (rules.coordinates == "align_corners") {
    return size == 1 || to == 1 ? 0 : x * static_cast<double>(from - 1) / (size - 1);
  }
  if (rules.coordinates == "tf_half_pixel_for_nn") return (x + 0.5) / scale;
  if (rules.coordinates == "pytorch_half_pixel" && to <= 1) return 0;
  const double middle = (x + 0.5) / scale - 0.5;
  if (rules.coordinates != "half_pixel_symmetric") return middle;
  const double center = static_cast<double>(from) / 2;
  return center * (1 - static_cast<double>(to) / size) + middle;
}

double NearestOf(const std::string& rule, double x) {
  if (rule == "round_prefer_floor") return std::ceil(x - 0.5);
  if (rule == "round_prefer_ceil") return std::floor(x + 0.5);
  return rule == "floor" ? std::floor(x) : std::ceil(x);
}

double CubicWeight(double distance, double a) {
  const double x = std::abs(distance);
  if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  if (x < 2) return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a;
  return 0;
}

// The kernel reaches `radius` elements to either side, more where the result is smaller and antialiased.
void AddWindow(const Rules& rules, double x, double scale, AxisTaps& taps) {
  const bool cubic = rules.mode == "cubic";
  const double stretch = rules.antialias ? std::min(scale, 1.0) : 1.0;
  double base = std::floor(x);
  double ratio = x - base;
  if (ratio == 0) {  // between the neighbours left of it and itself
    base -= 1;
    ratio = 1;
  }
  const double radius = cubic ? 2 : 1;
  const auto first = static_cast<int64_t>(std::floor(-radius / stretch) + 1);
  const int64_t last = 1 - first;
  const size_t start = taps.weight.size();
  double sum = 0;
  for (int64_t i = first; i <= last; ++i) {
    const double distance = (static_cast<double>(i) - ratio) * stretch;
    double weight = cubic ? CubicWeight(distance, rules.cubic_a) : std::max(0.0, 1 - std::abs(distance));
    const int64_t place = static_cast<int64_t>(base) + i;
    if (rules.exclude_outside && (place < 0 || place >= taps.from)) weight = 0;
    taps.index.push_back(std::clamp<int64_t>(place, 0, taps.from - 1));
    taps.weight.push_back(weight);
    sum += weight;
  }
  if (!rules.exclude_outside && !rules.antialias) return;
  for (size_t t = start; t < taps.weight.size(); ++t) taps.weight[t] /= sum;
}

AxisTaps TapsOf(const Rules& rules, size_t axis, double scale, int64_t from, int64_t to) {
  AxisTaps taps{axis, from, to, {0}, {}, {}};
  for (int64_t j = 0; j < to; ++j) {
    const double x = OriginalCoordinate(rules, static_cast<double>(j), scale, from, to);
    if (rules.mode == "nearest") {
      taps.index.push_back(std::clamp<int64_t>(static_cast<int64_t>(NearestOf(rules.nearest, x)), 0, from - 1));
      taps.weight.push_back(1);
    } else {
      AddWindow(rules, x, scale, taps);
    }
    taps.begin.push_back(static_cast<int64_t>(taps.index.size()));
  }
  return taps;
}

bool IsCopy(const AxisTaps& taps) {
  if (taps.from != taps.to) return false;
  for (int64_t j = 0; j < taps.to; ++j) {
    for (int64_t t = taps.begin[static_cast<size_t>(j)]; t < taps.begin[static_cast<size_t>(j) + 1]; ++t) {
      const auto place = static_cast<size_t>(t);
      if (taps.weight[place] != 0 && (taps.weight[place] != 1 || taps.index[place] != j)) return false;
    }
  }
  return true;
}

// A scale by axis of the tensor: 1 where `axes` leaves one out, the ratio of the sizes where none is given.
std::vector<double> ScalesByAxis(const Attributes& attributes, const Shape& from, const Shape& to,
                                 const std::vector<double>& given) {
  std::vector<double> scales;
  for (size_t axis = 0; axis < from.size(); ++axis) {
    scales.push_back(static_cast<double>(to[axis]) / static_cast<double>(std::max<int64_t>(from[axis], 1)));
  }
  std::vector<int64_t> axes = attributes.Ints("axes");
  if (axes.empty()) {
    axes.resize(from.size());
    std::iota(axes.begin(), axes.end(), 0);
  }
  for (size_t i = 0; i < given.size() && i < axes.size(); ++i) {
    const int64_t axis = axes[i] < 0 ? axes[i] + static_cast<int64_t>(from.size()) : axes[i];
    if (axis >= 0 && axis < static_cast<int64_t>(from.size())) scales[static_cast<size_t>(axis)] = given[i];
  }
  return scales;
}

// `scales` as given (by axis of the attribute `axes`), empty where sizes decide.
StatusOr<std::vector<AxisTaps>> ResizeTaps(const Attributes& attributes, const Shape& from, const Shape& to,
                                           const std::vector<double>& scales) {
  const Rules rules(attributes);
  RETURN_IF_ERROR(rules.Check());
  const std::vector<double> by_axis = ScalesByAxis(attributes, from, to, scales);
  std::vector<AxisTaps> taps;
  for (size_t axis = 0; axis < from.size(); ++axis) {
    if (to[axis] > 0 && (from[axis] == 0 || !(by_axis[axis] > 0))) {
      return InvalidModelError("Resize cannot make axis " + std::to_string(axis) + " of " + ToString(from) + " " +
                               std::to_string(to[axis]) + " long");
    }
    if (ElementsOf(to) == 0) continue;
    AxisTaps one = TapsOf(rules, axis, by_axis[axis], from[axis], to[axis]);
    if (!IsCopy(one)) taps.push_back(std::move(one));
  }
  return taps;
}

}  // namespace

AxisTaps AxisTaps::Transposed() const {
  AxisTaps result{axis, to, from, std::vector<int64_t>(static_cast<size_t>(from) + 1, 0), {}, {}};
  for (int64_t i : index) ++result.begin[static_cast<size_t>(i) + 1];
  std::partial_sum(result.begin.begin(), result.begin.end(), result.begin.begin());
  std::vector<int64_t> next = result.begin;
  result.index.resize(index.size());
  result.weight.resize(index.size());
  for (int64_t j = 0; j < to; ++j) {
    for (int64_t t = begin[static_cast<size_t>(j)]; t < begin[static_cast<size_t>(j) + 1]; ++t) {
      const auto place = static_cast<size_t>(next[static_cast<size_t>(index[static_cast<size_t>(t)])]++);
      result.index[place] = j;
      result.weight[place] = weight[static_cast<size_t>(t)];
    }
  }
  return result;
}

StatusOr<std::vector<AxisTaps>> ResizeTapsOf(const Node& resize) {
  std::vector<double> scales;
  if (const Value* given = resize.input(2)) {
    if (given->constant() == nullptr && given->type().elements() > 0) {
      return InvalidModelError("the scales of " + resize.Describe() + " must be a constant");
    }
    for (int64_t i = 0; i < given->type().elements(); ++i) scales.push_back(given->constant()->DoubleAt(i));
  }
  StatusOr<std::vector<AxisTaps>> taps =
      ResizeTaps(resize.attributes(), resize.input(0)->type().shape, resize.output(0)->type().shape, scales);
  if (!taps.ok()) return taps.status().Prepend(resize.Describe());
  return taps;
}

StatusOr<std::vector<AxisTaps>> ResizeGradTapsOf(const Node& resize_grad) {
  const std::vector<float> narrow = resize_grad.attributes().Floats("scales");
  ASSIGN_OR_RETURN(std::vector<AxisTaps> taps,
                   ResizeTaps(resize_grad.attributes(), resize_grad.output(0)->type().shape,
                              resize_grad.input(0)->type().shape, std::vector<double>(narrow.begin(), narrow.end())));
  std::vector<AxisTaps> transposed;
  for (size_t i = taps.size(); i-- > 0;) transposed.push_back(taps[i].Transposed());
  return transposed;
}

}  // namespace onnxtrain
