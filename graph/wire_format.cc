// SPDX-License-Identifier: Apache-2.0
#include "graph/wire_format.h"

#include <cstdint>
#include <map>

namespace onnxtrain {
namespace {

constexpr int kMaxDepth = 100;  // protobuf's own limit

enum class Message : uint8_t { kModel, kGraph, kNode, kAttribute, kTensor, kFunction, kTraining, kValue, kOther };

struct FieldRow {
  Message parent;
  uint64_t number;
  const char* name;
  Message child;
};

// Fields that hold messages; the numbers are those of onnx.proto.
constexpr FieldRow kFields[] = {
    {Message::kModel, 7, "graph", Message::kGraph},
    {Message::kModel, 8, "opset_import", Message::kOther},
    {Message::kModel, 14, "metadata_props", Message::kOther},
    {Message::kModel, 20, "training_info", Message::kTraining},
    {Message::kModel, 25, "functions", Message::kFunction},
    {Message::kGraph, 1, "node", Message::kNode},
    {Message::kGraph, 5, "initializer", Message::kTensor},
    {Message::kGraph, 11, "input", Message::kValue},
    {Message::kGraph, 12, "output", Message::kValue},
    {Message::kGraph, 13, "value_info", Message::kValue},
    {Message::kNode, 5, "attribute", Message::kAttribute},
    {Message::kAttribute, 5, "t", Message::kTensor},
    {Message::kAttribute, 6, "g", Message::kGraph},
    {Message::kAttribute, 10, "tensors", Message::kTensor},
    {Message::kAttribute, 11, "graphs", Message::kGraph},
    {Message::kTensor, 13, "external_data", Message::kOther},
    {Message::kFunction, 7, "node", Message::kNode},
    {Message::kFunction, 11, "attribute_proto", Message::kAttribute},
    {Message::kTraining, 1, "initialization", Message::kGraph},
    {Message::kTraining, 2, "algorithm", Message::kGraph},
};

const FieldRow* FindField(Message parent, uint64_t number) {
  for (const FieldRow& row : kFields) {
    if (row.parent == parent && row.number == number) return &row;
  }
  return nullptr;
}

class Walker {
 public:
  explicit Walker(std::string_view bytes) : bytes_(bytes) {}

  // False when something is wrong; error() tells what.
  bool Walk(Message message, size_t end, const std::string& path, int depth) {
    if (depth > kMaxDepth) return Fail(path, "messages nest more than 100 deep");
    std::map<uint64_t, int> counts;
    while (position_ < end) {
      uint64_t tag = 0;
      if (!Varint(end, path, tag)) return false;
      if (!Field(message, tag, end, path, counts[tag >> 3]++, depth)) return false;
    }
    return true;
  }

  const std::string& error() const { return error_; }

 private:
  bool Field(Message message, uint64_t tag, size_t end, const std::string& path, int index, int depth) {
    const uint64_t number = tag >> 3;
    uint64_t value = 0;
    if (number == 0) return Fail(path, "a field with the number 0");
    switch (tag & 7) {
      case 0:
        return Varint(end, path, value);
      case 1:
        return Skip(8, end, path);
      case 5:
        return Skip(4, end, path);
      case 2:
        break;
      default:
        return Fail(path, "field " + std::to_string(number) + " has the unknown wire type " + std::to_string(tag & 7));
    }
    const size_t start = position_;
    if (!Varint(end, path, value)) return false;
    if (value > end - position_) {
      position_ = start;
      return Fail(path, "field " + std::to_string(number) + " has a length of " + std::to_string(value) +
                            ", which runs past the end at byte " + std::to_string(end));
    }
    const FieldRow* row = FindField(message, number);
    if (row == nullptr) return Skip(value, end, path);
    const std::string name = (path.empty() ? "" : path + ".") + row->name + "[" + std::to_string(index) + "]";
    return Walk(row->child, position_ + value, name, depth + 1);
  }

  bool Varint(size_t end, const std::string& path, uint64_t& value) {
    const size_t start = position_;
    value = 0;
    for (int shift = 0; shift < 70; shift += 7) {
      if (position_ >= end) {
        position_ = start;
        return Fail(path, "a number is cut off at byte " + std::to_string(end));
      }
      const auto byte = static_cast<uint8_t>(bytes_[position_++]);
      if (shift < 64) value |= static_cast<uint64_t>(byte & 127) << shift;
      if (byte < 128) return true;
    }
    position_ = start;
    return Fail(path, "a number of more than 10 bytes");
  }

  bool Skip(uint64_t count, size_t end, const std::string& path) {
    if (count > end - position_) return Fail(path, "a value is cut off at byte " + std::to_string(end));
    position_ += count;
    return true;
  }

  bool Fail(const std::string& path, const std::string& what) {
    error_ = "byte " + std::to_string(position_) + (path.empty() ? "" : ", in " + path) + ": " + what;
    return false;
  }

  std::string_view bytes_;
  size_t position_ = 0;
  std::string error_;
};

}  // namespace

std::string FindWireError(std::string_view bytes) {
  Walker walker(bytes);
  return walker.Walk(Message::kModel, bytes.size(), "", 0) ? "" : walker.error();
}

}  // namespace onnxtrain
