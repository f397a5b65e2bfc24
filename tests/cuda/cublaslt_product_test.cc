// SPDX-License-Identifier: Apache-2.0
// What tests/conformance/matrix_product_test.cc cannot see: what is asked of the library when, and what becomes of
// failures.
#include "cuda_ops/cublaslt_product.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "cuda_ops/matmul_algorithms.h"
#include "tests/cuda/gpu_array.h"
#include "tests/simulated_cuda/cublaslt_control.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temporary_folder.h"

namespace onnxtrain {
namespace {

using testing::HasSubstr;

int64_t Count(const char* counter) { return simulated_cublaslt_counter(counter); }

// Dense matrices, one after the other.
ProductShape DenseShape(int64_t rows, int64_t columns, int64_t depth, int64_t batch = 1) {
  return {rows,
          columns,
          depth,
          {batch},
          {depth, 1, {rows * depth}},
          {columns, 1, {depth * columns}},
          {columns, 1, {rows * columns}}};
}

class CublasLtProductTest : public testing::Test {
 protected:
  static constexpr int kDevice = 1;

  void SetUp() override {
    ASSERT_EQ(cudaSetDevice(kDevice), cudaSuccess);
    ASSERT_EQ(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), cudaSuccess);
    context_.device = kDevice;
    ASSERT_EQ(cublasLtCreate(&context_.matmul_handle), CUBLAS_STATUS_SUCCESS);
    OpenTable();
  }

  void TearDown() override {
    simulated_cublaslt_fail_at(-1);
    ASSERT_EQ(cudaSetDevice(kDevice), cudaSuccess);
    EXPECT_EQ(cublasLtDestroy(context_.matmul_handle), CUBLAS_STATUS_SUCCESS);
    EXPECT_EQ(cudaStreamDestroy(stream_), cudaSuccess);
  }

  void OpenTable() {
    table_ = MatmulAlgorithms::Open(std::make_unique<PosixFileSystem>(), folder_.path(), "simulated");
    context_.matmul_algorithms = table_.get();
  }

  std::unique_ptr<CublasLtProduct> Create(const ProductShape& shape, const CublasLtProduct::Options& options = {}) {
    EXPECT_EQ(cudaSetDevice(0), cudaSuccess);  // another than the context's
    auto product = CublasLtProduct::Create(context_, shape, options);
    EXPECT_OK(product);
    return product.ok() ? *std::move(product) : nullptr;
  }

  std::vector<float> Random(int64_t count) {
    std::vector<float> values(static_cast<size_t>(count));
    for (float& value : values) value = std::uniform_real_distribution<float>(-1, 1)(random_);
    return values;
  }

  // The product of `a` and `b` put into `c`.
  std::vector<float> Run(CublasLtProduct& product, const std::vector<float>& a, const std::vector<float>& b,
                         const std::vector<float>& c, const std::vector<float>& bias = {}) {
    const GpuArray<float> on_a(a), on_b(b), on_c(c), on_bias(bias);
    const GpuArray<char> workspace(product.workspace_bytes());
    EXPECT_OK(product.Run(on_a.data(), on_b.data(), on_c.data(), bias.empty() ? nullptr : on_bias.data(),
                          workspace.data(), stream_));
    EXPECT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
    return on_c.Read();
  }

