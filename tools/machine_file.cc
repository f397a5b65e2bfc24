// SPDX-License-Identifier: Apache-2.0
#include "tools/machine_file.h"

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

namespace onnxtrain {
namespace {

double* NumberOf(CostModel& model, const std::string& key) {
  if (key == "gflops") return &model.gflops;
  if (key == "tf32_gflops") return &model.tf32_gflops;
  if (key == "half_gflops") return &model.half_gflops;
  if (key == "memory_gbps") return &model.memory_gbps;
  if (key == "kernel_us") return &model.kernel_us;
  if (key == "link_gbps") return &model.link_gbps;
  if (key == "link_latency_us") return &model.link_latency_us;
  return nullptr;
}

}  // namespace

StatusOr<CostModel> ReadMachine(const std::string& name) {
  if (const std::optional<CostModel> known = FindMachine(name)) return *known;
  std::ifstream file(name);
  if (!file) return UsageError("'" + name + "' is neither cpu nor h200, and no file that can be read");
  const nlohmann::json json = nlohmann::json::parse(file, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return UsageError("'" + name + "' is not a JSON object");
  CostModel model;
  for (const auto& [key, value] : json.items()) {
    double* number = NumberOf(model, key);
    if (number == nullptr) {
      return UsageError("'" + name + "': unknown key '" + key +
                        "'; there are gflops, tf32_gflops, half_gflops, memory_gbps, kernel_us, link_gbps, "
                        "link_latency_us");
    }
    const double found = value.is_number() ? value.get<double>() : -1;
    const bool may_be_zero = key == "kernel_us" || key == "link_latency_us";
    if (!std::isfinite(found) || found < 0 || (found == 0 && !may_be_zero)) {
      return UsageError("'" + name + "': " + key + " must be a number above 0, found " + value.dump());
    }
    *number = found;
  }
  return model;
}

}  // namespace onnxtrain
