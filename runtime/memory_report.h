// SPDX-License-Identifier: Apache-2.0
// What the memory of a rank is used for: bytes by class as planned, and beside them the formula that says what they
// must be.
#ifndef ONNXTRAIN_RUNTIME_MEMORY_REPORT_H_
#define ONNXTRAIN_RUNTIME_MEMORY_REPORT_H_

#include <cstddef>
#include <string>
#include <vector>

#include "graph/program.h"
#include "runtime/execution_plan.h"

namespace onnxtrain {

struct MemoryLine {
  std::string name;      // "parameters", "moments", "replicas", "accumulators", "in-flight buckets", ...
  size_t bytes = 0;      // sum of the sizes of the values
  std::string formula;   // "2*(P+padding)/N"; "" where there is none
  size_t expected = 0;   // what the formula gives, from the Layout and the parameters alone
  bool at_most = false;  // the formula is an upper bound
};

struct MemoryReport {
  std::vector<MemoryLine> lines;
  size_t persistent_bytes = 0;  // of the region: the states and constants of all graphs, aligned
  size_t transient_bytes = 0;   // of the largest plan
  size_t transient_lower_bound = 0;
  double padding = 0;  // elements of padding over elements of parameters in the Layout
  // Every line with a formula equals it, or is at most it.
  bool FormulasHold() const;
};

// With P the bytes of the trained parameters, N the ranks, k the moments of the optimizer (all of the parameters'
// type):
//   ZeRO   parameters       moments            replicas    accumulators     buckets in flight
//   0      P                k*P                -           P                P+padding
//   1      (P+padding)/N    k*(P+padding)/N    P+padding   P                P+padding
//   2      (P+padding)/N    k*(P+padding)/N    P+padding   (P+padding)/N    at most P+padding; two neighbouring buckets
//                                                                           where their bytes are used again
// With --dtype bf16 the replicas of the float parameters that are gathered in 16 bits, whose padded bytes are H, take
// H/2 less; with --reduce-dtype bf16 buckets in flight take half.
// Accumulators exist with several micro-batches, padding and buckets with several ranks; on one stream a bucket is in
// flight only until its collective is done.
//
// `plan` is that of `graph`, a graph of the program; `stage` the ZeRO stage that the program was made for.
MemoryReport ReportMemory(const Program& program, const PersistentPlacements& persistent, const Graph& graph,
                          const ExecutionPlan& plan, int stage);

// Most bytes of gradient buckets that are held at a time: from the first write until stream 0 knows that the last
// access is over.
size_t BucketsInFlight(const Graph& graph, const ExecutionPlan& plan);

// A table, one class a line.
std::string ToString(const MemoryReport& report);

}  // namespace onnxtrain

#endif  // ONNXTRAIN_RUNTIME_MEMORY_REPORT_H_
