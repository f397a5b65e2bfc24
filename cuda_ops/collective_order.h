// SPDX-License-Identifier: Apache-2.0
// Compares the n-th collective of every rank of a process before it is issued: NCCL itself would hang, or mix the bytes
// of different tensors, where ranks disagree. Any thread may call; knows no CUDA.
#ifndef ONNXTRAIN_CUDA_OPS_COLLECTIVE_ORDER_H_
#define ONNXTRAIN_CUDA_OPS_COLLECTIVE_ORDER_H_

#include <array>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "cuda_ops/collective_call.h"
#include "graph/status.h"

namespace onnxtrain {

class CollectiveOrder {
 public:
  // Of ranks first_rank to first_rank + ranks - 1.
  CollectiveOrder(int first_rank, int ranks) : first_rank_(first_rank), issued_(static_cast<size_t>(ranks)) {}

  // The next collective of the local rank. Communication, naming both ranks and calls, when another rank's of the same
  // number differs. A rank that is more than kRemembered collectives behind another is not compared.
  Status Next(int local_rank, const CollectiveCall& call);
  // "rank 0: 7, rank 1: 6": how many each rank has issued.
  std::string Issued();

 private:
  static constexpr size_t kRemembered = 1024;
  struct Entry {
    uint64_t number = 0;  // counted from 1
    int rank = 0;
    CollectiveCall call;
  };

  const int first_rank_;
  std::mutex mutex_;
  std::vector<uint64_t> issued_;
  std::array<Entry, kRemembered> entries_;
};

}  // namespace onnxtrain

#endif  // ONNXTRAIN_CUDA_OPS_COLLECTIVE_ORDER_H_