  TemporaryFolder folder_;
  CudaContext context_;
  std::unique_ptr<MatmulAlgorithms> table_;
  cudaStream_t stream_ = nullptr;
  std::mt19937 random_{7};
};

TEST_F(CublasLtProductTest, TheLibraryIsAskedOnceForEachProductAndNeverAtARun) {
  const int64_t before = Count("heuristics");
  const auto first = Create(DenseShape(5, 3, 7));
  const auto second = Create(DenseShape(5, 3, 7));
  EXPECT_EQ(Count("heuristics"), before + 1);
  (void)Create(DenseShape(5, 3, 8));
  EXPECT_EQ(Count("heuristics"), before + 2);
  const int64_t checks = Count("checks");
  (void)Run(*first, Random(35), Random(21), Random(15));
  (void)Run(*second, Random(35), Random(21), Random(15));
  EXPECT_EQ(Count("heuristics"), before + 2);
  EXPECT_EQ(Count("checks"), checks);
}

TEST_F(CublasLtProductTest, TheFileOfAnEarlierProcessIsUsed) {
  const auto first = Create(DenseShape(5, 3, 7));
  OpenTable();
  const int64_t before = Count("heuristics");
  const auto second = Create(DenseShape(5, 3, 7));
  EXPECT_EQ(Count("heuristics"), before);
  EXPECT_EQ(first->workspace_bytes(), second->workspace_bytes());
  const std::vector<float> a = Random(35), b = Random(21), c = Random(15);
  EXPECT_EQ(Run(*first, a, b, c), Run(*second, a, b, c));
}

TEST_F(CublasLtProductTest, AnAlgorithmThatTheLibraryNoLongerTakesIsReplaced) {
  const std::string key = Create(DenseShape(5, 3, 7))->Key();
  const std::optional<MatmulAlgorithm> good = table_->Find(key);
  table_->Keep(key, {1, 2, 3});
  const int64_t before = Count("heuristics");
  (void)Create(DenseShape(5, 3, 7));
  EXPECT_EQ(Count("heuristics"), before + 1);
  EXPECT_EQ(table_->Find(key), good);
}

TEST_F(CublasLtProductTest, WhatTheChoiceDependsOnIsInTheKey) {
  std::vector<std::string> keys;
  for (const DType dtype : {DType::kFloat, DType::kBfloat16, DType::kFloat16, DType::kDouble}) {
    CublasLtProduct::Options options;
    options.dtype = dtype;
    keys.push_back(Create(DenseShape(5, 3, 7), options)->Key());
  }
  CublasLtProduct::Options biased;
  biased.bias_row = true;
  keys.push_back(Create(DenseShape(5, 3, 7), biased)->Key());
  keys.push_back(Create(DenseShape(5, 3, 7, 2))->Key());
  ProductShape transposed = DenseShape(5, 3, 7);
  transposed.a = {1, 5, {35}};
  keys.push_back(Create(transposed)->Key());
  ProductShape wide = DenseShape(5, 3, 7);
  wide.c = {4, 1, {20}};
  keys.push_back(Create(wide)->Key());
  context_.tf32 = true;
  keys.push_back(Create(DenseShape(5, 3, 7))->Key());
  std::sort(keys.begin(), keys.end());
  EXPECT_EQ(std::unique(keys.begin(), keys.end()), keys.end());
}

TEST_F(CublasLtProductTest, BetaAddsToWhatIsThere) {
  CublasLtProduct::Options options;
  options.alpha = 2;
  options.beta = 1;
  const auto product = Create(DenseShape(2, 2, 1), options);
  EXPECT_EQ(Run(*product, {1, 2}, {10, 20}, {0.5f, 1, 1, 1}), (std::vector<float>{20.5f, 41, 41, 81}));
}

TEST_F(CublasLtProductTest, WhatIsThereIsNotReadWithoutBeta) {
  const auto product = Create(DenseShape(1, 2, 1));
  EXPECT_EQ(Run(*product, {2}, {3, 4}, {std::nanf(""), INFINITY}), (std::vector<float>{6, 8}));
}

TEST_F(CublasLtProductTest, TheEpilogueAddsARowOfBias) {
  CublasLtProduct::Options options;
  options.bias_row = true;
  const auto product = Create(DenseShape(2, 3, 1), options);
  EXPECT_EQ(Run(*product, {1, 2}, {1, 2, 3}, std::vector<float>(6), {100, 200, 300}),
            (std::vector<float>{101, 202, 303, 102, 204, 306}));
}

TEST_F(CublasLtProductTest, TransposedOperandsAreReadAsTheyLie) {
  ProductShape shape = DenseShape(2, 2, 2);
  const std::vector<float> nothing(4);
  shape.a = {1, 2, {4}};
  EXPECT_EQ(Run(*Create(shape), {1, 2, 3, 4}, {1, 10, 100, 1000}, nothing), (std::vector<float>{301, 3010, 402, 4020}));
  shape = DenseShape(2, 2, 2);
  shape.b = {1, 2, {4}};
  EXPECT_EQ(Run(*Create(shape), {1, 2, 3, 4}, {1, 10, 100, 1000}, nothing), (std::vector<float>{21, 2100, 43, 4300}));
  shape = DenseShape(2, 2, 2);
  shape.c = {1, 2, {4}};
  EXPECT_EQ(Run(*Create(shape), {1, 2, 3, 4}, {1, 10, 100, 1000}, nothing), (std::vector<float>{201, 403, 2010, 4030}));
}

TEST_F(CublasLtProductTest, Tf32RoundsTheFactorsWhenChosen) {
  const std::vector<float> a = {1 + 0x1p-11f + 0x1p-20f, 1 + 0x1p-12f}, b = {1, 1};
  EXPECT_EQ(Run(*Create(DenseShape(2, 1, 1)), a, {1}, {0, 0}), a);
  context_.tf32 = true;
  EXPECT_EQ(Run(*Create(DenseShape(2, 1, 1)), a, {1}, {0, 0}), (std::vector<float>{1 + 0x1p-10f, 1}));
}

// Batch axes that no single stride serves: the longest is the library's.
TEST_F(CublasLtProductTest, ThereAreAsFewCallsAsTheLongestBatchAxisLeaves) {
  for (const auto& [outer, inner] : std::vector<std::pair<int64_t, int64_t>>{{3, 8}, {8, 3}, {1, 8}, {8, 1}}) {
    const int64_t rows = 2, columns = 2, depth = 2;
    ProductShape shape{rows, columns, depth, {outer, inner}, {}, {}, {}};
    // [outer, rows, inner, columns], as attention has it.
    shape.a = shape.b = shape.c = {inner * 2, 1, {inner * 4, 2}};
    const auto product = Create(shape);
    const int64_t before = Count("products");
    const std::vector<float> a = Random(4 * outer * inner), b = Random(4 * outer * inner);
    const std::vector<float> c = Run(*product, a, b, std::vector<float>(a.size()));
    EXPECT_EQ(Count("products"), before + (outer == 1 || inner == 1 ? 1 : 3));
    for (int64_t i = 0; i < outer * inner; ++i) {
      const int64_t at = i / inner * inner * 4 + i % inner * 2;
      const auto expected = a[static_cast<size_t>(at)] * b[static_cast<size_t>(at + 1)] +
                            a[static_cast<size_t>(at + 1)] * b[static_cast<size_t>(at + inner * 2 + 1)];
      EXPECT_NEAR(c[static_cast<size_t>(at + 1)], expected, 1e-6) << i;
    }
  }
}

TEST_F(CublasLtProductTest, ACapturedProductRunsAtEachReplay) {
  CublasLtProduct::Options options;
  options.beta = 1;
  const auto product = Create(DenseShape(1, 1, 1), options);
  const GpuArray<float> a(std::vector<float>{2}), b(std::vector<float>{3}), c(std::vector<float>{1});
  const GpuArray<char> workspace(product->workspace_bytes());
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t executable = nullptr;
  ASSERT_EQ(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal), cudaSuccess);
  EXPECT_OK(product->Run(a.data(), b.data(), c.data(), nullptr, workspace.data(), stream_));
  ASSERT_EQ(cudaStreamEndCapture(stream_, &graph), cudaSuccess);
  ASSERT_EQ(cudaGraphInstantiate(&executable, graph, 0), cudaSuccess);
  EXPECT_EQ(c.Read(), std::vector<float>{1});
  for (int i = 0; i < 3; ++i) EXPECT_EQ(cudaGraphLaunch(executable, stream_), cudaSuccess);
  EXPECT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
  EXPECT_EQ(c.Read(), std::vector<float>{19});
  EXPECT_EQ(cudaGraphExecDestroy(executable), cudaSuccess);
  EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
}

