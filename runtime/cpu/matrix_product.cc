// SPDX-License-Identifier: Apache-2.0
#include "runtime/cpu/matrix_product.h"

#include <algorithm>
#include <atomic>
#include <string>
#include <type_traits>

#include "graph/tensor.h"
#include "runtime/cpu/dnnl_matmul.h"
#include "runtime/cpu/isa/gemm.h"
#include "runtime/cpu/parallel_for.h"

namespace onnxtrain {
namespace {

int64_t BatchSize(const ProductShape& shape) { return ElementsOf(shape.batch); }

// Where the matrices of batch index `index` begin.
struct Offsets {
  int64_t a = 0, b = 0, c = 0;
};

Offsets OffsetsAt(const ProductShape& shape, int64_t index) {
  Offsets offsets;
  for (size_t axis = shape.batch.size(); axis-- > 0;) {
    const int64_t place = index % shape.batch[axis];
    index /= shape.batch[axis];
    offsets.a += place * shape.a.batch[axis];
    offsets.b += place * shape.b.batch[axis];
    offsets.c += place * shape.c.batch[axis];
  }
  return offsets;
}

std::vector<Offsets> AllOffsets(const ProductShape& shape) {
  std::vector<Offsets> offsets;
  for (int64_t i = 0; i < BatchSize(shape); ++i) offsets.push_back(OffsetsAt(shape, i));
  return offsets;
}

class NothingToDo : public MatrixProduct {
 public:
  Status Run(const void*, const void*, void*, std::byte*) override { return OkStatus(); }
};

// A sum over no terms.
template <typename T>
class ZeroProduct : public MatrixProduct {
 public:
  explicit ZeroProduct(const ProductShape& shape) : shape_(shape), offsets_(AllOffsets(shape)) {}
  Status Run(const void*, const void*, void* c, std::byte*) override {
    for (const Offsets& offsets : offsets_) {
      for (int64_t i = 0; i < shape_.rows * shape_.columns; ++i) {
        static_cast<T*>(c)[offsets.c + i / shape_.columns * shape_.c.row + i % shape_.columns * shape_.c.column] = 0;
      }
    }
    return OkStatus();
  }

 private:
  const ProductShape shape_;
  const std::vector<Offsets> offsets_;
};

// dnnl_sgemm on the whole team, or on one thread for each matrix of a batch.
class SgemmProduct : public MatrixProduct {
 public:
  SgemmProduct(const ProductShape& shape, StoredMatrix a, StoredMatrix b, StoredMatrix c, float alpha, bool accumulate, int threads)
      : call_{a.transposed,
              b.transposed,
              shape.rows,
              shape.columns,
              shape.depth,
              alpha,
              nullptr,
              a.leading,
              nullptr,
              b.leading,
              accumulate ? 1.0f : 0.0f,
              nullptr,
              c.leading},
        offsets_(AllOffsets(shape)),
        threads_(threads) {}

  Status Run(const void* a, const void* b, void* c, std::byte*) override {
    const ThreadTeam team(threads_);
    if (offsets_.size() == 1) return RunOne(offsets_[0], a, b, c);
    std::atomic<bool> failed = false;
    ParallelFor(threads_, static_cast<int64_t>(offsets_.size()), 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        if (!RunOne(offsets_[i], a, b, c).ok()) failed = true;
      }
    });
    return failed ? InternalError("oneDNN could not multiply a batch of matrices") : OkStatus();
  }

 private:
  Status RunOne(const Offsets& offsets, const void* a, const void* b, void* c) const {
    SgemmArguments call = call_;
    call.a = static_cast<const float*>(a) + offsets.a;
    call.b = static_cast<const float*>(b) + offsets.b;
    call.c = static_cast<float*>(c) + offsets.c;
    return DnnlSgemm(call);
  }

  const SgemmArguments call_;
  const std::vector<Offsets> offsets_;
  const int threads_;
};

