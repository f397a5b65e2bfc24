// SPDX-License-Identifier: Apache-2.0
// Work of one kernel split over the OpenMP team of its compute thread. The serial build runs it on the calling thread.
#ifndef ONNXTRAIN_RUNTIME_CPU_PARALLEL_FOR_H_
#define ONNXTRAIN_RUNTIME_CPU_PARALLEL_FOR_H_

#include <algorithm>
#include <cstdint>

#ifndef ONNXTRAIN_SERIAL_KERNELS
#include <omp.h>
#endif

namespace onnxtrain {

// Calls body(begin, end) for contiguous pieces that cover [0, count) once, each at least `grain` long (but the last),
// at most one a thread. Which piece an index falls into depends on the number of threads: a sum over indices belongs
// inside one index, or in chunks of a fixed size that are the indices.
template <typename Body>
void ParallelFor(int threads, int64_t count, int64_t grain, const Body& body) {
  if (count <= 0) return;
#ifndef ONNXTRAIN_SERIAL_KERNELS
  const int64_t pieces = std::min<int64_t>(threads, (count + grain - 1) / std::max<int64_t>(grain, 1));
  if (pieces > 1) {
#pragma omp parallel num_threads(static_cast <int>(pieces))
    {
      const int64_t team = omp_get_num_threads();
      const int64_t member = omp_get_thread_num();
      const int64_t begin = count * member / team;
      const int64_t end = count * (member + 1) / team;
      if (begin < end) body(begin, end);
    }
    return;
  }
#else
  (void)threads;
  (void)grain;
#endif
  body(int64_t{0}, count);
}

// The same with the number of the piece, 0 <= piece < threads: for scratch memory that no two threads share.
template <typename Body>
void ParallelPieces(int threads, int64_t count, int64_t grain, const Body& body) {
  const int64_t pieces = std::min<int64_t>(threads, (count + grain - 1) / std::max<int64_t>(grain, 1));
  ParallelFor(threads, pieces, 1, [&](int64_t first, int64_t last) {
    for (int64_t piece = first; piece < last; ++piece) {
      body(piece, count * piece / pieces, count * (piece + 1) / pieces);
    }
  });
}

// For as long as it lives, oneDNN calls of this thread (creation and execution) use `threads` threads.
class ThreadTeam {
 public:
#ifndef ONNXTRAIN_SERIAL_KERNELS
  explicit ThreadTeam(int threads) : before_(omp_get_max_threads()) { omp_set_num_threads(threads); }
  ~ThreadTeam() { omp_set_num_threads(before_); }

 private:
  int before_;

 public:
#else
  explicit ThreadTeam(int) {}
#endif
  ThreadTeam(const ThreadTeam&) = delete;
  ThreadTeam& operator=(const ThreadTeam&) = delete;
};

}  // namespace onnxtrain

#endif  // ONNXTRAIN_RUNTIME_CPU_PARALLEL_FOR_H_
