// SPDX-License-Identifier: Apache-2.0
// Takes the place of the cudnn_*.cc where cuDNN is not found: convolutions run as columns and matrix products.
#include "cuda_ops/convolution_library.h"

namespace onnxtrain {

StatusOr<std::unique_ptr<ConvolutionLibrary>> ConvolutionLibrary::Open(std::unique_ptr<FileSystem>, const Options&) {
  return std::unique_ptr<ConvolutionLibrary>();
}

std::string ConvolutionLibrary::Version() { return "none"; }

}  // namespace onnxtrain
