// SPDX-License-Identifier: Apache-2.0
// Element types of tensors. The numbers are those of ONNX's TensorProto.DataType.
#ifndef ONNXTRAIN_GRAPH_DTYPE_H_
#define ONNXTRAIN_GRAPH_DTYPE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace onnxtrain {

enum class DType : int8_t {
  kUndefined = 0,
  kFloat = 1,
  kUint8 = 2,
  kInt8 = 3,
  kUint16 = 4,
  kInt16 = 5,
  kInt32 = 6,
  kInt64 = 7,
  kString = 8,  // read for messages only; no tensor of strings is ever executed
  kBool = 9,
  kFloat16 = 10,
  kDouble = 11,
  kUint32 = 12,
  kUint64 = 13,
  kBfloat16 = 16,
};

// Bytes of one element; 0 for kUndefined and kString.
size_t SizeOf(DType dtype);
// ONNX text spelling: "float", "double", "int64", "bool", "bfloat16", ...
std::string_view NameOf(DType dtype);
std::optional<DType> DTypeFromName(std::string_view name);
// float, double, float16, bfloat16.
bool IsFloating(DType dtype);
// Signed and unsigned integers; not bool.
bool IsInteger(DType dtype);

// The DType of a C++ element type: DTypeOf<float>() == DType::kFloat.
template <typename T>
constexpr DType DTypeOf();
template <> constexpr DType DTypeOf<float>() { return DType::kFloat; }
template <> constexpr DType DTypeOf<double>() { return DType::kDouble; }
template <> constexpr DType DTypeOf<uint8_t>() { return DType::kUint8; }
template <> constexpr DType DTypeOf<int8_t>() { return DType::kInt8; }
template <> constexpr DType DTypeOf<uint16_t>() { return DType::kUint16; }
template <> constexpr DType DTypeOf<int16_t>() { return DType::kInt16; }
template <> constexpr DType DTypeOf<int32_t>() { return DType::kInt32; }
template <> constexpr DType DTypeOf<int64_t>() { return DType::kInt64; }
template <> constexpr DType DTypeOf<uint32_t>() { return DType::kUint32; }
template <> constexpr DType DTypeOf<uint64_t>() { return DType::kUint64; }
template <> constexpr DType DTypeOf<bool>() { return DType::kBool; }

// 16-bit formats are stored as their bits; these convert with round-to-nearest-even.
float Float16ToFloat(uint16_t bits);
uint16_t FloatToFloat16(float value);
float Bfloat16ToFloat(uint16_t bits);
uint16_t FloatToBfloat16(float value);

}  // namespace onnxtrain

#endif  // ONNXTRAIN_GRAPH_DTYPE_H_
