// SPDX-License-Identifier: Apache-2.0
// One rank's end of a group of ranks; the equal of ncclComm_t. All ranks issue the same collectives in the same order.
// Counts are in elements. Work is in the order of the caller's stream (`native_stream`; null: done when the call returns,
// on the calling stream thread). Abort may be called from any thread: pending and later calls fail soon, with the reason.
#ifndef ONNXTRAIN_RUNTIME_COMMUNICATOR_H_
#define ONNXTRAIN_RUNTIME_COMMUNICATOR_H_

#include <cstdint>

#include "graph/dtype.h"
#include "graph/status.h"

namespace onnxtrain {

enum class ReduceOp : uint8_t { kSum, kMax };

class Communicator {
 public:
  virtual ~Communicator() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;

  // recv[i] = op over ranks of send[i], combined in rank order: the same bits on every rank and in every run. In place
  // (recv == send) is allowed.
  virtual Status AllReduce(const void* send, void* recv, int64_t count, DType dtype, ReduceOp op,
                           void* native_stream) = 0;
  // send holds size() slices of recv_count; this rank receives the reduced slice rank(). recv may be that slice of send.
  virtual Status ReduceScatter(const void* send, void* recv, int64_t recv_count, DType dtype, ReduceOp op,
                               void* native_stream) = 0;
  // recv holds size() slices of send_count; slice r comes from rank r. send may be this rank's slice of recv.
  virtual Status AllGather(const void* send, void* recv, int64_t send_count, DType dtype, void* native_stream) = 0;
  // recv on every rank becomes send of `root`. send is read on the root only; in place allowed.
  virtual Status Broadcast(const void* send, void* recv, int64_t count, DType dtype, int root, void* native_stream) = 0;
  // Idempotent; the first reason stays.
  virtual void Abort(const Status& reason) = 0;
};

}  // namespace onnxtrain

#endif  // ONNXTRAIN_RUNTIME_COMMUNICATOR_H_
