// SPDX-License-Identifier: Apache-2.0
#include <charconv>
#include <cmath>
#include <utility>

#include "runtime/data/mapping.h"

namespace onnxtrain {
namespace {

constexpr int64_t kLargestDim = int64_t{1} << 40;
constexpr int64_t kMostClasses = int64_t{1} << 24;

Status Bad(const std::string& word, const std::string& why) { return UsageError("map '" + word + "': " + why); }

Status UnknownWord(const std::string& word) {
  return Bad(word,
             "unknown; known are f32 f64 i64 i32 /K *K mean=A;B;C std=A;B;C flatten reshape=AxBxC onehot=K "
             "nhwc2nchw [A:B]");
}

template <typename T>
bool ParseNumber(std::string_view text, T* value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *value);
  return error == std::errc() && end == text.data() + text.size() && !text.empty();
}

std::vector<std::string_view> Split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (true) {
    const size_t end = text.find(separator);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

Status ParseNumbers(const std::string& word, std::string_view text, bool divides, std::vector<double>* numbers) {
  for (std::string_view part : Split(text, ';')) {
    double number = 0;
    if (!ParseNumber(part, &number) || !std::isfinite(number)) return Bad(word, "a number is expected");
    if (divides && static_cast<float>(number) == 0.0f) return Bad(word, "division by zero");
    numbers->push_back(number);
  }
  return OkStatus();
}

Status ParseShape(const std::string& word, std::string_view text, Shape* shape) {
  int unknown = 0;
  for (std::string_view part : Split(text, 'x')) {
    int64_t dim = 0;
    if (!ParseNumber(part, &dim) || dim < -1 || dim > kLargestDim) {
      return Bad(word, "sizes joined by 'x' are expected, for example reshape=1x28x28");
    }
    unknown += dim == -1 ? 1 : 0;
    shape->push_back(dim);
  }
  if (unknown > 1) return Bad(word, "only one size may be -1");
  if (shape->size() > 31) return Bad(word, "more than 31 axes");
  return OkStatus();
}

Status ParseRows(const std::string& word, MapStep* step) {
  if (!word.ends_with(']')) return Bad(word, "a closing ']' is expected");
  const std::string_view inside = std::string_view(word).substr(1, word.size() - 2);
  const auto parts = Split(inside, ':');
  if (parts.size() != 2) return Bad(word, "[FIRST:END] is expected");
  int64_t number = 0;
  if (!parts[0].empty()) {
    if (!ParseNumber(parts[0], &number)) return Bad(word, "the first row is not a number");
    step->begin = number;
  }
  if (!parts[1].empty()) {
    if (!ParseNumber(parts[1], &number)) return Bad(word, "the end row is not a number");
    step->end = number;
  }
  return OkStatus();
}

DType CastName(const std::string& word) {
  if (word == "f32") return DType::kFloat;
  if (word == "f64") return DType::kDouble;
  if (word == "i64") return DType::kInt64;
  if (word == "i32") return DType::kInt32;
  return DType::kUndefined;
}

Status ParseOneHot(const std::string& word, std::string_view text, MapStep* step) {
  step->kind = MapKind::kOneHot;
  if (ParseNumber(text, &step->classes) && step->classes >= 1 && step->classes <= kMostClasses) return OkStatus();
  return Bad(word, "the number of classes is expected, for example onehot=10");
}

StatusOr<MapStep> ParseStep(const std::string& word) {
  MapStep step;
  step.text = word;
  step.dtype = CastName(word);
  const std::string_view rest(word);
  if (step.dtype != DType::kUndefined) return step;
  if (word == "flatten") {
    step.kind = MapKind::kFlatten;
  } else if (word == "nhwc2nchw") {
    step.kind = MapKind::kChannelsFirst;
  } else if (word.starts_with('/')) {
    step.kind = MapKind::kDivide;
    RETURN_IF_ERROR(ParseNumbers(word, rest.substr(1), true, &step.numbers));
  } else if (word.starts_with('*')) {
    step.kind = MapKind::kMultiply;
    RETURN_IF_ERROR(ParseNumbers(word, rest.substr(1), false, &step.numbers));
  } else if (word.starts_with("mean=")) {
    step.kind = MapKind::kMean;
    RETURN_IF_ERROR(ParseNumbers(word, rest.substr(5), false, &step.numbers));
  } else if (word.starts_with("std=")) {
    step.kind = MapKind::kDeviation;
    RETURN_IF_ERROR(ParseNumbers(word, rest.substr(4), true, &step.numbers));
  } else if (word.starts_with("reshape=")) {
    step.kind = MapKind::kReshape;
    RETURN_IF_ERROR(ParseShape(word, rest.substr(8), &step.shape));
  } else if (word.starts_with("onehot=")) {
    RETURN_IF_ERROR(ParseOneHot(word, rest.substr(7), &step));
  } else if (word.starts_with('[')) {
    step.kind = MapKind::kRows;
    RETURN_IF_ERROR(ParseRows(word, &step));
  } else {
    return UnknownWord(word);
  }
  const bool scales = step.kind == MapKind::kDivide || step.kind == MapKind::kMultiply;
  if (scales && step.numbers.size() != 1) return Bad(word, "a single number is expected");
  return step;
}

}  // namespace

StatusOr<Mapping> Mapping::Parse(const std::string& text) {
  Mapping mapping;
  for (std::string_view word : Split(text, ',')) {
    ASSIGN_OR_RETURN(MapStep step, ParseStep(std::string(word)));
    mapping.steps_.push_back(std::move(step));
  }
  return mapping;
}

}  // namespace onnxtrain
