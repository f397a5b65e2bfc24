// SPDX-License-Identifier: Apache-2.0
#include "graph/tensor.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <new>

namespace onnxtrain {
namespace {

constexpr std::align_val_t kAlignment{64};

// Calls visit with a value of the storage type of `dtype`; 16-bit floats are not handled here.
template <typename Visitor>
auto VisitStorage(DType dtype, Visitor visit) {
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
      return visit(bool{});
    default:
      break;
  }
  internal::CheckFailed(__FILE__, __LINE__, "numeric element type", std::string(NameOf(dtype)));
}

bool IsHalf(DType dtype) { return dtype == DType::kFloat16 || dtype == DType::kBfloat16; }

// As ONNX's Cast where it says something; a float that no integer of the type can hold saturates, NaN gives 0.
template <typename From, typename To>
To Convert(From value) {
  if constexpr (std::is_same_v<To, bool>) {
    return value != From{};
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    if (value != value) return To{0};
    // 2^digits, the first number above the range, is exact in every float type where max() is not.
    const From above = std::ldexp(From{1}, std::numeric_limits<To>::digits);
    if (value >= above) return std::numeric_limits<To>::max();
    if (value <= (std::is_signed_v<To> ? -above : From{0})) return std::numeric_limits<To>::lowest();
    return static_cast<To>(value);
  } else {
    return static_cast<To>(value);
  }
}

float HalfAt(const Tensor& tensor, int64_t index) {
  const uint16_t bits = reinterpret_cast<const uint16_t*>(tensor.data())[index];
  return tensor.dtype() == DType::kFloat16 ? Float16ToFloat(bits) : Bfloat16ToFloat(bits);
}

}  // namespace

int64_t ElementsOf(std::span<const int64_t> shape) {
  int64_t count = 1;
  for (int64_t dim : shape) count *= dim;
  return count;
}

int64_t TensorType::elements() const { return ElementsOf(shape); }

std::string ToString(const Shape& shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i) {
    if (i != 0) text += ",";
    text += std::to_string(shape[i]);
  }
  return text + "]";
}

std::string ToString(const TensorType& type) {
  if (!type.known()) return "?";
  return std::string(NameOf(type.dtype)) + ToString(type.shape);
}

void Tensor::Free::operator()(std::byte* bytes) const { ::operator delete[](bytes, kAlignment); }

Tensor::Tensor(TensorType type) : type_(std::move(type)) {
  for (int64_t dim : type_.shape) CHECK_WITH(dim >= 0, ToString(type_));
  const size_t size = type_.bytes();
  data_.reset(static_cast<std::byte*>(::operator new[](size == 0 ? 1 : size, kAlignment)));
  std::memset(data_.get(), 0, size);
}

Tensor::Tensor(const Tensor& other) : type_(other.type_) {
  if (other.data_ == nullptr) return;
  const size_t size = type_.bytes();
  data_.reset(static_cast<std::byte*>(::operator new[](size == 0 ? 1 : size, kAlignment)));
  std::memcpy(data_.get(), other.data_.get(), size);
}

Tensor& Tensor::operator=(const Tensor& other) {
  if (this != &other) *this = Tensor(other);
  return *this;
}

Tensor Tensor::Ints(const std::vector<int64_t>& values) {
  return FromVector<int64_t>({static_cast<int64_t>(values.size())}, values);
}

void Tensor::CheckElementType(DType wanted) const {
  const bool bits = wanted == DType::kUint16 && (dtype() == DType::kFloat16 || dtype() == DType::kBfloat16);
  const bool bytes = wanted == DType::kUint8 && dtype() == DType::kBool;
  CHECK_WITH(wanted == dtype() || bits || bytes,
             std::string(NameOf(wanted)) + " view of " + std::string(NameOf(dtype())));
}

Tensor Tensor::Reshaped(Shape shape) const {
  CHECK_WITH(ElementsOf(shape) == elements(), ToString(shape) + " from " + ToString(type_));
  Tensor result(*this);
  result.type_.shape = std::move(shape);
  return result;
}

double Tensor::DoubleAt(int64_t index) const {
  CHECK(index >= 0 && index < elements());
  if (IsHalf(dtype())) return HalfAt(*this, index);
  return VisitStorage(
      dtype(), [&](auto zero) { return static_cast<double>(reinterpret_cast<const decltype(zero)*>(data())[index]); });
}

int64_t Tensor::IntAt(int64_t index) const {
  CHECK(index >= 0 && index < elements());
  if (IsHalf(dtype())) return Convert<float, int64_t>(HalfAt(*this, index));
  return VisitStorage(dtype(), [&](auto zero) {
    using T = decltype(zero);
    return Convert<T, int64_t>(reinterpret_cast<const T*>(data())[index]);
  });
}

Tensor Tensor::CastTo(DType target) const {
  if (target == dtype()) return *this;
  if (IsHalf(dtype())) {
    Tensor wide(TensorType{DType::kFloat, shape()});
    for (int64_t i = 0; i < elements(); ++i) wide.values<float>()[static_cast<size_t>(i)] = HalfAt(*this, i);
    return wide.CastTo(target);
  }
  Tensor result(TensorType{target, shape()});
  if (IsHalf(target)) {
    const Tensor wide = CastTo(DType::kFloat);
    const auto narrow = target == DType::kFloat16 ? FloatToFloat16 : FloatToBfloat16;
    std::transform(wide.values<float>().begin(), wide.values<float>().end(), reinterpret_cast<uint16_t*>(result.data()),
                   narrow);
    return result;
  }
  VisitStorage(dtype(), [&](auto from_zero) {
    using From = decltype(from_zero);
    VisitStorage(target, [&](auto to_zero) {
      using To = decltype(to_zero);
      const std::span<const From> from = values<From>();
      std::transform(from.begin(), from.end(), result.values<To>().begin(), Convert<From, To>);
    });
  });
  return result;
}

bool Tensor::Identical(const Tensor& other) const {
  return type_ == other.type_ && (bytes() == 0 || std::memcmp(data(), other.data(), bytes()) == 0);
}

}  // namespace onnxtrain
