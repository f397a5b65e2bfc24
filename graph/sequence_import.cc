// SPDX-License-Identifier: Apache-2.0
// Sequences of tensors exist during import only: each is known as the list of its elements.
#include <onnx/onnx_pb.h>

#include <algorithm>

#include "graph/importer_call.h"
#include "graph/onnx_proto.h"

namespace onnxtrain {
namespace {

// Far above what models split into; a hostile dimension must not fill the memory.
constexpr int64_t kMaxElements = 1 << 16;

Status NotKnown(const std::string& origin, const std::string& what) {
  return InvalidModelError(origin + ": " + what + " depends on data; sequences must be known when training starts");
}

// Sizes along the axis. `split` is null: one each.
StatusOr<std::vector<int64_t>> SplitSizes(const std::string& origin, const Tensor* split, int64_t size) {
  if (split != nullptr && split->shape().size() == 1) {
    std::vector<int64_t> sizes;
    for (int64_t i = 0; i < split->elements(); ++i) sizes.push_back(split->IntAt(i));
    return sizes;
  }
  const int64_t chunk = split == nullptr ? 1 : split->elements() == 1 ? split->IntAt(0) : 0;
  if (chunk <= 0) return InvalidModelError(origin + ": it splits into parts of size " + std::to_string(chunk));
  if (size / chunk >= kMaxElements)
    return InvalidModelError(origin + ": more than " + std::to_string(kMaxElements) + " parts");
  std::vector<int64_t> sizes;
  for (int64_t begin = 0; begin < size; begin += chunk) sizes.push_back(std::min(chunk, size - begin));
  return sizes;
}

}  // namespace

StatusOr<int64_t> NodeImporter::ConstantInt(const Call& call, size_t input) const {
  const Value* value = call.input(input);
  if (value == nullptr || value->constant() == nullptr || value->type().elements() != 1) {
    return NotKnown(call.origin, "its position");
  }
  return value->constant()->IntAt(0);
}

NodeImporter::Bindings NodeImporter::ImportSplit(Call& call) {
  Value* data = call.input(0);
  if (data == nullptr) return InvalidModelError(call.origin + ": its input is missing");
  const Value* split = call.input(1);
  if (split != nullptr && split->constant() == nullptr) return NotKnown(call.origin, "how it splits");
  int64_t axis = call.Int("axis", 0);
  if (axis < 0) axis += data->type().rank();
  if (axis < 0 || axis >= data->type().rank()) {
    return InvalidModelError(call.origin + ": axis " + std::to_string(axis) + " of " + ToString(data->type()));
  }
  ASSIGN_OR_RETURN(const std::vector<int64_t> sizes,
                   SplitSizes(call.origin, split == nullptr ? nullptr : split->constant(),
                              data->type().shape[static_cast<size_t>(axis)]));
  std::vector<Value*> parts = {data};
  if (sizes.size() != 1) {
    std::vector<std::string> names(sizes.size(), call.scope.prefix + call.label + "_part");
    Value* constant = graph_.AddConstant(call.label + "_sizes", Tensor::Ints(sizes));
    ASSIGN_OR_RETURN(parts, Emit(call, "Split", {data, constant}, {{"axis", axis}}, std::move(names)));
  }
  if (split == nullptr && call.Int("keepdims", 1) == 0) {
    Value* axes = graph_.AddConstant(call.label + "_axes", Tensor::Ints({axis}));
    for (Value*& part : parts) {
      ASSIGN_OR_RETURN(part, EmitOne(call, "Squeeze", {part, axes}, {}));
    }
  }
  return std::vector<Binding>{BoundSequence(std::move(parts))};
}

NodeImporter::Bindings NodeImporter::ImportConcat(Call& call, const std::vector<Value*>& elements) {
  const int64_t axis = call.Int("axis", 0);
  std::vector<Value*> parts = elements;
  if (call.Int("new_axis", 0) != 0) {
    Value* axes = graph_.AddConstant(call.label + "_axes", Tensor::Ints({axis}));
    for (Value*& part : parts) {
      ASSIGN_OR_RETURN(part, EmitOne(call, "Unsqueeze", {part, axes}, {}));
    }
  }
  ASSIGN_OR_RETURN(Value * joined, EmitOne(call, "Concat", std::move(parts), {{"axis", axis}}));
  return std::vector<Binding>{Bound(joined)};
}

NodeImporter::Bindings NodeImporter::ImportSequenceOp(Call& call) {
  if (call.op == "SplitToSequence") return ImportSplit(call);
  if (call.op == "SequenceEmpty") return std::vector<Binding>{BoundSequence({})};
  if (call.op == "SequenceConstruct") {
    std::vector<Value*> elements;
    for (size_t i = 0; i < call.inputs.size(); ++i) elements.push_back(call.input(i));
    if (std::count(elements.begin(), elements.end(), nullptr) != 0) {
      return InvalidModelError(call.origin + ": an element is missing");
    }
    return std::vector<Binding>{BoundSequence(std::move(elements))};
  }
  if (call.op == "Optional" || call.op == "OptionalGetElement") {
    if (call.inputs.empty()) return InvalidModelError(call.origin + ": an empty optional is not supported");
    return std::vector<Binding>{call.inputs[0]};
  }
  if (call.op == "OptionalHasElement") {
    const bool has = !call.inputs.empty() && (call.HasSequence() || call.input(0) != nullptr);
    return std::vector<Binding>{Bound(graph_.AddConstant(call.scope.prefix + call.label, Tensor::Scalar(has)))};
  }
  return ImportSequenceUse(call);
}

// Operators whose first input is a sequence.
NodeImporter::Bindings NodeImporter::ImportSequenceUse(Call& call) {
  if (call.inputs.empty() || call.inputs[0].kind != Binding::Kind::kSequence) {
    return InvalidModelError(call.origin + ": its input is not a sequence");
  }
  std::vector<Value*> elements = call.inputs[0].elements;
  const auto count = static_cast<int64_t>(elements.size());
  if (call.op == "SequenceLength") {
    return std::vector<Binding>{Bound(graph_.AddConstant(call.scope.prefix + call.label, Tensor::Scalar(count)))};
  }
  if (call.op == "ConcatFromSequence") return ImportConcat(call, elements);
  const bool insert = call.op == "SequenceInsert";
  const size_t position_input = insert ? 2 : 1;
  int64_t position = insert ? count : -1;
  if (call.inputs.size() > position_input) {
    ASSIGN_OR_RETURN(position, ConstantInt(call, position_input));
  }
  if (position < 0) position += count;
  if (position < 0 || position >= count + (insert ? 1 : 0)) {
    return InvalidModelError(call.origin + ": position " + std::to_string(position) + " of a sequence of " +
                             std::to_string(count));
  }
  if (call.op == "SequenceAt") return std::vector<Binding>{Bound(elements[static_cast<size_t>(position)])};
  if (insert) {
    if (call.input(1) == nullptr) return InvalidModelError(call.origin + ": the element is missing");
    elements.insert(elements.begin() + position, call.input(1));
  } else {
    elements.erase(elements.begin() + position);
  }
  return std::vector<Binding>{BoundSequence(std::move(elements))};
}

}  // namespace onnxtrain
