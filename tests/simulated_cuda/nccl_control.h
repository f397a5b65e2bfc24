// SPDX-License-Identifier: Apache-2.0
// How tests control the simulated NCCL, and what they may ask of it. All of it is of the whole process.
#ifndef ONNXTRAIN_TESTS_SIMULATED_CUDA_NCCL_CONTROL_H_
#define ONNXTRAIN_TESTS_SIMULATED_CUDA_NCCL_CONTROL_H_

#include <cstdint>

extern "C" {
// The n-th call from now on fails, 0 being the next; -1: none. Calls that only read versions and texts do not count.
void simulated_nccl_fail_at(int n);
// The rank's collectives reach their stream and stay there until it is aborted; -1: none.
void simulated_nccl_drop_rank(int rank);
// The rank comes so late to every collective; -1: none.
void simulated_nccl_delay(int rank, int milliseconds);
// The next `count` calls of ncclGroupEnd are taken for never made.
void simulated_nccl_swallow_group_end(int count);
// ncclCommAbort takes so long before it does anything.
void simulated_nccl_delay_abort(int milliseconds);
// "calls", "collectives" (issued, captured ones included), "captured_collectives", "executed_collectives" (on all ranks
// together, replays included), "bytes" (by count and type of the issued), "groups", "aborts", "live_communicators",
// "open_groups" (threads that ended inside a group); -1 for any other name.
int64_t simulated_nccl_counter(const char* name);
}

#endif  // ONNXTRAIN_TESTS_SIMULATED_CUDA_NCCL_CONTROL_H_
