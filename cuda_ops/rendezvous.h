// SPDX-License-Identifier: Apache-2.0
// How the processes of a world find each other: rank 0 listens, the others connect, all tell who they are and what they
// run, and all receive the bytes that rank 0 made (NcclGroup::NewId). Over TCP, once, at the start; no CUDA, no
// environment variable: who calls knows RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR and MASTER_PORT of torchrun, mpirun
// or srun.
//
// It trusts the network as much as NCCL does: nothing is encrypted, whoever speaks the protocol can join. Bytes that
// are not of this protocol are ignored and noted.
#ifndef ONNXTRAIN_CUDA_OPS_RENDEZVOUS_H_
#define ONNXTRAIN_CUDA_OPS_RENDEZVOUS_H_

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "graph/status.h"

namespace onnxtrain {

// What must be equal on all ranks. Lines of printable text, at most 256 bytes each.
struct RendezvousIdentity {
  std::string project_version;
  std::string library_version;  // NcclGroup::LibraryVersion()
  std::string configuration;    // digest of all that decides the sequence of collectives
};

struct RendezvousOptions {
  int rank = 0;
  int world_size = 1;
  int local_rank = 0;
  std::string master_address;  // host name or address where rank 0 runs
  int master_port = 29500;     // torchrun's own store listens here
  int port = 0;                // ours; 0: master_port + 1
  RendezvousIdentity identity;
  std::chrono::milliseconds timeout{300000};
};

struct Rendezvous {
  std::string payload;               // the same on all ranks
  std::vector<std::string> notices;  // rank 0: connections that were ignored, and why
};

// Blocks until all ranks have come. `make_payload` (at most 4096 bytes) is called on rank 0 only, after all have come.
// Communication: a rank did not come in time, two ranks claim one place, or an identity differs; then every rank that
// is connected gets the same message. Usage: options out of range, or the port is taken.
StatusOr<Rendezvous> Meet(const RendezvousOptions& options, const std::function<StatusOr<std::string>()>& make_payload);

}  // namespace onnxtrain

#endif  // ONNXTRAIN_CUDA_OPS_RENDEZVOUS_H_
