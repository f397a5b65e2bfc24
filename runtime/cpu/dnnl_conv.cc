// SPDX-License-Identifier: Apache-2.0
#include "runtime/cpu/dnnl_conv.h"

#include <algorithm>
#include <oneapi/dnnl/dnnl.hpp>

#include "runtime/cpu/dnnl_primitive.h"
#include "runtime/cpu/parallel_for.h"

namespace onnxtrain {
namespace {

using dnnl::memory;

constexpr size_t kAlignment = 64;

memory::format_tag PlainActivations(size_t axes) {
  constexpr memory::format_tag kTags[] = {memory::format_tag::ncw, memory::format_tag::nchw, memory::format_tag::ncdhw};
  return kTags[axes - 1];
}

memory::format_tag PlainWeights(size_t axes, bool grouped) {
  constexpr memory::format_tag kTags[] = {memory::format_tag::oiw, memory::format_tag::oihw, memory::format_tag::oidhw};
  constexpr memory::format_tag kGrouped[] = {memory::format_tag::goiw, memory::format_tag::goihw,
                                             memory::format_tag::goidhw};
  return (grouped ? kGrouped : kTags)[axes - 1];
}

// Everything that oneDNN is told of a convolution.
struct Problem {
  Problem(memory::data_type type, const ConvShape& shape, bool plain, bool has_bias)
      : strides(shape.window.strides), pads_begin(shape.window.pads_begin), pads_end(shape.window.pads_end) {
    const size_t axes = shape.input.size();
    memory::dims x = {shape.batch, shape.channels}, y = {shape.batch, shape.filters};
    memory::dims w = {shape.filters / shape.groups, shape.channels / shape.groups};
    if (shape.groups > 1) w.insert(w.begin(), shape.groups);
    x.insert(x.end(), shape.input.begin(), shape.input.end());
    y.insert(y.end(), shape.output.begin(), shape.output.end());
    w.insert(w.end(), shape.window.kernel.begin(), shape.window.kernel.end());
    for (int64_t dilation : shape.window.dilations) dilations.push_back(dilation - 1);
    plain_src = memory::desc(x, type, PlainActivations(axes));
    plain_dst = memory::desc(y, type, PlainActivations(axes));
    plain_weights = memory::desc(w, type, PlainWeights(axes, shape.groups > 1));
    const auto any = memory::format_tag::any;
    src = plain ? plain_src : memory::desc(x, type, any);
    dst = plain ? plain_dst : memory::desc(y, type, any);
    weights = memory::desc(w, type, any);
    if (has_bias) bias = memory::desc({shape.filters}, type, memory::format_tag::x);
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  }

