// SPDX-License-Identifier: Apache-2.0
// Softmax, normalization, losses of classes.
#include <algorithm>
#include <cmath>

#include "cuda_ops/kernels/loss.h"
#include "cuda_ops/kernels/normalization.h"
#include "cuda_ops/kernels/softmax.h"
#include "tests/cuda/device_case.h"

namespace onnxtrain {
namespace {

std::string Named(const std::string& name, DType dtype) { return name + " " + std::string(NameOf(dtype)); }

struct Rows {
  int64_t outer, length, inner;
  int64_t count() const { return outer * length * inner; }
  int64_t rows() const { return outer * inner; }
  int64_t At(int64_t row, int64_t i) const { return (row / inner * length + i) * inner + row % inner; }
};
const Rows kRows[] = {{1, 1, 1}, {9, 33, 1}, {2, 17, 3}, {2, 1501, 1}, {3, 64, 1}};

// The softmax of one row, and its logarithm.
struct Probabilities {
  std::vector<double> p, log_p;
};
Probabilities SoftmaxOf(const Array& x, const Rows& rows, int64_t row) {
  double largest = -INFINITY;
  for (int64_t i = 0; i < rows.length; ++i) largest = std::max(largest, x.At(rows.At(row, i)));
  double sum = 0;
  for (int64_t i = 0; i < rows.length; ++i) sum += std::exp(x.At(rows.At(row, i)) - largest);
  Probabilities of;
  for (int64_t i = 0; i < rows.length; ++i) {
    of.log_p.push_back(x.At(rows.At(row, i)) - largest - std::log(sum));
    of.p.push_back(std::exp(of.log_p.back()));
  }
  return of;
}

CaseResult RunSoftmax(SoftmaxKind kind, DType dtype, const Rows& rows) {
  Array x = Uniform(dtype, rows.count(), 1, -6, 6);
  CaseResult result;
  Array& y = result.outputs.emplace_back(dtype, rows.count());
  LaunchSoftmax({x.data(), nullptr, y.data(), rows.outer, rows.length, rows.inner, dtype, kind}, nullptr);
  auto& expected = result.expected.emplace_back(static_cast<size_t>(rows.count()));
  for (int64_t row = 0; row < rows.rows(); ++row) {
    const Probabilities of = SoftmaxOf(x, rows, row);
    const std::vector<double>& wanted = kind == SoftmaxKind::kSoftmax ? of.p : of.log_p;
    for (int64_t i = 0; i < rows.length; ++i) {
      expected[static_cast<size_t>(rows.At(row, i))] = wanted[static_cast<size_t>(i)];
    }
  }
  result.tolerance = 4e-6;
  return result;
}

CaseResult RunSoftmaxGradient(SoftmaxKind kind, DType dtype, const Rows& rows) {
  const bool softmax = kind == SoftmaxKind::kSoftmax;
  Array dy = Uniform(dtype, rows.count(), 1);
  Array y = Uniform(dtype, rows.count(), 2, softmax ? 0 : -3, softmax ? 0.2 : -1);
  CaseResult result;
  Array& dx = result.outputs.emplace_back(dtype, rows.count());
  LaunchSoftmaxGradient({dy.data(), y.data(), dx.data(), rows.outer, rows.length, rows.inner, dtype, kind}, nullptr);
  auto& expected = result.expected.emplace_back(static_cast<size_t>(rows.count()));
  for (int64_t row = 0; row < rows.rows(); ++row) {
    double sum = 0;
    for (int64_t i = 0; i < rows.length; ++i) {
      sum += dy.At(rows.At(row, i)) * (softmax ? y.At(rows.At(row, i)) : 1);
    }
    for (int64_t i = 0; i < rows.length; ++i) {
      const int64_t at = rows.At(row, i);
      expected[static_cast<size_t>(at)] = softmax ? y.At(at) * (dy.At(at) - sum) : dy.At(at) - std::exp(y.At(at)) * sum;
    }
  }
  result.tolerance = 3e-5;
  return result;
}

void AddSoftmaxes(DeviceCases& cases) {
  for (const DType dtype : kDeviceFloats) {
    for (const Rows& rows : kRows) {
      for (const SoftmaxKind kind : {SoftmaxKind::kSoftmax, SoftmaxKind::kLogSoftmax}) {
        const std::string name = kind == SoftmaxKind::kSoftmax ? "Softmax" : "LogSoftmax";
        cases.push_back({Named(name, dtype), [=] { return RunSoftmax(kind, dtype, rows); }});
        cases.push_back({Named(name + "Grad", dtype), [=] { return RunSoftmaxGradient(kind, dtype, rows); }});
      }
    }
  }
}

struct Normal {
  double mean, factor;
};
Normal NormalOf(const Array& x, int64_t row, int64_t length, bool rms) {
  double mean = 0, squares = 0;
  for (int64_t i = 0; i < length && !rms; ++i) mean += x.At(row * length + i) / static_cast<double>(length);
  for (int64_t i = 0; i < length; ++i) squares += std::pow(x.At(row * length + i) - mean, 2);
  return {mean, 1 / std::sqrt(squares / static_cast<double>(length) + 0.015625)};
}

CaseResult RunNormalization(DType dtype, DType parameter_dtype, int64_t rows, int64_t length, bool rms) {
  Array x = Uniform(dtype, rows * length, 1), scale = Uniform(parameter_dtype, length, 2);
  Array bias = Uniform(parameter_dtype, length, 3);
  CaseResult result;
  result.outputs.emplace_back(dtype, rows * length);
  result.outputs.emplace_back(DType::kFloat, rows);
  result.outputs.emplace_back(DType::kFloat, rows);
  RowNormalizationArguments a;
  a.x = x.data();
  a.scale = scale.data();
  a.bias = rms ? nullptr : bias.data();
  a.y = result.outputs[0].data();
  a.mean = result.outputs[1].as<float>();
  a.factor = result.outputs[2].as<float>();
  a.rows = rows;
  a.length = length;
  a.dtype = dtype;
  a.parameter_dtype = parameter_dtype;
  a.epsilon = 0.015625f;
  a.rms = rms;
  LaunchRowNormalization(a, nullptr);
  result.expected.resize(3);
  for (int64_t row = 0; row < rows; ++row) {
    const Normal normal = NormalOf(x, row, length, rms);
    result.expected[1].push_back(normal.mean);
    result.expected[2].push_back(normal.factor);
    for (int64_t i = 0; i < length; ++i) {
      result.expected[0].push_back((x.At(row * length + i) - normal.mean) * normal.factor * scale.At(i) +
                                   (rms ? 0 : bias.At(i)));
    }
  }
  result.tolerance = 1e-5;
  return result;
}

CaseResult RunNormalizationGradient(DType dtype, DType parameter_dtype, int64_t rows, int64_t length, bool rms,
                                    bool columns) {
  Array dy = Uniform(dtype, rows * length, 1), x = Uniform(dtype, rows * length, 2);
  Array scale = Uniform(parameter_dtype, length, 3);
  Array workspace(DType::kFloat, RowNormalizationGradientFloats(rows, length));
  CaseResult result;
  result.outputs.emplace_back(dtype, rows * length);
  if (columns) result.outputs.emplace_back(parameter_dtype, length);
  if (columns) result.outputs.emplace_back(parameter_dtype, length);
  RowNormalizationGradientArguments a;
  a.dy = dy.data();
  a.x = x.data();
  a.scale = scale.data();
  a.dx = result.outputs[0].data();
  a.dscale = columns ? result.outputs[1].data() : nullptr;
  a.dbias = columns ? result.outputs[2].data() : nullptr;
  a.workspace = workspace.as<float>();
  a.rows = rows;
  a.length = length;
  a.dtype = dtype;
  a.parameter_dtype = parameter_dtype;
  a.epsilon = 0.015625f;
  a.rms = rms;
  LaunchRowNormalizationGradient(a, nullptr);
  result.expected.resize(result.outputs.size(), std::vector<double>(static_cast<size_t>(length)));
  result.expected[0].clear();
  for (int64_t row = 0; row < rows; ++row) {
    const Normal normal = NormalOf(x, row, length, rms);
    double sum = 0, dot = 0;
    for (int64_t i = 0; i < length; ++i) {
      const double dy_i = dy.At(row * length + i), unit = (x.At(row * length + i) - normal.mean) * normal.factor;
      sum += dy_i * scale.At(i) / static_cast<double>(length);
      dot += dy_i * scale.At(i) * unit / static_cast<double>(length);
      if (columns) result.expected[1][static_cast<size_t>(i)] += dy_i * unit;
      if (columns) result.expected[2][static_cast<size_t>(i)] += dy_i;
    }
    for (int64_t i = 0; i < length; ++i) {
      const double unit = (x.At(row * length + i) - normal.mean) * normal.factor;
      result.expected[0].push_back(normal.factor *
                                   (dy.At(row * length + i) * scale.At(i) - (rms ? 0 : sum) - unit * dot));
    }
  }
  result.tolerance = 3e-5;
  return result;
}

void AddNormalizations(DeviceCases& cases) {
  for (const DType dtype : kDeviceFloats) {
    for (const auto& [rows, length] : std::vector<std::pair<int64_t, int64_t>>{{1, 1}, {9, 33}, {70, 64}, {2, 1501}}) {
      for (const bool rms : {false, true}) {
        for (const DType parameter : {dtype, DType::kFloat}) {
          cases.push_back(
              {Named("Normalization", dtype), [=] { return RunNormalization(dtype, parameter, rows, length, rms); }});
          cases.push_back({Named("NormalizationGrad", dtype),
                           [=] { return RunNormalizationGradient(dtype, parameter, rows, length, rms, true); }});
        }
        cases.push_back({Named("NormalizationGradOfRows", dtype),
                         [=] { return RunNormalizationGradient(dtype, dtype, rows, length, rms, false); }});
      }
    }
  }
}

// Labels with one that is ignored; weights and smoothing as given.
struct LossCase {
  DType dtype;
  Rows rows;  // length is the number of classes
  LossReduction reduction;
  bool softmax, weighted;
  float smoothing;
};

struct LossInputs {
  Array scores, labels, weights, dloss;
  ClassLossArguments a;
};

LossInputs InputsOf(const LossCase& c) {
  LossInputs in{Uniform(c.dtype, c.rows.count(), 1, -6, 6),
                Uniform(DType::kInt64, c.rows.rows(), 2, 0, static_cast<double>(c.rows.length - 1)),
                Uniform(DType::kFloat, c.rows.length, 3, 0.5, 2),
                Uniform(c.dtype, c.reduction == LossReduction::kNone ? c.rows.rows() : 1, 4, 0.5, 2),
                {}};
  if (c.rows.rows() > 1) in.labels.Set(1, -7);
  in.a.scores = in.scores.data();
  in.a.labels = in.labels.data();
  in.a.weights = c.weighted ? in.weights.as<float>() : nullptr;
  in.a.outer = c.rows.outer;
  in.a.classes = c.rows.length;
  in.a.inner = c.rows.inner;
  in.a.dtype = c.dtype;
  in.a.ignores = true;
  in.a.ignore_index = -7;
  in.a.smoothing = c.smoothing;
  in.a.softmax = c.softmax;
  in.a.reduction = c.reduction;
  in.a.dloss = in.dloss.data();
  return in;
}

double WeightOf(const LossCase& c, const LossInputs& in, int64_t label) {
  return c.weighted ? in.weights.At(label) : 1;
}

// What the row adds to the loss for each unit of -log p: the label's share, and the smoothed one of every class.
std::vector<double> SharesOf(const LossCase& c, const LossInputs& in, int64_t row) {
  std::vector<double> shares(static_cast<size_t>(c.rows.length));
  const auto label = static_cast<int64_t>(in.labels.At(row));
  if (label < 0) return shares;
  for (int64_t i = 0; i < c.rows.length; ++i) {
    shares[static_cast<size_t>(i)] = WeightOf(c, in, i) * (c.smoothing / static_cast<double>(c.rows.length) +
                                                           (i == label ? 1 - static_cast<double>(c.smoothing) : 0));
  }
  return shares;
}

double DivisorOf(const LossCase& c, const LossInputs& in) {
  if (c.reduction != LossReduction::kMean) return 1;
  double sum = 0;
  for (const double label : in.labels.Values()) sum += label < 0 ? 0 : WeightOf(c, in, static_cast<int64_t>(label));
  return sum;
}

std::vector<double> LogProbabilities(const LossCase& c, const LossInputs& in, int64_t row) {
  if (c.softmax) return SoftmaxOf(in.scores, c.rows, row).log_p;
  std::vector<double> scores;
  for (int64_t i = 0; i < c.rows.length; ++i) scores.push_back(in.scores.At(c.rows.At(row, i)));
  return scores;
}

CaseResult RunLoss(const LossCase& c) {
  LossInputs in = InputsOf(c);
  Array workspace(DType::kDouble, ClassLossDoubles(c.rows.rows()));
  CaseResult result;
  result.outputs.emplace_back(c.dtype, in.dloss.count());
  result.outputs.emplace_back(c.dtype, c.rows.count());
  in.a.loss = result.outputs[0].data();
  in.a.log_probability = result.outputs[1].data();
  in.a.workspace = workspace.as<double>();
  LaunchClassLoss(in.a, nullptr);
  std::vector<double> losses, logarithms(static_cast<size_t>(c.rows.count()));
  double total = 0;
  for (int64_t row = 0; row < c.rows.rows(); ++row) {
    const std::vector<double> shares = SharesOf(c, in, row), log_p = LogProbabilities(c, in, row);
    double loss = 0;
    for (int64_t i = 0; i < c.rows.length; ++i) {
      loss -= shares[static_cast<size_t>(i)] * log_p[static_cast<size_t>(i)];
      logarithms[static_cast<size_t>(c.rows.At(row, i))] = log_p[static_cast<size_t>(i)];
    }
    losses.push_back(loss);
    total += loss;
  }
  if (c.reduction != LossReduction::kNone) losses = {total / DivisorOf(c, in)};
  result.expected = {losses, logarithms};
  result.tolerance = 1e-5;
  return result;
}

CaseResult RunLossGradient(const LossCase& c, bool in_place) {
  LossInputs in = InputsOf(c);
  Array workspace(DType::kDouble, ClassLossDoubles(c.rows.rows()));
  CaseResult result;
  auto& expected = result.expected.emplace_back(static_cast<size_t>(c.rows.count()));
  const double divisor = DivisorOf(c, in);
  for (int64_t row = 0; row < c.rows.rows(); ++row) {
    const std::vector<double> shares = SharesOf(c, in, row), log_p = LogProbabilities(c, in, row);
    double all = 0;
    for (const double share : shares) all += share;
    const double dloss = in.dloss.At(c.reduction == LossReduction::kNone ? row : 0) / divisor;
    for (int64_t i = 0; i < c.rows.length; ++i) {
      const double spread = c.softmax ? all * std::exp(log_p[static_cast<size_t>(i)]) : 0;
      expected[static_cast<size_t>(c.rows.At(row, i))] = dloss * (spread - shares[static_cast<size_t>(i)]);
    }
  }
  Array gradient(c.dtype, c.rows.count());
  Array& written = in_place ? in.scores : gradient;
  in.a.gradient = written.data();
  in.a.workspace = workspace.as<double>();
  LaunchClassLossGradient(in.a, nullptr);
  result.outputs.push_back(std::move(written));
  result.tolerance = 1e-5;
  return result;
}

CaseResult RunCount(const LossCase& c) {
  LossInputs in = InputsOf(c);
  CaseResult result;
  LaunchCountLabels(in.a, result.outputs.emplace_back(DType::kFloat, 1).as<float>(), nullptr);
  result.expected.push_back({DivisorOf(c, in)});
  result.tolerance = 1e-6;
  return result;
}

void AddLosses(DeviceCases& cases) {
  for (const DType dtype : kDeviceFloats) {
    for (const Rows& rows : kRows) {
      for (const LossReduction reduction : {LossReduction::kNone, LossReduction::kSum, LossReduction::kMean}) {
        for (const bool softmax : {true, false}) {
          for (const float smoothing : {0.0f, 0.125f}) {
            if (!softmax && smoothing != 0) continue;
            const LossCase c{dtype, rows, reduction, softmax, smoothing == 0, smoothing};
            cases.push_back({Named("Loss", dtype), [=] { return RunLoss(c); }});
            for (const bool in_place : {false, true}) {
              cases.push_back({Named("LossGrad", dtype), [=] { return RunLossGradient(c, in_place); }});
            }
          }
        }
      }
    }
  }
  cases.push_back({"CountLabels", [] {
                     return RunCount({DType::kFloat, {7, 5, 1}, LossReduction::kMean, true, true, 0});
                   }});
}

}  // namespace

void AddRowCases(DeviceCases& cases) {
  AddSoftmaxes(cases);
  AddNormalizations(cases);
  AddLosses(cases);
}

}  // namespace onnxtrain
