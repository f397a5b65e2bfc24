// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "tests/conformance/parity_cases.h"
#include "tests/conformance/parity_inputs.h"

namespace onnxtrain {
namespace {

using Cases = std::vector<ParityCase>;

void AddCasts(Cases& cases) {
  const DType types[] = {DType::kFloat, DType::kBfloat16, DType::kFloat16, DType::kDouble,
                         DType::kInt32, DType::kInt64,    DType::kUint8,   DType::kBool};
  for (const DType from : types) {
    for (const DType to : types) {
      const Tensor x = RandomTensor(DType::kFloat, {3, 37}, 3, 0, 100).CastTo(from);
      cases.push_back({"Cast", {Fed(x)}, {{"to", static_cast<int64_t>(to)}}, 1, true});
    }
  }
}

void AddMoves(Cases& cases) {
  for (const Shape& shape : {Shape{2, 3, 5, 7}, Shape{4, 0, 3, 2}}) {
    for (const std::vector<int64_t>& perm :
         std::vector<std::vector<int64_t>>{{0, 2, 1, 3}, {3, 2, 1, 0}, {0, 1, 3, 2}}) {
      cases.push_back({"Transpose", {Fed(Floats(shape))}, {{"perm", perm}}});
    }
  }
  cases.push_back({"Slice", {Fed(Floats({6, 9})), Axes({5, 1}), Axes({0, 8}), Axes({0, 1}), Axes({-2, 3})}, {}});
  cases.push_back({"onnxtrain.SliceGrad",
                   {Fed(Floats({3, 3}))},
                   {{"shape", std::vector<int64_t>{6, 9}},
                    {"starts", std::vector<int64_t>{5, 1}},
                    {"steps", std::vector<int64_t>{-2, 3}}}});
  cases.push_back({"Split", {Fed(Floats({4, 9})), Axes({2, 0, 7})}, {{"axis", int64_t{1}}}, 3});
  cases.push_back({"Concat", {Fed(Floats({4, 2})), Fed(Floats({4, 0})), Fed(Floats({4, 5}))}, {{"axis", int64_t{-1}}}});
  cases.push_back({"Concat", {Fed(Bools({2, 3})), Fed(Bools({1, 3}))}, {{"axis", int64_t{0}}}});
  cases.push_back({"Expand", {Fed(Floats({3, 1})), Axes({2, 3, 5})}, {}});
  cases.push_back({"Tile", {Fed(Floats({3, 1, 5})), Axes({2, 3, 4})}, {}});
  cases.push_back({"Tile", {Fed(Bools({2, 3, 2, 5})), Axes({3, 2, 2, 3})}, {}});
  cases.push_back({"Tile", {Fed(Longs({3, 2}, -9, 9)), Axes({1, 0})}, {}});
  cases.push_back({"Identity", {Fed(Floats({3, 5}))}, {}});
  cases.push_back({"Reshape", {Fed(Floats({3, 4})), Axes({2, 6})}, {}});
  cases.push_back({"Flatten", {Fed(Floats({2, 3, 4}))}, {{"axis", int64_t{1}}}});
  cases.push_back({"Squeeze", {Fed(Floats({3, 1, 4})), Axes({1})}, {}});
  cases.push_back({"Unsqueeze", {Fed(Floats({3, 4})), Axes({0})}, {}});
  cases.push_back({"ConstantOfShape", {Axes({3, 5})}, {{"value", Tensor::FromVector<float>({1}, {2.5f})}}, 1, true});
}

void AddPads(Cases& cases) {
  cases.push_back({"Pad", {Fed(Floats({3, 4})), Axes({1, -1, 0, 2}), Fed(Tensor::Scalar<float>(1.5f))}, {}});
  cases.push_back({"Pad", {Fed(Floats({3, 4})), Axes({2, 1}), Omitted(), Axes({1})}, {}});
  cases.push_back({"Pad", {Fed(Longs({3, 4}, -9, 9)), Axes({-1, 0, -1, -3})}, {}});
  for (const char* mode : {"edge", "reflect", "wrap"}) {
    const Attributes padding{{"mode", mode}};
    cases.push_back({"Pad", {Fed(Floats({3, 5, 7})), Axes({1, -1, 3, 0, 2, 4})}, padding});
    cases.push_back({"Pad", {Fed(Bools({2, 5})), Axes({9, 11}), Omitted(), Axes({-1})}, padding});
    cases.push_back({"Pad", {Fed(Longs({1}, -9, 9)), Axes({2, 3})}, padding});
    Attributes summing{{"mode", mode}, {"shape", std::vector<int64_t>{3, 5, 7}}};
    cases.push_back({"onnxtrain.PadGrad",
                     {Fed(Floats({4, 6, 14})), Axes({1, -1, 3, 0, 2, 4}), Omitted(), Omitted()},
                     summing,
                     1,
                     false,
                     0});
  }
}

void AddMade(Cases& cases) {
  cases.push_back({"Shape", {Fed(Floats({3, 1, 5}))}, {{"start", int64_t{-2}}}});
  cases.push_back({"Shape", {Fed(Floats({}))}, {}});
  cases.push_back({"Size", {Fed(Floats({3, 1, 5}))}, {}});
  for (const DType dtype : {DType::kDouble, DType::kInt32, DType::kInt64, DType::kFloat}) {
    const auto number = [dtype](double value) { return Constant(Tensor::Scalar<double>(value).CastTo(dtype)); };
    cases.push_back({"Range", {number(-3), number(1500), number(4)}, {}, 1, true});
  }
  for (const DType dtype : {DType::kFloat, DType::kFloat16, DType::kDouble, DType::kInt64, DType::kBool}) {
    const Attributes attributes{{"k", int64_t{dtype == DType::kFloat ? -2 : 3}},
                                {"dtype", static_cast<int64_t>(dtype)}};
    cases.push_back({"EyeLike", {Fed(Longs({7, 33}, 0, 1))}, attributes, 1, true});
  }
  for (const int64_t upper : {0, 1}) {
    const Attributes side{{"upper", upper}};
    cases.push_back({"Trilu", {Fed(Floats({3, 7, 33}))}, side});
    cases.push_back({"Trilu", {Fed(Bools({9, 5})), Fed(Tensor::Scalar<int64_t>(-2))}, side});
    cases.push_back({"Trilu", {Fed(Longs({9, 5}, -9, 9)), Fed(Tensor::Scalar<int64_t>(3))}, side});
    cases.push_back({"IsInf",
                     {Fed(Tensor::FromVector<float>({4}, {1, INFINITY, -INFINITY, NAN}))},
                     {{"detect_negative", upper}, {"detect_positive", 1 - upper}},
                     1,
                     true});
  }
}

void AddBits(Cases& cases) {
  for (const DType dtype : {DType::kUint8, DType::kUint16, DType::kUint32, DType::kUint64}) {
    const OpInput a = Fed(Of(dtype, {5, 7}, 0, 200)), b = Fed(Of(dtype, {7}, 0, 70));
    for (const char* op : {"BitwiseAnd", "BitwiseOr", "BitwiseXor"}) cases.push_back({op, {a, b}, {}});
    for (const char* direction : {"LEFT", "RIGHT"}) cases.push_back({"BitShift", {a, b}, {{"direction", direction}}});
    cases.push_back({"BitwiseNot", {a}, {}});
  }
  cases.push_back({"BitwiseXor", {Fed(Longs({5, 1}, -99, 99)), Fed(Longs({1, 7}, -99, 99))}, {}});
  cases.push_back({"BitwiseNot", {Fed(Of(DType::kInt32, {77}, -99, 99))}, {}});
}

}  // namespace

void AddShapeParityCases(Cases& cases) {
  AddCasts(cases);
  AddMoves(cases);
  AddPads(cases);
  AddMade(cases);
  AddBits(cases);
}

}  // namespace onnxtrain
