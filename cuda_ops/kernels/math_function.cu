// SPDX-License-Identifier: Apache-2.0
#include "cuda_ops/kernels/unary_kernel.h"

namespace onnxtrain {
namespace cuda_kernels {

using Scalars = math::ActivationScalars<float>;

#define ONNXTRAIN_MATH_FUNCTION(Name, expression)                          \
  struct Name {                                                            \
    __device__ static float Value(float x, Scalars) { return expression; } \
  };
ONNXTRAIN_MATH_FUNCTION(ExpOf, math::Exp(x))
ONNXTRAIN_MATH_FUNCTION(LogOf, math::Log(x))
ONNXTRAIN_MATH_FUNCTION(SqrtOf, math::Sqrt(x))
ONNXTRAIN_MATH_FUNCTION(ReciprocalOf, 1.0f / x)
ONNXTRAIN_MATH_FUNCTION(NegOf, -x)
ONNXTRAIN_MATH_FUNCTION(AbsOf, math::Abs(x))
ONNXTRAIN_MATH_FUNCTION(SignOf, x > 0.0f ? 1.0f : (x < 0.0f ? -1.0f : x))
ONNXTRAIN_MATH_FUNCTION(FloorOf, ::floorf(x))
ONNXTRAIN_MATH_FUNCTION(CeilOf, ::ceilf(x))
ONNXTRAIN_MATH_FUNCTION(RoundOf, ::rintf(x))  // halves to even
ONNXTRAIN_MATH_FUNCTION(SinOf, ::sinf(x))
ONNXTRAIN_MATH_FUNCTION(CosOf, ::cosf(x))
ONNXTRAIN_MATH_FUNCTION(TanOf, ::tanf(x))
ONNXTRAIN_MATH_FUNCTION(AsinOf, ::asinf(x))
ONNXTRAIN_MATH_FUNCTION(AcosOf, ::acosf(x))
ONNXTRAIN_MATH_FUNCTION(AtanOf, ::atanf(x))
ONNXTRAIN_MATH_FUNCTION(SinhOf, ::sinhf(x))
ONNXTRAIN_MATH_FUNCTION(CoshOf, ::coshf(x))
ONNXTRAIN_MATH_FUNCTION(AsinhOf, ::asinhf(x))
ONNXTRAIN_MATH_FUNCTION(AcoshOf, ::acoshf(x))
ONNXTRAIN_MATH_FUNCTION(AtanhOf, ::atanhf(x))

}  // namespace cuda_kernels

cudaError_t LaunchMathFunction(UnaryFunction function, const UnaryArguments& arguments, cudaStream_t stream) {
  if (arguments.count == 0) return cudaSuccess;
  switch (function) {
#define ONNXTRAIN_CASE(Name)   \
  case UnaryFunction::k##Name: \
    return cuda_kernels::LaunchValue<cuda_kernels::Name##Of>(arguments, stream);
    ONNXTRAIN_CASE(Exp)
    ONNXTRAIN_CASE(Log)
    ONNXTRAIN_CASE(Sqrt)
    ONNXTRAIN_CASE(Reciprocal)
    ONNXTRAIN_CASE(Neg)
    ONNXTRAIN_CASE(Abs)
    ONNXTRAIN_CASE(Sign)
    ONNXTRAIN_CASE(Floor)
    ONNXTRAIN_CASE(Ceil)
    ONNXTRAIN_CASE(Round)
    ONNXTRAIN_CASE(Sin)
    ONNXTRAIN_CASE(Cos)
    ONNXTRAIN_CASE(Tan)
    ONNXTRAIN_CASE(Asin)
    ONNXTRAIN_CASE(Acos)
    ONNXTRAIN_CASE(Atan)
    ONNXTRAIN_CASE(Sinh)
    ONNXTRAIN_CASE(Cosh)
    ONNXTRAIN_CASE(Asinh)
    ONNXTRAIN_CASE(Acosh)
    ONNXTRAIN_CASE(Atanh)
#undef ONNXTRAIN_CASE
    default:
      return cudaErrorInvalidValue;
  }
}

}  // namespace onnxtrain
