// SPDX-License-Identifier: Apache-2.0
#include "runtime/cpu/convolution.h"

#include <algorithm>

#include "runtime/cpu/dnnl_conv.h"
#include "runtime/cpu/matrix_product.h"
#include "runtime/cpu/parallel_for.h"
#include "runtime/cpu/spatial_window.h"

namespace onnxtrain {
namespace {

// A convolution is a product with the columns [channels * kernel, output positions] of a sample; one sample at a time.
// Gradients of weights are summed in order of samples.
template <typename T>
class ColumnConvolution : public Convolution {
 public:
  static StatusOr<std::unique_ptr<Convolution>> Make(DType dtype, ConvDirection direction, const ConvShape& shape,
                                                     int threads) {
    ASSIGN_OR_RETURN(const SpatialWindow window, SpatialWindow::Make(shape.window, shape.input, shape.output));
    ASSIGN_OR_RETURN(auto product, MatrixProduct::Create(dtype, ProductOf(direction, shape), 1,
                                                         direction == ConvDirection::kWeightGradient, threads));
    return std::unique_ptr<Convolution>(new ColumnConvolution(direction, shape, window, std::move(product), threads));
  }

  size_t workspace_bytes() const override { return ColumnBytes() + product_->workspace_bytes(); }

  Status Run(const void* a, const void* b, void* result, void* bias, std::byte* workspace) override {
    T* columns = reinterpret_cast<T*>(workspace);
    std::byte* scratch = workspace + ColumnBytes();
    T* to = static_cast<T*>(result);
    const T* from = static_cast<const T*>(a);
    switch (direction_) {
      case ConvDirection::kForward:
        return Forward(from, b, to, static_cast<const T*>(bias), columns, scratch);
      case ConvDirection::kInputGradient:
        return InputGradient(from, b, to, columns, scratch);
      case ConvDirection::kWeightGradient:
        break;
    }
    if (bias != nullptr) SumBias(from, static_cast<T*>(bias));
    return WeightGradient(from, static_cast<const T*>(b), to, columns, scratch);
  }

 private:
  ColumnConvolution(ConvDirection direction, const ConvShape& shape, const SpatialWindow& window,
                    std::unique_ptr<MatrixProduct> product, int threads)
      : direction_(direction), shape_(shape), window_(window), product_(std::move(product)), threads_(threads) {}

  // Batched over groups; A, B and C as the direction needs them.
  static ProductShape ProductOf(ConvDirection direction, const ConvShape& shape) {
    const int64_t positions = ElementsOf(shape.output);
    const int64_t taps = shape.channels / shape.groups * ElementsOf(shape.window.kernel);
    const int64_t filters = shape.filters / shape.groups;
    const MatrixLayout weights{taps, 1, {filters * taps}};
    const MatrixLayout outputs{positions, 1, {filters * positions}};
    const MatrixLayout columns{positions, 1, {taps * positions}};
    const auto transposed = [](MatrixLayout layout) {
      std::swap(layout.row, layout.column);
      return layout;
    };
    switch (direction) {
      case ConvDirection::kForward:
        return {filters, positions, taps, {shape.groups}, weights, columns, outputs};
      case ConvDirection::kInputGradient:
        return {taps, positions, filters, {shape.groups}, transposed(weights), outputs, columns};
      case ConvDirection::kWeightGradient:
        break;
    }
    return {filters, taps, positions, {shape.groups}, outputs, transposed(columns), weights};
  }

  int64_t positions() const { return window_.output_size(); }
  int64_t ColumnElements() const { return shape_.channels * window_.window_size() * positions(); }
  size_t ColumnBytes() const { return (ColumnElements() * sizeof(T) + 63) / 64 * 64; }
  int64_t input_elements() const { return shape_.channels * window_.input_size(); }
  int64_t output_elements() const { return shape_.filters * positions(); }

  Status Forward(const T* x, const void* w, T* y, const T* bias, T* columns, std::byte* scratch) {
    for (int64_t n = 0; n < shape_.batch; ++n) {
      ToColumns(x + n * input_elements(), columns);
      RETURN_IF_ERROR(product_->Run(w, columns, y + n * output_elements(), scratch));
    }
    if (bias != nullptr) AddBias(bias, y);
    return OkStatus();
  }

  Status InputGradient(const T* dy, const void* w, T* dx, T* columns, std::byte* scratch) {
    for (int64_t n = 0; n < shape_.batch; ++n) {
      RETURN_IF_ERROR(product_->Run(w, dy + n * output_elements(), columns, scratch));
      FromColumns(columns, dx + n * input_elements());
    }
    return OkStatus();
  }

  Status WeightGradient(const T* dy, const T* x, T* dw, T* columns, std::byte* scratch) {
    std::fill_n(dw, shape_.filters * (shape_.channels / shape_.groups) * window_.window_size(), T{0});
    for (int64_t n = 0; n < shape_.batch; ++n) {
      ToColumns(x + n * input_elements(), columns);
      RETURN_IF_ERROR(product_->Run(dy + n * output_elements(), columns, dw, scratch));
    }
    return OkStatus();
  }

  void AddBias(const T* bias, T* y) const {
    ParallelFor(threads_, shape_.batch * shape_.filters, 8, [&](int64_t begin, int64_t end) {
      for (int64_t plane = begin; plane < end; ++plane) {
        T* row = y + plane * positions();
        for (int64_t i = 0; i < positions(); ++i) row[i] += bias[plane % shape_.filters];
      }
    });
  }

