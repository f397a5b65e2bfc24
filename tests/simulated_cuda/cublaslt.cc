// SPDX-License-Identifier: Apache-2.0
// The simulated cuBLASLt: the functions that our products call, with the library's own checks of their arguments,
// carried out on the caller's stream by a host function. Sums are float, in one fixed order. CUDA's functions are those
// of the process.
#include <cublasLt.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime_api.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <memory>
#include <vector>

struct cublasLtContext {};

namespace {

std::atomic<int64_t> calls_until_failure = -1;

bool Fails() {
  int64_t left = calls_until_failure.load();
  while (left >= 0 && !calls_until_failure.compare_exchange_weak(left, left - 1)) {
  }
  return left == 0;
}

cublasStatus_t Refuse(const char* why) {
  std::fprintf(stderr, "simulated cuBLASLt: %s\n", why);
  return CUBLAS_STATUS_INVALID_VALUE;
}

// Ours, inside the library's opaque structs.
struct Operation {
  cublasComputeType_t compute;
  cudaDataType_t scale;
  cublasOperation_t transpose_a;
  cublasOperation_t transpose_b;
  cublasLtEpilogue_t epilogue;
  const void* bias;
};
struct Matrix {
  cudaDataType_t type;
  int64_t rows;
  int64_t columns;
  int64_t leading;
  int32_t batch;
  int64_t batch_stride;
};
struct Preference {
  size_t workspace;
  uint32_t alignment[4];
};
struct Algorithm {
  uint64_t magic;
  uint64_t fingerprint;
};
constexpr uint64_t kMagic = 0x73696d756c617465;
constexpr size_t kWorkspace = 4096;
static_assert(sizeof(Operation) <= sizeof(cublasLtMatmulDescOpaque_t));
static_assert(sizeof(Matrix) <= sizeof(cublasLtMatrixLayoutOpaque_t));
static_assert(sizeof(Preference) <= sizeof(cublasLtMatmulPreferenceOpaque_t));
static_assert(sizeof(Algorithm) <= sizeof(cublasLtMatmulAlgo_t));

template <typename Mine, typename Opaque>
Mine* In(Opaque* opaque) {
  return reinterpret_cast<Mine*>(opaque);
}

size_t BytesOf(cudaDataType_t type) { return type == CUDA_R_32F ? 4 : 2; }

float Load(const void* data, cudaDataType_t type, int64_t index) {
  switch (type) {
    case CUDA_R_16BF:
      return __bfloat162float(static_cast<const __nv_bfloat16*>(data)[index]);
    case CUDA_R_16F:
      return __half2float(static_cast<const __half*>(data)[index]);
    default:
      return static_cast<const float*>(data)[index];
  }
}

void Store(void* data, cudaDataType_t type, int64_t index, float value) {
  switch (type) {
    case CUDA_R_16BF:
      static_cast<__nv_bfloat16*>(data)[index] = __float2bfloat16(value);
      return;
    case CUDA_R_16F:
      static_cast<__half*>(data)[index] = __float2half(value);
      return;
    default:
      static_cast<float*>(data)[index] = value;
  }
}

struct Product {
  Operation operation;
  Matrix a, b, c;
  float alpha, beta;
  const void* a_data;
  const void* b_data;
  const void* c_data;
  void* d_data;
  int64_t depth;
};

// op(X) in rows of float, `rows` by `columns`.
std::vector<float> Packed(const void* data, const Matrix& x, cublasOperation_t operation, int64_t batch, int64_t rows,
                          int64_t columns) {
  std::vector<float> packed(static_cast<size_t>(rows * columns));
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) {
      const int64_t at = operation == CUBLAS_OP_N ? i + j * x.leading : j + i * x.leading;
      packed[static_cast<size_t>(i * columns + j)] = Load(data, x.type, batch * x.batch_stride + at);
    }
  }
  return packed;
}

// D = alpha op(A) op(B) + beta C (+ bias), column by column of D, so that the innermost loop runs along memory.
void RunProduct(const Product& p) {
  const int64_t rows = p.c.rows;
  std::vector<float> column(static_cast<size_t>(rows));
  for (int64_t batch = 0; batch < p.c.batch; ++batch) {
    // A^T has the elements of a column of op(A) beside each other.
    const cublasOperation_t flipped = p.operation.transpose_a == CUBLAS_OP_N ? CUBLAS_OP_T : CUBLAS_OP_N;
    const std::vector<float> a = Packed(p.a_data, p.a, flipped, batch, p.depth, rows);
    const std::vector<float> b = Packed(p.b_data, p.b, p.operation.transpose_b, batch, p.depth, p.c.columns);
    for (int64_t j = 0; j < p.c.columns; ++j) {
      std::fill(column.begin(), column.end(), 0.0f);
      for (int64_t k = 0; k < p.depth; ++k) {
        const float factor = b[static_cast<size_t>(k * p.c.columns + j)];
        const float* from = a.data() + k * rows;
        for (int64_t i = 0; i < rows; ++i) column[static_cast<size_t>(i)] += from[i] * factor;
      }
      for (int64_t i = 0; i < rows; ++i) {
        const int64_t at = batch * p.c.batch_stride + i + j * p.c.leading;
        float value = p.alpha * column[static_cast<size_t>(i)];
        if (p.beta != 0) value += p.beta * Load(p.c_data, p.c.type, at);
        if (p.operation.epilogue == CUBLASLT_EPILOGUE_BIAS) value += Load(p.operation.bias, p.c.type, i);
        Store(p.d_data, p.c.type, at, value);
      }
    }
  }
}

