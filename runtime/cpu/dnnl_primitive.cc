// SPDX-License-Identifier: Apache-2.0
#include "runtime/cpu/dnnl_primitive.h"

#include <oneapi/dnnl/dnnl_debug.h>

#include <oneapi/dnnl/dnnl.hpp>

namespace onnxtrain {

Status DnnlError(std::string_view what, int code) {
  return InternalError("oneDNN could not " + std::string(what) + ": " +
                       dnnl_status2str(static_cast<dnnl_status_t>(code)));
}

dnnl_engine* DnnlCpuEngine() {
  static const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  return engine.get();
}

struct DnnlPrimitive::State {
  ~State() {
    for (dnnl_exec_arg_t& argument : arguments) dnnl_memory_destroy(argument.memory);
    dnnl_primitive_destroy(primitive);
    dnnl_stream_destroy(stream);
  }

  Status AddArgument(const dnnl_primitive_desc* description, int index) {
    const auto* layout = dnnl_primitive_desc_query_md(description, dnnl_query_exec_arg_md, index);
    dnnl_exec_arg_t argument{index, nullptr};
    const dnnl_status_t made = dnnl_memory_create(&argument.memory, layout, DnnlCpuEngine(), DNNL_MEMORY_NONE);
    if (made != dnnl_success) return DnnlError("describe a tensor", made);
    arguments.push_back(argument);
    bytes.push_back(dnnl_memory_desc_get_size(layout));
    return OkStatus();
  }

  dnnl_primitive_t primitive = nullptr;
  dnnl_stream_t stream = nullptr;
  std::vector<dnnl_exec_arg_t> arguments;  // the scratch memory is the last
  std::vector<size_t> bytes;
};

DnnlPrimitive::DnnlPrimitive() : state_(std::make_unique<State>()) {}
DnnlPrimitive::~DnnlPrimitive() = default;

size_t DnnlPrimitive::argument_bytes(size_t position) const { return state_->bytes[position]; }

StatusOr<std::unique_ptr<DnnlPrimitive>> DnnlPrimitive::Create(const dnnl_primitive_desc* description,
                                                               std::vector<int> arguments) {
  std::unique_ptr<DnnlPrimitive> made(new DnnlPrimitive);
  State& state = *made->state_;
  dnnl_status_t status = dnnl_primitive_create(&state.primitive, description);
  if (status != dnnl_success) return DnnlError("make a primitive", status);
  status = dnnl_stream_create(&state.stream, DnnlCpuEngine(), dnnl_stream_default_flags);
  if (status != dnnl_success) return DnnlError("make a stream", status);
  arguments.push_back(DNNL_ARG_SCRATCHPAD);
  for (int index : arguments) RETURN_IF_ERROR(state.AddArgument(description, index));
  made->workspace_bytes_ = state.bytes.back();
  const char* name = nullptr;
  dnnl_primitive_desc_query(description, dnnl_query_impl_info_str, 0, &name);
  made->implementation_ = name == nullptr ? "" : name;
  return made;
}

Status DnnlPrimitive::Run(std::span<const void* const> pointers, std::byte* workspace) {
  std::vector<dnnl_exec_arg_t>& arguments = state_->arguments;
  CHECK(pointers.size() + 1 == arguments.size());
  for (size_t i = 0; i < pointers.size(); ++i) {
    dnnl_memory_set_data_handle(arguments[i].memory, const_cast<void*>(pointers[i]));
  }
  dnnl_memory_set_data_handle(arguments.back().memory, workspace);
  const dnnl_status_t status =
      dnnl_primitive_execute(state_->primitive, state_->stream, static_cast<int>(arguments.size()), arguments.data());
  return status == dnnl_success ? OkStatus() : DnnlError("run a primitive", status);
}

}  // namespace onnxtrain
