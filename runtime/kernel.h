// SPDX-License-Identifier: Apache-2.0
// A kernel is the code that runs one node on one device. It is made once, when the executor is created: shapes and
// attributes are read, primitives built, tables filled there. Launch only does (CPU) or enqueues (CUDA) the work: it
// never allocates, never blocks on another stream, and knows nothing of order.
#ifndef ONNXTRAIN_RUNTIME_KERNEL_H_
#define ONNXTRAIN_RUNTIME_KERNEL_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "graph/graph.h"
#include "graph/layout.h"
#include "graph/status.h"
#include "runtime/kernel_fault.h"

namespace onnxtrain {

class Communicator;

// What differs from run to run of the same plan.
struct RunContext {
  int64_t micro_batch = 0;  // 0 .. accumulation-1
};

// The status word of a rank: 0, or (code << 32 | node index + 1) of the first bad thing a kernel saw in this step. Kernels
// set it with SetStatusWord; onnxtrain.StepSums reads and clears it. A step whose word is set updates nothing.
// Faults are listed in kernel_fault.h.

struct LaunchArgs {
  // One pointer per node input and output; null where omitted. Types are those of the node's values.
  std::span<const std::byte* const> inputs;
  std::span<std::byte* const> outputs;
  std::byte* workspace = nullptr;        // workspace_bytes() long, 64-byte aligned
  Communicator* communicator = nullptr;  // null unless the node is a collective
  uint64_t* status_word = nullptr;       // device memory
  void* native_stream = nullptr;         // cudaStream_t on CUDA, null on the CPU
  const RunContext* run = nullptr;

  template <typename T>
  const T* input(size_t index) const {
    return index < inputs.size() ? reinterpret_cast<const T*>(inputs[index]) : nullptr;
  }
  template <typename T>
  T* output(size_t index) const {
    return index < outputs.size() ? reinterpret_cast<T*>(outputs[index]) : nullptr;
  }
};

class Kernel {
 public:
  virtual ~Kernel() = default;
  // Scratch bytes that Launch wants; known from creation on.
  virtual size_t workspace_bytes() const { return 0; }
  virtual Status Launch(const LaunchArgs& args) = 0;
};

// Everything a kernel may know when it is made. References are valid during creation only, except `layout`.
struct KernelContext {
  const Node& node;
  int node_index = 0;  // place of the node in its graph, for the status word
  int rank = 0;
  int world_size = 1;
  int accumulation = 1;
  int threads = 1;                 // team size of the rank's compute thread; 1 on other streams
  uint64_t seed = 0;               // of random draws
  const Layout* layout = nullptr;  // outlives the kernel

  const TensorType& input_type(size_t index) const { return node.input(index)->type(); }
  const TensorType& output_type(size_t index) const { return node.output(index)->type(); }
};

using KernelFactory = std::function<StatusOr<std::unique_ptr<Kernel>>(const KernelContext&)>;

class KernelRegistry {
 public:
  // CHECKs that the op is new.
  void Add(std::string op, KernelFactory factory);
  bool Has(std::string_view op) const { return factories_.find(op) != factories_.end(); }
  // Null when there is none.
  const KernelFactory* Find(std::string_view op) const;
  std::vector<std::string> Ops() const;  // sorted
  // Fails with InvalidModel naming node, op and types when there is no kernel or it refuses the types.
  StatusOr<std::unique_ptr<Kernel>> Create(const KernelContext& context) const;

 private:
  std::map<std::string, KernelFactory, std::less<>> factories_;
};

// "no CPU kernel of Conv for float16 (node ...)": what a factory returns for types it does not serve.
Status UnsupportedTypes(const KernelContext& context);

}  // namespace onnxtrain

#endif  // ONNXTRAIN_RUNTIME_KERNEL_H_
