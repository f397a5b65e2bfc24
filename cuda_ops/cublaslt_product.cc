// SPDX-License-Identifier: Apache-2.0
#include "cuda_ops/cublaslt_product.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "cuda_ops/cuda_error.h"
#include "cuda_ops/matmul_algorithms.h"

namespace onnxtrain {
namespace {

constexpr size_t kMostWorkspace = size_t{32} << 20;  // what the library wants on Hopper
static_assert(sizeof(MatmulAlgorithm) == sizeof(cublasLtMatmulAlgo_t));

#define RETURN_IF_CUBLAS_ERROR(call)                                                        \
  do {                                                                                      \
    const cublasStatus_t cublas_status_ = (call);                                           \
    if (cublas_status_ != CUBLAS_STATUS_SUCCESS) return CublasError(cublas_status_, #call); \
  } while (false)

cudaDataType_t DataTypeOf(DType dtype) {
  switch (dtype) {
    case DType::kBfloat16:
      return CUDA_R_16BF;
    case DType::kFloat16:
      return CUDA_R_16F;
    case DType::kDouble:
      return CUDA_R_64F;
    default:
      return CUDA_R_32F;
  }
}

// The library has one batch axis; the longest is its own, so that there are few calls.
void MoveLongestBatchAxisLast(ProductShape& shape) {
  if (shape.batch.size() < 2) return;
  const auto axis = std::max_element(shape.batch.begin(), shape.batch.end()) - shape.batch.begin();
  for (std::vector<int64_t>* list : {&shape.batch, &shape.a.batch, &shape.b.batch, &shape.c.batch}) {
    std::rotate(list->begin() + axis, list->begin() + axis + 1, list->end());
  }
}

int64_t LastOf(const std::vector<int64_t>& list, int64_t fallback) { return list.empty() ? fallback : list.back(); }

template <typename T>
Status Set(cublasLtMatmulDesc_t operation, cublasLtMatmulDescAttributes_t attribute, const T& value) {
  RETURN_IF_CUBLAS_ERROR(cublasLtMatmulDescSetAttribute(operation, attribute, &value, sizeof(value)));
  return OkStatus();
}

template <typename T>
Status Set(cublasLtMatrixLayout_t layout, cublasLtMatrixLayoutAttribute_t attribute, const T& value) {
  RETURN_IF_CUBLAS_ERROR(cublasLtMatrixLayoutSetAttribute(layout, attribute, &value, sizeof(value)));
  return OkStatus();
}

template <typename T>
Status Set(cublasLtMatmulPreference_t preference, cublasLtMatmulPreferenceAttributes_t attribute, const T& value) {
  RETURN_IF_CUBLAS_ERROR(cublasLtMatmulPreferenceSetAttribute(preference, attribute, &value, sizeof(value)));
  return OkStatus();
}

}  // namespace

Status CublasError(cublasStatus_t status, const char* call) {
  const std::string text(call);
  return InternalError(text.substr(0, text.find('(')) + ": " + cublasLtGetStatusName(status) + ", " +
                       cublasLtGetStatusString(status));
}

StatusOr<std::unique_ptr<CublasLtProduct>> CublasLtProduct::Create(const CudaContext& context, ProductShape shape,
                                                                   const Options& options) {
  RETURN_IF_CUDA_ERROR(cudaSetDevice(context.device));
  std::unique_ptr<CublasLtProduct> product(new CublasLtProduct(context, options));
  shape = Simplified(std::move(shape));
  MoveLongestBatchAxisLast(shape);
  product->a_.alignment = options.a_alignment;
  product->b_.alignment = options.b_alignment;
  product->c_.alignment = options.c_alignment;
  const auto result = StoredAs(shape.c, shape.rows, shape.columns);
  if (result && result->transposed) {
    if (options.bias_row) return InvalidModelError("a product into a transposed matrix takes no row of bias");
    SwapOperands(shape);
    std::swap(product->a_.alignment, product->b_.alignment);
    product->swapped_ = true;
  }
  product->SetOffsets(shape);
  RETURN_IF_ERROR(product->Describe(shape));
  RETURN_IF_ERROR(product->ChooseAlgorithm());
  return product;
}

CublasLtProduct::~CublasLtProduct() {
  for (const Matrix* matrix : {&a_, &b_, &c_}) {
    if (matrix->layout != nullptr) (void)cublasLtMatrixLayoutDestroy(matrix->layout);
  }
  if (operation_ != nullptr) (void)cublasLtMatmulDescDestroy(operation_);
}

Status CublasLtProduct::Describe(const ProductShape& shape) {
  const int64_t batch = LastOf(shape.batch, 1);
  if (batch > std::numeric_limits<int32_t>::max()) {
    return InvalidModelError("a batch of " + std::to_string(batch) + " products is more than cuBLASLt counts");
  }
  batch_ = static_cast<int32_t>(batch);
  RETURN_IF_ERROR(DescribeMatrix(a_, options_.dtype, shape.a, shape.rows, shape.depth));
  RETURN_IF_ERROR(DescribeMatrix(b_, options_.dtype, shape.b, shape.depth, shape.columns));
  RETURN_IF_ERROR(DescribeMatrix(c_, result_dtype(), shape.c, shape.rows, shape.columns));
  return DescribeOperation();
}

// What is stored row by row is the library's column-major matrix with rows and columns in each other's place.
Status CublasLtProduct::DescribeMatrix(Matrix& matrix, DType dtype, const MatrixLayout& layout, int64_t rows,
                                       int64_t columns) {
  const auto stored = StoredAs(layout, rows, columns);
  if (!stored) {
    return InvalidModelError("neither rows nor columns of a matrix lie densely; insert a Transpose before the product");
  }
  matrix.transposed = stored->transposed;
  matrix.rows = stored->transposed ? rows : columns;
  matrix.columns = stored->transposed ? columns : rows;
  // A single row may have any stride, but the library wants one that could hold it.
  matrix.leading = std::max(stored->leading, matrix.rows);
  matrix.batch_stride = LastOf(layout.batch, 0);
  RETURN_IF_CUBLAS_ERROR(cublasLtMatrixLayoutCreate(&matrix.layout, DataTypeOf(dtype),
                                                    static_cast<uint64_t>(matrix.rows),
                                                    static_cast<uint64_t>(matrix.columns), matrix.leading));
  RETURN_IF_ERROR(Set(matrix.layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, batch_));
  return Set(matrix.layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, matrix.batch_stride);
}

cublasComputeType_t CublasLtProduct::compute_type() const {
  if (options_.dtype == DType::kDouble) return CUBLAS_COMPUTE_64F;
  const bool tf32 = options_.dtype == DType::kFloat && context_.tf32;
  return tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
}

Status CublasLtProduct::DescribeOperation() {
  const cudaDataType_t scale = options_.dtype == DType::kDouble ? CUDA_R_64F : CUDA_R_32F;
  RETURN_IF_CUBLAS_ERROR(cublasLtMatmulDescCreate(&operation_, compute_type(), scale));
  // B^T comes first.
  RETURN_IF_ERROR(Set(operation_, CUBLASLT_MATMUL_DESC_TRANSA, b_.transposed ? CUBLAS_OP_T : CUBLAS_OP_N));
  RETURN_IF_ERROR(Set(operation_, CUBLASLT_MATMUL_DESC_TRANSB, a_.transposed ? CUBLAS_OP_T : CUBLAS_OP_N));
  if (!options_.bias_row) return OkStatus();
  return Set(operation_, CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BIAS);
}

void CublasLtProduct::SetOffsets(const ProductShape& shape) {
  const size_t axes = shape.batch.empty() ? 0 : shape.batch.size() - 1;
  int64_t count = 1;
  for (size_t axis = 0; axis < axes; ++axis) count *= shape.batch[axis];
  const size_t bytes = SizeOf(options_.dtype);
  const size_t result_bytes = SizeOf(result_dtype());
  for (int64_t call = 0; call < count; ++call) {
    Offsets offsets;
    int64_t rest = call;
    for (size_t axis = axes; axis-- > 0; rest /= shape.batch[axis]) {
      const auto coordinate = static_cast<size_t>(rest % shape.batch[axis]);
      offsets.a += coordinate * bytes * static_cast<size_t>(shape.a.batch[axis]);
      offsets.b += coordinate * bytes * static_cast<size_t>(shape.b.batch[axis]);
      offsets.c += coordinate * result_bytes * static_cast<size_t>(shape.c.batch[axis]);
    }
    while (offsets.a % a_.alignment != 0) a_.alignment /= 2;
    while (offsets.b % b_.alignment != 0) b_.alignment /= 2;
    while (offsets.c % c_.alignment != 0) c_.alignment /= 2;
    calls_.push_back(offsets);
  }
}

std::string CublasLtProduct::Key() const {
  std::string key = std::string(NameOf(options_.dtype)) + " to " + std::string(NameOf(result_dtype())) + " compute " +
                    std::to_string(compute_type());
  const auto add = [&key](const char* name, const Matrix& matrix) {
    key += std::string(", ") + name + (matrix.transposed ? " transposed " : " ") + std::to_string(matrix.rows) + "x" +
           std::to_string(matrix.columns) + " leading " + std::to_string(matrix.leading) + " stride " +
           std::to_string(matrix.batch_stride) + " aligned " + std::to_string(matrix.alignment);
  };
  add("b", b_);
  add("a", a_);
  add("c", c_);
  return key + ", batch " + std::to_string(batch_) + (options_.bias_row ? ", bias" : "");
}

Status CublasLtProduct::ChooseAlgorithm() {
  const std::string key = Key();
  if (context_.matmul_algorithms != nullptr && TakeFromTable(key)) return OkStatus();
  cublasLtMatmulPreference_t preference = nullptr;
  RETURN_IF_CUBLAS_ERROR(cublasLtMatmulPreferenceCreate(&preference));
  const Status asked = AskLibrary(preference);
  (void)cublasLtMatmulPreferenceDestroy(preference);
  RETURN_IF_ERROR(asked);
  if (context_.matmul_algorithms != nullptr) {
    MatmulAlgorithm words;
    std::memcpy(words.data(), &algorithm_, sizeof(words));
    context_.matmul_algorithms->Keep(key, words);
  }
  return OkStatus();
}

// Whether the table has an algorithm that the library takes for this product.
bool CublasLtProduct::TakeFromTable(const std::string& key) {
  const std::optional<MatmulAlgorithm> words = context_.matmul_algorithms->Find(key);
  if (!words) return false;
  std::memcpy(&algorithm_, words->data(), sizeof(algorithm_));
  cublasLtMatmulHeuristicResult_t result = {};
  const cublasStatus_t status = cublasLtMatmulAlgoCheck(context_.matmul_handle, operation_, b_.layout, a_.layout,
                                                        c_.layout, c_.layout, &algorithm_, &result);
  workspace_bytes_ = result.workspaceSize;
  return status == CUBLAS_STATUS_SUCCESS && result.workspaceSize <= kMostWorkspace;
}

Status CublasLtProduct::AskLibrary(cublasLtMatmulPreference_t preference) {
  RETURN_IF_ERROR(Set(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, kMostWorkspace));
  RETURN_IF_ERROR(Set(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, b_.alignment));
  RETURN_IF_ERROR(Set(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, a_.alignment));
  RETURN_IF_ERROR(Set(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, c_.alignment));
  RETURN_IF_ERROR(Set(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, c_.alignment));
  cublasLtMatmulHeuristicResult_t result = {};
  int found = 0;
  RETURN_IF_CUBLAS_ERROR(cublasLtMatmulAlgoGetHeuristic(context_.matmul_handle, operation_, b_.layout, a_.layout,
                                                        c_.layout, c_.layout, preference, 1, &result, &found));
  if (found == 0) {
    return InternalError("cublasLtMatmulAlgoGetHeuristic: no algorithm serves " + Key());
  }
  if (result.state != CUBLAS_STATUS_SUCCESS) return CublasError(result.state, "cublasLtMatmulAlgoGetHeuristic");
  algorithm_ = result.algo;
  workspace_bytes_ = result.workspaceSize;
  return OkStatus();
}

Status CublasLtProduct::Run(const void* a, const void* b, void* c, const void* bias, void* workspace,
                            cudaStream_t stream) {
  if (swapped_) std::swap(a, b);
  if (options_.bias_row) RETURN_IF_ERROR(Set(operation_, CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias));
  // Factors have the type of the sums.
  const float narrow[] = {static_cast<float>(options_.alpha), static_cast<float>(options_.beta)};
  const double wide[] = {options_.alpha, options_.beta};
  const bool is_double = options_.dtype == DType::kDouble;
  const void* const alpha = is_double ? static_cast<const void*>(&wide[0]) : &narrow[0];
  const void* const beta = is_double ? static_cast<const void*>(&wide[1]) : &narrow[1];
  for (const Offsets& offsets : calls_) {
    std::byte* const into = static_cast<std::byte*>(c) + offsets.c;
    RETURN_IF_CUBLAS_ERROR(
        cublasLtMatmul(context_.matmul_handle, operation_, alpha, static_cast<const std::byte*>(b) + offsets.b,
                       b_.layout, static_cast<const std::byte*>(a) + offsets.a, a_.layout, beta, into, c_.layout, into,
                       c_.layout, &algorithm_, workspace, workspace_bytes_, stream));
  }
  return OkStatus();
}

}  // namespace onnxtrain
