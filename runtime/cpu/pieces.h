// SPDX-License-Identifier: Apache-2.0
// Flat work split so that an element's place in a vector loop never depends on the number of threads: results keep
// their bits.
#ifndef ONNXTRAIN_RUNTIME_CPU_PIECES_H_
#define ONNXTRAIN_RUNTIME_CPU_PIECES_H_

#include <algorithm>
#include <cstdint>

#include "runtime/cpu/parallel_for.h"

namespace onnxtrain {

// Elements a thread takes at least, by what an element costs; below, a parallel region costs more than it saves.
inline constexpr int64_t kMoveGrain = 32768;     // copies, arithmetic
inline constexpr int64_t kFunctionGrain = 8192;  // vectorised exp, erf, ...
inline constexpr int64_t kLibraryGrain = 2048;   // calls of the C library

// body(begin, end) for ranges of [0, count) cut at multiples of 4096 only.
template <typename Body>
void ForEachPiece(int threads, int64_t count, int64_t grain, const Body& body) {
  constexpr int64_t kPiece = 4096;
  ParallelFor(threads, (count + kPiece - 1) / kPiece, std::max<int64_t>(1, grain / kPiece),
              [&](int64_t begin, int64_t end) { body(begin * kPiece, std::min(end * kPiece, count)); });
}

}  // namespace onnxtrain

#endif  // ONNXTRAIN_RUNTIME_CPU_PIECES_H_
