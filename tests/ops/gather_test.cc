// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "graph/op_registry.h"
#include "runtime/status_word.h"
#include "tests/support/gradient_check.h"
#include "tests/support/lifted_op.h"
#include "tests/support/naive_reference.h"
#include "tests/support/op_runner.h"

namespace onnxtrain {
namespace {

int64_t Wrapped(double index, int64_t size) {
  const auto whole = static_cast<int64_t>(index);
  return whole < 0 ? whole + size : whole;
}

TEST(GatherTest, GathersAlongEveryAxis) {
  for (DType dtype : {DType::kFloat, DType::kInt64, DType::kBool, DType::kFloat16}) {
    for (DType index_type : {DType::kInt32, DType::kInt64}) {
      for (int64_t axis : {0, 1, 2}) {
        for (const Shape& index_shape : {Shape{}, Shape{4}, Shape{2, 3}, Shape{0}}) {
          const Tensor data = RandomTensor(dtype, {3, 3, 3}, 1);
          const Tensor indices = RandomTensor(index_type, index_shape, 2, -3, 2);
          Shape shape;
          for (int64_t i = 0; i < axis; ++i) shape.push_back(3);
          shape.insert(shape.end(), index_shape.begin(), index_shape.end());
          for (int64_t i = axis + 1; i < 3; ++i) shape.push_back(3);
          const Tensor expected = FromIndices(dtype, shape, [&](const Index& index) {
            const auto middle = index.begin() + axis;
            const auto behind = middle + static_cast<int64_t>(index_shape.size());
            Index from(index.begin(), middle);
            from.push_back(Wrapped(At(indices, Index(middle, behind)), 3));
            from.insert(from.end(), behind, index.end());
            return At(data, from);
          });
          ExpectIdentical(RunOp("Gather", {Fed(data), Fed(indices)}, {{"axis", axis}})[0], expected);
        }
      }
    }
  }
}

TEST(GatherTest, GradientAddsDuplicates) {
  for (int64_t axis : {0, 1, -1}) {
    const Tensor indices = Tensor::FromVector<int64_t>({2, 3}, {0, 2, 0, -1, 1, 0});
    ExpectOpGradient("Gather", {Fed(RandomTensor(DType::kDouble, {3, 3, 4}, 3)), Fed(indices)}, {{"axis", axis}});
  }
  const Tensor table = RandomTensor(DType::kFloat, {700, 64}, 4);
  const Tensor tokens = RandomTensor(DType::kInt64, {9, 101}, 5, 0, 40);
  const Tensor weight = RandomTensor(DType::kFloat, {9, 101, 64}, 6);
  const Tensor gradient = OpGradients("Gather", {Fed(table), Fed(tokens)}, weight)[0];
  Tensor expected(TensorType{DType::kDouble, {700, 64}});
  for (int64_t i = 0; i < tokens.elements(); ++i) {
    for (int64_t j = 0; j < 64; ++j) {
      expected.values<double>()[static_cast<size_t>(tokens.IntAt(i) * 64 + j)] += weight.DoubleAt(i * 64 + j);
    }
  }
  ExpectNear(gradient, expected.CastTo(DType::kFloat), 1e-5);
}

TEST(GatherTest, GradientKeepsItsBitsOnAnyNumberOfThreads) {
  Graph graph(OpRegistry::Default());
  const std::vector<OpInput> inputs{Fed(RandomTensor(DType::kInt64, {5000}, 7, 0, 99)),
                                    Fed(RandomTensor(DType::kFloat, {5000, 900}, 8))};
  ASSERT_TRUE(
      AddOp(graph, "onnxtrain.GatherGrad", inputs, {{"axis", int64_t{0}}, {"shape", std::vector<int64_t>{100, 900}}})
          .ok());
  EXPECT_EQ(RunEveryWay(graph, FeedsOf(inputs)).size(), 1u);
}

// Runs with one index out of range: the fault is told, and nothing outside is read or written.
void ExpectIndexFault(const std::string& op, const std::vector<OpInput>& inputs, const Attributes& attributes = {}) {
  SCOPED_TRACE(op);
  Graph graph(OpRegistry::Default());
  const Status added = AddOp(graph, op, inputs, attributes);
  ASSERT_TRUE(added.ok()) << added.message();
  StatusOr<OpRunnerResult> result = RunGraph(graph, FeedsOf(inputs));
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_EQ(FaultOf(result->status_word), DeviceFault::kIndexOutOfRange);
  EXPECT_EQ(NodeIndexOf(result->status_word), 0);
}

TEST(GatherTest, IndexOutOfRangeSetsTheStatusWord) {
  const OpInput data = Fed(RandomTensor(DType::kFloat, {3, 2}, 1));
  for (int64_t bad :
       {int64_t{3}, int64_t{-4}, std::numeric_limits<int64_t>::max(), std::numeric_limits<int64_t>::min()}) {
    ExpectIndexFault("Gather", {data, Fed(Tensor::Ints({0, bad}))});
    ExpectIndexFault("onnxtrain.GatherGrad", {Fed(Tensor::Ints({0, bad})), Fed(RandomTensor(DType::kFloat, {2, 2}, 1))},
                     {{"axis", int64_t{0}}, {"shape", std::vector<int64_t>{3, 2}}});
    ExpectIndexFault("GatherElements", {data, Fed(Tensor::Ints({0, bad}).Reshaped({1, 2}))});
    ExpectIndexFault("GatherND", {data, Fed(Tensor::Ints({0, bad}).Reshaped({2, 1}))});
    ExpectIndexFault("ScatterND",
                     {data, Fed(Tensor::Ints({bad}).Reshaped({1, 1})), Fed(RandomTensor(DType::kFloat, {1, 2}, 1))});
    ExpectIndexFault("ScatterElements",
                     {data, Fed(Tensor::Ints({0, bad}).Reshaped({1, 2})), Fed(RandomTensor(DType::kFloat, {1, 2}, 1))});
  }
}

TEST(GatherTest, GatherElementsReadsAlongTheAxis) {
  for (int64_t axis : {0, 1}) {
    const Tensor data = RandomTensor(DType::kFloat, {4, 4}, 9);
    const Tensor indices = RandomTensor(DType::kInt64, {2, 3}, 10, -4, 3);
    const Tensor expected = FromIndices(DType::kFloat, {2, 3}, [&](const Index& index) {
      Index from = index;
      from[static_cast<size_t>(axis)] = Wrapped(At(indices, index), 4);
      return At(data, from);
    });
    ExpectIdentical(RunOp("GatherElements", {Fed(data), Fed(indices)}, {{"axis", axis}})[0], expected);
    ExpectOpGradient("GatherElements", {Fed(data.CastTo(DType::kDouble)), Fed(indices)}, {{"axis", axis}});
  }
}

TEST(GatherTest, GatherNDReadsTuples) {
  const Tensor data = RandomTensor(DType::kFloat, {2, 3, 4}, 11);
  const Tensor pairs = Tensor::FromVector<int64_t>({3, 2}, {0, 1, 1, -1, 0, 1});
  ExpectIdentical(RunOp("GatherND", {Fed(data), Fed(pairs)})[0],
                  FromIndices(DType::kFloat, {3, 4}, [&](const Index& i) {
                    return At(data, {pairs.IntAt(i[0] * 2), Wrapped(pairs.DoubleAt(i[0] * 2 + 1), 3), i[1]});
                  }));
  const Tensor batched = Tensor::FromVector<int64_t>({2, 1}, {2, 0});
  const Attributes one{{"batch_dims", int64_t{1}}};
  ExpectIdentical(RunOp("GatherND", {Fed(data), Fed(batched)}, one)[0],
                  FromIndices(DType::kFloat, {2, 4}, [&](const Index& i) {
                    return At(data, {i[0], batched.IntAt(i[0]), i[1]});
                  }));
  ExpectOpGradient("GatherND", {Fed(data.CastTo(DType::kDouble)), Fed(pairs)});
  ExpectOpGradient("GatherND", {Fed(data.CastTo(DType::kDouble)), Fed(batched)}, one);
}

TEST(GatherTest, ScatterElementsWritesAndReduces) {
  const Tensor data = Tensor::FromVector<float>({1, 4}, {1, 2, 3, 4});
  const Tensor indices = Tensor::FromVector<int64_t>({1, 3}, {1, 1, -1});
  const Tensor updates = Tensor::FromVector<float>({1, 3}, {10, 20, 3});
  const auto run = [&](const char* reduction) {
    return RunOp("ScatterElements", {Fed(data), Fed(indices), Fed(updates)},
                 {{"axis", int64_t{1}}, {"reduction", std::string(reduction)}})[0];
  };
  ExpectIdentical(run("none"), Tensor::FromVector<float>({1, 4}, {1, 20, 3, 3}));
  ExpectIdentical(run("add"), Tensor::FromVector<float>({1, 4}, {1, 32, 3, 7}));
  ExpectIdentical(run("mul"), Tensor::FromVector<float>({1, 4}, {1, 400, 3, 12}));
  ExpectIdentical(run("max"), Tensor::FromVector<float>({1, 4}, {1, 20, 3, 4}));
  ExpectIdentical(run("min"), Tensor::FromVector<float>({1, 4}, {1, 2, 3, 3}));
  ExpectIdentical(RunLiftedOp("Scatter", 9, {Fed(data), Fed(indices), Fed(updates)}, {{"axis", int64_t{1}}})[0],
                  run("none"));
}

TEST(GatherTest, ScatterGradients) {
  const Tensor data = RandomTensor(DType::kDouble, {3, 4}, 12);
  const Tensor unique = Tensor::FromVector<int64_t>({3, 2}, {0, 3, 1, -2, 2, 0});
  const Tensor updates = RandomTensor(DType::kDouble, {3, 2}, 13);
  const Tensor rows = Tensor::FromVector<int64_t>({2, 1}, {2, 0});
  const Tensor row_updates = RandomTensor(DType::kDouble, {2, 4}, 14);
  for (const char* reduction : {"none", "add"}) {
    const std::string name(reduction);
    ExpectOpGradient("ScatterElements", {Fed(data), Fed(unique), Fed(updates)},
                     {{"axis", int64_t{1}}, {"reduction", name}});
    ExpectOpGradient("ScatterND", {Fed(data), Fed(rows), Fed(row_updates)}, {{"reduction", name}});
  }
}

TEST(GatherTest, ScatterNDWritesSlices) {
  const Tensor data = RandomTensor(DType::kInt64, {4, 2}, 15, 0, 9);
  const Tensor rows = Tensor::FromVector<int64_t>({2, 1}, {3, -4});
  const Tensor updates = Tensor::FromVector<int64_t>({2, 2}, {50, 51, 60, 61});
  ExpectIdentical(RunOp("ScatterND", {Fed(data), Fed(rows), Fed(updates)})[0],
                  FromIndices(DType::kInt64, {4, 2}, [&](const Index& i) {
                    if (i[0] == 3) return 50.0 + static_cast<double>(i[1]);
                    if (i[0] == 0) return 60.0 + static_cast<double>(i[1]);
                    return At(data, i);
                  }));
}

TEST(GatherTest, ArgMaxTakesFirstOrLast) {
  const Tensor x = Tensor::FromVector<float>({2, 4}, {1, 3, 3, 0, -1, -1, -5, -5});
  const Attributes axis{{"axis", int64_t{1}}, {"keepdims", int64_t{0}}};
  Attributes last = axis;
  last.Set("select_last_index", int64_t{1});
  ExpectIdentical(RunOp("ArgMax", {Fed(x)}, axis)[0], Tensor::Ints({1, 0}));
  ExpectIdentical(RunOp("ArgMax", {Fed(x)}, last)[0], Tensor::Ints({2, 1}));
  ExpectIdentical(RunOp("ArgMin", {Fed(x)}, axis)[0], Tensor::Ints({3, 2}));
  ExpectIdentical(RunOp("ArgMin", {Fed(x)}, last)[0], Tensor::Ints({3, 3}));
  ExpectIdentical(RunOp("ArgMax", {Fed(x)})[0], Tensor::Ints({0, 0, 0, 0}).Reshaped({1, 4}));
}

TEST(GatherTest, TopKIsStableAndHasAGradient) {
  const Tensor x = Tensor::FromVector<float>({2, 4}, {1, 3, 3, 0, -1, -1, -5, -5});
  const std::vector<Tensor> largest = RunOp("TopK", {Fed(x), Constant(Tensor::Ints({3}))}, {}, 2);
  ExpectIdentical(largest[0], Tensor::FromVector<float>({2, 3}, {3, 3, 1, -1, -1, -5}));
  ExpectIdentical(largest[1], Tensor::FromVector<int64_t>({2, 3}, {1, 2, 0, 0, 1, 2}));
  const std::vector<Tensor> smallest =
      RunOp("TopK", {Fed(x), Constant(Tensor::Ints({1}))}, {{"largest", int64_t{0}}, {"axis", int64_t{0}}}, 2);
  ExpectIdentical(smallest[1], Tensor::FromVector<int64_t>({1, 4}, {1, 1, 1, 1}));
  ExpectIdentical(RunLiftedOp("TopK", 9, {Fed(x)}, {{"k", int64_t{3}}}, 2)[0], largest[0]);
  ExpectOpGradient("TopK", {Fed(RandomTensor(DType::kDouble, {3, 5}, 16)), Constant(Tensor::Ints({2}))},
                   {{"axis", int64_t{1}}}, 2);
}

TEST(GatherTest, OneHotAlongAnyAxis) {
  const Tensor indices = Tensor::Ints({1, -1, 7});
  const Tensor values = Tensor::FromVector<float>({2}, {0.5f, 2});
  const std::vector<OpInput> inputs{Fed(indices), Constant(Tensor::Scalar(int64_t{3})), Fed(values)};
  ExpectIdentical(RunOp("OneHot", inputs)[0],
                  Tensor::FromVector<float>({3, 3}, {0.5f, 2, 0.5f, 0.5f, 0.5f, 2, 0.5f, 0.5f, 0.5f}));
  ExpectIdentical(RunOp("OneHot", inputs, {{"axis", int64_t{0}}})[0],
                  Tensor::FromVector<float>({3, 3}, {0.5f, 0.5f, 0.5f, 2, 0.5f, 0.5f, 0.5f, 2, 0.5f}));
}

}  // namespace
}  // namespace onnxtrain