TEST_F(CublasLtProductTest, AFailureIsReportedAndLeavesNothingBehind) {
  const int64_t objects = Count("live_objects");
  simulated_cublaslt_fail_at(0);
  EXPECT_TRUE(Fails(CublasLtProduct::Create(context_, DenseShape(5, 3, 7), {}).status(), StatusCode::kInternal,
                    "cublasLtMatmulAlgoGetHeuristic: CUBLAS_STATUS_NOT_SUPPORTED"));
  EXPECT_EQ(Count("live_objects"), objects);
  const auto product = Create(DenseShape(5, 3, 7));
  const GpuArray<float> a(35), b(21), c(15);
  const GpuArray<char> workspace(product->workspace_bytes());
  simulated_cublaslt_fail_at(0);
  EXPECT_TRUE(Fails(product->Run(a.data(), b.data(), c.data(), nullptr, workspace.data(), stream_),
                    StatusCode::kInternal, "cublasLtMatmul: CUBLAS_STATUS_EXECUTION_FAILED"));
  EXPECT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
}

TEST_F(CublasLtProductTest, WhatTheLibraryCannotExpressIsRefused) {
  ProductShape shape = DenseShape(5, 3, 7);
  shape.a = {14, 2, {70}};  // every other column
  EXPECT_TRUE(Fails(CublasLtProduct::Create(context_, shape, {}).status(), StatusCode::kInvalidModel,
                    "insert a Transpose before the product"));
  ProductShape transposed = DenseShape(5, 3, 7);
  transposed.c = {1, 5, {15}};
  CublasLtProduct::Options options;
  options.bias_row = true;
  EXPECT_TRUE(Fails(CublasLtProduct::Create(context_, transposed, options).status(), StatusCode::kInvalidModel,
                    "takes no row of bias"));
  EXPECT_TRUE(Fails(CublasLtProduct::Create(context_, DenseShape(1, 1, 1, int64_t{1} << 31), {}).status(),
                    StatusCode::kInvalidModel, "more than cuBLASLt counts"));
}

}  // namespace
}  // namespace onnxtrain
