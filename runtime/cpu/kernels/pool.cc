// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>
#include <tuple>

#include "runtime/cpu/isa/normalization_loops.h"
#include "runtime/cpu/isa/pool_loops.h"
#include "runtime/cpu/kernels/all_kernels.h"
#include "runtime/cpu/parallel_for.h"
#include "runtime/cpu/spatial_window.h"
#include "runtime/kernel.h"

namespace onnxtrain {
namespace {

constexpr int64_t kGrainElements = 8192;

int64_t PlanesOf(const KernelContext& context) {
  const Shape& shape = context.output_type(0).shape;
  return shape[0] * shape[1];
}

// body(plane) over all N * C planes, spread over the team.
template <typename Body>
void ForEachPlane(int threads, int64_t planes, const SpatialWindow& window, const Body& body) {
  const int64_t work = std::max<int64_t>(1, window.output_size() * window.window_size());
  ParallelFor(threads, planes, 1 + kGrainElements / work, [&](int64_t begin, int64_t end) {
    for (int64_t plane = begin; plane < end; ++plane) body(plane);
  });
}

// body(row of x, row of y, first output of the row, stride, count) for every offset of the window and every row of
// outputs: all pairs of an input and an output of the plane that belong together.
template <typename Body>
void ForEachRun(const SpatialWindow& window, const Body& body) {
  const auto& [depth, height, width] = std::tie(window.axis(0), window.axis(1), window.axis(2));
  for (int64_t d = 0; d < depth.output; ++d) {
    for (int64_t h = 0; h < height.output; ++h) {
      const int64_t y_row = (d * height.output + h) * width.output;
      for (int64_t kd = depth.first(d); kd < depth.last(d); ++kd) {
        for (int64_t kh = height.first(h); kh < height.last(h); ++kh) {
          const int64_t x_row = (depth.at(d, kd) * height.input + height.at(h, kh)) * width.input;
          for (int64_t kw = 0; kw < width.kernel; ++kw) {
            const int64_t first = width.first_output(kw);
            const int64_t count = width.last_output(kw) - first;
            if (count > 0) body(x_row + width.at(first, kw), y_row + first, width.stride, count);
          }
        }
      }
    }
  }
}

// The first largest element of the window of output (d, h, w), as its place in the plane; the last NaN where there is
// one.
template <typename T>
int64_t LargestOf(const SpatialWindow& window, const T* x, int64_t d, int64_t h, int64_t w) {
  const auto& [depth, height, width] = std::tie(window.axis(0), window.axis(1), window.axis(2));
  int64_t place = -1;
  T largest = -std::numeric_limits<T>::infinity();
  for (int64_t kd = depth.first(d); kd < depth.last(d); ++kd) {
    for (int64_t kh = height.first(h); kh < height.last(h); ++kh) {
      const int64_t row = (depth.at(d, kd) * height.input + height.at(h, kh)) * width.input;
      for (int64_t kw = width.first(w); kw < width.last(w); ++kw) {
        const int64_t at = row + width.at(w, kw);
        const T value = x[at];
        if (place >= 0 && !(value > largest || value != value)) continue;
        place = at;
        largest = value;
      }
    }
  }
  return place;
}

// body(output place, d, h, w) over a plane's outputs.
template <typename Body>
void ForEachOutput(const SpatialWindow& window, const Body& body) {
  int64_t place = 0;
  for (int64_t d = 0; d < window.axis(0).output; ++d) {
    for (int64_t h = 0; h < window.axis(1).output; ++h) {
      for (int64_t w = 0; w < window.axis(2).output; ++w) body(place++, d, h, w);
    }
  }
}

template <typename T>
class MaxPool : public Kernel {
 public:
  MaxPool(const KernelContext& context, const SpatialWindow& window)
      : window_(window),
        planes_(PlanesOf(context)),
        column_major_(context.node.attributes().Int("storage_order", 0) != 0),
        threads_(context.threads) {}

  Status Launch(const LaunchArgs& args) override {
    ForEachPlane(threads_, planes_, window_, [&](int64_t plane) {
      const T* x = args.input<T>(0) + plane * window_.input_size();
      T* y = args.output<T>(0) + plane * window_.output_size();
      std::fill_n(y, window_.output_size(), -std::numeric_limits<T>::infinity());
      ForEachRun(window_, [&](int64_t from, int64_t to, int64_t stride, int64_t count) {
        loops_.max(x + from, stride, y + to, count);
      });
      if (args.output<int64_t>(1) != nullptr) {
        WriteIndices(plane, x, args.output<int64_t>(1) + plane * window_.output_size());
      }
    });
    return OkStatus();
  }

