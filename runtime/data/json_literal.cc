// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/json_literal.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "runtime/data/byte_reader.h"

namespace onnxtrain {
namespace {

constexpr size_t kDeepest = 16;
constexpr int64_t kUnknown = -1;

struct Number {
  double value = 0;
  int64_t integer = 0;
  bool whole = false;    // `integer` is exact
  bool boolean = false;  // written as true or false
  size_t offset = 0;
};

class Parser {
 public:
  Parser(std::string_view text, std::string_view name) : text_(text), name_(name) {}

  Status Parse() {
    RETURN_IF_ERROR(Value(0));
    SkipSpace();
    if (at_ != text_.size()) return Error("text after the value");
    for (int64_t& length : shape) length = std::max<int64_t>(length, 0);
    return OkStatus();
  }
  Status ErrorAt(size_t offset, std::string_view what) const { return DataErrorAt(name_, offset, what); }

  std::vector<Number> numbers;
  Shape shape;  // lengths seen first at each depth

 private:
  Status Error(std::string_view what) const { return ErrorAt(at_, what); }
  void SkipSpace() { at_ = std::min(text_.find_first_not_of(" \t\r\n", at_), text_.size()); }
  bool Take(std::string_view wanted) {
    SkipSpace();
    if (!text_.substr(at_).starts_with(wanted)) return false;
    at_ += wanted.size();
    return true;
  }

  Status Value(size_t depth) {
    SkipSpace();
    if (at_ < text_.size() && text_[at_] == '[') return List(depth);
    if (leaf_depth_known_ ? depth != shape.size() : depth < shape.size()) {
      return Error("a list is expected here, as beside it");
    }
    leaf_depth_known_ = true;
    return Leaf();
  }

  Status List(size_t depth) {
    if (depth >= kDeepest) return Error("lists nested more than 16 deep");
    if (leaf_depth_known_ && depth >= shape.size()) return Error("a number is expected here, as beside it");
    if (depth == shape.size()) shape.push_back(kUnknown);
    const size_t start = at_++;
    int64_t length = 0;
    while (!Take("]")) {
      if (length > 0 && !Take(",")) return Error("',' or ']' is expected");
      RETURN_IF_ERROR(Value(depth + 1));
      ++length;
    }
    if (shape[depth] == kUnknown) shape[depth] = length;
    if (shape[depth] == length) return OkStatus();
    return ErrorAt(start, "lists of different lengths: expected " + std::to_string(shape[depth]) + ", found " +
                              std::to_string(length));
  }

  Status Leaf() {
    Number number;
    number.offset = at_;
    if (Take("true") || Take("false")) {
      number.boolean = number.whole = true;
      number.integer = text_[number.offset] == 't' ? 1 : 0;
      number.value = static_cast<double>(number.integer);
    } else if (Take("\"NaN\"")) {
      number.value = std::numeric_limits<double>::quiet_NaN();
    } else if (Take("\"Infinity\"")) {
      number.value = std::numeric_limits<double>::infinity();
    } else if (Take("\"-Infinity\"")) {
      number.value = -std::numeric_limits<double>::infinity();
    } else {
      RETURN_IF_ERROR(Digits(number));
    }
    numbers.push_back(number);
    return OkStatus();
  }

  Status Digits(Number& number) {
    const size_t end = std::min(text_.find_first_not_of("+-.0123456789eE", at_), text_.size());
    const char* first = text_.data() + at_;
    const char* last = text_.data() + end;
    const auto [integer_end, integer_error] = std::from_chars(first, last, number.integer);
    number.whole = integer_error == std::errc() && integer_end == last;
    const auto [value_end, value_error] = std::from_chars(first, last, number.value);
    if (value_error != std::errc() || value_end != last || first == last) {
      return Error("a number, true, false or a list is expected");
    }
    at_ = end;
    return OkStatus();
  }

  std::string_view text_;
  std::string_view name_;
  size_t at_ = 0;
  bool leaf_depth_known_ = false;
};

DType NaturalType(const std::vector<Number>& numbers) {
  const auto all = [&](auto member) { return std::all_of(numbers.begin(), numbers.end(), member); };
  if (!numbers.empty() && all([](const Number& number) { return number.boolean; })) return DType::kBool;
  if (!numbers.empty() && all([](const Number& number) { return number.whole; })) return DType::kInt64;
  return DType::kDouble;
}

// Stores `number` as dtype; false where it does not fit.
template <typename T>
bool StoreInteger(const Number& number, std::byte* to) {
  if (!number.whole || !std::in_range<T>(number.integer)) return false;
  const T value = static_cast<T>(number.integer);
  std::memcpy(to, &value, sizeof(value));
  return true;
}

bool Store(const Number& number, DType dtype, std::byte* to) {
  switch (dtype) {
    case DType::kUint8:
      return StoreInteger<uint8_t>(number, to);
    case DType::kInt8:
      return StoreInteger<int8_t>(number, to);
    case DType::kUint16:
      return StoreInteger<uint16_t>(number, to);
    case DType::kInt16:
      return StoreInteger<int16_t>(number, to);
    case DType::kUint32:
      return StoreInteger<uint32_t>(number, to);
    case DType::kInt32:
      return StoreInteger<int32_t>(number, to);
    case DType::kUint64:
      return StoreInteger<uint64_t>(number, to);
    case DType::kInt64:
      return StoreInteger<int64_t>(number, to);
    case DType::kBool:
      return number.whole && (number.integer == 0 || number.integer == 1) && StoreInteger<uint8_t>(number, to);
    default:
      break;
  }
  const Tensor value = Tensor::Scalar<double>(number.value).CastTo(dtype);
  std::memcpy(to, value.data(), value.bytes());
  return true;
}

}  // namespace

bool LooksLikeJsonLiteral(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return false;
  const char c = text[first];
  return c == '[' || c == '-' || (c >= '0' && c <= '9');
}

StatusOr<Tensor> ParseJsonLiteral(std::string_view text, std::string_view name, DType dtype) {
  Parser parser(text, name);
  RETURN_IF_ERROR(parser.Parse());
  if (dtype == DType::kUndefined) dtype = NaturalType(parser.numbers);
  if (SizeOf(dtype) == 0)
    return InvalidDataError("'" + std::string(name) + "': " + std::string(NameOf(dtype)) + " has no literals");
  Tensor tensor(TensorType{dtype, parser.shape});
  std::byte* to = tensor.data();
  for (const Number& number : parser.numbers) {
    if (!Store(number, dtype, to)) {
      return parser.ErrorAt(number.offset, "this number is not a value of " + std::string(NameOf(dtype)));
    }
    to += SizeOf(dtype);
  }
  return tensor;
}

}  // namespace onnxtrain
