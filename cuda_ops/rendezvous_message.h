// SPDX-License-Identifier: Apache-2.0
// The bytes of the rendezvous: 8 bytes of magic, 4 of length (little endian), then fields, each with a length of its
// own.
#ifndef ONNXTRAIN_CUDA_OPS_RENDEZVOUS_MESSAGE_H_
#define ONNXTRAIN_CUDA_OPS_RENDEZVOUS_MESSAGE_H_

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cuda_ops/rendezvous.h"

namespace onnxtrain {

inline constexpr size_t kRendezvousHeader = 12;
inline constexpr size_t kRendezvousLimit = 16384;  // of the fields together

// What a rank tells rank 0.
struct RendezvousHello {
  int rank = 0;
  int world_size = 0;
  int local_rank = 0;
  std::string host;
  RendezvousIdentity identity;
};

std::string FrameOf(const std::vector<std::string>& fields);
// The fields of a complete frame. Nothing when `bytes` is the beginning of one; an error when it cannot become one.
StatusOr<std::optional<std::vector<std::string>>> ParseFrame(std::string_view bytes);

std::string FrameOf(const RendezvousHello& hello);
StatusOr<RendezvousHello> HelloOf(const std::vector<std::string>& fields);

// Empty, or what keeps two ranks from working together, naming both: versions, configurations, world sizes, places.
std::string Conflict(const RendezvousHello& mine, const RendezvousHello& other);

}  // namespace onnxtrain

#endif  // ONNXTRAIN_CUDA_OPS_RENDEZVOUS_MESSAGE_H_