 private:
  void WriteIndices(int64_t plane, const T* x, int64_t* indices) const {
    ForEachOutput(window_, [&](int64_t place, int64_t d, int64_t h, int64_t w) {
      const int64_t at = LargestOf(window_, x, d, h, w);
      indices[place] = plane * window_.input_size() + (column_major_ ? ColumnMajor(at) : at);
    });
  }

  int64_t ColumnMajor(int64_t place) const {
    const int64_t height = window_.axis(1).input, width = window_.axis(2).input;
    const int64_t w = place % width, h = place / width % height, d = place / width / height;
    return d + window_.axis(0).input * (h + height * w);
  }

  const SpatialWindow window_;
  const int64_t planes_;
  const bool column_major_;
  const int threads_;
  const PoolLoops<T> loops_;
};

// dy, x -> dx
template <typename T>
class MaxPoolGradient : public Kernel {
 public:
  MaxPoolGradient(const KernelContext& context, const SpatialWindow& window)
      : window_(window), planes_(PlanesOf(context)), threads_(context.threads) {}

  Status Launch(const LaunchArgs& args) override {
    ForEachPlane(threads_, planes_, window_, [&](int64_t plane) {
      const T* dy = args.input<T>(0) + plane * window_.output_size();
      const T* x = args.input<T>(1) + plane * window_.input_size();
      T* dx = args.output<T>(0) + plane * window_.input_size();
      std::fill_n(dx, window_.input_size(), T{0});
      ForEachOutput(window_, [&](int64_t place, int64_t d, int64_t h, int64_t w) {
        const int64_t at = LargestOf(window_, x, d, h, w);
        if (at >= 0) dx[at] += dy[place];
      });
    });
    return OkStatus();
  }

 private:
  const SpatialWindow window_;
  const int64_t planes_;
  const int threads_;
};

// One over the number of elements that each output averages.
template <typename T>
std::vector<T> Reciprocals(const SpatialWindow& window, bool count_padding) {
  const auto count = [&](size_t index, int64_t position) {
    const SpatialWindow::Axis& axis = window.axis(index);
    return count_padding ? axis.padded(position) : axis.last(position) - axis.first(position);
  };
  std::vector<T> reciprocals(window.output_size());
  ForEachOutput(window, [&](int64_t place, int64_t d, int64_t h, int64_t w) {
    reciprocals[place] = static_cast<T>(1.0 / static_cast<double>(count(0, d) * count(1, h) * count(2, w)));
  });
  return reciprocals;
}

bool CountsPadding(const KernelContext& context) { return context.node.attributes().Int("count_include_pad", 0) != 0; }

template <typename T>
class AveragePool : public Kernel {
 public:
  AveragePool(const KernelContext& context, const SpatialWindow& window)
      : window_(window),
        planes_(PlanesOf(context)),
        reciprocals_(Reciprocals<T>(window, CountsPadding(context))),
        threads_(context.threads) {}

  Status Launch(const LaunchArgs& args) override {
    ForEachPlane(threads_, planes_, window_, [&](int64_t plane) {
      const T* x = args.input<T>(0) + plane * window_.input_size();
      T* y = args.output<T>(0) + plane * window_.output_size();
      std::fill_n(y, window_.output_size(), T{0});
      ForEachRun(window_, [&](int64_t from, int64_t to, int64_t stride, int64_t count) {
        loops_.add(x + from, stride, y + to, count);
      });
      for (int64_t i = 0; i < window_.output_size(); ++i) y[i] *= reciprocals_[i];
    });
    return OkStatus();
  }

 private:
  const SpatialWindow window_;
  const int64_t planes_;
  const std::vector<T> reciprocals_;
  const int threads_;
  const PoolLoops<T> loops_;
};

// dy -> dx
template <typename T>
class AveragePoolGradient : public Kernel {
 public:
  AveragePoolGradient(const KernelContext& context, const SpatialWindow& window)
      : window_(window),
        planes_(PlanesOf(context)),
        reciprocals_(Reciprocals<T>(window, CountsPadding(context))),
        threads_(context.threads) {}

