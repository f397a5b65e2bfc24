// SPDX-License-Identifier: Apache-2.0
// The simulated cuBLASLt itself: each rule of the library that it knows is broken once, and must be named.
#include <cublasLt.h>
#include <cuda_runtime_api.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <utility>

#include "tests/cuda/gpu_array.h"
#include "tests/simulated_cuda/cublaslt_control.h"

namespace onnxtrain {
namespace {

using testing::HasSubstr;

constexpr int64_t kSize = 64;

// D = A B of square matrices of float, of which a test changes one thing.
class SimulatedCublasLt : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
    ASSERT_EQ(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), cudaSuccess);
    ASSERT_EQ(cublasLtCreate(&handle_), CUBLAS_STATUS_SUCCESS);
    for (cublasLtMatrixLayout_t* layout : {&a_, &b_, &d_}) {
      ASSERT_EQ(cublasLtMatrixLayoutCreate(layout, CUDA_R_32F, kSize, kSize, kSize), CUBLAS_STATUS_SUCCESS);
    }
    ASSERT_EQ(cublasLtMatmulDescCreate(&operation_, CUBLAS_COMPUTE_32F, CUDA_R_32F), CUBLAS_STATUS_SUCCESS);
    ASSERT_EQ(cublasLtMatmulPreferenceCreate(&preference_), CUBLAS_STATUS_SUCCESS);
    Prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, size_t{1} << 20);
  }

  void TearDown() override {
    ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
    EXPECT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
    for (const cublasLtMatrixLayout_t layout : {a_, b_, d_}) (void)cublasLtMatrixLayoutDestroy(layout);
    (void)cublasLtMatmulDescDestroy(operation_);
    (void)cublasLtMatmulPreferenceDestroy(preference_);
    (void)cublasLtDestroy(handle_);
    EXPECT_EQ(cudaStreamDestroy(stream_), cudaSuccess);
  }

  template <typename T>
  void Prefer(cublasLtMatmulPreferenceAttributes_t attribute, T value) {
    ASSERT_EQ(cublasLtMatmulPreferenceSetAttribute(preference_, attribute, &value, sizeof(value)),
              CUBLAS_STATUS_SUCCESS);
  }
  template <typename T>
  void SetOperation(cublasLtMatmulDescAttributes_t attribute, T value) {
    ASSERT_EQ(cublasLtMatmulDescSetAttribute(operation_, attribute, &value, sizeof(value)), CUBLAS_STATUS_SUCCESS);
  }
  template <typename T>
  void SetLayout(cublasLtMatrixLayout_t layout, cublasLtMatrixLayoutAttribute_t attribute, T value) {
    ASSERT_EQ(cublasLtMatrixLayoutSetAttribute(layout, attribute, &value, sizeof(value)), CUBLAS_STATUS_SUCCESS);
  }
  void Replace(cublasLtMatrixLayout_t* layout, cudaDataType_t type, uint64_t rows, uint64_t columns, int64_t leading) {
    ASSERT_EQ(cublasLtMatrixLayoutDestroy(*layout), CUBLAS_STATUS_SUCCESS);
    ASSERT_EQ(cublasLtMatrixLayoutCreate(layout, type, rows, columns, leading), CUBLAS_STATUS_SUCCESS);
  }

  cublasStatus_t Ask() {
    int found = 0;
    return cublasLtMatmulAlgoGetHeuristic(handle_, operation_, a_, b_, d_, d_, preference_, 1, &chosen_, &found);
  }
  cublasStatus_t Multiply() {
    const float alpha = 1, beta = 0;
    return cublasLtMatmul(handle_, operation_, &alpha, a_data_, a_, b_data_, b_, &beta, d_data_, d_, d_data_, d_,
                          algorithm_, workspace_, workspace_bytes_, stream_);
  }
  // Both, and what the simulated library said.
  std::string WhyNot(const std::function<cublasStatus_t()>& call) {
    testing::internal::CaptureStderr();
    const cublasStatus_t status = call();
    const std::string said = testing::internal::GetCapturedStderr();
    EXPECT_NE(status, CUBLAS_STATUS_SUCCESS);
    return said;
  }
  std::string WhyNoAlgorithm() {
    return WhyNot([this] { return Ask(); });
  }
  std::string WhyNoProduct() {
    return WhyNot([this] { return Multiply(); });
  }

  cudaStream_t stream_ = nullptr;
  cublasLtHandle_t handle_ = nullptr;
  cublasLtMatmulDesc_t operation_ = nullptr;
  cublasLtMatrixLayout_t a_ = nullptr, b_ = nullptr, d_ = nullptr;
  cublasLtMatmulPreference_t preference_ = nullptr;
  cublasLtMatmulHeuristicResult_t chosen_ = {};
  const GpuArray<float> memory_{4 * kSize * kSize};
  const GpuArray<char> scratch_{1 << 20};
  float* a_data_ = memory_.data();
  float* b_data_ = memory_.data() + kSize * kSize;
  float* d_data_ = memory_.data() + 3 * kSize * kSize;
  const cublasLtMatmulAlgo_t* algorithm_ = &chosen_.algo;
  void* workspace_ = scratch_.data();
  size_t workspace_bytes_ = 1 << 20;
};

