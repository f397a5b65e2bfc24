// SPDX-License-Identifier: Apache-2.0
// What the kernels of one CUDA device share. Owned by CudaDevice, outlives every kernel; read-only after the device's
// creation.
#ifndef ONNXTRAIN_CUDA_OPS_CUDA_CONTEXT_H_
#define ONNXTRAIN_CUDA_OPS_CUDA_CONTEXT_H_

#include <string>

struct cublasLtContext;  // cublasLtHandle_t points to it

namespace onnxtrain {

class ConvolutionLibrary;
class MatmulAlgorithms;

struct CudaContext {
  int device = 0;  // CUDA's ordinal
  int multiprocessors = 0;
  bool tf32 = false;  // f32 products may round their factors to TF32
  cublasLtContext* matmul_handle = nullptr;
  MatmulAlgorithms* matmul_algorithms = nullptr;  // null: every product asks the library
  ConvolutionLibrary* convolutions = nullptr;     // null: the build has none
  std::string cache_folder;  // of algorithm tables and cuDNN plans; empty: nothing is kept
};

}  // namespace onnxtrain

#endif  // ONNXTRAIN_CUDA_OPS_CUDA_CONTEXT_H_
