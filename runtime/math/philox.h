// SPDX-License-Identifier: Apache-2.0
// Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011): a counter and a key give four
// words of 32 random bits, without state. Every draw of a step is addressed, so that recomputation, resumption and
// other divisions into ranks and micro-batches repeat it:
//   key     = seed (64 bits)
//   counter = {element / 4, id of the drawing node, attempted step, slice}; element % 4 picks the word
// with slice = rank * accumulation + micro-batch.
#ifndef ONNXTRAIN_RUNTIME_MATH_PHILOX_H_
#define ONNXTRAIN_RUNTIME_MATH_PHILOX_H_

#include <cstdint>

#include "runtime/math/host_device.h"

namespace onnxtrain::math {

struct PhiloxCounter {
  uint32_t words[4];
};

ONNXTRAIN_HOST_DEVICE inline PhiloxCounter Philox4x32(PhiloxCounter counter, uint64_t key) {
  uint32_t a = counter.words[0], b = counter.words[1], c = counter.words[2], d = counter.words[3];
  uint32_t key0 = static_cast<uint32_t>(key), key1 = static_cast<uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const uint64_t left = uint64_t{0xD2511F53u} * a;
    const uint64_t right = uint64_t{0xCD9E8D57u} * c;
    a = static_cast<uint32_t>(right >> 32) ^ b ^ key0;
    b = static_cast<uint32_t>(right);
    c = static_cast<uint32_t>(left >> 32) ^ d ^ key1;
    d = static_cast<uint32_t>(left);
    key0 += 0x9E3779B9u;
    key1 += 0xBB67AE85u;
  }
  return {{a, b, c, d}};
}

}  // namespace onnxtrain::math

#endif  // ONNXTRAIN_RUNTIME_MATH_PHILOX_H_
