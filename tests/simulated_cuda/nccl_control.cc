// SPDX-License-Identifier: Apache-2.0
// How tests control the simulated NCCL, and what is the same for all communicators.
#include "tests/simulated_cuda/nccl_control.h"

#include <cstring>
#include <utility>

#include "tests/simulated_cuda/nccl_state.h"

namespace simulated_nccl {

Counters& counters() {
  static Counters all;
  return all;
}
Faults& faults() {
  static Faults all;
  return all;
}

bool PlantedFailure() {
  ++counters().calls;
  int64_t left = faults().calls_until_failure.load();
  while (left >= 0 && !faults().calls_until_failure.compare_exchange_weak(left, left - 1)) {
  }
  return left == 0;
}

}  // namespace simulated_nccl

using namespace simulated_nccl;  // NOLINT: the library's own names

#pragma GCC visibility push(default)
extern "C" {

void simulated_nccl_fail_at(int n) { faults().calls_until_failure = n; }
void simulated_nccl_drop_rank(int rank) { faults().dropped_rank = rank; }
void simulated_nccl_delay(int rank, int milliseconds) {
  faults().delay_milliseconds = milliseconds;
  faults().delayed_rank = rank;
}
void simulated_nccl_swallow_group_end(int count) { faults().swallowed_group_ends = count; }

void simulated_nccl_delay_abort(int milliseconds) { faults().abort_milliseconds = milliseconds; }

int64_t simulated_nccl_counter(const char* name) {
  const Counters& all = counters();
  const std::pair<const char*, const std::atomic<int64_t>*> fields[] = {
      {"calls", &all.calls},
      {"collectives", &all.collectives},
      {"captured_collectives", &all.captured_collectives},
      {"executed_collectives", &all.executed_collectives},
      {"bytes", &all.bytes},
      {"groups", &all.groups},
      {"aborts", &all.aborts},
      {"live_communicators", &all.live_communicators},
      {"open_groups", &all.open_groups},
  };
  for (const auto& [field, counter] : fields) {
    if (std::strcmp(field, name) == 0) return counter->load();
  }
  return -1;
}

ncclResult_t ncclGetVersion(int* version) {
  *version = NCCL_VERSION_CODE;
  return ncclSuccess;
}

const char* ncclGetErrorString(ncclResult_t result) {
  switch (result) {
    case ncclSuccess:
      return "no error";
    case ncclUnhandledCudaError:
      return "unhandled cuda error";
    case ncclSystemError:
      return "unhandled system error";
    case ncclInternalError:
      return "internal error";
    case ncclInvalidArgument:
      return "invalid argument";
    case ncclInvalidUsage:
      return "invalid usage";
    case ncclRemoteError:
      return "remote process exited or there was a network error";
    case ncclInProgress:
      return "NCCL operation in progress";
    default:
      return "unknown result code";
  }
}

}  // extern "C"
#pragma GCC visibility pop