class DnnlProduct : public MatrixProduct {
 public:
  DnnlProduct(std::unique_ptr<DnnlPrimitive> primitive, int threads)
      : primitive_(std::move(primitive)), threads_(threads) {}
  size_t workspace_bytes() const override { return primitive_->workspace_bytes(); }
  Status Run(const void* a, const void* b, void* c, std::byte* workspace) override {
    const ThreadTeam team(threads_);
    const void* pointers[] = {a, b, c};
    return primitive_->Run(pointers, workspace);
  }

 private:
  const std::unique_ptr<DnnlPrimitive> primitive_;
  const int threads_;
};

// Own loops: tasks are blocks of C, dealt out in order.
template <typename T>
class PlainProduct : public MatrixProduct {
 public:
  PlainProduct(const ProductShape& shape, double alpha, bool accumulate, int threads)
      : shape_(shape),
        offsets_(AllOffsets(shape)),
        alpha_(static_cast<T>(alpha)),
        accumulate_(accumulate),
        row_blocks_((shape.rows + kGemmRowBlock - 1) / kGemmRowBlock),
        column_blocks_((shape.columns + kGemmColumnBlock - 1) / kGemmColumnBlock),
        pieces_(std::min<int64_t>(threads, Tasks())) {
    if constexpr (std::is_same_v<T, float>) gemm_ = ONNXTRAIN_SELECT_ISA(GemmFloat);
    if constexpr (std::is_same_v<T, double>) gemm_ = ONNXTRAIN_SELECT_ISA(GemmDouble);
  }
  size_t workspace_bytes() const override { return pieces_ * kGemmPackElements * sizeof(T); }
  Status Run(const void* a, const void* b, void* c, std::byte* workspace) override {
    ParallelFor(static_cast<int>(pieces_), pieces_, 1, [&](int64_t first, int64_t last) {
      for (int64_t piece = first; piece < last; ++piece) {
        T* pack = reinterpret_cast<T*>(workspace) + piece * kGemmPackElements;
        for (int64_t task = Tasks() * piece / pieces_; task < Tasks() * (piece + 1) / pieces_; ++task) {
          RunTask(task, static_cast<const T*>(a), static_cast<const T*>(b), static_cast<T*>(c), pack);
        }
      }
    });
    return OkStatus();
  }

 private:
  int64_t Tasks() const { return static_cast<int64_t>(offsets_.size()) * row_blocks_ * column_blocks_; }

  void RunTask(int64_t task, const T* a, const T* b, T* c, T* pack) const {
    const Offsets& offsets = offsets_[task / (row_blocks_ * column_blocks_)];
    const int64_t row = task / column_blocks_ % row_blocks_ * kGemmRowBlock;
    const int64_t column = task % column_blocks_ * kGemmColumnBlock;
    gemm_({std::min(kGemmRowBlock, shape_.rows - row), std::min(kGemmColumnBlock, shape_.columns - column),
           shape_.depth, alpha_, a + offsets.a + row * shape_.a.row, shape_.a.row, shape_.a.column,
           b + offsets.b + column * shape_.b.column, shape_.b.row, shape_.b.column,
           c + offsets.c + row * shape_.c.row + column * shape_.c.column, shape_.c.row, shape_.c.column, accumulate_,
           pack});
  }

  const ProductShape shape_;
  const std::vector<Offsets> offsets_;
  const T alpha_;
  const bool accumulate_;
  const int64_t row_blocks_;
  const int64_t column_blocks_;
  const int64_t pieces_;
  void (*gemm_)(const GemmArguments<T>&) = nullptr;
};

// C^T = B^T A^T.
class SwappedProduct : public MatrixProduct {
 public:
  explicit SwappedProduct(std::unique_ptr<MatrixProduct> product) : product_(std::move(product)) {}
  size_t workspace_bytes() const override { return product_->workspace_bytes(); }
  Status Run(const void* a, const void* b, void* c, std::byte* workspace) override {
    return product_->Run(b, a, c, workspace);
  }

 private:
  const std::unique_ptr<MatrixProduct> product_;
};

using Made = StatusOr<std::unique_ptr<MatrixProduct>>;

#ifdef ONNXTRAIN_SERIAL_KERNELS
constexpr bool kUseDnnl = false;
#else
constexpr bool kUseDnnl = true;
#endif

