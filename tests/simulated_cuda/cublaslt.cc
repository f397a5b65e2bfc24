// SPDX-License-Identifier: Apache-2.0
// The simulated cuBLASLt: the functions that our products call, with the library's own checks of their arguments and
// more, carried out on the caller's stream by a host function. CUDA's functions are those of the process.
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <memory>
#include <utility>

#include "graph/digest.h"
#include "tests/simulated_cuda/cublaslt_control.h"
#include "tests/simulated_cuda/cublaslt_state.h"
#include "tests/simulated_cuda/kept.h"

namespace simulated_cublaslt {
namespace {

std::atomic<int64_t> calls_until_failure = -1;
std::atomic<int64_t> heuristics, checks, products, executed_products, live_objects;

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

// The reason of a refusal, or null.
using Reason = const char*;

template <typename Mine, typename Opaque>
Mine& In(Opaque* opaque) {
  return *reinterpret_cast<Mine*>(opaque);
}

template <typename Mine, typename Opaque>
cublasStatus_t Make(Opaque** object, const Mine& content) {
  *object = new Opaque{};
  In<Mine>(*object) = content;
  ++live_objects;
  return CUBLAS_STATUS_SUCCESS;
}

template <typename Opaque>
cublasStatus_t Destroy(Opaque* object) {
  if (object == nullptr) return Refuse("nothing to destroy");
  delete object;
  --live_objects;
  return CUBLAS_STATUS_SUCCESS;
}

template <typename Field>
cublasStatus_t Set(Field& field, const void* value, size_t bytes) {
  if (value == nullptr || bytes != sizeof(field)) return Refuse("an attribute without a value, or of another size");
  std::memcpy(&field, value, bytes);
  return CUBLAS_STATUS_SUCCESS;
}

Reason CheckMatrix(const Matrix& x) {
  if (x.type != CUDA_R_32F && x.type != CUDA_R_16BF && x.type != CUDA_R_16F && x.type != CUDA_R_64F) {
    return "an element type that is not simulated";
  }
  if (x.rows < 1 || x.columns < 1) return "an empty matrix";
  if (x.leading < x.rows) return "a leading dimension below the rows";
  if (x.batch < 1 || x.batch_stride < 0) return "a batch below one, or a negative stride";
  return nullptr;
}

Reason CheckTypes(const Operation& operation, cudaDataType_t type) {
  const bool is_double = type == CUDA_R_64F;
  if ((operation.compute == CUBLAS_COMPUTE_64F) != is_double) return "sums that do not fit the element type";
  if (operation.scale != (is_double ? CUDA_R_64F : CUDA_R_32F)) return "alpha and beta that do not fit the sums";
  if (operation.compute == CUBLAS_COMPUTE_32F_FAST_TF32 && type != CUDA_R_32F) return "TF32 for what is not float";
  if (operation.epilogue == CUBLASLT_EPILOGUE_DEFAULT) return nullptr;
  if (operation.epilogue != CUBLASLT_EPILOGUE_BIAS) return "an epilogue that is not simulated";
  return is_double ? "an epilogue on double" : nullptr;
}

std::pair<int64_t, int64_t> SizeOf(const Matrix& x, cublasOperation_t operation) {
  return operation == CUBLAS_OP_N ? std::pair(x.rows, x.columns) : std::pair(x.columns, x.rows);
}

Reason CheckSizes(Product& p) {
  for (const Matrix* matrix : {&p.a, &p.b, &p.c, &p.d}) {
    if (Reason why = CheckMatrix(*matrix)) return why;
    if (matrix->batch != p.d.batch) return "matrices of different batches";
  }
  // One after the other, or interleaved along the columns.
  const int64_t stride = p.d.batch_stride;
  const bool apart = stride >= (p.d.columns - 1) * p.d.leading + p.d.rows ||
                     (stride >= p.d.rows && p.d.leading >= (p.d.batch - 1) * stride + p.d.rows);
  if (p.a.type != p.b.type || p.c.type != p.d.type) return "matrices of different types";
  if (p.a.type != p.d.type && (BytesOf(p.a.type) != 2 || p.d.type != CUDA_R_32F)) return "matrices of different types";
  if (p.d.batch > 1 && !apart) return "results of a batch that overlap";
  const auto [a_rows, a_columns] = SizeOf(p.a, p.operation.transpose_a);
  const auto [b_rows, b_columns] = SizeOf(p.b, p.operation.transpose_b);
  p.depth = a_columns;
  const bool fit = a_rows == p.d.rows && b_columns == p.d.columns && a_columns == b_rows && p.c.rows == p.d.rows &&
                   p.c.columns == p.d.columns;
  return fit ? CheckTypes(p.operation, p.a.type) : "matrices whose sizes do not fit";
}

Reason CheckHandle(cublasLtHandle_t handle) {
  int current = -1;
  if (handle == nullptr) return "no handle";
  if (cudaGetDevice(&current) != cudaSuccess || current != handle->device) return "a handle of another GPU";
  return nullptr;
}

// All that an algorithm may depend on.
uint64_t DigestOf(const Product& p) {
  uint64_t digest = onnxtrain::kFnvOffset;
  const auto add = [&digest](int64_t word) {
    digest = onnxtrain::Fnv1a(std::string_view(reinterpret_cast<const char*>(&word), sizeof(word)), digest);
  };
  for (const int64_t word : {int64_t{p.operation.compute}, int64_t{p.operation.transpose_a},
                             int64_t{p.operation.transpose_b}, int64_t{p.operation.epilogue}}) {
    add(word);
  }
  for (const Matrix* x : {&p.a, &p.b, &p.c, &p.d}) {
    for (const int64_t word : {int64_t{x->type}, x->rows, x->columns, x->leading, int64_t{x->batch}, x->batch_stride}) {
      add(word);
    }
  }
  return digest;
}

// Different from product to product, so that nobody counts on one size.
size_t WorkspaceFor(uint64_t digest) { return 4096 * (digest % 5); }

Product Described(cublasLtMatmulDesc_t operation, cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                  cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d) {
  Product product = {};
  product.operation = In<Operation>(operation);
  product.a = In<Matrix>(a);
  product.b = In<Matrix>(b);
  product.c = In<Matrix>(c);
  product.d = In<Matrix>(d);
  return product;
}

bool Overlap(const void* a, size_t a_bytes, const void* b, size_t b_bytes) {
  const auto x = reinterpret_cast<uintptr_t>(a);
  const auto y = reinterpret_cast<uintptr_t>(b);
  return x < y + b_bytes && y < x + a_bytes;
}

Reason CheckPlaces(const Product& p, const Algorithm& algorithm) {
  const void* const places[] = {p.a_data, p.b_data, p.c_data, p.d_data};
  for (int i = 0; i < 4; ++i) {
    if (places[i] == nullptr) return "a matrix without memory";
    if (reinterpret_cast<uintptr_t>(places[i]) % algorithm.alignment[i] != 0) {
      return "a matrix with less alignment than was said when its algorithm was chosen";
    }
  }
  const size_t result = ExtentOf(p.d);
  if (Overlap(p.a_data, ExtentOf(p.a), p.d_data, result) || Overlap(p.b_data, ExtentOf(p.b), p.d_data, result)) {
    return "a result that overwrites an operand";
  }
  if (p.c_data != p.d_data && p.beta != 0 && Overlap(p.c_data, ExtentOf(p.c), p.d_data, result)) {
    return "a result that overwrites a part of what is added to it";
  }
  if (p.operation.epilogue != CUBLASLT_EPILOGUE_BIAS) return nullptr;
  const auto bias = reinterpret_cast<uintptr_t>(p.operation.bias);
  return bias == 0 || bias % BytesOf(p.d.type) != 0 ? "a bias epilogue without bias, or with an odd address" : nullptr;
}

Reason CheckWorkspace(const Product& p, const Algorithm& algorithm) {
  if (algorithm.workspace == 0) return nullptr;
  if (p.workspace == nullptr || reinterpret_cast<uintptr_t>(p.workspace) % 256 != 0) {
    return "a workspace that is missing, or not at a multiple of 256 bytes";
  }
  for (const auto& [place, bytes] : {std::pair(p.a_data, ExtentOf(p.a)), std::pair(p.b_data, ExtentOf(p.b)),
                                     std::pair<const void*, size_t>(p.d_data, ExtentOf(p.d))}) {
    if (Overlap(place, bytes, p.workspace, algorithm.workspace)) return "a workspace in a matrix";
  }
  return nullptr;
}

void RunOnce(void* product) {
  const std::unique_ptr<Product> owned(static_cast<Product*>(product));
  Run(*owned);
  ++executed_products;
}
// Of a graph, which may be replayed.
void RunAgain(void* product) {
  Run(*static_cast<Product*>(product));
  ++executed_products;
}

cublasStatus_t Enqueue(const Product& product, cudaStream_t stream) {
  cudaStreamCaptureStatus capturing = cudaStreamCaptureStatusNone;
  if (cudaStreamIsCapturing(stream, &capturing) != cudaSuccess) return CUBLAS_STATUS_EXECUTION_FAILED;
  const bool once = capturing == cudaStreamCaptureStatusNone;
  auto owned = std::make_unique<Product>(product);
  if (cudaLaunchHostFunc(stream, once ? RunOnce : RunAgain, owned.get()) != cudaSuccess) {
    return CUBLAS_STATUS_EXECUTION_FAILED;
  }
  Product* const queued = owned.release();  // RunOnce deletes it
  if (!once) simulated_cuda::Keep(queued);
  return CUBLAS_STATUS_SUCCESS;
}

}  // namespace
}  // namespace simulated_cublaslt

