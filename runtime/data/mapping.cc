// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/mapping.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "runtime/data/byte_reader.h"
#include "runtime/data/row_kernels.h"

namespace onnxtrain {
namespace {

constexpr int64_t kBlockBytes = 32 << 10;

// Bits of the significand, and of the largest power of two; signed or not.
struct NumberFormat {
  int precision = 0;
  int largest = 0;  // values below 2^largest
  bool has_sign = false;
};

NumberFormat FormatOf(DType dtype) {
  switch (dtype) {
    case DType::kBool:
      return {1, 1, false};
    case DType::kUint8:
      return {8, 8, false};
    case DType::kInt8:
      return {7, 7, true};
    case DType::kUint16:
      return {16, 16, false};
    case DType::kInt16:
      return {15, 15, true};
    case DType::kUint32:
      return {32, 32, false};
    case DType::kInt32:
      return {31, 31, true};
    case DType::kUint64:
      return {64, 64, false};
    case DType::kInt64:
      return {63, 63, true};
    case DType::kFloat16:
      return {11, 16, true};
    case DType::kBfloat16:
      return {8, 128, true};
    case DType::kFloat:
      return {24, 128, true};
    case DType::kDouble:
      return {53, 1024, true};
    default:
      return {};
  }
}

Status Misfit(std::string_view where, const std::string& step, std::string_view why) {
  return InvalidDataError(std::string(where) + ": map '" + step + "': " + std::string(why));
}

TensorType RowOf(const TensorType& type) { return {type.dtype, Shape(type.shape.begin() + 1, type.shape.end())}; }

// The type arithmetic happens in; kUndefined where the user must choose it.
DType ArithmeticType(DType dtype) {
  if (dtype == DType::kFloat || dtype == DType::kDouble) return dtype;
  return CastKeepsValues(dtype, DType::kFloat) ? DType::kFloat : DType::kUndefined;
}

// Rows counted from the end where negative.
StatusOr<int64_t> RowIndex(int64_t row, int64_t rows, const MapStep& step, std::string_view where) {
  const int64_t index = row < 0 ? row + rows : row;
  if (index >= 0 && index <= rows) return index;
  return Misfit(where, step.text, "there are " + std::to_string(rows) + " rows");
}

}  // namespace

bool CastKeepsValues(DType from, DType to) {
  if (from == to) return true;
  if (SizeOf(from) == 0 || SizeOf(to) == 0 || to == DType::kBool) return false;
  if (IsFloating(from) && !IsFloating(to)) return false;
  const NumberFormat source = FormatOf(from);
  const NumberFormat target = FormatOf(to);
  return source.precision <= target.precision && source.largest <= target.largest &&
         (!source.has_sign || target.has_sign);
}

StatusOr<RowMapping> RowMapping::Bind(const Mapping& mapping, const TensorType& source, std::string_view where) {
  if (source.shape.empty()) {
    return InvalidDataError(std::string(where) + ": a single number has no axis of samples; give at least [n]");
  }
  RowMapping result;
  result.rows_ = source.shape[0];
  result.source_row_ = result.row_ = RowOf(source);
  for (const MapStep& step : mapping.steps()) RETURN_IF_ERROR(result.Add(step, where));
  result.ChooseBlock();
  return result;
}

void RowMapping::Push(MapKind kind, const std::string& text, TensorType to, std::vector<double> numbers) {
  steps_.push_back({kind, text, row_, to, std::move(numbers)});
  row_ = std::move(to);
}

Status RowMapping::Add(const MapStep& step, std::string_view where) {
  switch (step.kind) {
    case MapKind::kRows:
      return AddRows(step, where);
    case MapKind::kOneHot:
      return AddOneHot(step, where);
    case MapKind::kReshape:
      return AddReshape(step, where);
    case MapKind::kFlatten:
      row_.shape = {row_.elements()};
      return OkStatus();
    case MapKind::kCast:
      if (step.dtype != row_.dtype) Push(MapKind::kCast, step.text, {step.dtype, row_.shape});
      return OkStatus();
    case MapKind::kChannelsFirst: {
      const Shape& shape = row_.shape;
      if (shape.size() != 3) {
        return Misfit(where, step.text, "[n,h,w,c] is expected, a row has shape " + ToString(shape));
      }
      Push(step.kind, step.text, {row_.dtype, {shape[2], shape[0], shape[1]}});
      return OkStatus();
    }
    default:
      return AddArithmetic(step, where);
  }
}

Status RowMapping::AddRows(const MapStep& step, std::string_view where) {
  ASSIGN_OR_RETURN(const int64_t begin, RowIndex(step.begin.value_or(0), rows_, step, where));
  ASSIGN_OR_RETURN(const int64_t end, RowIndex(step.end.value_or(rows_), rows_, step, where));
  if (begin > end)
    return Misfit(where, step.text, "the end lies before the first of " + std::to_string(rows_) + " rows");
  first_row_ += begin;
  rows_ = end - begin;
  return OkStatus();
}

Status RowMapping::AddArithmetic(const MapStep& step, std::string_view where) {
  const DType type = ArithmeticType(row_.dtype);
  if (type == DType::kUndefined) {
    return Misfit(
        where, step.text,
        "put f32 or f64 before it: " + std::string(NameOf(row_.dtype)) + " does not fit float32 in every case");
  }
  const size_t channels = step.numbers.size();
  if (channels > 1 && (row_.shape.empty() || row_.shape[0] != static_cast<int64_t>(channels))) {
    return Misfit(
        where, step.text,
        std::to_string(channels) + " numbers need an axis 1 of as many, a row has shape " + ToString(row_.shape));
  }
  if (type != row_.dtype) Push(MapKind::kCast, step.text, {type, row_.shape});
  Push(step.kind, step.text, row_, step.numbers);
  return OkStatus();
}

Status RowMapping::AddReshape(const MapStep& step, std::string_view where) {
  Shape shape = step.shape;
  int64_t known = 1;
  int64_t* unknown = nullptr;
  for (int64_t& dim : shape) {
    if (dim == -1) {
      unknown = &dim;
    } else if (__builtin_mul_overflow(known, dim, &known)) {
      return Misfit(where, step.text, "the shape is too large");
    }
  }
  const int64_t elements = row_.elements();
  if (unknown != nullptr && known > 0 && elements % known == 0) {
    *unknown = elements / known;
    known = elements;
  }
  if (known != elements || std::find(shape.begin(), shape.end(), -1) != shape.end()) {
    return Misfit(where, step.text,
                  "a row of shape " + ToString(row_.shape) + " has " + std::to_string(elements) + " elements");
  }
  row_.shape = std::move(shape);
  return OkStatus();
}

Status RowMapping::AddOneHot(const MapStep& step, std::string_view where) {
  if (!IsInteger(row_.dtype)) {
    return Misfit(where, step.text, "class numbers are integers, found " + std::string(NameOf(row_.dtype)));
  }
  std::vector<uint64_t> sizes(row_.shape.begin(), row_.shape.end());
  sizes.push_back(static_cast<uint64_t>(step.classes));
  if (!CheckedBytes(DType::kFloat, sizes)) return Misfit(where, step.text, "the result is too large");
  Push(step.kind, step.text, {DType::kFloat, Shape(sizes.begin(), sizes.end())});
  return OkStatus();
}

Status RowMapping::CastTo(DType dtype, std::string_view where) {
  if (dtype == row_.dtype) return OkStatus();
  if (!CastKeepsValues(row_.dtype, dtype)) {
    constexpr std::pair<DType, std::string_view> kWords[] = {
        {DType::kFloat, "f32"}, {DType::kDouble, "f64"}, {DType::kInt64, "i64"}, {DType::kInt32, "i32"}};
    std::string advice = "; convert the file";
    for (const auto& [known, word] : kWords) {
      if (known == dtype) advice = "; add the map '" + std::string(word) + "' if that is meant";
    }
    return InvalidDataError(std::string(where) + ": expected " + std::string(NameOf(dtype)) + ", found " +
                            std::string(NameOf(row_.dtype)) + ", and a cast may change values" + advice);
  }
  ForceCast(dtype);
  return OkStatus();
}

void RowMapping::ForceCast(DType dtype) {
  if (dtype != row_.dtype) Push(MapKind::kCast, std::string(NameOf(dtype)), {dtype, row_.shape});
  ChooseBlock();
}

void RowMapping::ChooseBlock() {
  size_t widest = source_row_.bytes();
  for (const Step& step : steps_) widest = std::max(widest, step.to.bytes());
  block_rows_ = std::max<int64_t>(1, kBlockBytes / std::max<int64_t>(1, static_cast<int64_t>(widest)));
}

RowMapping::Scratch RowMapping::MakeScratch() const {
  Scratch scratch;
  if (copies()) return scratch;
  size_t widest = 0;
  for (size_t i = 0; i + 1 < steps_.size(); ++i) widest = std::max(widest, steps_[i].to.bytes());
  const size_t rows = static_cast<size_t>(block_rows_);
  scratch.source.resize(rows * source_row_.bytes());
  scratch.even.resize(rows * widest);
  scratch.odd.resize(rows * widest);
  return scratch;
}

int64_t RowMapping::RunStep(const Step& step, int64_t count, const std::byte* from, std::byte* to) {
  const int64_t row_elements = step.from.elements();
  const int64_t elements = count * row_elements;
  const int64_t inner = step.from.shape.empty() ? 1 : row_elements / std::max<int64_t>(1, step.from.shape[0]);
  const DType dtype = step.to.dtype;
  switch (step.kind) {
    case MapKind::kCast:
      return ConvertElements(step.from.dtype, from, dtype, to, elements);
    case MapKind::kOneHot:
      return OneHot(step.from.dtype, from, elements, step.to.shape.back(), to);
    case MapKind::kChannelsFirst:
      ChannelsFirst(from, count, step.to.shape[1] * step.to.shape[2], step.to.shape[0], SizeOf(dtype), to);
      return -1;
    case MapKind::kMultiply:
      ApplyArithmetic(RowArithmetic::kMultiply, dtype, from, step.numbers, inner, to, elements);
      return -1;
    case MapKind::kMean:
      ApplyArithmetic(RowArithmetic::kSubtract, dtype, from, step.numbers, inner, to, elements);
      return -1;
    default:
      ApplyArithmetic(RowArithmetic::kDivide, dtype, from, step.numbers, inner, to, elements);
      return -1;
  }
}

Status RowMapping::Apply(int64_t count, Scratch& scratch, std::byte* to, int64_t* bad) const {
  CHECK(count <= block_rows_ && !steps_.empty());
  const std::byte* from = scratch.source.data();
  for (size_t i = 0; i < steps_.size(); ++i) {
    const Step& step = steps_[i];
    std::byte* target = i + 1 == steps_.size() ? to : (i % 2 == 0 ? scratch.even.data() : scratch.odd.data());
    const int64_t misfit = RunStep(step, count, from, target);
    if (misfit >= 0) {
      const int64_t row_elements = step.from.elements();
      *bad = misfit / row_elements;
      const std::string wanted = step.kind == MapKind::kOneHot
                                     ? "expected 0 to " + std::to_string(step.to.shape.back() - 1)
                                     : "not a value of " + std::string(NameOf(step.to.dtype));
      return InvalidDataError("element " + std::to_string(misfit % row_elements) + ": map '" + step.text +
                              "': " + wanted);
    }
    from = target;
  }
  return OkStatus();
}

StatusOr<Tensor> ApplyMapping(const Mapping& mapping, const Tensor& source, std::string_view where) {
  ASSIGN_OR_RETURN(const RowMapping rows, RowMapping::Bind(mapping, source.type(), where));
  TensorType type = rows.row();
  type.shape.insert(type.shape.begin(), rows.rows());
  Tensor result(type);
  const size_t from_bytes = rows.source_row().bytes();
  const size_t to_bytes = rows.row().bytes();
  RowMapping::Scratch scratch = rows.MakeScratch();
  const std::byte* from = source.data() + static_cast<size_t>(rows.first_row()) * from_bytes;
  for (int64_t row = 0; row < rows.rows(); row += rows.block_rows()) {
    const int64_t count = std::min(rows.block_rows(), rows.rows() - row);
    std::byte* to = result.data() + static_cast<size_t>(row) * to_bytes;
    const size_t bytes = static_cast<size_t>(count) * from_bytes;
    std::byte* target = rows.copies() ? to : scratch.source.data();
    if (bytes > 0) std::memcpy(target, from + static_cast<size_t>(row) * from_bytes, bytes);
    if (rows.copies()) continue;
    int64_t bad = 0;
    const Status status = rows.Apply(count, scratch, to, &bad);
    if (!status.ok())
      return status.Prepend(std::string(where) + ", row " + std::to_string(rows.first_row() + row + bad));
  }
  return result;
}

}  // namespace onnxtrain
