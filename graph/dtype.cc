// SPDX-License-Identifier: Apache-2.0
#include "graph/dtype.h"

#include <bit>
#include <cmath>

namespace onnxtrain {
namespace {

struct DTypeRow {
  DType dtype;
  size_t size;
  std::string_view name;
};

constexpr DTypeRow kRows[] = {
    {DType::kUndefined, 0, "undefined"}, {DType::kFloat, 4, "float"},     {DType::kUint8, 1, "uint8"},
    {DType::kInt8, 1, "int8"},           {DType::kUint16, 2, "uint16"},   {DType::kInt16, 2, "int16"},
    {DType::kInt32, 4, "int32"},         {DType::kInt64, 8, "int64"},     {DType::kString, 0, "string"},
    {DType::kBool, 1, "bool"},           {DType::kFloat16, 2, "float16"}, {DType::kDouble, 8, "double"},
    {DType::kUint32, 4, "uint32"},       {DType::kUint64, 8, "uint64"},   {DType::kBfloat16, 2, "bfloat16"},
};

}  // namespace

size_t SizeOf(DType dtype) {
  for (const DTypeRow& row : kRows) {
    if (row.dtype == dtype) return row.size;
  }
  return 0;
}

std::string_view NameOf(DType dtype) {
  for (const DTypeRow& row : kRows) {
    if (row.dtype == dtype) return row.name;
  }
  return "undefined";
}

std::optional<DType> DTypeFromName(std::string_view name) {
  for (const DTypeRow& row : kRows) {
    if (row.name == name && row.dtype != DType::kUndefined) return row.dtype;
  }
  return std::nullopt;
}

bool IsFloating(DType dtype) {
  return dtype == DType::kFloat || dtype == DType::kDouble || dtype == DType::kFloat16 || dtype == DType::kBfloat16;
}

bool IsInteger(DType dtype) {
  return SizeOf(dtype) != 0 && !IsFloating(dtype) && dtype != DType::kBool;
}

float Float16ToFloat(uint16_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000u) << 16;
  const uint32_t exponent = (bits >> 10) & 0x1Fu;
  const uint32_t mantissa = bits & 0x3FFu;
  if (exponent == 0x1Fu) return std::bit_cast<float>(sign | 0x7F800000u | (mantissa << 13));
  if (exponent != 0) return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (mantissa << 13));
  const float subnormal = std::ldexp(static_cast<float>(mantissa), -24);
  return sign != 0 ? -subnormal : subnormal;
}

uint16_t FloatToFloat16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint16_t sign = static_cast<uint16_t>((bits >> 16) & 0x8000u);
  const uint32_t magnitude = bits & 0x7FFFFFFFu;
  if (magnitude > 0x7F800000u) return static_cast<uint16_t>(sign | 0x7E00u);
  if (magnitude >= 0x477FF000u) return static_cast<uint16_t>(sign | 0x7C00u);
  if (magnitude < 0x38800000u) {  // subnormal in float16: scale by 2^24 and round to nearest even
    const float scaled = std::bit_cast<float>(magnitude) * 16777216.0f;
    return static_cast<uint16_t>(sign | static_cast<uint16_t>(std::nearbyint(scaled)));
  }
  const uint32_t rounded = magnitude + 0xFFFu + ((magnitude >> 13) & 1u);
  return static_cast<uint16_t>(sign | ((rounded - 0x38000000u) >> 13));
}

float Bfloat16ToFloat(uint16_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }

uint16_t FloatToBfloat16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7FFFFFFFu) > 0x7F800000u) return static_cast<uint16_t>((bits >> 16) | 0x40u);
  return static_cast<uint16_t>((bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16);
}

}  // namespace onnxtrain
