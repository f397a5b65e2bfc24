// SPDX-License-Identifier: Apache-2.0
// Operators that make or reinterpret shapes: Shape, Size, Constant, ConstantOfShape, Range, EyeLike, Reshape, ...
#include <algorithm>
#include <cmath>

#include "graph/evaluate.h"
#include "graph/evaluate/evaluation.h"

namespace onnxtrain::evaluation {
namespace {

Result ShapeOf(const Call& call, const Shape& shape) {
  const auto rank = static_cast<int64_t>(shape.size());
  ASSIGN_OR_RETURN(int64_t start, call.Int("start", 0));
  ASSIGN_OR_RETURN(int64_t end, call.Int("end", rank));
  const auto clamp = [rank](int64_t at) { return std::clamp<int64_t>(at < 0 ? at + rank : at, 0, rank); };
  start = clamp(start);
  end = std::max(start, clamp(end));
  return One(Tensor::Ints({shape.begin() + start, shape.begin() + end}));
}

Result RunShape(const Call& call) { return ShapeOf(call, call.input(0).shape()); }

Result RunSize(const Call& call) { return One(Tensor::Scalar<int64_t>(call.input(0).elements())); }

Result RunConstant(const Call& call) {
  for (const auto& [name, value] : call.attributes.entries()) {
    if (name == "value" && std::holds_alternative<Tensor>(value)) return One(std::get<Tensor>(value));
    if (const auto* number = std::get_if<int64_t>(&value)) return One(Tensor::Scalar(*number));
    if (const auto* number = std::get_if<float>(&value)) return One(Tensor::Scalar(*number));
    if (const auto* list = std::get_if<std::vector<int64_t>>(&value)) return One(Tensor::Ints(*list));
    if (const auto* list = std::get_if<std::vector<float>>(&value)) {
      return One(Tensor::FromVector<float>({static_cast<int64_t>(list->size())}, *list));
    }
  }
  return call.Error("no attribute holds numbers");
}

Result RunConstantOfShape(const Call& call) {
  ASSIGN_OR_RETURN(Shape shape, call.IntsInput(0));
  Tensor value(TensorType{DType::kFloat, {1}});
  if (const AttributeValue* given = call.attributes.Find("value")) {
    const Tensor* tensor = std::get_if<Tensor>(given);
    if (tensor == nullptr || tensor->elements() != 1) return call.Error("attribute 'value' must hold one element");
    value = *tensor;
  }
  ASSIGN_OR_RETURN(Tensor result, call.NewTensor(value.dtype(), std::move(shape)));
  const size_t size = SizeOf(value.dtype());
  for (size_t at = 0; at < result.bytes(); at += size) std::memcpy(result.data() + at, value.data(), size);
  return One(std::move(result));
}

// ceil((limit - start) / delta), not below 0. Exact for integers of every width.
template <typename T>
StatusOr<int64_t> RangeLength(const Call& call, T start, T limit, T delta) {
  if (delta == T{0} || delta != delta) return call.Error("delta is zero or not a number");
  const auto too_long = ResourceExhaustedError("Range: too many elements");
  if constexpr (std::is_floating_point_v<T>) {
    const double count = std::ceil((static_cast<double>(limit) - static_cast<double>(start)) / delta);
    if (!(count < 1e15)) return too_long;
    return count > 0 ? static_cast<int64_t>(count) : 0;
  } else {
    const bool up = delta > 0;
    if (up ? start >= limit : start <= limit) return int64_t{0};
    const uint64_t distance = up ? static_cast<uint64_t>(limit) - static_cast<uint64_t>(start)
                                 : static_cast<uint64_t>(start) - static_cast<uint64_t>(limit);
    const uint64_t step = up ? static_cast<uint64_t>(delta) : 0 - static_cast<uint64_t>(delta);
    const uint64_t count = (distance - 1) / step + 1;
    if (count > uint64_t{1} << 50) return too_long;
    return static_cast<int64_t>(count);
  }
}

Result RunRange(const Call& call) {
  const DType dtype = call.input(0).dtype();
  for (size_t i = 0; i < 3; ++i) {
    if (call.input(i).elements() != 1 || call.input(i).dtype() != dtype) {
      return call.Error("start, limit and delta must be scalars of one type");
    }
  }
  return VisitNumber(
      dtype,
      [&](auto zero) -> Result {
        using T = decltype(zero);
        const T start = call.input(0).values<T>()[0];
        const T delta = call.input(2).values<T>()[0];
        ASSIGN_OR_RETURN(const int64_t count, RangeLength(call, start, call.input(1).values<T>()[0], delta));
        ASSIGN_OR_RETURN(Tensor result, call.NewTensor(dtype, {count}));
        std::span<T> values = result.values<T>();
        for (size_t i = 0; i < values.size(); ++i) values[i] = WrapAdd(start, WrapMul(static_cast<T>(i), delta));
        return One(std::move(result));
      },
      [&]() -> Result { return call.UnsupportedType(dtype); });
}

Result RunEyeLike(const Call& call) {
  const Tensor& like = call.input(0);
  if (like.type().rank() != 2) return call.Error("input must be a matrix, found " + ToString(like.type()));
  ASSIGN_OR_RETURN(const int64_t to, call.Int("dtype", static_cast<int64_t>(like.dtype())));
  ASSIGN_OR_RETURN(const int64_t k, call.Int("k", 0));
  ASSIGN_OR_RETURN(Tensor eye, call.NewTensor(DType::kFloat, like.shape()));
  const int64_t rows = like.shape()[0];
  const int64_t columns = like.shape()[1];
  for (int64_t row = 0; row < rows; ++row) {
    if (k < -row || k >= columns - row) continue;
    eye.values<float>()[static_cast<size_t>(row * columns + row + k)] = 1.0f;
  }
  const auto dtype = static_cast<DType>(to);
  if (to < 0 || to > 16 || SizeOf(dtype) == 0) return call.Error("attribute 'dtype' is not a numeric type");
  return One(eye.CastTo(dtype));
}

Result RunReshape(const Call& call) {
  const Tensor& data = call.input(0);
  ASSIGN_OR_RETURN(Shape shape, call.IntsInput(1));
  ASSIGN_OR_RETURN(const int64_t allow_zero, call.Int("allowzero", 0));
  int64_t known = 1;
  int inferred = -1;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == 0 && allow_zero == 0) {
      if (i >= data.shape().size()) return call.Error("dimension 0 copies an axis that the input does not have");
      shape[i] = data.shape()[i];
    }
    if (shape[i] == -1) {
      if (inferred >= 0) return call.Error("shape " + ToString(shape) + " leaves two dimensions open");
      inferred = static_cast<int>(i);
      continue;
    }
    if (shape[i] < 0 || !IsBounded(std::span(shape).first(i + 1))) {
      return call.Error("shape " + ToString(shape) + " is not valid");
    }
    known *= shape[i];
  }
  if (inferred >= 0) {
    if (known == 0 || data.elements() % known != 0) {
      return call.Error("cannot reshape " + ToString(data.type()) + " to " + ToString(shape));
    }
    shape[static_cast<size_t>(inferred)] = data.elements() / known;
    known = data.elements();
  }
  if (known != data.elements()) return call.Error("cannot reshape " + ToString(data.type()) + " to " + ToString(shape));
  return One(data.Reshaped(std::move(shape)));
}

