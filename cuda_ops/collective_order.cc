// SPDX-License-Identifier: Apache-2.0
#include "cuda_ops/collective_order.h"

namespace onnxtrain {

Status CollectiveOrder::Next(int local_rank, const CollectiveCall& call) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const uint64_t number = ++issued_[static_cast<size_t>(local_rank)];
  const int rank = first_rank_ + local_rank;
  Entry& entry = entries_[number % kRemembered];
  if (entry.number < number) entry = {number, rank, call};
  if (entry.number > number || entry.call == call) return OkStatus();
  return CommunicationError("ranks issue different collectives as their number " + std::to_string(number) + ": rank " +
                            std::to_string(entry.rank) + " " + entry.call.ToString() + ", rank " +
                            std::to_string(rank) + " " + call.ToString());
}

std::string CollectiveOrder::Issued() {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::string text;
  for (size_t r = 0; r < issued_.size(); ++r) {
    text += (r == 0 ? "rank " : ", rank ") + std::to_string(first_rank_ + static_cast<int>(r)) + ": " +
            std::to_string(issued_[r]);
  }
  return text;
}

}  // namespace onnxtrain
