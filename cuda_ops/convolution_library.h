// SPDX-License-Identifier: Apache-2.0
// Convolutions that a library carries out: cuDNN where the build has it (cudnn_convolution_library.cc), else none
// (cudnn_stub.cc). Engines are chosen and code is built when a kernel is made; a step only enqueues.
#ifndef ONNXTRAIN_CUDA_OPS_CONVOLUTION_LIBRARY_H_
#define ONNXTRAIN_CUDA_OPS_CONVOLUTION_LIBRARY_H_

#include <cuda_runtime_api.h>

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "cuda_ops/convolution_problem.h"
#include "graph/status.h"
#include "runtime/file_system.h"

namespace onnxtrain {

class LibraryConvolution {
 public:
  virtual ~LibraryConvolution() = default;
  virtual size_t workspace_bytes() const = 0;  // 256-byte aligned
  // Pointers to all three tensors, one of which is written. Its device is current.
  virtual Status Run(const void* x, const void* w, const void* y, void* workspace, cudaStream_t stream) = 0;
};

// Of one GPU. The threads of one rank call, one at a time.
class ConvolutionLibrary {
 public:
  struct Options {
    int gpu = 0;
    bool tf32 = false;         // engines may round float factors to TF32
    std::string cache_folder;  // of plans, a file each; empty: none are kept
  };
  // Makes the GPU current. Null where the build has no such library.
  static StatusOr<std::unique_ptr<ConvolutionLibrary>> Open(std::unique_ptr<FileSystem> files, const Options& options);
  // "cuDNN 9.19.0", or "none".
  static std::string Version();

  virtual ~ConvolutionLibrary() = default;
  // Fails with InvalidModel and the library's reasons when it has no engine for the problem.
  virtual StatusOr<std::unique_ptr<LibraryConvolution>> Create(const ConvolutionProblem& problem) = 0;
  // Files of plans that were not used or could not be written, and problems without an engine.
  virtual std::vector<std::string> notes() const = 0;
};

}  // namespace onnxtrain

#endif  // ONNXTRAIN_CUDA_OPS_CONVOLUTION_LIBRARY_H_
