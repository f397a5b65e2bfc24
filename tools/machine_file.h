// SPDX-License-Identifier: Apache-2.0
// The machine that --machine names: "cpu", "h200", or a JSON file such as tools/gpu_check writes from measurements:
//   {"gflops": 5e4, "tf32_gflops": 3e5, "half_gflops": 6e5, "memory_gbps": 3655, "kernel_us": 2, "link_gbps": 2720,
//    "link_latency_us": 7.8}
// with the meaning of graph/cost_model.h. What a file leaves out is that of "cpu".
#ifndef ONNXTRAIN_TOOLS_MACHINE_FILE_H_
#define ONNXTRAIN_TOOLS_MACHINE_FILE_H_

#include <string>

#include "graph/cost_model.h"
#include "graph/status.h"

namespace onnxtrain {

// Usage for a name that is neither a machine nor a file, and for keys or numbers that make no sense.
StatusOr<CostModel> ReadMachine(const std::string& name);

}  // namespace onnxtrain

#endif  // ONNXTRAIN_TOOLS_MACHINE_FILE_H_
