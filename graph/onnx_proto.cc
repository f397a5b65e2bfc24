// SPDX-License-Identifier: Apache-2.0
#include "graph/onnx_proto.h"

#include <onnx/onnx_pb.h>

#include <limits>

namespace onnxtrain {
namespace {

std::string NameOfTensor(const onnx::TensorProto& proto) {
  return proto.name().empty() ? "a tensor without a name" : "tensor '" + proto.name() + "'";
}

// Elements of a typed field, narrowed to the storage type.
template <typename To, typename Field>
void CopyField(const Field& field, Tensor& tensor) {
  To* to = reinterpret_cast<To*>(tensor.data());
  for (const auto element : field) *to++ = static_cast<To>(element);
}

void CopyTyped(const onnx::TensorProto& proto, Tensor& tensor) {
  switch (tensor.dtype()) {
    case DType::kFloat:
      return CopyField<float>(proto.float_data(), tensor);
    case DType::kDouble:
      return CopyField<double>(proto.double_data(), tensor);
    case DType::kInt64:
      return CopyField<int64_t>(proto.int64_data(), tensor);
    case DType::kUint64:
      return CopyField<uint64_t>(proto.uint64_data(), tensor);
    case DType::kUint32:
      return CopyField<uint32_t>(proto.uint64_data(), tensor);
    case DType::kInt32:
      return CopyField<int32_t>(proto.int32_data(), tensor);
    case DType::kInt16:
      return CopyField<int16_t>(proto.int32_data(), tensor);
    case DType::kInt8:
      return CopyField<int8_t>(proto.int32_data(), tensor);
    case DType::kUint8:
      return CopyField<uint8_t>(proto.int32_data(), tensor);
    case DType::kUint16:
    case DType::kFloat16:
    case DType::kBfloat16:
      return CopyField<uint16_t>(proto.int32_data(), tensor);
    case DType::kBool:
      return CopyField<bool>(proto.int32_data(), tensor);
    default:
      break;
  }
  internal::CheckFailed(__FILE__, __LINE__, "element type", ToString(tensor.type()));
}

void CopyRaw(const onnx::TensorProto& proto, Tensor& tensor) {
  if (tensor.bytes() != 0) std::memcpy(tensor.data(), proto.raw_data().data(), tensor.bytes());
  if (tensor.dtype() == DType::kBool) {  // any other byte would be undefined behaviour to read as bool
    for (size_t i = 0; i < tensor.bytes(); ++i) tensor.data()[i] = std::byte(tensor.data()[i] != std::byte(0));
  }
}

int64_t TypedElements(const onnx::TensorProto& proto, DType dtype) {
  switch (dtype) {
    case DType::kFloat:
      return proto.float_data_size();
    case DType::kDouble:
      return proto.double_data_size();
    case DType::kInt64:
      return proto.int64_data_size();
    case DType::kUint64:
    case DType::kUint32:
      return proto.uint64_data_size();
    default:
      return proto.int32_data_size();
  }
}

template <typename List>
auto ToVector(const List& list) {
  return std::vector<std::decay_t<decltype(*list.begin())>>(list.begin(), list.end());
}

struct AttributeWriter {
  onnx::AttributeProto* proto;

