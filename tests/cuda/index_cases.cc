// SPDX-License-Identifier: Apache-2.0
// Reading and writing at indices, and the sort below. What is expected comes from a loop over the indices.
#include <algorithm>
#include <numeric>

#include "cuda_ops/kernels/gather.h"
#include "cuda_ops/kernels/index_sort.h"
#include "cuda_ops/kernels/scatter.h"
#include "tests/cuda/device_case.h"

namespace onnxtrain {
namespace {

std::string Named(const std::string& name, DType dtype) { return name + " " + std::string(NameOf(dtype)); }

// Indices with what the kernels get of them, and where each points; -1 for nowhere.
template <typename Places>
struct Given {
  Array indices;
  Places places;
  int64_t outer = 1, size = 1, inner = 1;
  std::vector<int64_t> expected;

  int64_t count() const { return static_cast<int64_t>(expected.size()); }
};

int64_t Wrapped(const Array& indices, int64_t i, int64_t size) {
  const auto index = static_cast<int64_t>(indices.At(i));
  const int64_t wrapped = index < 0 ? index + size : index;
  return wrapped >= 0 && wrapped < size ? wrapped : -1;
}

Array IndicesInto(int64_t size, int64_t count, DType dtype) {
  return Uniform(dtype, count, 1, -static_cast<double>(size), static_cast<double>(size - 1));
}

struct AxisShape {
  int64_t outer, size, inner, count;
};

Given<AxisPlaces> AlongAxis(const AxisShape& s, DType index_dtype) {
  Given<AxisPlaces> given{IndicesInto(s.size, s.count, index_dtype), {}, s.outer, s.size, s.inner, {}};
  given.places = {given.indices.data(), index_dtype, s.size};
  for (int64_t i = 0; i < s.count; ++i) given.expected.push_back(Wrapped(given.indices, i, s.size));
  return given;
}

// Data [5, 7, 3], indices [4, `length`, 2] along the middle.
Given<ElementPlaces> OfElements(int64_t length, DType index_dtype) {
  Given<ElementPlaces> given{IndicesInto(7, 8 * length, index_dtype), {}, 1, 105, 1, {}};
  given.places.axis = {given.indices.data(), index_dtype, 7};
  given.places.axis_stride = 3;
  MakeStridedLoop<1>({4, length, 2}, {std::vector<int64_t>{21, 0, 1}}, {}, &given.places.other_axes);
  for (int64_t i = 0; i < 8 * length; ++i) {
    given.expected.push_back((i / (2 * length) * 7 + Wrapped(given.indices, i, 7)) * 3 + i % 2);
  }
  return given;
}

// Data [2, 5, 4, inner], tuples [2, count, 2] with a batch axis.
Given<TuplePlaces> OfTuples(int64_t count, int64_t inner) {
  Given<TuplePlaces> given{IndicesInto(4, count * 4, DType::kInt64), {}, 1, 40, inner, {}};
  TuplePlaces& places = given.places;
  places.indices = given.indices.as<int64_t>();
  places.length = 2;
  places.sizes[0] = 5;
  places.sizes[1] = 4;
  places.strides[0] = 4;
  places.strides[1] = 1;
  places.per_batch = Divisor(count);
  places.batch_stride = 20;
  for (int64_t i = 0; i < 2 * count; ++i) {
    given.expected.push_back(i / count * 20 + Wrapped(given.indices, 2 * i, 5) * 4 +
                             Wrapped(given.indices, 2 * i + 1, 4));
  }
  return given;
}

// Inner [5, 4] padded to [8, 11], with `before` in front of each axis; negative crops.
Given<PadPlaces> OfPadding(PadMode mode, int64_t before) {
  const int64_t inner[] = {5, 4}, padded[] = {8, 11};
  Given<PadPlaces> given{{}, {}, 1, 20, 1, {}};
  given.places.mode = mode;
  given.places.axes = 2;
  for (int axis = 0; axis < 2; ++axis) {
    const int64_t period = mode == PadMode::kWrap ? inner[axis] : 2 * inner[axis] - 2;
    const int64_t lift = (mode == PadMode::kEdge ? 0 : 10 * period) - before;
    given.places.axis[axis] = {Divisor(padded[axis]), Divisor(period), lift, inner[axis], axis == 0 ? 4 : 1};
  }
  const auto source = [mode](int64_t at, int64_t size) {
    if (mode == PadMode::kEdge) return std::clamp<int64_t>(at, 0, size - 1);
    while (at < 0 || at >= size) {  // one fold or turn at a time
      if (mode == PadMode::kWrap) at += at < 0 ? size : -size;
      if (mode == PadMode::kReflect) at = at < 0 ? -at : 2 * size - 2 - at;
    }
    return at;
  };
  for (int64_t i = 0; i < 88; ++i)
    given.expected.push_back(source(i / 11 - before, 5) * 4 + source(i % 11 - before, 4));
  return given;
}

template <typename Places>
CaseResult RunGather(const Given<Places>& given, DType dtype) {
  Array data = Uniform(dtype, given.outer * given.size * given.inner, 2, 0, 99);
  CaseResult result;
  Array& y = result.outputs.emplace_back(dtype, given.outer * given.count() * given.inner);
  LaunchGather({data.data(), y.data(), given.outer, given.size, given.inner, given.count(), {}}, given.places,
               SizeOf(dtype), nullptr);
  auto& expected = result.expected.emplace_back();
  for (int64_t i = 0; i < y.count(); ++i) {
    const int64_t row = i / given.inner;
    const int64_t place = given.expected[static_cast<size_t>(row % given.count())];
    expected.push_back(data.At((row / given.count() * given.size + place) * given.inner + i % given.inner));
  }
  return result;
}

double Joined(ScatterReduction reduction, double target, double update) {
  switch (reduction) {
    case ScatterReduction::kAdd:
      return target + update;
    case ScatterReduction::kMul:
      return target * update;
    case ScatterReduction::kMax:
      return std::max(target, update);
    case ScatterReduction::kMin:
      return std::min(target, update);
    default:
      return update;
  }
}

template <typename Places>
CaseResult RunScatter(const Given<Places>& given, ScatterReduction reduction, DType dtype) {
  const bool integer = !IsFloating(dtype);
  Array updates = Uniform(dtype, given.outer * given.count() * given.inner, 2, integer ? 0 : -1.25, integer ? 3 : 1.25);
  CaseResult result;
  Array& y = result.outputs.emplace_back(Uniform(dtype, given.outer * given.size * given.inner, 3, 0, 2));
  auto& expected = result.expected.emplace_back(y.Values());
  for (int64_t i = 0; i < updates.count(); ++i) {
    const int64_t row = i / given.inner;
    const int64_t place = given.expected[static_cast<size_t>(row % given.count())];
    double& target =
        expected[static_cast<size_t>((row / given.count() * given.size + place) * given.inner + i % given.inner)];
    target = Joined(reduction, target, updates.At(i));
  }
  Array workspace(DType::kUint8, static_cast<int64_t>(ScatterBytes(given.count())));
  LaunchScatter({updates.data(), y.data(), given.outer, given.size, given.inner, given.count(), dtype, reduction, {}},
                given.places, workspace.data(), nullptr);
  result.tolerance = 4e-6;
  return result;
}

// An index out of range gives zeros, or adds nothing, and is reported.
CaseResult RunBadIndex(bool scatter) {
  Array rows(DType::kFloat, std::vector<double>{1, 2, 3, 4, 5, 6, 7, 8});
  Array indices(DType::kInt64, std::vector<double>{2, 3, -4, 2});
  const AxisPlaces places{indices.data(), DType::kInt64, 3};
  CaseResult result;
  Array& y = result.outputs.emplace_back(DType::kFloat, std::vector<double>(scatter ? 6 : 8, 0));
  Array word(DType::kInt64, std::vector<double>{0});
  const IndexFault fault{word.as<uint64_t>(), 4};
  if (scatter) {
    Array workspace(DType::kUint8, static_cast<int64_t>(ScatterBytes(4)));
    LaunchScatter({rows.data(), y.data(), 1, 3, 2, 4, DType::kFloat, ScatterReduction::kAdd, fault}, places,
                  workspace.data(), nullptr);
  } else {
    LaunchGather({rows.data(), y.data(), 1, 3, 2, 4, fault}, places, sizeof(float), nullptr);
  }
  result.outputs.push_back(std::move(word));
  result.expected.push_back(scatter ? std::vector<double>{0, 0, 0, 0, 8, 10}
                                    : std::vector<double>{5, 6, 0, 0, 0, 0, 5, 6});
  result.expected.push_back({4294967296.0 + 5});
  return result;
}

// By bits [first, end) of the keys; the places tell equal keys apart.
CaseResult RunSort(int64_t count, int64_t largest, int first_bit, int end_bit) {
  Array keys = Uniform(DType::kInt32, count, 1, 0, static_cast<double>(largest));
  Array workspace(DType::kUint8, static_cast<int64_t>(StableSortBytes(count)));
  StableSort sort = MakeStableSort(workspace.data(), count);
  std::vector<int32_t> order(static_cast<size_t>(count));
  std::iota(order.begin(), order.end(), 0);
  std::copy_n(keys.as<uint32_t>(), count, sort.keys());
  std::copy(order.begin(), order.end(), sort.places());
  LaunchStableSort(first_bit, end_bit, &sort, nullptr);
  const auto digits = [&](int32_t place) {
    return keys.as<uint32_t>()[place] >> first_bit & ((1ull << (end_bit - first_bit)) - 1);
  };
  std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) { return digits(a) < digits(b); });
  CaseResult result;
  result.outputs.reserve(2);  // so that references stay
  Array& found_keys = result.outputs.emplace_back(DType::kInt32, count);
  Array& found = result.outputs.emplace_back(DType::kInt32, count);
  std::copy_n(sort.keys(), count, found_keys.as<uint32_t>());
  std::copy_n(sort.places(), count, found.as<uint32_t>());
  auto& expected_keys = result.expected.emplace_back();
  for (const int32_t place : order) expected_keys.push_back(keys.At(place));
  result.expected.emplace_back(order.begin(), order.end());
  return result;
}