Result RunFlatten(const Call& call) {
  const Tensor& data = call.input(0);
  const int64_t rank = data.type().rank();
  ASSIGN_OR_RETURN(int64_t axis, call.Int("axis", 1));
  if (axis < -rank || axis > rank) return call.Error("axis " + std::to_string(axis) + " is out of range");
  if (axis < 0) axis += rank;
  const std::span<const int64_t> shape(data.shape());
  return One(data.Reshaped(
      {ElementsOf(shape.first(static_cast<size_t>(axis))), ElementsOf(shape.subspan(static_cast<size_t>(axis)))}));
}

Result RunSqueeze(const Call& call) {
  const Tensor& data = call.input(0);
  std::vector<bool> drop(data.shape().size(), false);
  if (call.Has(1)) {
    ASSIGN_OR_RETURN(const std::vector<int64_t> given, call.IntsInput(1));
    ASSIGN_OR_RETURN(const std::vector<int64_t> axes, call.Axes(given, data.type().rank()));
    for (const int64_t axis : axes) {
      if (data.shape()[static_cast<size_t>(axis)] != 1) {
        return call.Error("axis " + std::to_string(axis) + " of " + ToString(data.type()) + " is not 1");
      }
      drop[static_cast<size_t>(axis)] = true;
    }
  } else {
    for (size_t i = 0; i < drop.size(); ++i) drop[i] = data.shape()[i] == 1;
  }
  Shape shape;
  for (size_t i = 0; i < drop.size(); ++i) {
    if (!drop[i]) shape.push_back(data.shape()[i]);
  }
  return One(data.Reshaped(std::move(shape)));
}

