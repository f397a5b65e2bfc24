# SPDX-License-Identifier: Apache-2.0
# Sources of the communication between GPUs, relative to cuda_ops.
# Need no CUDA:
set(ONNXTRAIN_RENDEZVOUS_SOURCES rendezvous.cc rendezvous_message.cc rendezvous_server.cc rendezvous_socket.cc)
# Exactly one of these two lists: with NCCL, or without.
set(ONNXTRAIN_NCCL_SOURCES
  collective_call.cc collective_order.cc collective_watchdog.cc nccl_communicator.cc nccl_rank.cc)
set(ONNXTRAIN_NCCL_KERNEL_SOURCES kernels/collective_progress.cu)
set(ONNXTRAIN_NO_NCCL_SOURCES nccl_stub.cc)
