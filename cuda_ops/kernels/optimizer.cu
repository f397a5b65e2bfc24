// SPDX-License-Identifier: Apache-2.0
#include "cuda_ops/device_code.h"
#include "cuda_ops/kernels/grid.h"
#include "cuda_ops/kernels/optimizer.h"
#include "runtime/math/optimizer.h"

namespace onnxtrain {
namespace cuda_kernels {

// A rule prepares its scalars from the step's, in double, and updates an element in place.
struct SgdRule {
  math::SgdScalars<float> s;
  bool nesterov;
  __device__ void Prepare(const OptimizerArguments& a, double rate) {
    s = {static_cast<float>(*a.grad_scale), static_cast<float>(a.weight_decay), static_cast<float>(a.beta1),
         static_cast<float>(rate)};
    nesterov = a.nesterov;
  }
  __device__ void Update(float gradient, float* weight, float* state1, float*) const {
    if (nesterov) {
      math::SgdElement<float, true>(s, *weight, gradient, *state1, weight, state1);
    } else {
      math::SgdElement<float, false>(s, *weight, gradient, *state1, weight, state1);
    }
  }
};

template <bool kDecoupled>
struct AdamRule {
  math::AdamScalars<float> s;
  __device__ void Prepare(const OptimizerArguments& a, double rate) {
    s = math::MakeAdamScalars<float>(kDecoupled, rate, a.weight_decay, a.beta1, a.beta2, a.epsilon, *a.grad_scale,
                                     *a.step);
  }
  __device__ void Update(float gradient, float* weight, float* state1, float* state2) const {
    math::AdamElement(s, *weight, gradient, *state1, *state2, weight, state1, state2);
  }
};

struct AdagradRule {
  math::AdagradScalars<float> s;
  __device__ void Prepare(const OptimizerArguments& a, double rate) {
    s = {static_cast<float>(*a.grad_scale), static_cast<float>(a.weight_decay), static_cast<float>(rate),
         static_cast<float>(a.epsilon)};
  }
  __device__ void Update(float gradient, float* weight, float* state1, float*) const {
    math::AdagradElement(s, *weight, gradient, *state1, weight, state1);
  }
};

struct LionRule {
  math::LionScalars<float> s;
  __device__ void Prepare(const OptimizerArguments& a, double rate) {
    s = {static_cast<float>(*a.grad_scale), static_cast<float>(1.0 - rate * a.weight_decay),
         static_cast<float>(rate),          static_cast<float>(a.beta1),
         static_cast<float>(1.0 - a.beta1), static_cast<float>(a.beta2),
         static_cast<float>(1.0 - a.beta2)};
  }
  __device__ void Update(float gradient, float* weight, float* state1, float*) const {
    math::LionElement(s, *weight, gradient, *state1, weight, state1);
  }
};

// 28 bytes an element for Adam: each tensor is read and written once. Every block prepares the scalars once.
template <typename Rule>
__global__ void __launch_bounds__(kBlockThreads) UpdateWeights(OptimizerArguments a) {
  __shared__ Rule rule;
  if (threadIdx.x == 0) rule.Prepare(a, *a.learning_rate * a.learning_rate_multiplier);
  __syncthreads();
  const bool apply = *a.apply;
  const int64_t stride = static_cast<int64_t>(gridDim.x) * blockDim.x;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < a.count; i += stride) {
    float weight = a.weight[i];
    float state1 = a.state1 == nullptr ? 0.0f : a.state1[i];
    float state2 = a.state2 == nullptr ? 0.0f : a.state2[i];
    if (apply) rule.Update(a.gradient[i], &weight, &state1, &state2);
    a.weight_new[i] = weight;
    if (a.state1_new != nullptr) a.state1_new[i] = state1;
    if (a.state2_new != nullptr) a.state2_new[i] = state2;
  }
}

}  // namespace cuda_kernels

cudaError_t LaunchOptimizer(OptimizerRule rule, const OptimizerArguments& a, cudaStream_t stream) {
  if (a.count == 0) return cudaSuccess;
  const unsigned blocks = ElementBlocks(a.count);
  using namespace cuda_kernels;  // NOLINT: the launch macro takes one name
  switch (rule) {
    case OptimizerRule::kSgd:
      return ONNXTRAIN_LAUNCH(UpdateWeights<SgdRule>, blocks, kBlockThreads, 0, stream, a);
    case OptimizerRule::kAdam:
      return ONNXTRAIN_LAUNCH(UpdateWeights<AdamRule<false>>, blocks, kBlockThreads, 0, stream, a);
    case OptimizerRule::kAdamW:
      return ONNXTRAIN_LAUNCH(UpdateWeights<AdamRule<true>>, blocks, kBlockThreads, 0, stream, a);
    case OptimizerRule::kAdagrad:
      return ONNXTRAIN_LAUNCH(UpdateWeights<AdagradRule>, blocks, kBlockThreads, 0, stream, a);
    case OptimizerRule::kLion:
      return ONNXTRAIN_LAUNCH(UpdateWeights<LionRule>, blocks, kBlockThreads, 0, stream, a);
  }
  return cudaErrorInvalidValue;
}

}  // namespace onnxtrain
