// SPDX-License-Identifier: Apache-2.0
// How formulas of this folder are declared, so that host loops and device kernels share them.
#ifndef ONNXTRAIN_RUNTIME_MATH_HOST_DEVICE_H_
#define ONNXTRAIN_RUNTIME_MATH_HOST_DEVICE_H_

#ifdef __CUDACC__
#define ONNXTRAIN_HOST_DEVICE __host__ __device__
#else
// Always inlined: the loops around it are compiled once per instruction set and must not share a copy.
#define ONNXTRAIN_HOST_DEVICE __attribute__((always_inline))
#endif

#endif  // ONNXTRAIN_RUNTIME_MATH_HOST_DEVICE_H_
