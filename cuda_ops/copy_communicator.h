// SPDX-License-Identifier: Apache-2.0
// A world of one rank on a GPU: collectives are copies. Needs no NCCL, whose start takes time and a network.
#ifndef ONNXTRAIN_CUDA_OPS_COPY_COMMUNICATOR_H_
#define ONNXTRAIN_CUDA_OPS_COPY_COMMUNICATOR_H_

#include "cuda_ops/first_failure.h"
#include "runtime/communicator.h"

namespace onnxtrain {

class CopyCommunicator : public Communicator {
 public:
  explicit CopyCommunicator(int device) : device_(device) {}
  int rank() const override { return 0; }
  int size() const override { return 1; }
  Status AllReduce(const void* send, void* recv, int64_t count, DType dtype, ReduceOp op, void* native_stream) override;
  Status ReduceScatter(const void* send, void* recv, int64_t recv_count, DType dtype, ReduceOp op,
                       void* native_stream) override;
  Status AllGather(const void* send, void* recv, int64_t send_count, DType dtype, void* native_stream) override;
  Status Broadcast(const void* send, void* recv, int64_t count, DType dtype, int root, void* native_stream) override;
  void Abort(const Status& reason) override { (void)failure_.Keep(reason); }
  Status status() const { return failure_.reason(); }

 private:
  Status Copy(const void* send, void* recv, int64_t count, DType dtype, void* native_stream);

  const int device_;
  FirstFailure failure_;
};

}  // namespace onnxtrain

#endif  // ONNXTRAIN_CUDA_OPS_COPY_COMMUNICATOR_H_