// Of single matrices. dnnl_sgemm reads a transposed A of long rows anew for few columns and is 0.7 to 0.9 of the
// primitive there; elsewhere it is equal or better, up to 3x where the rows of B are 12 KiB.
bool PrimitiveIsFaster(const ProductShape& shape) {
  return shape.a.row == 1 && shape.a.column >= 1024 && shape.rows >= 1024 && shape.columns <= 512;
}

// Null where oneDNN has nothing but its reference code.
std::unique_ptr<MatrixProduct> CreatePrimitive(DType dtype, const ProductShape& shape, double alpha, bool accumulate,
                                               int threads) {
  const ThreadTeam team(threads);
  auto primitive = CreateDnnlMatMul(dtype, shape, static_cast<float>(alpha), accumulate);
  if (!primitive.ok() || (*primitive)->implementation().find("ref") != std::string::npos) return nullptr;
  return std::make_unique<DnnlProduct>(std::move(*primitive), threads);
}

Made CreateFloat(const ProductShape& shape, double alpha, bool accumulate, int threads) {
  if (!kUseDnnl) return Made(std::make_unique<PlainProduct<float>>(shape, alpha, accumulate, threads));
  if (!shape.batch.empty() || PrimitiveIsFaster(shape)) {
    auto primitive = CreatePrimitive(DType::kFloat, shape, alpha, accumulate, threads);
    if (primitive != nullptr) return primitive;
  }
  const auto a = StoredAs(shape.a, shape.rows, shape.depth);
  const auto b = StoredAs(shape.b, shape.depth, shape.columns);
  const auto c = StoredAs(shape.c, shape.rows, shape.columns);
  if (a && b && c && !c->transposed) {
    return Made(std::make_unique<SgemmProduct>(shape, *a, *b, *c, static_cast<float>(alpha), accumulate, threads));
  }
  return Made(std::make_unique<PlainProduct<float>>(shape, alpha, accumulate, threads));
}

Made CreateBfloat16(const ProductShape& shape, double alpha, bool accumulate, int threads) {
  auto primitive = kUseDnnl ? CreatePrimitive(DType::kBfloat16, shape, alpha, accumulate, threads) : nullptr;
  if (primitive != nullptr) return primitive;
  return InvalidModelError("this processor has no matrix products of bfloat16");
}

Made CreateFor(DType dtype, const ProductShape& shape, double alpha, bool accumulate, int threads) {
  if (dtype == DType::kFloat) return CreateFloat(shape, alpha, accumulate, threads);
  if (dtype == DType::kBfloat16) return CreateBfloat16(shape, alpha, accumulate, threads);
  return Made(std::make_unique<PlainProduct<double>>(shape, alpha, accumulate, threads));
}

}  // namespace

Made MatrixProduct::Create(DType dtype, ProductShape shape, double alpha, bool accumulate, int threads) {
  if (dtype != DType::kFloat && dtype != DType::kDouble && dtype != DType::kBfloat16) {
    return InvalidModelError("matrix products serve float, double and bfloat16, not " + std::string(NameOf(dtype)));
  }
  if (shape.rows * shape.columns * BatchSize(shape) == 0 || (shape.depth == 0 && accumulate)) {
    return Made(std::make_unique<NothingToDo>());
  }
  shape = Simplified(std::move(shape));
  if (shape.depth == 0) {
    if (dtype == DType::kFloat) return Made(std::make_unique<ZeroProduct<float>>(shape));
    if (dtype == DType::kDouble) return Made(std::make_unique<ZeroProduct<double>>(shape));
    return Made(std::make_unique<ZeroProduct<uint16_t>>(shape));
  }
  const bool swapped = shape.c.column != 1 && shape.columns != 1 && (shape.c.row == 1 || shape.rows == 1);
  if (swapped) SwapOperands(shape);
  ASSIGN_OR_RETURN(auto product, CreateFor(dtype, shape, alpha, accumulate, threads));
  if (swapped) product = std::make_unique<SwappedProduct>(std::move(product));
  return product;
}

}  // namespace onnxtrain