  Status Launch(const LaunchArgs& args) override {
    ForEachPlane(threads_, planes_, window_, [&](int64_t plane) {
      const T* dy = args.input<T>(0) + plane * window_.output_size();
      T* dx = args.output<T>(0) + plane * window_.input_size();
      std::fill_n(dx, window_.input_size(), T{0});
      ForEachRun(window_, [&](int64_t to, int64_t from, int64_t stride, int64_t count) {
        loops_.spread(dy + from, reciprocals_.data() + from, dx + to, stride, count);
      });
    });
    return OkStatus();
  }

 private:
  const SpatialWindow window_;
  const int64_t planes_;
  const std::vector<T> reciprocals_;
  const int threads_;
  const PoolLoops<T> loops_;
};

// Mean or largest element of each plane.
template <typename T, bool kMean>
class GlobalPool : public Kernel {
 public:
  explicit GlobalPool(const KernelContext& context)
      : planes_(context.output_type(0).elements()),
        size_(planes_ == 0 ? 0 : context.input_type(0).elements() / planes_),
        threads_(context.threads) {}

  Status Launch(const LaunchArgs& args) override {
    ParallelFor(threads_, planes_, 1 + kGrainElements / std::max<int64_t>(size_, 1), [&](int64_t begin, int64_t end) {
      for (int64_t plane = begin; plane < end; ++plane) {
        args.output<T>(0)[plane] = Reduce(args.input<T>(0) + plane * size_);
      }
    });
    return OkStatus();
  }

 private:
  T Reduce(const T* x) const {
    if constexpr (kMean) return static_cast<T>(sums_.sum(x, size_) / static_cast<double>(size_));
    T largest = -std::numeric_limits<T>::infinity();
    for (int64_t i = 0; i < size_; ++i) largest = x[i] > largest || x[i] != x[i] ? x[i] : largest;
    return largest;
  }

  const int64_t planes_;
  const int64_t size_;
  const int threads_;
  const NormalizationLoops<T> sums_;
};

using Made = StatusOr<std::unique_ptr<Kernel>>;

template <template <typename> class KernelOf>
Made MakeWindowed(const KernelContext& context, const Shape& input, const Shape& output) {
  const Attributes& attributes = context.node.attributes();
  ASSIGN_OR_RETURN(const Window sizes, WindowOf(attributes, SpatialOf(input), attributes.Ints("kernel_shape")));
  StatusOr<SpatialWindow> window = SpatialWindow::Make(sizes, SpatialOf(input), SpatialOf(output));
  if (!window.ok()) return window.status().Prepend(context.node.Describe());
  switch (context.output_type(0).dtype) {
    case DType::kFloat:
      return std::unique_ptr<Kernel>(new KernelOf<float>(context, *window));
    case DType::kDouble:
      return std::unique_ptr<Kernel>(new KernelOf<double>(context, *window));
    default:
      return UnsupportedTypes(context);
  }
}

// Forward: input 0 -> output 0. Backward: output 0 has the shape of x, input 0 that of y.
template <template <typename> class KernelOf>
Made MakeForward(const KernelContext& context) {
  return MakeWindowed<KernelOf>(context, context.input_type(0).shape, context.output_type(0).shape);
}
template <template <typename> class KernelOf>
Made MakeBackward(const KernelContext& context) {
  return MakeWindowed<KernelOf>(context, context.output_type(0).shape, context.input_type(0).shape);
}

template <bool kMean>
Made MakeGlobal(const KernelContext& context) {
  switch (context.output_type(0).dtype) {
    case DType::kFloat:
      return std::unique_ptr<Kernel>(new GlobalPool<float, kMean>(context));
    case DType::kDouble:
      return std::unique_ptr<Kernel>(new GlobalPool<double, kMean>(context));
    default:
      return UnsupportedTypes(context);
  }
}

}  // namespace

void AddPoolKernels(KernelRegistry& registry) {
  registry.Add("MaxPool", MakeForward<MaxPool>);
  registry.Add("AveragePool", MakeForward<AveragePool>);
  registry.Add("GlobalAveragePool", MakeGlobal<true>);
  registry.Add("GlobalMaxPool", MakeGlobal<false>);
  registry.Add("onnxtrain.MaxPoolGrad", MakeBackward<MaxPoolGradient>);
  registry.Add("onnxtrain.AveragePoolGrad", MakeBackward<AveragePoolGradient>);
}

}  // namespace onnxtrain
