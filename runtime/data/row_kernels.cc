// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/row_kernels.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <type_traits>
#include <utility>

#include "graph/status.h"

namespace onnxtrain {
namespace {

// Stand for the 16-bit floats in templates.
struct Half {
  uint16_t bits;
};
struct Brain {
  uint16_t bits;
};

template <typename Visitor>
auto VisitType(DType dtype, Visitor visit) {
  switch (dtype) {
    case DType::kFloat:
      return visit(float{});
    case DType::kDouble:
      return visit(double{});
    case DType::kUint8:
      return visit(uint8_t{});
    case DType::kInt8:
      return visit(int8_t{});
    case DType::kUint16:
      return visit(uint16_t{});
    case DType::kInt16:
      return visit(int16_t{});
    case DType::kInt32:
      return visit(int32_t{});
    case DType::kInt64:
      return visit(int64_t{});
    case DType::kUint32:
      return visit(uint32_t{});
    case DType::kUint64:
      return visit(uint64_t{});
    case DType::kBool:
      return visit(uint8_t{});  // 0 or 1
    case DType::kFloat16:
      return visit(Half{});
    case DType::kBfloat16:
      return visit(Brain{});
    default:
      break;
  }
  internal::CheckFailed(__FILE__, __LINE__, "a numeric type", std::string(NameOf(dtype)));
}

template <typename T>
T Load(const std::byte* from, int64_t index) {
  T value;
  std::memcpy(&value, from + static_cast<size_t>(index) * sizeof(T), sizeof(T));
  return value;
}

template <typename T>
void Store(std::byte* to, int64_t index, T value) {
  std::memcpy(to + static_cast<size_t>(index) * sizeof(T), &value, sizeof(T));
}

template <typename T>
auto Widen(T value) {
  if constexpr (std::is_same_v<T, Half>) {
    return Float16ToFloat(value.bits);
  } else if constexpr (std::is_same_v<T, Brain>) {
    return Bfloat16ToFloat(value.bits);
  } else {
    return value;
  }
}

// The integers that `value` may be cut to: those above -2^63 - 1 and so on. Comparing in double is exact at powers of
// two.
template <typename To, typename From>
bool FitsAfterTruncation(From value) {
  if constexpr (std::is_floating_point_v<From>) {
    const double cut = std::trunc(static_cast<double>(value));
    const double above = std::ldexp(1.0, std::numeric_limits<To>::digits);
    const double lowest = std::is_signed_v<To> ? -above : 0.0;
    return cut >= lowest && cut < above;  // false for NaN
  } else {
    return std::in_range<To>(value);
  }
}

template <typename To, typename From>
bool ConvertOne(From value, To* to) {
  if constexpr (std::is_same_v<To, Half>) {
    to->bits = FloatToFloat16(static_cast<float>(value));
  } else if constexpr (std::is_same_v<To, Brain>) {
    to->bits = FloatToBfloat16(static_cast<float>(value));
  } else if constexpr (std::is_integral_v<To>) {
    if (!FitsAfterTruncation<To>(value)) return false;
    *to = static_cast<To>(value);
  } else {
    *to = static_cast<To>(value);
  }
  return true;
}

template <typename From, typename To>
int64_t Convert(const std::byte* from, std::byte* to, int64_t count) {
  if constexpr (std::is_floating_point_v<To>) {  // every number has a value, and nothing ends the loop early
#pragma omp simd
    for (int64_t i = 0; i < count; ++i) Store<To>(to, i, static_cast<To>(Widen(Load<From>(from, i))));
    return -1;
  }
  for (int64_t i = 0; i < count; ++i) {
    To value;
    if (!ConvertOne<To>(Widen(Load<From>(from, i)), &value)) return i;
    Store<To>(to, i, value);
  }
  return -1;
}

struct Divide {
  template <typename T>
  T operator()(T value, T number) const {
    return value / number;
  }
};
struct Multiply {
  template <typename T>
  T operator()(T value, T number) const {
    return value * number;
  }
};
struct Subtract {
  template <typename T>
  T operator()(T value, T number) const {
    return value - number;
  }
};

template <typename T, typename Operation>
void Arithmetic(Operation operation, const std::byte* from, std::span<const double> numbers, int64_t inner,
                std::byte* to, int64_t count) {
  size_t channel = 0;
  for (int64_t start = 0; start < count; start += inner) {
    const T number = static_cast<T>(numbers[channel]);
#pragma omp simd
    for (int64_t i = start; i < start + inner; ++i) Store<T>(to, i, operation(Load<T>(from, i), number));
    channel = channel + 1 == numbers.size() ? 0 : channel + 1;
  }
}

template <typename T>
void ArithmeticOn(RowArithmetic operation, const std::byte* from, std::span<const double> numbers, int64_t inner,
                  std::byte* to, int64_t count) {
  switch (operation) {
    case RowArithmetic::kDivide:
      return Arithmetic<T>(Divide(), from, numbers, inner, to, count);
    case RowArithmetic::kMultiply:
      return Arithmetic<T>(Multiply(), from, numbers, inner, to, count);
    case RowArithmetic::kSubtract:
      return Arithmetic<T>(Subtract(), from, numbers, inner, to, count);
  }
}

}  // namespace

int64_t ConvertElements(DType from_type, const std::byte* from, DType to_type, std::byte* to, int64_t count) {
  CHECK(to_type != DType::kBool);
  return VisitType(from_type, [&](auto from_zero) {
    return VisitType(to_type,
                     [&](auto to_zero) { return Convert<decltype(from_zero), decltype(to_zero)>(from, to, count); });
  });
}

void ApplyArithmetic(RowArithmetic operation, DType type, const std::byte* from, std::span<const double> numbers,
                     int64_t inner, std::byte* to, int64_t count) {
  if (numbers.size() == 1) inner = count;
  if (count == 0) return;
  if (type == DType::kDouble) return ArithmeticOn<double>(operation, from, numbers, inner, to, count);
  CHECK(type == DType::kFloat);
  ArithmeticOn<float>(operation, from, numbers, inner, to, count);
}

int64_t OneHot(DType from_type, const std::byte* from, int64_t count, int64_t classes, std::byte* to) {
  std::memset(to, 0, static_cast<size_t>(count * classes) * sizeof(float));
  for (int64_t i = 0; i < count; ++i) {
    int64_t index = -1;
    if (ConvertElements(from_type, from + static_cast<size_t>(i) * SizeOf(from_type), DType::kInt64,
                        reinterpret_cast<std::byte*>(&index), 1) >= 0) {
      return i;
    }
    if (index < 0 || index >= classes) return i;
    Store<float>(to, i * classes + index, 1.0f);
  }
  return -1;
}

void ChannelsFirst(const std::byte* from, int64_t rows, int64_t pixels, int64_t channels, size_t width, std::byte* to) {
  const int64_t row_elements = pixels * channels;
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t channel = 0; channel < channels; ++channel) {
      for (int64_t pixel = 0; pixel < pixels; ++pixel) {
        const int64_t source = row * row_elements + pixel * channels + channel;
        std::memcpy(to, from + static_cast<size_t>(source) * width, width);
        to += width;
      }
    }
  }
}

}  // namespace onnxtrain