using namespace simulated_cublaslt;

extern "C" {

void simulated_cublaslt_fail_at(int64_t n) { calls_until_failure = n; }

int64_t simulated_cublaslt_counter(const char* name) {
  const std::pair<const char*, const std::atomic<int64_t>*> counters[] = {
      {"heuristics", &heuristics},     {"checks", &checks},
      {"products", &products},         {"executed_products", &executed_products},
      {"live_objects", &live_objects},
  };
  for (const auto& [counter, value] : counters) {
    if (std::strcmp(counter, name) == 0) return value->load();
  }
  return -1;
}

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
size_t cublasLtGetVersion() { return CUBLAS_VERSION; }

cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  int device = -1;
  if (cudaGetDevice(&device) != cudaSuccess) return CUBLAS_STATUS_NOT_INITIALIZED;
  *handle = new cublasLtContext{device};
  ++live_objects;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) { return Destroy(handle); }

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* desc, cublasComputeType_t compute, cudaDataType_t scale) {
  return Make(desc, Operation{compute, scale, CUBLAS_OP_N, CUBLAS_OP_N, CUBLASLT_EPILOGUE_DEFAULT, nullptr});
}
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t desc) { return Destroy(desc); }

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t desc, cublasLtMatmulDescAttributes_t attribute,
                                              const void* value, size_t bytes) {
  Operation& operation = In<Operation>(desc);
  switch (attribute) {
    case CUBLASLT_MATMUL_DESC_TRANSA:
      return Set(operation.transpose_a, value, bytes);
    case CUBLASLT_MATMUL_DESC_TRANSB:
      return Set(operation.transpose_b, value, bytes);
    case CUBLASLT_MATMUL_DESC_EPILOGUE:
      return Set(operation.epilogue, value, bytes);
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER:
      return Set(operation.bias, value, bytes);
    default:
      return Refuse("an attribute of the operation that is not simulated");
  }
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* layout, cudaDataType type, uint64_t rows,
                                          uint64_t columns, int64_t leading) {
  return Make(layout, Matrix{type, static_cast<int64_t>(rows), static_cast<int64_t>(columns), leading, 1, 0});
}
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) { return Destroy(layout); }

cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t layout,
                                                cublasLtMatrixLayoutAttribute_t attribute, const void* value,
                                                size_t bytes) {
  Matrix& matrix = In<Matrix>(layout);
  switch (attribute) {
    case CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT:
      return Set(matrix.batch, value, bytes);
    case CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET:
      return Set(matrix.batch_stride, value, bytes);
    default:
      return Refuse("an attribute of a layout that is not simulated");
  }
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* preference) {
  return Make(preference, Preference{0, {256, 256, 256, 256}});
}
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) { return Destroy(preference); }

cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t attribute, const void* value,
                                                    size_t bytes) {
  Preference& mine = In<Preference>(preference);
  if (attribute == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES) return Set(mine.workspace, value, bytes);
  const int operand = static_cast<int>(attribute) - static_cast<int>(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES);
  if (operand < 0 || operand > 3) return Refuse("a preference that is not simulated");
  return Set(mine.alignment[operand], value, bytes);
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preference, int wanted,
                                              cublasLtMatmulHeuristicResult_t results[], int* found) {
  ++heuristics;
  if (Fails()) return CUBLAS_STATUS_NOT_SUPPORTED;
  if (wanted < 1) return Refuse("no algorithm wanted");
  if (Reason why = CheckHandle(handle)) return Refuse(why);
  Product product = Described(desc, a, b, c, d);
  if (Reason why = CheckSizes(product)) return Refuse(why);
  const uint64_t digest = DigestOf(product);
  const Preference& preferred = In<Preference>(preference);
  Algorithm algorithm = {kMagic, digest, std::min(preferred.workspace, WorkspaceFor(digest)), {}};
  std::copy_n(preferred.alignment, 4, algorithm.alignment);
  results[0] = {};
  In<Algorithm>(&results[0].algo) = algorithm;
  results[0].workspaceSize = algorithm.workspace;
  *found = 1;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoCheck(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc, cublasLtMatrixLayout_t a,
                                       cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                       const cublasLtMatmulAlgo_t* algo, cublasLtMatmulHeuristicResult_t* result) {
  ++checks;
  if (Fails()) return CUBLAS_STATUS_NOT_SUPPORTED;
  if (Reason why = CheckHandle(handle)) return Refuse(why);
  Product product = Described(desc, a, b, c, d);
  if (Reason why = CheckSizes(product)) return Refuse(why);
  const auto& algorithm = In<const Algorithm>(algo);
  if (algorithm.magic != kMagic || algorithm.product != DigestOf(product)) return CUBLAS_STATUS_INVALID_VALUE;
  result->workspaceSize = algorithm.workspace;
  result->state = CUBLAS_STATUS_SUCCESS;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc, const void* alpha, const void* a,
                              cublasLtMatrixLayout_t a_layout, const void* b, cublasLtMatrixLayout_t b_layout,
                              const void* beta, const void* c, cublasLtMatrixLayout_t c_layout, void* d,
                              cublasLtMatrixLayout_t d_layout, const cublasLtMatmulAlgo_t* algo, void* workspace,
                              size_t workspace_bytes, cudaStream_t stream) {
  ++products;
  if (Fails()) return CUBLAS_STATUS_EXECUTION_FAILED;
  if (Reason why = CheckHandle(handle)) return Refuse(why);
  Product product = Described(desc, a_layout, b_layout, c_layout, d_layout);
  if (Reason why = CheckSizes(product)) return Refuse(why);
  if (algo == nullptr) return Refuse("no algorithm: the library would ask its heuristics now");
  if (stream == nullptr) return Refuse("the default stream");
  const auto& algorithm = In<const Algorithm>(algo);
  if (algorithm.magic != kMagic || algorithm.product != DigestOf(product)) {
    return Refuse("an algorithm that was chosen for another product");
  }
  const bool is_double = product.operation.scale == CUDA_R_64F;
  const auto factor = [is_double](const void* value) {
    return is_double ? *static_cast<const double*>(value) : static_cast<double>(*static_cast<const float*>(value));
  };
  product.alpha = factor(alpha);
  product.beta = factor(beta);
  product.a_data = a;
  product.b_data = b;
  product.c_data = c;
  product.d_data = d;
  product.workspace = workspace;
  product.workspace_bytes = algorithm.workspace;
  if (workspace_bytes < algorithm.workspace) return Refuse("less workspace than the algorithm wants");
  if (Reason why = CheckPlaces(product, algorithm)) return Refuse(why);
  if (Reason why = CheckWorkspace(product, algorithm)) return Refuse(why);
  return Enqueue(product, stream);
}

}  // extern "C"
