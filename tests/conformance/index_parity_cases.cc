// SPDX-License-Identifier: Apache-2.0
#include "tests/conformance/parity_cases.h"
#include "tests/conformance/parity_inputs.h"

namespace onnxtrain {
namespace {

using Cases = std::vector<ParityCase>;

void AddGathers(Cases& cases) {
  for (const int64_t axis : {0, 1}) {
    cases.push_back({"Gather", {Fed(Floats({6, 5, 3})), Fed(Longs({4, 2}, -5, 4))}, {{"axis", axis}}});
    const Shape dy = axis == 0 ? Shape{9, 5, 3} : Shape{6, 9, 3};
    const Attributes attributes{{"axis", axis}, {"shape", std::vector<int64_t>{6, 5, 3}}};
    // The CPU adds in the same order, so nothing is lost but the last rounding.
    cases.push_back({"onnxtrain.GatherGrad", {Fed(Longs({9}, -5, 4)), Fed(Floats(dy))}, attributes, 1, false, 0});
  }
  cases.push_back({"onnxtrain.GatherGrad",
                   {Fed(Longs({2, 2100}, -500, 499)), Fed(Floats({2, 2100, 5}))},
                   {{"axis", int64_t{0}}, {"shape", std::vector<int64_t>{500, 5}}},
                   1,
                   false,
                   0});
  for (const DType index : {DType::kInt32, DType::kInt64}) {
    cases.push_back(
        {"GatherElements", {Fed(Floats({5, 7, 3})), Fed(Of(index, {4, 9, 2}, -7, 6))}, {{"axis", int64_t{1}}}});
    cases.push_back(
        {"GatherElements", {Fed(Bools({5, 33})), Fed(Of(index, {70, 33}, -5, 4))}, {{"axis", int64_t{-2}}}});
  }
}

void AddTuples(Cases& cases) {
  struct Tuples {
    Shape data, indices, y;
    int64_t batch_dims;
  };
  for (const Tuples& t : {Tuples{{4, 5, 3}, {7, 2}, {7, 3}, 0}, Tuples{{4, 5, 3}, {2, 3, 3}, {2, 3}, 0},
                          Tuples{{2, 4, 5, 3}, {2, 6, 1}, {2, 6, 5, 3}, 1}, Tuples{{4, 33}, {0, 1}, {0, 33}, 0}}) {
    const int64_t bound = t.indices.back() == 3 ? 3 : 4;
    const OpInput indices = Fed(Longs(t.indices, -bound, bound - 1));
    cases.push_back({"GatherND", {Fed(Floats(t.data)), indices}, {{"batch_dims", t.batch_dims}}});
    cases.push_back({"onnxtrain.GatherNDGrad",
                     {indices, Fed(Floats(t.y))},
                     {{"batch_dims", t.batch_dims}, {"shape", t.data}},
                     1,
                     false,
                     0});
  }
  cases.push_back({"GatherND", {Fed(Longs({4, 5}, -9, 9)), Fed(Longs({6, 2}, -4, 3))}, {}});
}

void AddScatters(Cases& cases) {
  for (const char* reduction : {"none", "add", "mul", "max", "min"}) {
    const Attributes tuples{{"reduction", reduction}};
    const auto scatter = [&](const OpInput& data, const OpInput& updates, DType index) {
      const Attributes elements{{"reduction", reduction}, {"axis", int64_t{1}}};
      cases.push_back({"ScatterElements", {data, Fed(Of(index, {4, 9, 2}, -7, 6)), updates}, elements, 1, false, 0});
    };
    scatter(Fed(Floats({5, 7, 3})), Fed(Floats({4, 9, 2}, -1, 1)), DType::kInt64);
    for (const DType dtype : {DType::kDouble, DType::kInt32, DType::kInt64}) {
      scatter(Fed(Of(dtype, {5, 7, 3}, -9, 9)), Fed(Of(dtype, {4, 9, 2}, -9, 9)), DType::kInt32);
    }
    cases.push_back({"ScatterND",
                     {Fed(Floats({4, 5, 33})), Fed(Longs({30, 2}, -4, 3)), Fed(Floats({30, 33}, -1, 1))},
                     tuples,
                     1,
                     false,
                     0});
    cases.push_back(
        {"ScatterND", {Fed(Longs({4, 5}, -9, 9)), Fed(Longs({3, 7, 2}, -4, 3)), Fed(Longs({3, 7}, -9, 9))}, tuples});
    cases.push_back({"ScatterND", {Fed(Floats({4, 3})), Fed(Longs({0, 1}, 0, 1)), Fed(Floats({0, 3}))}, tuples});
  }
  cases.push_back({"ScatterElements",
                   {Fed(Bools({600, 7})), Fed(Longs({601, 7}, -600, 599)), Fed(Bools({601, 7}))},
                   {{"axis", int64_t{0}}}});
}

void AddSorts(Cases& cases) {
  for (const auto& [shape, axis] : std::vector<std::pair<Shape, int64_t>>{
           {{1}, 0}, {{5, 33}, -1}, {{33, 5}, 0}, {{2, 70, 3}, 1}, {{2, 2100}, -1}, {{0, 4}, 1}}) {
    const int64_t length = shape[static_cast<size_t>(axis < 0 ? axis + 2 : axis)];
    for (const int64_t one : {0, 1}) {
      const Attributes top{{"axis", axis}, {"largest", one}};
      const Attributes best{{"axis", axis}, {"select_last_index", one}, {"keepdims", one}};
      // Integers from -2 to 2 have many equals; 16 bits make some of the floats equal, too.
      for (const OpInput& x : {Fed(Floats(shape)), Fed(Longs(shape, -2, 2)), Fed(Of(DType::kInt32, shape, -2, 2)),
                               Fed(Of(DType::kDouble, shape, -2, 2))}) {
        cases.push_back({"TopK", {x, Axes({(length + 1) / 2})}, top, 2});
        for (const char* op : {"ArgMax", "ArgMin"}) cases.push_back({op, {x}, best});
      }
    }
  }
  for (const int64_t axis : {0, 1, -1}) {
    for (const DType dtype : {DType::kFloat, DType::kFloat16}) {  // ONNX has no bfloat16 here
      const OpInput values = Fed(Of(dtype, {2}, -9, 9));
      cases.push_back({"OneHot", {Fed(Longs({5, 7}, -9, 9)), Axes({8}), values}, {{"axis", axis}}, 1, true});
    }
    cases.push_back(
        {"OneHot", {Fed(Floats({5, 7}, -9, 9)), Axes({8}), Fed(Longs({2}, -9, 9))}, {{"axis", axis}}, 1, true});
  }
}

}  // namespace

void AddIndexParityCases(Cases& cases) {
  AddGathers(cases);
  AddTuples(cases);
  AddScatters(cases);
  AddSorts(cases);
}

}  // namespace onnxtrain
