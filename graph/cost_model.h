// SPDX-License-Identifier: Apache-2.0
// What a machine can do, in eight numbers: for the costs of graph/cost.h. Plain data, the same on every rank.
#ifndef ONNXTRAIN_GRAPH_COST_MODEL_H_
#define ONNXTRAIN_GRAPH_COST_MODEL_H_

#include <optional>
#include <string_view>

namespace onnxtrain {

// Defaults are those of one core of a small server.
struct CostModel {
  double gflops = 50;           // 1e9 floating-point operations a second, in matrix products
  double tf32_gflops = 0;       // the same of float whose factors may be rounded to TF32 (--tf32); 0: as gflops
  double half_gflops = 50;      // the same of bfloat16 and float16, sums in float
  double memory_gbps = 10;      // 1e9 bytes a second to and from memory
  double kernel_us = 1;         // of every launch, whatever it does
  double link_gbps = 10;        // 1e9 bits a second, each way (--link-gbps)
  double link_latency_us = 20;  // of every collective (--link-latency-us)
  int world_size = 1;
};

// "cpu": the defaults. "h200": eight of them joined by NVLink, at rates that good kernels reach and not at the peaks:
// 600 TFLOP/s of 16-bit products, 300 of TF32 (half, as the peaks are), 50 of float, 85 % of 4.3 TB/s, 340 GB/s and
// 7.8 us of NCCL's collectives, 2 us a launch. Nothing of it was measured by this project. Nothing for another name.
std::optional<CostModel> FindMachine(std::string_view name);

// The model where factors of float products may be rounded to TF32: gflops at the rate of tf32_gflops, if it has one.
CostModel WithTf32(CostModel model);

}  // namespace onnxtrain

#endif  // ONNXTRAIN_GRAPH_COST_MODEL_H_