  memory::dims strides, dilations, pads_begin, pads_end;
  memory::desc src, dst, weights, bias;  // bias: empty where there is none
  memory::desc plain_src, plain_dst, plain_weights;
  dnnl::primitive_attr attributes;
};

constexpr auto kDirect = dnnl::algorithm::convolution_direct;

// oneDNN 2 describes an operation apart from its primitive; 3 does it in one.
#if DNNL_VERSION_MAJOR >= 3
dnnl::convolution_forward::primitive_desc Forward(const dnnl::engine& engine, const Problem& p) {
  return {engine,      dnnl::prop_kind::forward_training,
          kDirect,     p.src,
          p.weights,   p.bias,
          p.dst,       p.strides,
          p.dilations, p.pads_begin,
          p.pads_end,  p.attributes};
}
dnnl::convolution_backward_data::primitive_desc BackwardData(const dnnl::engine& engine, const Problem& p) {
  return {engine,      kDirect,      p.src,      p.weights,          p.dst,       p.strides,
          p.dilations, p.pads_begin, p.pads_end, Forward(engine, p), p.attributes};
}
dnnl::convolution_backward_weights::primitive_desc BackwardWeights(const dnnl::engine& engine, const Problem& p) {
  return {engine,      kDirect,      p.src,      p.weights,          p.bias,      p.dst, p.strides,
          p.dilations, p.pads_begin, p.pads_end, Forward(engine, p), p.attributes};
}
#else
dnnl::convolution_forward::primitive_desc Forward(const dnnl::engine& engine, const Problem& p) {
  return {dnnl::convolution_forward::desc(dnnl::prop_kind::forward_training, kDirect, p.src, p.weights, p.bias, p.dst,
                                          p.strides, p.dilations, p.pads_begin, p.pads_end),
          p.attributes, engine};
}
dnnl::convolution_backward_data::primitive_desc BackwardData(const dnnl::engine& engine, const Problem& p) {
  return {dnnl::convolution_backward_data::desc(kDirect, p.src, p.weights, p.dst, p.strides, p.dilations, p.pads_begin,
                                                p.pads_end),
          p.attributes, engine, Forward(engine, p)};
}
dnnl::convolution_backward_weights::primitive_desc BackwardWeights(const dnnl::engine& engine, const Problem& p) {
  return {dnnl::convolution_backward_weights::desc(kDirect, p.src, p.weights, p.bias, p.dst, p.strides, p.dilations,
                                                   p.pads_begin, p.pads_end),
          p.attributes, engine, Forward(engine, p)};
}
#endif

size_t Aligned(size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

// A tensor of the convolution: a copy in oneDNN's layout lies in the workspace, or the user's own bytes serve.
class Operand {
 public:
  Status Prepare(const memory::desc& plain, const memory::desc& chosen, bool result, size_t* workspace) {
    if (plain == chosen) return OkStatus();
    const dnnl::engine engine(DnnlCpuEngine(), /*weak=*/true);
    dnnl::primitive_attr attributes;
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    const dnnl::reorder::primitive_desc description(engine, result ? chosen : plain, engine, result ? plain : chosen,
                                                    attributes);
    ASSIGN_OR_RETURN(reorder_, DnnlPrimitive::Create(description.get(), {DNNL_ARG_FROM, DNNL_ARG_TO}));
    offset_ = *workspace;
    *workspace += Aligned(chosen.get_size());
    return OkStatus();
  }
  size_t scratch_bytes() const { return reorder_ == nullptr ? 0 : reorder_->workspace_bytes(); }
  // What the convolution reads or writes in place of `plain`.
  const void* At(const void* plain, std::byte* workspace) const {
    return reorder_ == nullptr ? plain : workspace + offset_;
  }
  Status CopyIn(const void* plain, std::byte* workspace, std::byte* scratch) {
    if (reorder_ == nullptr) return OkStatus();
    const void* pointers[] = {plain, workspace + offset_};
    return reorder_->Run(pointers, scratch);
  }
  Status CopyOut(void* plain, std::byte* workspace, std::byte* scratch) {
    if (reorder_ == nullptr) return OkStatus();
    const void* pointers[] = {workspace + offset_, plain};
    return reorder_->Run(pointers, scratch);
  }

 private:
  std::unique_ptr<DnnlPrimitive> reorder_;  // null: the layouts are equal
  size_t offset_ = 0;
};

class DnnlConvolution : public Convolution {
 public:
  explicit DnnlConvolution(int threads) : threads_(threads) {}

  Status Prepare(ConvDirection direction, const Problem& p, bool bias) {
    const dnnl::engine engine(DnnlCpuEngine(), /*weak=*/true);
    if (direction == ConvDirection::kForward) {
      const auto made = Forward(engine, p);
      std::vector<int> arguments = {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST};
      if (bias) arguments.push_back(DNNL_ARG_BIAS);
      return Finish(made.get(), arguments, p.plain_src, made.src_desc(), p.plain_weights, made.weights_desc(),
                    p.plain_dst, made.dst_desc());
    }
    if (direction == ConvDirection::kInputGradient) {
      const auto made = BackwardData(engine, p);
      return Finish(made.get(), {DNNL_ARG_DIFF_DST, DNNL_ARG_WEIGHTS, DNNL_ARG_DIFF_SRC}, p.plain_dst,
                    made.diff_dst_desc(), p.plain_weights, made.weights_desc(), p.plain_src, made.diff_src_desc());
    }
    const auto made = BackwardWeights(engine, p);
    std::vector<int> arguments = {DNNL_ARG_DIFF_DST, DNNL_ARG_SRC, DNNL_ARG_DIFF_WEIGHTS};
    if (bias) arguments.push_back(DNNL_ARG_DIFF_BIAS);
    return Finish(made.get(), arguments, p.plain_dst, made.diff_dst_desc(), p.plain_src, made.src_desc(),
                  p.plain_weights, made.diff_weights_desc());
  }

  bool is_reference_code() const { return primitive_->implementation().find("ref") != std::string::npos; }
  size_t workspace_bytes() const override { return operand_bytes_ + scratch_bytes_; }

  Status Run(const void* a, const void* b, void* result, void* bias, std::byte* workspace) override {
    const ThreadTeam team(threads_);
    std::byte* scratch = workspace + operand_bytes_;
    RETURN_IF_ERROR(a_.CopyIn(a, workspace, scratch));
    RETURN_IF_ERROR(b_.CopyIn(b, workspace, scratch));
    const void* pointers[] = {a_.At(a, workspace), b_.At(b, workspace), result_.At(result, workspace), bias};
    RETURN_IF_ERROR(primitive_->Run(std::span(pointers).first(arguments_), scratch));
    return result_.CopyOut(result, workspace, scratch);
  }

 private:
  Status Finish(const dnnl_primitive_desc* description, const std::vector<int>& arguments, const memory::desc& plain_a,
                const memory::desc& chosen_a, const memory::desc& plain_b, const memory::desc& chosen_b,
                const memory::desc& plain_result, const memory::desc& chosen_result) {
    ASSIGN_OR_RETURN(primitive_, DnnlPrimitive::Create(description, arguments));
    arguments_ = arguments.size();
    RETURN_IF_ERROR(a_.Prepare(plain_a, chosen_a, false, &operand_bytes_));
    RETURN_IF_ERROR(b_.Prepare(plain_b, chosen_b, false, &operand_bytes_));
    RETURN_IF_ERROR(result_.Prepare(plain_result, chosen_result, true, &operand_bytes_));
    scratch_bytes_ =
        std::max({primitive_->workspace_bytes(), a_.scratch_bytes(), b_.scratch_bytes(), result_.scratch_bytes()});
    return OkStatus();
  }

  const int threads_;
  std::unique_ptr<DnnlPrimitive> primitive_;
  size_t arguments_ = 0;
  Operand a_, b_, result_;
  size_t operand_bytes_ = 0;
  size_t scratch_bytes_ = 0;
};

bool PlainIsFaster(ConvDirection direction, const ConvShape& shape) {
  const Window& window = shape.window;
  const auto all = [](const std::vector<int64_t>& list, int64_t value) {
    return std::all_of(list.begin(), list.end(), [&](int64_t element) { return element == value; });
  };
  if (shape.groups != 1) return false;
  if (direction == ConvDirection::kInputGradient && shape.channels < 8) return true;
  return all(window.kernel, 1) && all(window.strides, 1) && all(window.pads_begin, 0) && all(window.pads_end, 0);
}

}  // namespace

StatusOr<std::unique_ptr<Convolution>> CreateDnnlConvolution(DType dtype, ConvDirection direction,
                                                             const ConvShape& shape, bool bias, int threads) {
  const ThreadTeam team(threads);
  auto convolution = std::make_unique<DnnlConvolution>(threads);
  try {
    const auto type = dtype == DType::kBfloat16 ? memory::data_type::bf16 : memory::data_type::f32;
    RETURN_IF_ERROR(convolution->Prepare(direction, Problem(type, shape, PlainIsFaster(direction, shape), bias), bias));
  } catch (const dnnl::error& error) {
    return DnnlError("make a convolution", error.status);
  }
  if (dtype == DType::kBfloat16 && convolution->is_reference_code()) {
    return InvalidModelError("this processor has no convolutions of bfloat16");
  }
  return std::unique_ptr<Convolution>(std::move(convolution));
}

}  // namespace onnxtrain