const AxisShape kAxes[] = {{1, 1, 1, 1}, {1, 7, 33, 40}, {3, 5, 8, 9}, {1, 50, 64, 20}, {1, 50000, 3, 4500}};
const ScatterReduction kReductions[] = {ScatterReduction::kNone, ScatterReduction::kAdd, ScatterReduction::kMul,
                                        ScatterReduction::kMax, ScatterReduction::kMin};

void AddGathers(DeviceCases& cases) {
  for (const DType dtype : {DType::kUint8, DType::kBfloat16, DType::kFloat, DType::kDouble}) {
    for (const DType index : {DType::kInt32, DType::kInt64}) {
      for (const AxisShape& shape : kAxes) {
        cases.push_back({Named("Gather", dtype), [=] { return RunGather(AlongAxis(shape, index), dtype); }});
      }
      cases.push_back({Named("GatherElements", dtype), [=] { return RunGather(OfElements(9, index), dtype); }});
    }
    for (const PadMode mode : {PadMode::kEdge, PadMode::kReflect, PadMode::kWrap}) {
      for (const int64_t before : {-1, 0, 6}) {
        cases.push_back({Named("Pad", dtype), [=] { return RunGather(OfPadding(mode, before), dtype); }});
      }
    }
    for (const int64_t inner : {1, 37}) {
      cases.push_back({Named("GatherND", dtype), [=] { return RunGather(OfTuples(11, inner), dtype); }});
    }
  }
}

