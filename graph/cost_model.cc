// SPDX-License-Identifier: Apache-2.0
#include "graph/cost_model.h"

namespace onnxtrain {

std::optional<CostModel> FindMachine(std::string_view name) {
  CostModel model;
  if (name == "cpu") return model;
  if (name != "h200") return std::nullopt;
  model.gflops = 50e3;
  model.half_gflops = 600e3;
  model.tf32_gflops = model.half_gflops / 2;
  model.memory_gbps = 0.85 * 4300;
  model.kernel_us = 2;
  model.link_gbps = 340 * 8;
  model.link_latency_us = 7.8;
  return model;
}

CostModel WithTf32(CostModel model) {
  if (model.tf32_gflops > 0) model.gflops = model.tf32_gflops;
  return model;
}

}  // namespace onnxtrain
