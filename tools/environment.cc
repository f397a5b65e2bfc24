// SPDX-License-Identifier: Apache-2.0
#include "tools/environment.h"

#include <sched.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <string>

#include "tools/option_set.h"

namespace onnxtrain {
namespace {

struct WorldVariables {
  const char* rank;
  const char* size;
};

// torchrun, Open MPI, MPICH and Intel MPI, Slurm.
constexpr WorldVariables kWorlds[] = {{"RANK", "WORLD_SIZE"},
                                      {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
                                      {"PMI_RANK", "PMI_SIZE"},
                                      {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS"}};

// Cores that the control group's quota allows; 0 for no quota.
int QuotaCores() {
  std::ifstream file("/sys/fs/cgroup/cpu.max");
  std::string quota;
  double period = 0;
  if (!(file >> quota >> period) || quota == "max" || period <= 0) return 0;
  return std::max(1, static_cast<int>(std::atof(quota.c_str()) / period));
}

}  // namespace

Status CheckWorld(int ranks) {
  for (const WorldVariables& world : kWorlds) {
    const char* rank = std::getenv(world.rank);
    const char* size = std::getenv(world.size);
    if (rank == nullptr || size == nullptr) continue;
    const StatusOr<int64_t> number = ParseInt(size);
    if (!number.ok() || *number == 1) return OkStatus();
    if (ranks > 1) {
      return UsageError("--ranks " + std::to_string(ranks) + " contradicts the world of " + size + " processes that " +
                        world.size + " announces");
    }
    return UsageError(std::string(world.size) + "=" + size +
                      ": this build cannot join a world of several processes; use --ranks " + size +
                      " in one process, or unset " + world.size);
  }
  return OkStatus();
}

int DefaultThreads() {
  if (const char* text = std::getenv("OMP_NUM_THREADS")) {
    const StatusOr<int64_t> number = ParseInt(text);
    if (number.ok() && *number >= 1) return static_cast<int>(*number);
  }
  cpu_set_t mask;
  CPU_ZERO(&mask);
  const int cores = sched_getaffinity(0, sizeof(mask), &mask) == 0 ? CPU_COUNT(&mask) : 1;
  const int quota = QuotaCores();
  return quota > 0 ? std::min(cores, quota) : cores;
}

}  // namespace onnxtrain
