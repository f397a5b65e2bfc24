// SPDX-License-Identifier: Apache-2.0
// What the environment says of the machine and of other processes; the only place that reads it.
#ifndef ONNXTRAIN_TOOLS_ENVIRONMENT_H_
#define ONNXTRAIN_TOOLS_ENVIRONMENT_H_

#include "graph/status.h"

namespace onnxtrain {

// The world that torchrun, mpirun or srun announce, beside the ranks of this process. This build joins no world of
// several processes: Usage, naming the way out.
Status CheckWorld(int ranks);

// Compute threads of this process: OMP_NUM_THREADS, else the cores of the affinity mask and of the control group's
// quota.
int DefaultThreads();

}  // namespace onnxtrain

#endif  // ONNXTRAIN_TOOLS_ENVIRONMENT_H_
