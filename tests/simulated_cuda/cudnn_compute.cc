// SPDX-License-Identifier: Apache-2.0
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstring>
#include <vector>

#include "tests/simulated_cuda/cudnn_state.h"

namespace simulated_cudnn {
namespace {

double Load(const void* data, int64_t type, int64_t index) {
  switch (type) {
    case CUDNN_DATA_DOUBLE:
      return static_cast<const double*>(data)[index];
    case CUDNN_DATA_BFLOAT16:
      return __bfloat162float(static_cast<const __nv_bfloat16*>(data)[index]);
    case CUDNN_DATA_HALF:
      return __half2float(static_cast<const __half*>(data)[index]);
    default:
      return static_cast<const float*>(data)[index];
  }
}

void Store(void* data, int64_t type, int64_t index, double value) {
  switch (type) {
    case CUDNN_DATA_DOUBLE:
      static_cast<double*>(data)[index] = value;
      return;
    case CUDNN_DATA_BFLOAT16:
      static_cast<__nv_bfloat16*>(data)[index] = __float2bfloat16(static_cast<float>(value));
      return;
    case CUDNN_DATA_HALF:
      static_cast<__half*>(data)[index] = __float2half(static_cast<float>(value));
      return;
    default:
      static_cast<float*>(data)[index] = static_cast<float>(value);
  }
}

// What a tensor core sees of a float: ten bits after the point, the rest rounded to even.
double ToTf32(double value) {
  const float single = static_cast<float>(value);
  uint32_t bits;
  std::memcpy(&bits, &single, sizeof(bits));
  bits = (bits + 0xfffu + (bits >> 13 & 1u)) & ~0x1fffu;
  float rounded;
  std::memcpy(&rounded, &bits, sizeof(rounded));
  return rounded;
}

std::vector<double> Widened(const void* data, const Convolution& c, int64_t elements) {
  std::vector<double> values(static_cast<size_t>(elements));
  for (int64_t i = 0; i < elements; ++i) {
    const double value = Load(data, c.type, i);
    values[static_cast<size_t>(i)] = c.tf32 != 0 ? ToTf32(value) : value;
  }
  return values;
}

int64_t Product(const int64_t (&sizes)[3]) { return sizes[0] * sizes[1] * sizes[2]; }

// visit(place in a plane of x, tap, place in a plane of y) for everything that meets.
template <typename Visit>
void ForEachMeeting(const Convolution& c, const Visit& visit) {
  int64_t tap = 0;
  for (int64_t kd = 0; kd < c.kernel[0]; ++kd) {
    for (int64_t kh = 0; kh < c.kernel[1]; ++kh) {
      for (int64_t kw = 0; kw < c.kernel[2]; ++kw, ++tap) {
        for (int64_t d = 0; d < c.output[0]; ++d) {
          const int64_t x_d = d * c.strides[0] - c.pads[0] + kd * c.dilations[0];
          if (x_d < 0 || x_d >= c.input[0]) continue;
          for (int64_t h = 0; h < c.output[1]; ++h) {
            const int64_t x_h = h * c.strides[1] - c.pads[1] + kh * c.dilations[1];
            if (x_h < 0 || x_h >= c.input[1]) continue;
            for (int64_t w = 0; w < c.output[2]; ++w) {
              const int64_t x_w = w * c.strides[2] - c.pads[2] + kw * c.dilations[2];
              if (x_w < 0 || x_w >= c.input[2]) continue;
              visit((x_d * c.input[1] + x_h) * c.input[2] + x_w, tap, (d * c.output[1] + h) * c.output[2] + w);
            }
          }
        }
      }
    }
  }
}

}  // namespace

size_t BytesOf(int64_t type) {
  return type == CUDNN_DATA_DOUBLE ? 8 : type == CUDNN_DATA_FLOAT ? 4 : 2;
}

int64_t ElementsOfX(const Convolution& c) { return c.batch * c.channels * Product(c.input); }
int64_t ElementsOfW(const Convolution& c) { return c.filters * (c.channels / c.groups) * Product(c.kernel); }
int64_t ElementsOfY(const Convolution& c) { return c.batch * c.filters * Product(c.output); }

void Run(const Work& work) {
  const Convolution& c = work.convolution;
  if (c.workspace_bytes > 0) std::memset(work.workspace, 0xff, static_cast<size_t>(c.workspace_bytes));
  std::vector<double> x, w, y;
  void* const places[] = {work.x, work.w, work.y};
  std::vector<double>* const values[] = {&x, &w, &y};
  const int64_t elements[] = {ElementsOfX(c), ElementsOfW(c), ElementsOfY(c)};
  const int written = c.direction == kForward ? 2 : c.direction == kInputGradient ? 0 : 1;
  for (int i = 0; i < 3; ++i) {
    if (i == written) {
      values[i]->assign(static_cast<size_t>(elements[i]), 0.0);
    } else {
      *values[i] = Widened(places[i], c, elements[i]);
    }
  }
  const int64_t group_channels = c.channels / c.groups, group_filters = c.filters / c.groups;
  const int64_t taps = Product(c.kernel), x_plane = Product(c.input), y_plane = Product(c.output);
  for (int64_t n = 0; n < c.batch; ++n) {
    for (int64_t k = 0; k < c.filters; ++k) {
      for (int64_t channel = 0; channel < group_channels; ++channel) {
        double* const x_at = x.data() + (n * c.channels + k / group_filters * group_channels + channel) * x_plane;
        double* const w_at = w.data() + (k * group_channels + channel) * taps;
        double* const y_at = y.data() + (n * c.filters + k) * y_plane;
        ForEachMeeting(c, [&](int64_t from, int64_t tap, int64_t to) {
          if (written == 2) y_at[to] += x_at[from] * w_at[tap];
          if (written == 0) x_at[from] += y_at[to] * w_at[tap];
          if (written == 1) w_at[tap] += x_at[from] * y_at[to];
        });
      }
    }
  }
  for (int64_t i = 0; i < elements[written]; ++i) {
    Store(places[written], c.type, i, (*values[written])[static_cast<size_t>(i)]);
  }
}

}  // namespace simulated_cudnn
