// SPDX-License-Identifier: Apache-2.0
#include "runtime/cpu/dnnl_matmul.h"

#include <oneapi/dnnl/dnnl.hpp>

namespace onnxtrain {
namespace {

using dnnl::memory;

memory::desc Describe(DType dtype, const std::vector<int64_t>& batch, const MatrixLayout& layout, int64_t rows,
                      int64_t columns) {
  memory::dims dims, strides;
  for (size_t i = 0; i < batch.size(); ++i) {
    dims.push_back(layout.batch[i] == 0 ? 1 : batch[i]);
    strides.push_back(layout.batch[i]);
  }
  // The stride of an axis of length one does not matter, but zero would be refused.
  for (size_t i = 0; i < batch.size(); ++i) {
    if (strides[i] == 0) strides[i] = rows * columns;
  }
  dims.insert(dims.end(), {rows, columns});
  strides.insert(strides.end(), {layout.row, layout.column});
  return memory::desc(dims, dtype == DType::kFloat ? memory::data_type::f32 : memory::data_type::bf16, strides);
}

dnnl::primitive_attr AttributesOf(float alpha, bool accumulate) {
  dnnl::post_ops post_ops;
#if DNNL_VERSION_MAJOR >= 3
  if (alpha != 1) post_ops.append_eltwise(dnnl::algorithm::eltwise_linear, alpha, 0);
#else
  if (alpha != 1) post_ops.append_eltwise(1, dnnl::algorithm::eltwise_linear, alpha, 0);
#endif
  if (accumulate) post_ops.append_sum(1);
  dnnl::primitive_attr attributes;
  attributes.set_post_ops(post_ops);
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attributes;
}

}  // namespace

Status DnnlSgemm(const SgemmArguments& s) {
  const dnnl_status_t status =
      dnnl_sgemm(s.transpose_a ? 'T' : 'N', s.transpose_b ? 'T' : 'N', s.rows, s.columns, s.depth, s.alpha, s.a,
                 s.a_leading, s.b, s.b_leading, s.beta, s.c, s.c_leading);
  return status == dnnl_success ? OkStatus() : DnnlError("multiply matrices", status);
}

StatusOr<std::unique_ptr<DnnlPrimitive>> CreateDnnlMatMul(DType dtype, const ProductShape& shape, float alpha,
                                                          bool accumulate) {
  try {
    const dnnl::engine engine(DnnlCpuEngine(), /*weak=*/true);
    const memory::desc a = Describe(dtype, shape.batch, shape.a, shape.rows, shape.depth);
    const memory::desc b = Describe(dtype, shape.batch, shape.b, shape.depth, shape.columns);
    const memory::desc c = Describe(dtype, shape.batch, shape.c, shape.rows, shape.columns);
    const dnnl::primitive_attr attributes = AttributesOf(alpha, accumulate);
#if DNNL_VERSION_MAJOR >= 3
    const dnnl::matmul::primitive_desc description(engine, a, b, c, attributes);
#else
    const dnnl::matmul::primitive_desc description(dnnl::matmul::desc(a, b, c), attributes, engine);
#endif
    return DnnlPrimitive::Create(description.get(), {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST});
  } catch (const dnnl::error& error) {
    return DnnlError("make a matrix product", error.status);
  }
}

}  // namespace onnxtrain
