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

}  // namespace

void AddIndexParityCases(Cases& cases) {
  AddGathers(cases);
  AddTuples(cases);
  AddScatters(cases);
}

}  // namespace onnxtrain