  void operator()(int64_t value) const {
    proto->set_type(onnx::AttributeProto::INT);
    proto->set_i(value);
  }
  void operator()(float value) const {
    proto->set_type(onnx::AttributeProto::FLOAT);
    proto->set_f(value);
  }
  void operator()(const std::string& value) const {
    proto->set_type(onnx::AttributeProto::STRING);
    proto->set_s(value);
  }
  void operator()(const std::vector<int64_t>& values) const {
    proto->set_type(onnx::AttributeProto::INTS);
    proto->mutable_ints()->Add(values.begin(), values.end());
  }
  void operator()(const std::vector<float>& values) const {
    proto->set_type(onnx::AttributeProto::FLOATS);
    proto->mutable_floats()->Add(values.begin(), values.end());
  }
  void operator()(const std::vector<std::string>& values) const {
    proto->set_type(onnx::AttributeProto::STRINGS);
    for (const std::string& value : values) proto->add_strings(value);
  }
  void operator()(const Tensor& value) const {
    proto->set_type(onnx::AttributeProto::TENSOR);
    TensorToProto(value, "", proto->mutable_t());
  }
};

}  // namespace

DType DTypeFromOnnx(int data_type) {
  const DType dtype = static_cast<DType>(data_type);
  const bool known = data_type > 0 && data_type <= 16 && NameOf(dtype) != NameOf(DType::kUndefined);
  return known ? dtype : DType::kUndefined;
}

std::string OnnxTypeName(int data_type) {
  const DType dtype = DTypeFromOnnx(data_type);
  if (dtype != DType::kUndefined) return std::string(NameOf(dtype));
  if (!onnx::TensorProto_DataType_IsValid(data_type)) return "type number " + std::to_string(data_type);
  std::string name = onnx::TensorProto_DataType_Name(static_cast<onnx::TensorProto_DataType>(data_type));
  for (char& c : name) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return name;
}

bool IsAddressable(const Shape& shape) {
  int64_t elements = 1;
  for (const int64_t dim : shape) {
    if (dim != 0 && __builtin_mul_overflow(elements, dim, &elements)) return false;
    if (elements < 0 || elements > std::numeric_limits<int64_t>::max() / 16) return false;
  }
  return true;
}

StatusOr<TensorType> TensorTypeFromProto(const onnx::TensorProto& proto) {
  const DType dtype = DTypeFromOnnx(proto.data_type());
  if (SizeOf(dtype) == 0) {
    return InvalidModelError(NameOfTensor(proto) + " has elements of " + OnnxTypeName(proto.data_type()) +
                             ", which is not supported");
  }
  TensorType type{dtype, {}};
  for (const int64_t dim : proto.dims()) {
    if (dim < 0) return InvalidModelError(NameOfTensor(proto) + " has the negative dimension " + std::to_string(dim));
    type.shape.push_back(dim);
  }
  if (!IsAddressable(type.shape)) {
    return InvalidModelError(NameOfTensor(proto) + " of shape " + ToString(type.shape) + " is too large");
  }
  return type;
}

StatusOr<Tensor> TensorFromProto(const onnx::TensorProto& proto) {
  ASSIGN_OR_RETURN(TensorType type, TensorTypeFromProto(proto));
  if (proto.data_location() == onnx::TensorProto::EXTERNAL) {
    return InvalidModelError(NameOfTensor(proto) + " has external data where none can be read");
  }
  RETURN_IF_ERROR(CheckPayload(proto, type));  // before allocating what the dimensions claim
  Tensor tensor(std::move(type));
  proto.has_raw_data() ? CopyRaw(proto, tensor) : CopyTyped(proto, tensor);
  return tensor;
}

Status CheckPayload(const onnx::TensorProto& proto, const TensorType& type) {
  const std::string where = NameOfTensor(proto) + " of type " + ToString(type);
  if (proto.has_raw_data() && proto.raw_data().size() != type.bytes()) {
    return InvalidModelError(where + " needs " + std::to_string(type.bytes()) + " bytes, its raw_data has " +
                             std::to_string(proto.raw_data().size()));
  }
  if (!proto.has_raw_data() && TypedElements(proto, type.dtype) != type.elements()) {
    return InvalidModelError(where + " holds " + std::to_string(TypedElements(proto, type.dtype)) + " elements");
  }
  return OkStatus();
}

void TensorToProto(const Tensor& tensor, std::string_view name, onnx::TensorProto* proto) {
  proto->set_name(std::string(name));
  proto->set_data_type(static_cast<int>(tensor.dtype()));
  for (const int64_t dim : tensor.shape()) proto->add_dims(dim);
  proto->set_raw_data(tensor.data(), tensor.bytes());
}

StatusOr<AttributeValue> AttributeFromProto(const onnx::AttributeProto& proto) {
  switch (proto.type()) {
    case onnx::AttributeProto::INT:
      return AttributeValue(static_cast<int64_t>(proto.i()));
    case onnx::AttributeProto::FLOAT:
      return AttributeValue(proto.f());
    case onnx::AttributeProto::STRING:
      return AttributeValue(proto.s());
    case onnx::AttributeProto::INTS:
      return AttributeValue(std::vector<int64_t>(proto.ints().begin(), proto.ints().end()));
    case onnx::AttributeProto::FLOATS:
      return AttributeValue(ToVector(proto.floats()));
    case onnx::AttributeProto::STRINGS:
      return AttributeValue(ToVector(proto.strings()));
    case onnx::AttributeProto::TENSOR: {
      StatusOr<Tensor> tensor = TensorFromProto(proto.t());
      if (!tensor.ok()) return tensor.status().Prepend("attribute '" + proto.name() + "'");
      return AttributeValue(*std::move(tensor));
    }
    default:
      break;
  }
  return InvalidModelError("attribute '" + proto.name() + "' of kind " +
                           (onnx::AttributeProto_AttributeType_IsValid(proto.type())
                                ? onnx::AttributeProto_AttributeType_Name(proto.type())
                                : std::to_string(proto.type())) +
                           " is not supported");
}

void AttributeToProto(std::string_view name, const AttributeValue& value, onnx::AttributeProto* proto) {
  proto->set_name(std::string(name));
  std::visit(AttributeWriter{proto}, value);
}

void TypeToProto(const TensorType& type, onnx::TypeProto* proto) {
  onnx::TypeProto::Tensor* tensor = proto->mutable_tensor_type();
  tensor->set_elem_type(static_cast<int>(type.dtype));
  onnx::TensorShapeProto* shape = tensor->mutable_shape();
  for (const int64_t dim : type.shape) shape->add_dim()->set_dim_value(dim);
}

}  // namespace onnxtrain