Result RunUnsqueeze(const Call& call) {
  const Tensor& data = call.input(0);
  ASSIGN_OR_RETURN(const std::vector<int64_t> given, call.IntsInput(1));
  const int64_t rank = data.type().rank() + static_cast<int64_t>(given.size());
  ASSIGN_OR_RETURN(std::vector<int64_t> axes, call.Axes(given, rank));
  std::sort(axes.begin(), axes.end());
  Shape shape = data.shape();
  for (const int64_t axis : axes) shape.insert(shape.begin() + axis, 1);
  return One(data.Reshaped(std::move(shape)));
}

Result RunIdentity(const Call& call) { return One(call.input(0)); }

StatusOr<Tensor> CastChecked(const Call& call, int64_t to) {
  const auto dtype = static_cast<DType>(to);
  if (to < 0 || to > 16 || SizeOf(dtype) == 0) return call.Error("cannot cast to ONNX type " + std::to_string(to));
  if (SizeOf(call.input(0).dtype()) == 0) return call.UnsupportedType(call.input(0).dtype());
  return call.input(0).CastTo(dtype);
}

Result RunCast(const Call& call) {
  ASSIGN_OR_RETURN(const int64_t to, call.Int("to", 0));
  return One(CastChecked(call, to));
}

Result RunCastLike(const Call& call) { return One(CastChecked(call, static_cast<int64_t>(call.input(1).dtype()))); }

constexpr Row kRows[] = {
    {"Shape", RunShape, 1},       {"Size", RunSize, 1},
    {"Constant", RunConstant, 0}, {"ConstantOfShape", RunConstantOfShape, 1},
    {"Range", RunRange, 3, true}, {"EyeLike", RunEyeLike, 1},
    {"Reshape", RunReshape, 2},   {"Flatten", RunFlatten, 1},
    {"Squeeze", RunSqueeze, 1},   {"Unsqueeze", RunUnsqueeze, 2},
    {"Identity", RunIdentity, 1}, {"Cast", RunCast, 1},
    {"CastLike", RunCastLike, 2},
};

}  // namespace

std::span<const Row> ShapeRows() { return kRows; }

}  // namespace onnxtrain::evaluation

namespace onnxtrain {

std::optional<Tensor> EvaluateFromType(std::string_view op, const Attributes& attributes, const TensorType& input) {
  if (op == "Size") return Tensor::Scalar<int64_t>(input.elements());
  if (op != "Shape") return std::nullopt;
  StatusOr<std::vector<Tensor>> result = evaluation::ShapeOf({op, attributes, {}}, input.shape);
  if (!result.ok()) return std::nullopt;
  return std::move((*result)[0]);
}

}  // namespace onnxtrain
