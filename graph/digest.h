// SPDX-License-Identifier: Apache-2.0
// FNV-1a, 64 bits: the digest that ranks compare before the first step. Not cryptographic; the same on every machine.
#ifndef ONNXTRAIN_GRAPH_DIGEST_H_
#define ONNXTRAIN_GRAPH_DIGEST_H_

#include <cstdint>
#include <string_view>

namespace onnxtrain {

inline constexpr uint64_t kFnvOffset = 0xCBF29CE484222325u;

// Digest of `bytes` after what `state` has seen: Fnv1a(b, Fnv1a(a)) == Fnv1a(a + b).
constexpr uint64_t Fnv1a(std::string_view bytes, uint64_t state = kFnvOffset) {
  for (const char byte : bytes) {
    state ^= static_cast<uint8_t>(byte);
    state *= 0x100000001B3u;
  }
  return state;
}

}  // namespace onnxtrain

#endif  // ONNXTRAIN_GRAPH_DIGEST_H_
