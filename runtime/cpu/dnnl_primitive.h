// SPDX-License-Identifier: Apache-2.0
// One oneDNN primitive, made once, run many times on tensors of fixed shapes. Scratch memory is the caller's.
//
// oneDNN binds the number of threads when a primitive is made and again when it runs: hold a ThreadTeam
// (runtime/cpu/parallel_for.h) of the same size both times. One thread at a time runs a primitive.
#ifndef ONNXTRAIN_RUNTIME_CPU_DNNL_PRIMITIVE_H_
#define ONNXTRAIN_RUNTIME_CPU_DNNL_PRIMITIVE_H_

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "graph/status.h"

struct dnnl_engine;  // opaque types of oneDNN's C interface
struct dnnl_primitive_desc;

namespace onnxtrain {

// The processor's engine, one for the program; oneDNN's engines are safe to share.
dnnl_engine* DnnlCpuEngine();

class DnnlPrimitive {
 public:
  // `arguments` are oneDNN's DNNL_ARG_* indices in the order in which Run will get their pointers; the layout of each
  // is the one that the description chose. The description is borrowed.
  static StatusOr<std::unique_ptr<DnnlPrimitive>> Create(const dnnl_primitive_desc* description,
                                                         std::vector<int> arguments);
  ~DnnlPrimitive();

  size_t workspace_bytes() const { return workspace_bytes_; }
  // Of the tensor that argument `position` points to.
  size_t argument_bytes(size_t position) const;
  // oneDNN's name of the implementation: "brg:avx512_core", "ref:any".
  const std::string& implementation() const { return implementation_; }
  // `workspace` is workspace_bytes() long and 64-byte aligned.
  Status Run(std::span<const void* const> pointers, std::byte* workspace);

 private:
  struct State;
  DnnlPrimitive();

  std::unique_ptr<State> state_;
  size_t workspace_bytes_ = 0;
  std::string implementation_;
};

// "oneDNN could not make a convolution: unimplemented"
Status DnnlError(std::string_view what, int code);

}  // namespace onnxtrain

#endif  // ONNXTRAIN_RUNTIME_CPU_DNNL_PRIMITIVE_H_
