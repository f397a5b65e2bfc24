// SPDX-License-Identifier: Apache-2.0
// Attributes of a node: ONNX's kinds without sub-graphs (the reader inlines those or refuses them).
#ifndef ONNXTRAIN_GRAPH_ATTRIBUTES_H_
#define ONNXTRAIN_GRAPH_ATTRIBUTES_H_

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "graph/tensor.h"

namespace onnxtrain {

using AttributeValue = std::variant<int64_t, float, std::string, std::vector<int64_t>, std::vector<float>,
                                    std::vector<std::string>, Tensor>;

// Sorted by name, so that text and digests do not depend on insertion order.
class Attributes {
 public:
  using Map = std::map<std::string, AttributeValue, std::less<>>;

  Attributes() = default;
  Attributes(std::initializer_list<Map::value_type> entries) : entries_(entries) {}

  bool Has(std::string_view name) const { return entries_.find(name) != entries_.end(); }
  void Set(std::string name, AttributeValue value) { entries_[std::move(name)] = std::move(value); }
  void Erase(std::string_view name);
  const AttributeValue* Find(std::string_view name) const;

  // Value, or the fallback when the attribute is absent. CHECKs the kind: the reader has verified it.
  int64_t Int(std::string_view name, int64_t fallback) const;
  float Float(std::string_view name, float fallback) const;
  std::string String(std::string_view name, std::string_view fallback) const;
  std::vector<int64_t> Ints(std::string_view name) const;  // empty when absent
  std::vector<float> Floats(std::string_view name) const;
  std::vector<std::string> Strings(std::string_view name) const;

  const Map& entries() const { return entries_; }
  bool operator==(const Attributes& other) const;

 private:
  Map entries_;
};

// The double nearest to the shortest decimal that reads back as `value`: 0.999f gives 0.999, as the user wrote it.
// ONNX stores attributes in single precision; double runs and Adam's 1-beta2 need the number that was meant.
double DecimalValue(float value);

}  // namespace onnxtrain

#endif  // ONNXTRAIN_GRAPH_ATTRIBUTES_H_
