// SPDX-License-Identifier: Apache-2.0
// Functions of one number and of two, comparisons, casts, copies.
#include <algorithm>
#include <cmath>

#include "cuda_ops/kernels/cast.h"
#include "cuda_ops/kernels/comparison.h"
#include "cuda_ops/kernels/elementwise.h"
#include "cuda_ops/kernels/strided_copy.h"
#include "cuda_ops/kernels/unary.h"
#include "runtime/math/activation.h"
#include "tests/cuda/device_case.h"

namespace onnxtrain {
namespace {

constexpr int64_t kCounts[] = {1, 31, 1027};

using Function = double (*)(double);

// f(x) or g(p, dy), element by element.
struct UnaryCase {
  std::string name;
  cudaError_t (*launch)(UnaryFunction, const UnaryArguments&, cudaStream_t);
  UnaryFunction function;
  std::function<double(double x, double dy)> formula;
  double low = -4;
  double high = 4;
  float alpha = 0;
  float beta = 0;
};

void AddUnary(DeviceCases& cases, const UnaryCase& c) {
  for (const DType dtype : kDeviceFloats) {
    for (const int64_t count : kCounts) {
      if (count != 31 && dtype == DType::kFloat16) continue;
      cases.push_back({c.name + " " + std::string(NameOf(dtype)) + " " + std::to_string(count), [=] {
                         Array x = Uniform(dtype, count, 1, c.low, c.high);
                         Array dy = Uniform(dtype, count, 2);
                         CaseResult result;
                         Array& y = result.outputs.emplace_back(dtype, count);
                         UnaryArguments a;
                         a.x = x.data();
                         a.dy = dy.data();
                         a.y = y.data();
                         a.count = count;
                         a.dtype = dtype;
                         a.alpha = c.alpha;
                         a.beta = c.beta;
                         c.launch(c.function, a, nullptr);
                         auto& expected = result.expected.emplace_back();
                         for (int64_t i = 0; i < count; ++i) expected.push_back(c.formula(x.At(i), dy.At(i)));
                         result.tolerance = 2e-6;
                         return result;
                       }});
    }
  }
}

template <typename Formula>
void AddActivation(DeviceCases& cases, const std::string& name, UnaryFunction function, float alpha = 0,
                   float beta = 0) {
  const math::ActivationScalars<double> s{alpha, beta};
  AddUnary(cases, {name, LaunchActivation, function, [s](double x, double) { return Formula::Value(x, s); }, -4, 4,
                   alpha, beta});
  AddUnary(cases, {name + " gradient", LaunchActivationGradient, function,
                   [s](double x, double dy) { return Formula::Gradient(x, dy, s); }, -4, 4, alpha, beta});
}

void AddActivations(DeviceCases& cases) {
  AddActivation<math::Relu>(cases, "Relu", UnaryFunction::kRelu);
  AddActivation<math::SigmoidFormula>(cases, "Sigmoid", UnaryFunction::kSigmoid);
  AddActivation<math::TanhFormula>(cases, "Tanh", UnaryFunction::kTanh);
  AddActivation<math::ErfFormula>(cases, "Erf", UnaryFunction::kErf);
  AddActivation<math::GeluErf>(cases, "Gelu", UnaryFunction::kGeluErf);
  AddActivation<math::GeluTanh>(cases, "Gelu by tanh", UnaryFunction::kGeluTanh);
  AddActivation<math::LeakyRelu>(cases, "LeakyRelu", UnaryFunction::kLeakyRelu, 0.125f);
  AddActivation<math::Elu>(cases, "Elu", UnaryFunction::kElu, 1.25f);
  AddActivation<math::Selu>(cases, "Selu", UnaryFunction::kSelu, 1.5f, 1.25f);
  AddActivation<math::Celu>(cases, "Celu", UnaryFunction::kCelu, 1.5f);
  AddActivation<math::HardSigmoid>(cases, "HardSigmoid", UnaryFunction::kHardSigmoid, 0.25f, 0.5f);
  AddActivation<math::HardSwish>(cases, "HardSwish", UnaryFunction::kHardSwish);
  AddActivation<math::SoftplusFormula>(cases, "Softplus", UnaryFunction::kSoftplus);
  AddActivation<math::Softsign>(cases, "Softsign", UnaryFunction::kSoftsign);
  AddActivation<math::Mish>(cases, "Mish", UnaryFunction::kMish);
  AddActivation<math::Swish>(cases, "Swish", UnaryFunction::kSwish, 1.25f);
  AddActivation<math::ThresholdedRelu>(cases, "ThresholdedRelu", UnaryFunction::kThresholdedRelu, 1.0f);
}

void AddFunction(DeviceCases& cases, const std::string& name, UnaryFunction function, Function formula, double low,
                 double high) {
  AddUnary(cases, {name, LaunchMathFunction, function, [formula](double x, double) { return formula(x); }, low, high});
}

void AddFunctions(DeviceCases& cases) {
  AddFunction(cases, "Exp", UnaryFunction::kExp, std::exp, -4, 4);
  AddFunction(cases, "Log", UnaryFunction::kLog, std::log, 0.1, 9);
  AddFunction(cases, "Sqrt", UnaryFunction::kSqrt, std::sqrt, 0, 9);
  AddFunction(
      cases, "Reciprocal", UnaryFunction::kReciprocal, [](double x) { return 1 / x; }, 0.5, 4);
  AddFunction(
      cases, "Neg", UnaryFunction::kNeg, [](double x) { return -x; }, -4, 4);
  AddFunction(cases, "Abs", UnaryFunction::kAbs, std::fabs, -4, 4);
  AddFunction(
      cases, "Sign", UnaryFunction::kSign, [](double x) { return x > 0   ? 1.0
                                                                 : x < 0 ? -1.0
                                                                         : 0.0; }, -4, 4);
  AddFunction(cases, "Floor", UnaryFunction::kFloor, std::floor, -4, 4);
  AddFunction(cases, "Ceil", UnaryFunction::kCeil, std::ceil, -4, 4);
  AddFunction(cases, "Round", UnaryFunction::kRound, std::rint, -4, 4);
  AddFunction(cases, "Sin", UnaryFunction::kSin, std::sin, -4, 4);
  AddFunction(cases, "Cos", UnaryFunction::kCos, std::cos, -4, 4);
  AddFunction(cases, "Tan", UnaryFunction::kTan, std::tan, -1, 1);
  AddFunction(cases, "Asin", UnaryFunction::kAsin, std::asin, -0.9, 0.9);
  AddFunction(cases, "Acos", UnaryFunction::kAcos, std::acos, -0.9, 0.9);
  AddFunction(cases, "Atan", UnaryFunction::kAtan, std::atan, -4, 4);
  AddFunction(cases, "Sinh", UnaryFunction::kSinh, std::sinh, -4, 4);
  AddFunction(cases, "Cosh", UnaryFunction::kCosh, std::cosh, -4, 4);
  AddFunction(cases, "Asinh", UnaryFunction::kAsinh, std::asinh, -4, 4);
  AddFunction(cases, "Acosh", UnaryFunction::kAcosh, std::acosh, 1.1, 4);
  AddFunction(cases, "Atanh", UnaryFunction::kAtanh, std::atanh, -0.9, 0.9);
}

using Shape = std::vector<int64_t>;

int64_t Elements(const Shape& shape) {
  int64_t count = 1;
  for (const int64_t size : shape) count *= size;
  return count;
}

// Where element `index` of `to` lies in a dense tensor of shape `from` that is broadcast to it.
int64_t BroadcastAt(const Shape& from, const Shape& to, int64_t index) {
  int64_t at = 0;
  int64_t stride = 1;
  for (size_t axis = to.size(); axis-- > 0;) {
    const int64_t coordinate = index % to[axis];
    index /= to[axis];
    if (axis + from.size() < to.size()) continue;
    const int64_t size = from[axis + from.size() - to.size()];
    if (size != 1) at += coordinate * stride;
    stride *= size;
  }
  return at;
}

StridedLoop<3> LoopOf(const Shape& a, const Shape& b, const Shape& y) {
  StridedLoop<3> loop;
  MakeStridedLoop<3>(y, {BroadcastLoopStrides(a, y), BroadcastLoopStrides(b, y), DenseLoopStrides(y)}, {}, &loop);
  return loop;
}

struct Broadcast {
  Shape a, b, y;
};
const Broadcast kBroadcasts[] = {{{1025}, {1025}, {1025}},
                                 {{5, 8}, {5, 8}, {5, 8}},
                                 {{5, 7}, {7}, {5, 7}},
                                 {{3, 1}, {1, 7}, {3, 7}},
                                 {{3, 4, 5}, {}, {3, 4, 5}},
                                 {{3, 16}, {16}, {3, 16}},
                                 {{2, 1, 3, 1}, {5, 1, 3}, {2, 5, 3, 3}},
                                 {{4, 24}, {4, 1}, {4, 24}}};

using Binary = double (*)(double, double);

void AddBinary(DeviceCases& cases, const std::string& name, ArithmeticFunction function, Binary formula, double low,
               std::vector<DType> types) {
  for (const DType dtype : types) {
    for (const Broadcast& shapes : kBroadcasts) {
      cases.push_back({name + " " + std::string(NameOf(dtype)), [=] {
                         Array a = Uniform(dtype, Elements(shapes.a), 1, low, 3);
                         Array b = Uniform(dtype, Elements(shapes.b), 2, low, 3);
                         CaseResult result;
                         Array& y = result.outputs.emplace_back(dtype, Elements(shapes.y));
                         const float scale = IsFloating(dtype) && dtype != DType::kDouble ? 0.5f : 1.0f;
                         BinaryArguments g{a.data(), b.data(), y.data(), LoopOf(shapes.a, shapes.b, shapes.y),
                                           dtype,    scale};
                         LaunchArithmetic(function, g, nullptr);
                         auto& expected = result.expected.emplace_back();
                         for (int64_t i = 0; i < y.count(); ++i) {
                           expected.push_back(scale * formula(a.At(BroadcastAt(shapes.a, shapes.y, i)),
                                                              b.At(BroadcastAt(shapes.b, shapes.y, i))));
                         }
                         result.tolerance = 1e-6;
                         return result;
                       }});
    }
  }
}

void AddBinaries(DeviceCases& cases) {
  const std::vector<DType> floats(std::begin(kDeviceFloats), std::end(kDeviceFloats));
  std::vector<DType> numbers = floats;
  numbers.insert(numbers.end(), {DType::kInt32, DType::kInt64, DType::kDouble});
  AddBinary(
      cases, "Add", ArithmeticFunction::kAdd, [](double a, double b) { return a + b; }, -3, numbers);
  AddBinary(
      cases, "Sub", ArithmeticFunction::kSub, [](double a, double b) { return a - b; }, -3, numbers);
  AddBinary(
      cases, "Mul", ArithmeticFunction::kMul, [](double a, double b) { return a * b; }, -3, numbers);
  AddBinary(
      cases, "Max", ArithmeticFunction::kMax, [](double a, double b) { return std::max(a, b); }, -3, numbers);
  AddBinary(
      cases, "Min", ArithmeticFunction::kMin, [](double a, double b) { return std::min(a, b); }, -3, numbers);
  AddBinary(
      cases, "PRelu", ArithmeticFunction::kPRelu, [](double a, double b) { return a > 0 ? a : a * b; }, -3, numbers);
  AddBinary(
      cases, "Div", ArithmeticFunction::kDiv, [](double a, double b) { return a / b; }, 0.5, floats);
  AddBinary(
      cases, "Pow", ArithmeticFunction::kPow, [](double a, double b) { return std::pow(a, b); }, 0.5, floats);
}

void AddCompare(DeviceCases& cases, CompareFunction function, Binary formula) {
  for (const DType dtype :
       {DType::kFloat, DType::kBfloat16, DType::kFloat16, DType::kInt32, DType::kInt64, DType::kBool}) {
    const Broadcast shapes{{5, 7}, {7}, {5, 7}};
    cases.push_back({"Compare " + std::to_string(static_cast<int>(function)) + " " + std::string(NameOf(dtype)), [=] {
                       Array a = Uniform(dtype, 35, 1, 0, 1);
                       Array b = Uniform(dtype, 7, 2, 0, 1);
                       if (IsFloating(dtype)) a.Set(3, b.At(3));
                       CaseResult result;
                       Array& y = result.outputs.emplace_back(DType::kBool, 35);
                       LaunchCompare(function,
                                     {a.data(), b.data(), y.as<bool>(), LoopOf(shapes.a, shapes.b, shapes.y), dtype},
                                     nullptr);
                       auto& expected = result.expected.emplace_back();
                       for (int64_t i = 0; i < 35; ++i) expected.push_back(formula(a.At(i), b.At(i % 7)));
                       return result;
                     }});
  }
}

void AddComparisons(DeviceCases& cases) {
  AddCompare(cases, CompareFunction::kEqual, [](double a, double b) -> double { return a == b; });
  AddCompare(cases, CompareFunction::kGreater, [](double a, double b) -> double { return a > b; });
  AddCompare(cases, CompareFunction::kGreaterOrEqual, [](double a, double b) -> double { return a >= b; });
  AddCompare(cases, CompareFunction::kLess, [](double a, double b) -> double { return a < b; });
  AddCompare(cases, CompareFunction::kLessOrEqual, [](double a, double b) -> double { return a <= b; });
  AddCompare(cases, CompareFunction::kAnd, [](double a, double b) -> double { return a != 0 && b != 0; });
  AddCompare(cases, CompareFunction::kOr, [](double a, double b) -> double { return a != 0 || b != 0; });
  AddCompare(cases, CompareFunction::kXor, [](double a, double b) -> double { return (a != 0) != (b != 0); });
  cases.push_back({"Not", [] {
                     Array x = Uniform(DType::kBool, 45, 1, 0, 1);
                     CaseResult result;
                     Array& y = result.outputs.emplace_back(DType::kBool, 45);
                     LaunchNot(x.as<bool>(), y.as<bool>(), 45, nullptr);
                     for (const double value : (result.expected.emplace_back(x.Values()))) (void)value;
                     for (double& value : result.expected[0]) value = 1 - value;
                     return result;
                   }});
  for (const DType dtype : {DType::kUint8, DType::kBfloat16, DType::kFloat, DType::kInt64}) {
    cases.push_back({"Select " + std::string(NameOf(dtype)), [=] {
                       Array condition = Uniform(DType::kBool, 5, 1, 0, 1);
                       Array yes = Uniform(dtype, 7, 2, 0, 99), no = Uniform(dtype, 35, 3, 0, 99);
                       CaseResult result;
                       Array& y = result.outputs.emplace_back(dtype, 35);
                       SelectArguments g{condition.as<bool>(), yes.data(), no.data(), y.data(), {}, SizeOf(dtype)};
                       MakeStridedLoop<4>({5, 7}, {Shape{1, 0}, Shape{0, 1}, Shape{7, 1}, Shape{7, 1}}, {}, &g.loop);
                       LaunchSelect(g, nullptr);
                       auto& expected = result.expected.emplace_back();
                       for (int64_t i = 0; i < 35; ++i) {
                         expected.push_back(condition.At(i / 7) != 0 ? yes.At(i % 7) : no.At(i));
                       }
                       return result;
                     }});
  }
}

void AddCasts(DeviceCases& cases) {
  const DType types[] = {DType::kFloat, DType::kBfloat16, DType::kFloat16, DType::kDouble,
                         DType::kInt32, DType::kInt64,    DType::kUint8,   DType::kBool};
  for (const DType from : types) {
    for (const DType to : types) {
      cases.push_back({"Cast " + std::string(NameOf(from)) + " to " + std::string(NameOf(to)), [=] {
                         Array x = Uniform(from, 523, 1, 0, from == DType::kBool ? 1 : 100);
                         CaseResult result;
                         Array& y = result.outputs.emplace_back(to, 523);
                         LaunchCast(x.data(), from, y.data(), to, 523, nullptr);
                         auto& expected = result.expected.emplace_back(x.Values());
                         for (double& value : expected) {
                           if (to == DType::kBool) value = value != 0;
                           if (!IsFloating(to)) value = std::trunc(value);
                         }
                         return result;
                       }});
    }
  }
}

void AddCopies(DeviceCases& cases) {
  for (const DType dtype : {DType::kUint8, DType::kFloat16, DType::kFloat, DType::kInt64}) {
    for (const Shape& shape : {Shape{3, 5, 7}, Shape{2, 3, 64}, Shape{1, 37, 41}}) {
      cases.push_back({"Transpose " + std::string(NameOf(dtype)), [=] {
                         Array x = Uniform(dtype, Elements(shape), 1, 0, 99);
                         CaseResult result;
                         Array& y = result.outputs.emplace_back(dtype, x.count());
                         auto& expected = result.expected.emplace_back();
                         StridedLoop<2> loop;
                         const Shape to{shape[0], shape[2], shape[1]};
                         const Shape from{shape[1] * shape[2], 1, shape[2]};
                         MakeStridedLoop<2>(to, {from, DenseLoopStrides(to)}, {}, &loop);
                         LaunchStridedCopy(x.data(), y.data(), loop, SizeOf(dtype), nullptr);
                         for (int64_t i = 0; i < x.count(); ++i) {
                           const int64_t column = i % shape[1], row = i / shape[1] % shape[2];
                           expected.push_back(x.At((i / shape[1] / shape[2] * shape[1] + column) * shape[2] + row));
                         }
                         return result;
                       }});
    }
    for (const int64_t length : {1, 7, 16, 48}) {  // rows into a wider whole, from their second column on
      cases.push_back({"Copy of rows " + std::string(NameOf(dtype)), [=] {
                         Array x = Uniform(dtype, 5 * length, 1, 0, 99);
                         CaseResult result;
                         Array& y = result.outputs.emplace_back(dtype, std::vector<double>(5 * (length + 3), 1));
                         StridedLoop<2> loop;
                         MakeStridedLoop<2>({5, length}, {Shape{length, 1}, Shape{length + 3, 1}}, {0, 2}, &loop);
                         LaunchStridedCopy(x.data(), y.data(), loop, SizeOf(dtype), nullptr);
                         auto& expected = result.expected.emplace_back();
                         for (int64_t i = 0; i < y.count(); ++i) {
                           const int64_t row = i / (length + 3), column = i % (length + 3) - 2;
                           expected.push_back(column < 0 || column >= length ? 1 : x.At(row * length + column));
                         }
                         return result;
                       }});
    }
    cases.push_back({"Fill " + std::string(NameOf(dtype)), [=] {
                       CaseResult result;
                       Array& y = result.outputs.emplace_back(dtype, 131);
                       LaunchFill(y.data(), 0, 131, SizeOf(dtype), nullptr);
                       result.expected.emplace_back(131, 0.0);
                       return result;
                     }});
  }
}

}  // namespace

void AddElementwiseCases(DeviceCases& cases) {
  AddActivations(cases);
  AddFunctions(cases);
  AddBinaries(cases);
  AddComparisons(cases);
  AddCasts(cases);
  AddCopies(cases);
}

}  // namespace onnxtrain
