// SPDX-License-Identifier: Apache-2.0
#include "runtime/cpu/widened_kernel.h"

#include <algorithm>

#include "graph/op_registry.h"
#include "runtime/cpu/isa/half_loops.h"
#include "runtime/cpu/pieces.h"

namespace onnxtrain {
namespace {

constexpr size_t kAlignment = 64;

bool IsHalf(DType dtype) { return dtype == DType::kBfloat16 || dtype == DType::kFloat16; }
bool IsHalf(const Value* value) { return value != nullptr && IsHalf(value->type().dtype); }

bool HasHalf(const Node& node) {
  const auto half = [](const Value* value) { return IsHalf(value); };
  return std::any_of(node.inputs().begin(), node.inputs().end(), half) ||
         std::any_of(node.outputs().begin(), node.outputs().end(), half);
}

TensorType Widened(TensorType type) {
  if (IsHalf(type.dtype)) type.dtype = DType::kFloat;
  return type;
}

void WidenFloat16(const uint16_t* from, float* to, int64_t count) {
  for (int64_t i = 0; i < count; ++i) to[i] = Float16ToFloat(from[i]);
}

void NarrowToFloat16(const float* from, uint16_t* to, int64_t count) {
  for (int64_t i = 0; i < count; ++i) to[i] = FloatToFloat16(from[i]);
}

// A 16-bit tensor and its copy in the workspace.
struct Copied {
  size_t position = 0;  // among inputs or outputs
  int64_t elements = 0;
  DType dtype = DType::kUndefined;
  size_t offset = 0;  // bytes into the workspace
};

// Where the copies lie, one behind the other.
class CopyPlan {
 public:
  std::vector<Copied> Of(const std::vector<Value*>& values) {
    std::vector<Copied> copied;
    for (size_t i = 0; i < values.size(); ++i) {
      if (!IsHalf(values[i])) continue;
      const int64_t elements = values[i]->type().elements();
      copied.push_back({i, elements, values[i]->type().dtype, bytes_});
      const size_t size = static_cast<size_t>(elements) * sizeof(float);
      bytes_ += (size + kAlignment - 1) / kAlignment * kAlignment;
    }
    return copied;
  }
  size_t bytes() const { return bytes_; }

 private:
  size_t bytes_ = 0;
};

class WidenedKernel : public Kernel {
 public:
  WidenedKernel(const Node& node, int threads, std::unique_ptr<Kernel> single)
      : single_(std::move(single)),
        threads_(threads),
        inputs_(plan_.Of(node.inputs())),
        outputs_(plan_.Of(node.outputs())),
        input_pointers_(node.inputs().size()),
        output_pointers_(node.outputs().size()) {}

  size_t workspace_bytes() const override { return plan_.bytes() + single_->workspace_bytes(); }

  Status Launch(const LaunchArgs& args) override {
    std::copy(args.inputs.begin(), args.inputs.end(), input_pointers_.begin());
    std::copy(args.outputs.begin(), args.outputs.end(), output_pointers_.begin());
    for (const Copied& input : inputs_) {
      if (args.inputs[input.position] == nullptr) continue;
      Widen(input, args.input<uint16_t>(input.position), CopyOf(input, args));
      input_pointers_[input.position] = args.workspace + input.offset;
    }
    for (const Copied& output : outputs_) {
      if (args.outputs[output.position] != nullptr) output_pointers_[output.position] = args.workspace + output.offset;
    }
    LaunchArgs widened = args;
    widened.inputs = input_pointers_;
    widened.outputs = output_pointers_;
    widened.workspace = args.workspace + plan_.bytes();
    RETURN_IF_ERROR(single_->Launch(widened));
    for (const Copied& output : outputs_) {
      if (args.outputs[output.position] == nullptr) continue;
      Narrow(output, CopyOf(output, args), args.output<uint16_t>(output.position));
    }
    return OkStatus();
  }

 private:
  static float* CopyOf(const Copied& copied, const LaunchArgs& args) {
    return reinterpret_cast<float*>(args.workspace + copied.offset);
  }

  void Widen(const Copied& copied, const uint16_t* from, float* to) const {
    const auto widen = copied.dtype == DType::kBfloat16 ? widen_bfloat16_ : &WidenFloat16;
    ForEachPiece(threads_, copied.elements, kMoveGrain,
                 [&](int64_t begin, int64_t end) { widen(from + begin, to + begin, end - begin); });
  }

  void Narrow(const Copied& copied, const float* from, uint16_t* to) const {
    const auto narrow = copied.dtype == DType::kBfloat16 ? narrow_bfloat16_ : &NarrowToFloat16;
    ForEachPiece(threads_, copied.elements, kMoveGrain,
                 [&](int64_t begin, int64_t end) { narrow(from + begin, to + begin, end - begin); });
  }

  const std::unique_ptr<Kernel> single_;
  const int threads_;
  CopyPlan plan_;
  const std::vector<Copied> inputs_;
  const std::vector<Copied> outputs_;
  std::vector<const std::byte*> input_pointers_;  // what `single_` gets; a kernel runs on one stream at a time
  std::vector<std::byte*> output_pointers_;
  void (*const widen_bfloat16_)(const uint16_t*, float*, int64_t) = ONNXTRAIN_SELECT_ISA(WidenBfloat16);
  void (*const narrow_bfloat16_)(const float*, uint16_t*, int64_t) = ONNXTRAIN_SELECT_ISA(NarrowToBfloat16);
};

// The same node on floats, alone in a graph. Kernels look at their node only while they are made.
StatusOr<Node*> InsertSingle(const Node& node, Graph& graph) {
  NodeSpec spec{node.op(), {}, node.attributes(), {}, node.origin(), {}};
  std::map<const Value*, Value*> singles;
  for (const Value* input : node.inputs()) {
    Value*& single = singles[input];
    if (single == nullptr && input != nullptr) {
      const std::string name = "input" + std::to_string(singles.size());
      const Tensor* constant = input->constant();
      single = constant == nullptr ? graph.AddInput(name, Widened(input->type()))
                                   : graph.AddConstant(name, constant->CastTo(Widened(input->type()).dtype));
    }
    spec.inputs.push_back(single);
  }
  for (const Value* output : node.outputs()) {
    spec.output_names.push_back(output == nullptr ? "" : "output" + std::to_string(spec.output_names.size()));
    if (output != nullptr) spec.output_types.push_back(Widened(output->type()));
  }
  if (spec.output_types.size() != spec.output_names.size()) spec.output_types.clear();
  return graph.Insert(nullptr, std::move(spec));
}

StatusOr<std::unique_ptr<Kernel>> MakeWidened(const KernelFactory& native, const KernelContext& context) {
  Graph graph(OpRegistry::Default(), "widened");
  ASSIGN_OR_RETURN(const Node* node, InsertSingle(context.node, graph));
  KernelContext single{*node,           context.node_index, context.rank, context.world_size, context.accumulation,
                       context.threads, context.seed,       context.layout};
  ASSIGN_OR_RETURN(auto kernel, native(single));
  return std::unique_ptr<Kernel>(new WidenedKernel(context.node, context.threads, std::move(kernel)));
}

}  // namespace

KernelFactory ServeHalfTypes(KernelFactory native) {
  return [native = std::move(native)](const KernelContext& context) -> StatusOr<std::unique_ptr<Kernel>> {
    auto kernel = native(context);
    if (kernel.ok() || !HasHalf(context.node)) return kernel;
    auto widened = MakeWidened(native, context);
    return widened.ok() ? std::move(widened) : std::move(kernel);
  };
}

}  // namespace onnxtrain