void AddScatters(DeviceCases& cases) {
  for (const DType dtype : {DType::kUint8, DType::kFloat, DType::kBfloat16, DType::kFloat16, DType::kDouble,
                            DType::kInt32, DType::kInt64}) {
    for (const ScatterReduction reduction : kReductions) {
      if (!ScatterServes(reduction, dtype)) continue;
      for (const DType index : {DType::kInt32, DType::kInt64}) {
        for (const int64_t length : {1, 29}) {
          cases.push_back({Named("ScatterElements", dtype),
                           [=] { return RunScatter(OfElements(length, index), reduction, dtype); }});
        }
      }
      for (const int64_t inner : {1, 37}) {
        cases.push_back({Named("ScatterND", dtype), [=] { return RunScatter(OfTuples(11, inner), reduction, dtype); }});
      }
    }
  }
  for (const DType dtype : kDeviceFloats) {
    for (const PadMode mode : {PadMode::kEdge, PadMode::kReflect, PadMode::kWrap}) {
      cases.push_back(
          {Named("PadGrad", dtype), [=] { return RunScatter(OfPadding(mode, 3), ScatterReduction::kAdd, dtype); }});
    }
    for (const AxisShape& shape : kAxes) {
      cases.push_back({Named("GatherGrad", dtype),
                       [=] { return RunScatter(AlongAxis(shape, DType::kInt64), ScatterReduction::kAdd, dtype); }});
    }
  }
}

}  // namespace

void AddIndexCases(DeviceCases& cases) {
  AddGathers(cases);
  AddScatters(cases);
  for (const bool scatter : {false, true}) cases.push_back({"BadIndex", [=] { return RunBadIndex(scatter); }});
  cases.push_back({"StableSort", [] { return RunSort(1, 3, 0, 2); }});
  cases.push_back({"StableSort", [] { return RunSort(5003, 50000, 0, 16); }});
  cases.push_back({"StableSort", [] { return RunSort(2048, 2147483646, 12, 32); }});
  cases.push_back({"StableSort", [] { return RunSort(2049, 0, 0, 32); }});
  // More tiles than one step of the sum over tiles takes.
  cases.push_back({"StableSort", [] { return RunSort(530000, 15, 0, 4); }});
}

}  // namespace onnxtrain