TEST_F(SimulatedCublasLt, TakesAGoodProduct) {
  ASSERT_EQ(Ask(), CUBLAS_STATUS_SUCCESS);
  cublasLtMatmulHeuristicResult_t checked = {};
  EXPECT_EQ(cublasLtMatmulAlgoCheck(handle_, operation_, a_, b_, d_, d_, algorithm_, &checked), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(checked.workspaceSize, chosen_.workspaceSize);
  EXPECT_EQ(Multiply(), CUBLAS_STATUS_SUCCESS);
}

TEST_F(SimulatedCublasLt, RefusesMatricesThatDoNotFit) {
  Replace(&a_, CUDA_R_32F, kSize, kSize - 1, kSize);
  EXPECT_THAT(WhyNoAlgorithm(), HasSubstr("sizes do not fit"));
  Replace(&a_, CUDA_R_32F, kSize, kSize, kSize - 1);
  EXPECT_THAT(WhyNoAlgorithm(), HasSubstr("a leading dimension below the rows"));
  Replace(&a_, CUDA_R_32F, kSize, 0, kSize);
  EXPECT_THAT(WhyNoAlgorithm(), HasSubstr("an empty matrix"));
  Replace(&a_, CUDA_R_16BF, kSize, kSize, kSize);
  EXPECT_THAT(WhyNoAlgorithm(), HasSubstr("different types"));
  Replace(&a_, CUDA_R_8I, kSize, kSize, kSize);
  EXPECT_THAT(WhyNoAlgorithm(), HasSubstr("not simulated"));
}

TEST_F(SimulatedCublasLt, RefusesBatchesThatDoNotFit) {
  SetLayout(a_, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, int32_t{2});
  EXPECT_THAT(WhyNoAlgorithm(), HasSubstr("different batches"));
  SetLayout(b_, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, int32_t{2});
  SetLayout(d_, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, int32_t{2});
  EXPECT_THAT(WhyNoAlgorithm(), HasSubstr("overlap"));
  SetLayout(d_, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, kSize * kSize);
  EXPECT_EQ(Ask(), CUBLAS_STATUS_SUCCESS);  // A and B may be repeated
  const int64_t wide = 2;
  EXPECT_EQ(cublasLtMatrixLayoutSetAttribute(a_, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &wide, sizeof(wide)),
            CUBLAS_STATUS_INVALID_VALUE);
}

TEST_F(SimulatedCublasLt, RefusesSumsAndEpiloguesThatDoNotFitTheType) {
  for (cublasLtMatrixLayout_t* layout : {&a_, &b_, &d_}) Replace(layout, CUDA_R_64F, kSize, kSize, kSize);
  EXPECT_THAT(WhyNoAlgorithm(), HasSubstr("sums that do not fit"));
  (void)cublasLtMatmulDescDestroy(operation_);
  (void)cublasLtMatmulDescCreate(&operation_, CUBLAS_COMPUTE_64F, CUDA_R_32F);
  EXPECT_THAT(WhyNoAlgorithm(), HasSubstr("alpha and beta"));
  (void)cublasLtMatmulDescDestroy(operation_);
  (void)cublasLtMatmulDescCreate(&operation_, CUBLAS_COMPUTE_64F, CUDA_R_64F);
  SetOperation(CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BIAS);
  EXPECT_THAT(WhyNoAlgorithm(), HasSubstr("an epilogue on double"));
  for (cublasLtMatrixLayout_t* layout : {&a_, &b_, &d_}) Replace(layout, CUDA_R_16F, kSize, kSize, kSize);
  (void)cublasLtMatmulDescDestroy(operation_);
  (void)cublasLtMatmulDescCreate(&operation_, CUBLAS_COMPUTE_32F_FAST_TF32, CUDA_R_32F);
  EXPECT_THAT(WhyNoAlgorithm(), HasSubstr("TF32 for what is not float"));
}

TEST_F(SimulatedCublasLt, RefusesAnAlgorithmOfAnotherProduct) {
  EXPECT_THAT(WhyNoProduct(), HasSubstr("chosen for another product"));  // none at all
  ASSERT_EQ(Ask(), CUBLAS_STATUS_SUCCESS);
  SetOperation(CUBLASLT_MATMUL_DESC_TRANSA, CUBLAS_OP_T);
  EXPECT_THAT(WhyNoProduct(), HasSubstr("chosen for another product"));
  algorithm_ = nullptr;
  EXPECT_THAT(WhyNoProduct(), HasSubstr("heuristics now"));
}

TEST_F(SimulatedCublasLt, RefusesMemoryThatWasNotPromised) {
  Prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, uint32_t{16});
  ASSERT_EQ(Ask(), CUBLAS_STATUS_SUCCESS);
  b_data_ += 4;
  EXPECT_EQ(Multiply(), CUBLAS_STATUS_SUCCESS);
  b_data_ += 1;
  EXPECT_THAT(WhyNoProduct(), HasSubstr("less alignment"));
  b_data_ -= 5;
  a_data_ += 4;
  EXPECT_THAT(WhyNoProduct(), HasSubstr("less alignment"));
  a_data_ = nullptr;
  EXPECT_THAT(WhyNoProduct(), HasSubstr("a matrix without memory"));
}

