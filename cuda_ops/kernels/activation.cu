// SPDX-License-Identifier: Apache-2.0
#include "cuda_ops/kernels/unary_kernel.h"

namespace onnxtrain {

#define ONNXTRAIN_FOR_EACH_ACTIVATION(X)                                                                          \
  X(kRelu, Relu)                                                                                                  \
  X(kSigmoid, SigmoidFormula)                                                                                     \
  X(kTanh, TanhFormula)                                                                                           \
  X(kErf, ErfFormula)                                                                                             \
  X(kGeluErf, GeluErf) X(kGeluTanh, GeluTanh) X(kLeakyRelu, LeakyRelu) X(kElu, Elu) X(kSelu, Selu) X(kCelu, Celu) \
      X(kHardSigmoid, HardSigmoid) X(kHardSwish, HardSwish) X(kSoftplus, SoftplusFormula) X(kSoftsign, Softsign)  \
          X(kMish, Mish) X(kSwish, Swish) X(kThresholdedRelu, ThresholdedRelu)

cudaError_t LaunchActivation(UnaryFunction function, const UnaryArguments& arguments, cudaStream_t stream) {
  if (arguments.count == 0) return cudaSuccess;
  switch (function) {
#define ONNXTRAIN_CASE(name, Formula) \
  case UnaryFunction::name:           \
    return cuda_kernels::LaunchValue<math::Formula>(arguments, stream);
    ONNXTRAIN_FOR_EACH_ACTIVATION(ONNXTRAIN_CASE)
#undef ONNXTRAIN_CASE
    default:
      return cudaErrorInvalidValue;
  }
}

cudaError_t LaunchActivationGradient(UnaryFunction function, const UnaryArguments& arguments, cudaStream_t stream) {
  if (arguments.count == 0) return cudaSuccess;
  switch (function) {
#define ONNXTRAIN_CASE(name, Formula) \
  case UnaryFunction::name:           \
    return cuda_kernels::LaunchGradient<math::Formula>(arguments, stream);
    ONNXTRAIN_FOR_EACH_ACTIVATION(ONNXTRAIN_CASE)
#undef ONNXTRAIN_CASE
    default:
      return cudaErrorInvalidValue;
  }
}

}  // namespace onnxtrain
