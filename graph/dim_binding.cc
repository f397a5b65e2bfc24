// SPDX-License-Identifier: Apache-2.0
#include "graph/dim_binding.h"

#include <charconv>
#include <set>

#include "graph/onnx_proto.h"

namespace onnxtrain {
namespace {

bool IsWordStart(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// a*x + b, where x is the unknown symbol; `solvable` is lost where x goes through a division.
struct Linear {
  int64_t factor = 0;
  int64_t constant = 0;
  bool solvable = true;
};

// Recursive descent over one expression. The first failure stops it.
class DimParser {
 public:
  DimParser(std::string_view text, const DimValues& values) : text_(text), values_(values) {}

  std::optional<Linear> Parse() {
    Linear value = Sum();
    SkipSpace();
    if (failed_ || position_ != text_.size()) return std::nullopt;
    return value;
  }
  const std::set<std::string>& unknown() const { return unknown_; }

 private:
  Linear Sum() {
    Linear left = Product();
    while (!failed_) {
      const bool plus = Take("+");
      if (!plus && !Take("-")) return left;
      const Linear right = Product();
      const int64_t sign = plus ? 1 : -1;
      left = {Add(left.factor, Times(sign, right.factor)), Add(left.constant, Times(sign, right.constant)),
              left.solvable && right.solvable};
    }
    return left;
  }

  Linear Product() {
    Linear left = Atom();
    while (!failed_) {
      if (Take("//") || Take("/")) {
        left = Divide(left, Atom(), /*remainder=*/false);
      } else if (Take("%")) {
        left = Divide(left, Atom(), /*remainder=*/true);
      } else if (Take("*")) {
        left = Multiply(left, Atom());
      } else {
        return left;
      }
    }
    return left;
  }

  Linear Multiply(const Linear& a, const Linear& b) {
    if (a.factor != 0 && b.factor != 0) return {1, 0, false};
    return {Add(Times(a.factor, b.constant), Times(a.constant, b.factor)), Times(a.constant, b.constant),
            a.solvable && b.solvable};
  }

  Linear Divide(const Linear& a, const Linear& b, bool remainder) {
    if (a.factor != 0 || b.factor != 0) return {1, 0, false};
    if (b.constant <= 0 || a.constant < 0) return Fail();
    return {0, remainder ? a.constant % b.constant : a.constant / b.constant, true};
  }

  Linear Atom() {
    if (++depth_ > 50) return Fail();
    Linear value = BareAtom();
    --depth_;
    return value;
  }

  Linear BareAtom() {
    SkipSpace();
    if (Take("(")) {
      const Linear inner = Sum();
      return Take(")") ? inner : Fail();
    }
    if (Take("-")) return Multiply({0, -1, true}, Atom());
    if (position_ < text_.size() && IsDigit(text_[position_])) return Number();
    if (position_ < text_.size() && IsWordStart(text_[position_])) return Symbol();
    return Fail();
  }

  Linear Number() {
    Linear value;
    const std::from_chars_result result =
        std::from_chars(text_.data() + position_, text_.data() + text_.size(), value.constant);
    if (result.ec != std::errc()) return Fail();
    position_ = static_cast<size_t>(result.ptr - text_.data());
    return value;
  }

  Linear Symbol() {
    const size_t begin = position_;
    while (position_ < text_.size() &&
           (IsWordStart(text_[position_]) || IsDigit(text_[position_]) || text_[position_] == '.')) {
      ++position_;
    }
    const std::string name(text_.substr(begin, position_ - begin));
    const auto found = values_.find(name);
    if (found != values_.end()) return {0, found->second, true};
    unknown_.insert(name);
    return {1, 0, true};
  }

  bool Take(std::string_view token) {
    SkipSpace();
    if (text_.substr(position_, token.size()) != token) return false;
    position_ += token.size();
    return true;
  }
  void SkipSpace() {
    while (position_ < text_.size() && text_[position_] == ' ') ++position_;
  }
  Linear Fail() {
    failed_ = true;
    return {};
  }
  int64_t Add(int64_t a, int64_t b) {
    int64_t result = 0;
    if (__builtin_add_overflow(a, b, &result)) failed_ = true;
    return result;
  }
  int64_t Times(int64_t a, int64_t b) {
    int64_t result = 0;
    if (__builtin_mul_overflow(a, b, &result)) failed_ = true;
    return result;
  }

  std::string_view text_;
  const DimValues& values_;
  std::set<std::string> unknown_;
  size_t position_ = 0;
  int depth_ = 0;
  bool failed_ = false;
};

std::string Place(const ModelValue& input, size_t axis) {
  return "axis " + std::to_string(axis) + " of input '" + input.name + "' (" + input.type + ")";
}

class InputBinder {
 public:
  InputBinder(const std::vector<ModelValue>& inputs, const std::map<std::string, TensorType>& given, DimValues dims)
      : inputs_(inputs), given_(given), values_(std::move(dims)) {}

  StatusOr<std::map<std::string, TensorType>> Run() {
    for (const auto& [symbol, value] : values_) {
      if (value < 0) return UsageError("dimension '" + symbol + "' cannot be " + std::to_string(value));
    }
    // Twice: an expression may need a symbol that a later input gives.
    for (int round = 0; round < 2; ++round) {
      for (const ModelValue& input : inputs_) {
        const auto found = given_.find(input.name);
        if (found != given_.end()) RETURN_IF_ERROR(Match(input, found->second));
      }
    }
    std::map<std::string, TensorType> bound;
    for (const ModelValue& input : inputs_) {
      const auto found = given_.find(input.name);
      if (found != given_.end()) {
        bound[input.name] = found->second;
      } else {
        ASSIGN_OR_RETURN(bound[input.name], Declared(input));
      }
    }
    return bound;
  }

 private:
  Status Match(const ModelValue& input, const TensorType& type) {
    const std::string found =
        "input '" + input.name + "' is declared " + input.type + ", the data is " + ToString(type);
    if (input.dtype != type.dtype) return InvalidDataError(found);
    if (!input.dims) return OkStatus();
    if (input.dims->size() != type.shape.size()) return InvalidDataError(found + ": the ranks differ");
    for (size_t axis = 0; axis < type.shape.size(); ++axis) {
      const ModelDim& dim = (*input.dims)[axis];
      const int64_t size = type.shape[axis];
      if (dim.value && *dim.value != size) {
        return InvalidDataError(found + ": axis " + std::to_string(axis) + " is fixed by the export");
      }
      if (!dim.value && !dim.symbol.empty() && !SolveDim(dim.symbol, size, values_)) {
        const std::optional<int64_t> known = EvaluateDim(dim.symbol, values_);
        return InvalidDataError(found + ": '" + dim.symbol + "' " +
                                (known ? "is already " + std::to_string(*known) : "cannot have that size"));
      }
    }
    return OkStatus();
  }

  StatusOr<TensorType> Declared(const ModelValue& input) const {
    if (input.dtype == DType::kUndefined || input.dtype == DType::kString) {
      return InvalidModelError("input '" + input.name + "' of type " + (input.type.empty() ? "?" : input.type) +
                               " is not a tensor that can be fed");
    }
    if (!input.dims) {
      return UsageError("input '" + input.name +
                        "' has no declared rank: its shape must come from data (--feed, --train)");
    }
    TensorType type{input.dtype, {}};
    for (size_t axis = 0; axis < input.dims->size(); ++axis) {
      const ModelDim& dim = (*input.dims)[axis];
      std::optional<int64_t> value = dim.value;
      if (!value && !dim.symbol.empty()) value = EvaluateDim(dim.symbol, values_);
      if (!value && dim.symbol.empty()) {
        return UsageError("the size of " + Place(input, axis) +
                          " is not known: it must come from data (--feed, --train)");
      }
      if (!value) {
        return UsageError("dimension '" + dim.symbol + "' (" + Place(input, axis) +
                          ") has no value: give data, --dim " + dim.symbol + "=K, or --batch-size and --seq-len");
      }
      if (*value < 0) return InvalidModelError(Place(input, axis) + " would have size " + std::to_string(*value));
      type.shape.push_back(*value);
    }
    if (!IsAddressable(type.shape)) {
      return InvalidModelError("input '" + input.name + "' would be " + ToString(type) + ", which is too large");
    }
    return type;
  }

  const std::vector<ModelValue>& inputs_;
  const std::map<std::string, TensorType>& given_;
  DimValues values_;
};

}  // namespace

std::optional<int64_t> EvaluateDim(std::string_view symbol, const DimValues& values) {
  const auto exact = values.find(std::string(symbol));
  if (exact != values.end()) return exact->second;
  DimParser parser(symbol, values);
  const std::optional<Linear> value = parser.Parse();
  if (!value || !parser.unknown().empty()) return std::nullopt;
  return value->constant;
}

bool SolveDim(const std::string& symbol, int64_t size, DimValues& values) {
  const std::optional<int64_t> known = EvaluateDim(symbol, values);
  if (known) return *known == size;
  DimParser parser(symbol, values);
  const std::optional<Linear> value = parser.Parse();
  if (!value) {  // not an expression: a name with other characters
    values[symbol] = size;
    return true;
  }
  if (parser.unknown().size() != 1 || !value->solvable || value->factor == 0) return true;
  int64_t rest = 0;
  if (__builtin_sub_overflow(size, value->constant, &rest) || rest == INT64_MIN) return false;
  if (rest % value->factor != 0 || rest / value->factor < 0) return false;
  values[*parser.unknown().begin()] = rest / value->factor;
  return true;
}

StatusOr<std::map<std::string, TensorType>> BindInputs(const std::vector<ModelValue>& inputs,
                                                       const std::map<std::string, TensorType>& given,
                                                       const DimValues& dims) {
  return InputBinder(inputs, given, dims).Run();
}

}  // namespace onnxtrain