void RunOnce(void* product) {
  const std::unique_ptr<Product> owned(static_cast<Product*>(product));
  RunProduct(*owned);
}
void RunAgain(void* product) { RunProduct(*static_cast<Product*>(product)); }  // of a graph, which may be replayed

const char* CheckMatrix(const Matrix& x) {
  if (x.type != CUDA_R_32F && x.type != CUDA_R_16BF && x.type != CUDA_R_16F) return "a type that is not simulated";
  if (x.leading < x.rows || x.rows < 1 || x.columns < 1)
    return "a leading dimension below the rows, or an empty matrix";
  return nullptr;
}

// The depth of the product, or -1 with the reason said.
int64_t CheckedDepth(const Operation& operation, const Matrix& a, const Matrix& b, const Matrix& c, const Matrix& d) {
  for (const Matrix* matrix : {&a, &b, &c, &d}) {
    if (const char* why = CheckMatrix(*matrix)) {
      (void)Refuse(why);
      return -1;
    }
    const bool result = matrix == &c || matrix == &d;
    const bool type_fits = matrix->type == a.type || (result && matrix->type == CUDA_R_32F);
    if (!type_fits || matrix->batch != c.batch || d.type != c.type) {
      (void)Refuse("matrices of different types or batches");
      return -1;
    }
  }
  const int64_t a_rows = operation.transpose_a == CUBLAS_OP_N ? a.rows : a.columns;
  const int64_t a_columns = operation.transpose_a == CUBLAS_OP_N ? a.columns : a.rows;
  const int64_t b_rows = operation.transpose_b == CUBLAS_OP_N ? b.rows : b.columns;
  const int64_t b_columns = operation.transpose_b == CUBLAS_OP_N ? b.columns : b.rows;
  if (a_rows == c.rows && b_columns == c.columns && a_columns == b_rows && d.rows == c.rows && d.columns == c.columns) {
    return a_columns;
  }
  (void)Refuse("matrices whose sizes do not fit");
  return -1;
}

}  // namespace

