// SPDX-License-Identifier: Apache-2.0
#include "graph/attributes.h"

#include <charconv>
#include <cmath>
#include <cstdlib>

namespace onnxtrain {
namespace {

template <typename T>
const T& Get(const AttributeValue& value, std::string_view name) {
  const T* typed = std::get_if<T>(&value);
  CHECK_WITH(typed != nullptr, "kind of attribute " + std::string(name));
  return *typed;
}

bool SameValue(const AttributeValue& a, const AttributeValue& b) {
  if (a.index() != b.index()) return false;
  if (const Tensor* tensor = std::get_if<Tensor>(&a)) return tensor->Identical(std::get<Tensor>(b));
  return std::visit(
      [&](const auto& value) {
        using T = std::decay_t<decltype(value)>;
        if constexpr (std::is_same_v<T, Tensor>) {
          return false;
        } else {
          return value == std::get<T>(b);
        }
      },
      a);
}

}  // namespace

void Attributes::Erase(std::string_view name) {
  auto found = entries_.find(name);
  if (found != entries_.end()) entries_.erase(found);
}

const AttributeValue* Attributes::Find(std::string_view name) const {
  auto found = entries_.find(name);
  return found == entries_.end() ? nullptr : &found->second;
}

int64_t Attributes::Int(std::string_view name, int64_t fallback) const {
  const AttributeValue* value = Find(name);
  return value == nullptr ? fallback : Get<int64_t>(*value, name);
}

float Attributes::Float(std::string_view name, float fallback) const {
  const AttributeValue* value = Find(name);
  return value == nullptr ? fallback : Get<float>(*value, name);
}

std::string Attributes::String(std::string_view name, std::string_view fallback) const {
  const AttributeValue* value = Find(name);
  return value == nullptr ? std::string(fallback) : Get<std::string>(*value, name);
}

std::vector<int64_t> Attributes::Ints(std::string_view name) const {
  const AttributeValue* value = Find(name);
  return value == nullptr ? std::vector<int64_t>() : Get<std::vector<int64_t>>(*value, name);
}

std::vector<float> Attributes::Floats(std::string_view name) const {
  const AttributeValue* value = Find(name);
  return value == nullptr ? std::vector<float>() : Get<std::vector<float>>(*value, name);
}

std::vector<std::string> Attributes::Strings(std::string_view name) const {
  const AttributeValue* value = Find(name);
  return value == nullptr ? std::vector<std::string>() : Get<std::vector<std::string>>(*value, name);
}

bool Attributes::operator==(const Attributes& other) const {
  if (entries_.size() != other.entries_.size()) return false;
  auto mine = entries_.begin();
  for (const auto& [name, value] : other.entries_) {
    if (mine->first != name || !SameValue(mine->second, value)) return false;
    ++mine;
  }
  return true;
}

double DecimalValue(float value) {
  if (!std::isfinite(value)) return value;
  char text[64];
  const std::to_chars_result end = std::to_chars(text, text + sizeof(text) - 1, value);
  *end.ptr = '\0';
  return std::strtod(text, nullptr);
}

}  // namespace onnxtrain
