// SPDX-License-Identifier: Apache-2.0
// Kernels of the collective operators, the same for every backend: they call the communicator of the launch.
#ifndef ONNXTRAIN_RUNTIME_COLLECTIVE_KERNELS_H_
#define ONNXTRAIN_RUNTIME_COLLECTIVE_KERNELS_H_

namespace onnxtrain {

class KernelRegistry;

// onnxtrain.AllReduce, ReduceScatter, AllGather, Broadcast.
void AddCommunicatorKernels(KernelRegistry& registry);

}  // namespace onnxtrain

#endif  // ONNXTRAIN_RUNTIME_COLLECTIVE_KERNELS_H_