extern "C" {

// The n-th call of heuristics or product from now on fails, 0 being the next; -1: none.
void simulated_cublaslt_fail_at(int64_t n) { calls_until_failure = n; }

const char* cublasLtGetStatusName(cublasStatus_t status) {
  switch (status) {
    case CUBLAS_STATUS_SUCCESS:
      return "CUBLAS_STATUS_SUCCESS";
    case CUBLAS_STATUS_INVALID_VALUE:
      return "CUBLAS_STATUS_INVALID_VALUE";
    case CUBLAS_STATUS_NOT_SUPPORTED:
      return "CUBLAS_STATUS_NOT_SUPPORTED";
    default:
      return "CUBLAS_STATUS_EXECUTION_FAILED";
  }
}
const char* cublasLtGetStatusString(cublasStatus_t status) { return cublasLtGetStatusName(status); }

cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  *handle = new cublasLtContext;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
  delete handle;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* desc, cublasComputeType_t compute, cudaDataType_t scale) {
  *desc = new cublasLtMatmulDescOpaque_t{};
  *In<Operation>(*desc) = {compute, scale, CUBLAS_OP_N, CUBLAS_OP_N, CUBLASLT_EPILOGUE_DEFAULT, nullptr};
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t desc) {
  delete desc;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t desc, cublasLtMatmulDescAttributes_t attribute,
                                              const void* value, size_t bytes) {
  Operation& operation = *In<Operation>(desc);
  const auto set = [&](auto& field) {
    if (bytes != sizeof(field)) return Refuse("an attribute of another size");
    std::memcpy(&field, value, bytes);
    return CUBLAS_STATUS_SUCCESS;
  };
  switch (attribute) {
    case CUBLASLT_MATMUL_DESC_TRANSA:
      return set(operation.transpose_a);
    case CUBLASLT_MATMUL_DESC_TRANSB:
      return set(operation.transpose_b);
    case CUBLASLT_MATMUL_DESC_EPILOGUE:
      return set(operation.epilogue);
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER:
      return set(operation.bias);
    default:
      return Refuse("an attribute of the operation that is not simulated");
  }
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* layout, cudaDataType type, uint64_t rows,
                                          uint64_t columns, int64_t leading) {
  *layout = new cublasLtMatrixLayoutOpaque_t{};
  *In<Matrix>(*layout) = {type, static_cast<int64_t>(rows), static_cast<int64_t>(columns), leading, 1, 0};
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) {
  delete layout;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t layout,
                                                cublasLtMatrixLayoutAttribute_t attribute, const void* value,
                                                size_t bytes) {
  Matrix& matrix = *In<Matrix>(layout);
  if (attribute == CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT && bytes == sizeof(int32_t)) {
    std::memcpy(&matrix.batch, value, bytes);
    return CUBLAS_STATUS_SUCCESS;
  }
  if (attribute == CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET && bytes == sizeof(int64_t)) {
    std::memcpy(&matrix.batch_stride, value, bytes);
    return CUBLAS_STATUS_SUCCESS;
  }
  return Refuse("an attribute of a layout that is not simulated, or of another size");
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* preference) {
  *preference = new cublasLtMatmulPreferenceOpaque_t{};
  *In<Preference>(*preference) = {0, {256, 256, 256, 256}};
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
  delete preference;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t attribute, const void* value,
                                                    size_t bytes) {
  Preference& mine = *In<Preference>(preference);
  if (attribute == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES && bytes == sizeof(size_t)) {
    std::memcpy(&mine.workspace, value, bytes);
    return CUBLAS_STATUS_SUCCESS;
  }
  const int operand = static_cast<int>(attribute) - static_cast<int>(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES);
  if (operand < 0 || operand > 3 || bytes != sizeof(uint32_t)) return Refuse("a preference that is not simulated");
  std::memcpy(&mine.alignment[operand], value, bytes);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preference, int wanted,
                                              cublasLtMatmulHeuristicResult_t results[], int* found) {
  if (Fails()) return CUBLAS_STATUS_NOT_SUPPORTED;
  if (handle == nullptr || wanted < 1) return Refuse("no handle, or no algorithm wanted");
  const int64_t depth =
      CheckedDepth(*In<Operation>(desc), *In<Matrix>(a), *In<Matrix>(b), *In<Matrix>(c), *In<Matrix>(d));
  if (depth < 0) return CUBLAS_STATUS_INVALID_VALUE;
  results[0] = {};
  *In<Algorithm>(&results[0].algo) = {kMagic, static_cast<uint64_t>(depth)};
  results[0].workspaceSize = std::min(In<Preference>(preference)->workspace, kWorkspace);
  *found = 1;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc, const void* alpha, const void* a,
                              cublasLtMatrixLayout_t a_layout, const void* b, cublasLtMatrixLayout_t b_layout,
                              const void* beta, const void* c, cublasLtMatrixLayout_t c_layout, void* d,
                              cublasLtMatrixLayout_t d_layout, const cublasLtMatmulAlgo_t* algorithm, void* workspace,
                              size_t workspace_bytes, cudaStream_t stream) {
  if (Fails()) return CUBLAS_STATUS_EXECUTION_FAILED;
  auto product = std::make_unique<Product>();
  product->operation = *In<Operation>(desc);
  product->a = *In<Matrix>(a_layout);
  product->b = *In<Matrix>(b_layout);
  product->c = *In<Matrix>(c_layout);
  product->depth = CheckedDepth(product->operation, product->a, product->b, product->c, *In<Matrix>(d_layout));
  if (product->depth < 0) return CUBLAS_STATUS_INVALID_VALUE;
  if (handle == nullptr || algorithm == nullptr) return Refuse("no handle, or heuristics at the time of the launch");
  const auto& chosen = *reinterpret_cast<const Algorithm*>(algorithm);
  if (chosen.magic != kMagic || chosen.fingerprint != static_cast<uint64_t>(product->depth)) {
    return Refuse("an algorithm that was chosen for another product");
  }
  if (workspace_bytes < kWorkspace || workspace == nullptr || reinterpret_cast<uintptr_t>(workspace) % 256 != 0) {
    return Refuse("less workspace than the algorithm wants, or not at a multiple of 256");
  }
  if (product->operation.epilogue == CUBLASLT_EPILOGUE_BIAS && product->operation.bias == nullptr) {
    return Refuse("a bias epilogue without bias");
  }
  for (const void* data : {a, b, c, static_cast<const void*>(d)}) {
    if (data == nullptr || reinterpret_cast<uintptr_t>(data) % BytesOf(product->a.type) != 0)
      return Refuse("a bad pointer");
  }
  product->alpha = *static_cast<const float*>(alpha);
  product->beta = *static_cast<const float*>(beta);
  product->a_data = a;
  product->b_data = b;
  product->c_data = c;
  product->d_data = d;
  cudaStreamCaptureStatus capturing = cudaStreamCaptureStatusNone;
  if (cudaStreamIsCapturing(stream, &capturing) != cudaSuccess) return CUBLAS_STATUS_EXECUTION_FAILED;
  const bool once = capturing == cudaStreamCaptureStatusNone;
  if (cudaLaunchHostFunc(stream, once ? RunOnce : RunAgain, product.get()) != cudaSuccess) {
    return CUBLAS_STATUS_EXECUTION_FAILED;
  }
  (void)product.release();  // the stream's, or for as long as the graph may be replayed
  return CUBLAS_STATUS_SUCCESS;
}

}  // extern "C"