  void SumBias(const T* dy, T* dbias) const {
    ParallelFor(threads_, shape_.filters, 1, [&](int64_t begin, int64_t end) {
      for (int64_t filter = begin; filter < end; ++filter) {
        double sum = 0;
        for (int64_t n = 0; n < shape_.batch; ++n) {
          const T* row = dy + (n * shape_.filters + filter) * positions();
          for (int64_t i = 0; i < positions(); ++i) sum += double{row[i]};
        }
        dbias[filter] = static_cast<T>(sum);
      }
    });
  }

  // body(row of the columns, its channel, offsets of the window) for all rows of a channel.
  template <typename Body>
  void ForEachTap(int64_t channel, const Body& body) const {
    int64_t row = channel * window_.window_size();
    for (int64_t d = 0; d < window_.axis(0).kernel; ++d) {
      for (int64_t h = 0; h < window_.axis(1).kernel; ++h) {
        for (int64_t w = 0; w < window_.axis(2).kernel; ++w) body(row++, d, h, w);
      }
    }
  }

  // body(output position, input position or -1, number of elements) for the rows of positions of one tap: runs of the
  // last axis whose inputs lie a stride apart, and gaps where the window hangs over.
  template <typename Body>
  void ForEachRun(int64_t kd, int64_t kh, int64_t kw, const Body& body) const {
    const SpatialWindow::Axis &depth = window_.axis(0), &height = window_.axis(1), &width = window_.axis(2);
    const int64_t first = width.first_output(kw);
    const int64_t last = std::max(first, width.last_output(kw));
    for (int64_t d = 0; d < depth.output; ++d) {
      for (int64_t h = 0; h < height.output; ++h) {
        const int64_t place = (d * height.output + h) * width.output;
        const int64_t at_d = depth.at(d, kd), at_h = height.at(h, kh);
        const bool inside = at_d >= 0 && at_d < depth.input && at_h >= 0 && at_h < height.input;
        if (!inside) {
          body(place, -1, width.output);
          continue;
        }
        body(place, -1, first);
        body(place + first, (at_d * height.input + at_h) * width.input + width.at(first, kw), last - first);
        body(place + last, -1, width.output - last);
      }
    }
  }

  void ToColumns(const T* x, T* columns) const {
    const int64_t stride = window_.axis(2).stride;
    ParallelFor(threads_, shape_.channels, 1, [&](int64_t begin, int64_t end) {
      for (int64_t channel = begin; channel < end; ++channel) {
        const T* plane = x + channel * window_.input_size();
        ForEachTap(channel, [&](int64_t row, int64_t kd, int64_t kh, int64_t kw) {
          T* to = columns + row * positions();
          ForEachRun(kd, kh, kw, [&](int64_t place, int64_t from, int64_t count) {
            for (int64_t i = 0; i < count; ++i) to[place + i] = from < 0 ? T{0} : plane[from + i * stride];
          });
        });
      }
    });
  }

  void FromColumns(const T* columns, T* dx) const {
    const int64_t stride = window_.axis(2).stride;
    ParallelFor(threads_, shape_.channels, 1, [&](int64_t begin, int64_t end) {
      for (int64_t channel = begin; channel < end; ++channel) {
        T* plane = dx + channel * window_.input_size();
        std::fill_n(plane, window_.input_size(), T{0});
        ForEachTap(channel, [&](int64_t row, int64_t kd, int64_t kh, int64_t kw) {
          const T* from = columns + row * positions();
          ForEachRun(kd, kh, kw, [&](int64_t place, int64_t to, int64_t count) {
            for (int64_t i = 0; i < count && to >= 0; ++i) plane[to + i * stride] += from[place + i];
          });
        });
      }
    });
  }

  const ConvDirection direction_;
  const ConvShape shape_;
  const SpatialWindow window_;
  const std::unique_ptr<MatrixProduct> product_;
  const int threads_;
};

#ifdef ONNXTRAIN_SERIAL_KERNELS
constexpr bool kUseDnnl = false;
#else
constexpr bool kUseDnnl = true;
#endif

bool HasZero(const ConvShape& shape) {
  return shape.batch * shape.channels * shape.filters * ElementsOf(shape.input) * ElementsOf(shape.output) *
             ElementsOf(shape.window.kernel) ==
         0;
}

}  // namespace

StatusOr<std::unique_ptr<Convolution>> Convolution::Create(DType dtype, ConvDirection direction, const ConvShape& shape,
                                                           bool bias, int threads) {
  if (shape.input.empty() || shape.input.size() > 3) {
    return InvalidModelError("convolutions have one to three spatial axes, not " + std::to_string(shape.input.size()));
  }
  switch (dtype) {
    case DType::kFloat:
      if (kUseDnnl && !HasZero(shape)) return CreateDnnlConvolution(dtype, direction, shape, bias, threads);
      return ColumnConvolution<float>::Make(dtype, direction, shape, threads);
    case DType::kDouble:
      return ColumnConvolution<double>::Make(dtype, direction, shape, threads);
    case DType::kBfloat16:
      if (kUseDnnl && !HasZero(shape)) return CreateDnnlConvolution(dtype, direction, shape, bias, threads);
      return InvalidModelError("convolutions of bfloat16 are oneDNN's, and not of nothing");
    default:
      return InvalidModelError("convolutions serve float, double and bfloat16, not " + std::string(NameOf(dtype)));
  }
}

}  // namespace onnxtrain
