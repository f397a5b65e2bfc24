# SPDX-License-Identifier: Apache-2.0
# Sources of convolutions, relative to cuda_ops. Exactly one of these two lists: with cuDNN, or without.
set(ONNXTRAIN_CUDNN_SOURCES
  cudnn_convolution.cc cudnn_convolution_library.cc cudnn_descriptor.cc cudnn_plan.cc cudnn_plan_files.cc)
set(ONNXTRAIN_NO_CUDNN_SOURCES cudnn_stub.cc)