TEST_F(SimulatedCublasLt, RefusesAResultInAnOperand) {
  ASSERT_EQ(Ask(), CUBLAS_STATUS_SUCCESS);
  d_data_ = b_data_;
  EXPECT_THAT(WhyNoProduct(), HasSubstr("overwrites an operand"));
  d_data_ = a_data_ + kSize * (kSize - 1);
  EXPECT_THAT(WhyNoProduct(), HasSubstr("overwrites an operand"));
}

TEST_F(SimulatedCublasLt, RefusesAWorkspaceThatDoesNotServe) {
  // The algorithms of some products want none.
  for (int64_t columns = kSize; chosen_.workspaceSize == 0 && columns > 0; --columns) {
    Replace(&b_, CUDA_R_32F, kSize, static_cast<uint64_t>(columns), kSize);
    Replace(&d_, CUDA_R_32F, kSize, static_cast<uint64_t>(columns), kSize);
    ASSERT_EQ(Ask(), CUBLAS_STATUS_SUCCESS);
  }
  ASSERT_GT(chosen_.workspaceSize, 0u);
  workspace_bytes_ = chosen_.workspaceSize - 1;
  EXPECT_THAT(WhyNoProduct(), HasSubstr("less workspace"));
  workspace_bytes_ = chosen_.workspaceSize;
  workspace_ = scratch_.data() + 16;
  EXPECT_THAT(WhyNoProduct(), HasSubstr("multiple of 256"));
  workspace_ = a_data_;
  EXPECT_THAT(WhyNoProduct(), HasSubstr("a workspace in a matrix"));
  workspace_ = nullptr;
  EXPECT_THAT(WhyNoProduct(), HasSubstr("missing"));
}

TEST_F(SimulatedCublasLt, RefusesABiasThatIsMissing) {
  SetOperation(CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BIAS);
  ASSERT_EQ(Ask(), CUBLAS_STATUS_SUCCESS);
  EXPECT_THAT(WhyNoProduct(), HasSubstr("without bias"));
}

TEST_F(SimulatedCublasLt, RefusesTheDefaultStreamAndAnotherGpu) {
  ASSERT_EQ(Ask(), CUBLAS_STATUS_SUCCESS);
  const cudaStream_t stream = std::exchange(stream_, nullptr);
  EXPECT_THAT(WhyNoProduct(), HasSubstr("the default stream"));
  stream_ = stream;
  ASSERT_EQ(cudaSetDevice(1), cudaSuccess);
  EXPECT_THAT(WhyNoProduct(), HasSubstr("another GPU"));
  EXPECT_THAT(WhyNoAlgorithm(), HasSubstr("another GPU"));
}

TEST_F(SimulatedCublasLt, FailsTheCallThatIsAskedFor) {
  simulated_cublaslt_fail_at(1);
  EXPECT_EQ(Ask(), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(Multiply(), CUBLAS_STATUS_EXECUTION_FAILED);
  EXPECT_EQ(Multiply(), CUBLAS_STATUS_SUCCESS);
}

}  // namespace
}  // namespace onnxtrain
