// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/batch_loader.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "runtime/data/data_spec.h"
#include "runtime/data/prefetching_loader.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temporary_folder.h"

namespace onnxtrain {
namespace {

// x: [n,2] float, twice the index; y: [n] int64, the index; p: the same every step.
Dataset Numbers(int64_t samples) {
  std::vector<int64_t> index(static_cast<size_t>(samples));
  std::vector<uint8_t> pairs;
  for (int64_t i = 0; i < samples; ++i) {
    index[static_cast<size_t>(i)] = i;
    pairs.insert(pairs.end(), 2, static_cast<uint8_t>(i));
  }
  std::vector<std::unique_ptr<Column>> columns;
  std::vector<ArrayPiece> x;
  x.push_back({"x.npy", Array(Tensor::FromVector<uint8_t>({samples, 2}, pairs))});
  columns.push_back(std::move(MakeArrayColumn("x", std::move(x), *Mapping::Parse("f32,*2"))).value());
  std::vector<ArrayPiece> y;
  y.push_back({"y.npy", Array(Tensor::FromVector<int64_t>({samples}, index))});
  columns.push_back(std::move(MakeArrayColumn("y", std::move(y), Mapping())).value());
  columns.push_back(std::move(MakeConstantColumn("p", Tensor::FromVector<int32_t>({1}, {42}), true)).value());
  return std::move(Dataset::Create(std::move(columns))).value();
}

Sampler MakeSampler(int64_t samples, int64_t batch) {
  return std::move(Sampler::Create({samples, batch, true, 5, false})).value();
}

// The labels of one micro-batch; checks the other columns against them.
std::vector<int64_t> Labels(BatchLoader& loader, SamplerPosition position, int64_t rank, int64_t micro) {
  const int64_t samples = loader.MicroBatch(position, rank, micro).size;
  std::vector<Tensor> tensors;
  std::vector<BatchDestination> destinations;
  for (size_t i = 0; i < loader.columns().size(); ++i) {
    Tensor& tensor = tensors.emplace_back(loader.Type(i, samples));
    destinations.push_back({tensor.type(), {tensor.data(), tensor.bytes()}});
  }
  EXPECT_OK(loader.Fill(position, rank, micro, destinations));
  const auto labels = tensors[1].values<int64_t>();
  for (int64_t i = 0; i < samples; ++i) {
    EXPECT_EQ(tensors[0].DoubleAt(2 * i + 1), 2.0 * static_cast<double>(labels[static_cast<size_t>(i)]));
    EXPECT_EQ(tensors[2].IntAt(i), 42);
  }
  return {labels.begin(), labels.end()};
}

// The union of the slices is the global batch, in one order for every number of ranks and micro-batches.
TEST(BatchLoaderTest, TheGlobalOrderDoesNotDependOnTheRanks) {
  const Dataset dataset = Numbers(53);
  std::vector<int64_t> expected;
  for (int64_t ranks : {1, 2, 3, 4, 5, 8}) {
    for (int64_t accumulation : {1, 4}) {
      auto loader = BatchLoader::Create(&dataset, MakeSampler(53, 12), {ranks, accumulation, {}});
      ASSERT_OK(loader);
      std::vector<int64_t> seen;
      SamplerPosition position;
      while (position.epoch < 2) {
        for (int64_t rank = 0; rank < ranks; ++rank) {
          for (int64_t micro = 0; micro < accumulation; ++micro) {
            const auto labels = Labels(*loader, position, rank, micro);
            seen.insert(seen.end(), labels.begin(), labels.end());
          }
        }
        position = loader->sampler().Next(position);
      }
      EXPECT_EQ(seen.size(), 106u);
      if (expected.empty()) expected = seen;
      EXPECT_EQ(seen, expected) << ranks << " ranks, " << accumulation << " micro-batches";
    }
  }
}

TEST(BatchLoaderTest, AWrongDestinationIsADataError) {
  const Dataset dataset = Numbers(8);
  auto loader = BatchLoader::Create(&dataset, MakeSampler(8, 4), {1, 1, {"x"}});
  ASSERT_OK(loader);
  Tensor tensor(TensorType{DType::kFloat, {4, 3}});
  const std::vector<BatchDestination> wrong = {{tensor.type(), {tensor.data(), tensor.bytes()}}};
  EXPECT_DATA_ERROR(loader->Fill({}, 0, 0, wrong), "'x': expected float[4,3], the data gives float[4,2]");
  EXPECT_USAGE_ERROR(BatchLoader::Create(&dataset, MakeSampler(8, 4), {1, 1, {"z"}}), "no data for 'z'");
}

TEST(PrefetchingLoaderTest, DeliversWhatTheLoaderDelivers) {
  const Dataset dataset = Numbers(23);
  for (int depth : {1, 2, 5}) {
    auto plain = BatchLoader::Create(&dataset, MakeSampler(23, 6), {3, 2, {}});
    auto source = BatchLoader::Create(&dataset, MakeSampler(23, 6), {3, 2, {}});
    ASSERT_OK(plain);
    ASSERT_OK(source);
    PrefetchOptions options{{0, 6}, 11, 1, 2, depth};  // ranks 1 and 2, from the second batch
    auto loader = PrefetchingLoader::Create(std::move(source).value(), options);
    ASSERT_OK(loader);
    SamplerPosition position = options.start;
    for (int64_t i = 0; i < options.batches; ++i) {
      const auto batch = (*loader)->Next();
      ASSERT_OK(batch);
      ASSERT_NE(*batch, nullptr);
      EXPECT_EQ((*batch)->position, position);
      EXPECT_EQ((*batch)->samples, plain->sampler().BatchSize(position));
      ASSERT_EQ((*batch)->micro_batches.size(), 4u);
      for (size_t m = 0; m < 4; ++m) {
        const LoadedMicroBatch& micro_batch = (*batch)->micro_batches[m];
        const auto expected = Labels(*plain, position, 1 + static_cast<int64_t>(m) / 2, static_cast<int64_t>(m) % 2);
        EXPECT_EQ(micro_batch.samples, static_cast<int64_t>(expected.size()));
        EXPECT_EQ(micro_batch.feeds[1].type, (TensorType{DType::kInt64, {micro_batch.samples}}));
        std::vector<int64_t> labels(expected.size());
        if (!labels.empty()) std::memcpy(labels.data(), micro_batch.feeds[1].bytes.data(), labels.size() * 8);
        EXPECT_EQ(labels, expected);
      }
      position = plain->sampler().Next(position);
      EXPECT_EQ((*batch)->next, position);
    }
    EXPECT_EQ(*(*loader)->Next(), nullptr);
  }
}

TEST(PrefetchingLoaderTest, EndsEarlyAndWithoutBatches) {
  const Dataset dataset = Numbers(23);
  for (int64_t batches : {0, 100}) {
    auto source = BatchLoader::Create(&dataset, MakeSampler(23, 6), {});
    ASSERT_OK(source);
    auto loader = PrefetchingLoader::Create(std::move(source).value(), {{}, batches, 0, 1, 2});
    ASSERT_OK(loader);
    const auto batch = (*loader)->Next();
    ASSERT_OK(batch);
    EXPECT_EQ(*batch == nullptr, batches == 0);
  }
}

TEST(PrefetchingLoaderTest, ReturnsAnErrorWhereItHappened) {
  std::vector<std::unique_ptr<Column>> columns;
  std::vector<ArrayPiece> pieces;
  pieces.push_back({"y.npy", Array(Tensor::FromVector<uint8_t>({5}, {0, 1, 2, 3, 0}))});
  columns.push_back(std::move(MakeArrayColumn("y", std::move(pieces), *Mapping::Parse("onehot=3"))).value());
  const Dataset dataset = std::move(Dataset::Create(std::move(columns))).value();
  auto source = BatchLoader::Create(&dataset, std::move(Sampler::Create({5, 2, false, 0, false})).value(), {});
  ASSERT_OK(source);
  auto loader = PrefetchingLoader::Create(std::move(source).value(), {{}, 3, 0, 1, 2});
  ASSERT_OK(loader);
  EXPECT_OK((*loader)->Next());
  EXPECT_DATA_ERROR((*loader)->Next(), "'y' from 'y.npy', row 3");
  EXPECT_DATA_ERROR((*loader)->Next(), "'y' from 'y.npy', row 3");
}

TEST(PrefetchingLoaderTest, FeedsRealDigits) {
  const std::string digits = std::string(ONNXTRAIN_TEST_DATA_DIR) + "/mnist10k/test-";
  std::vector<std::unique_ptr<Column>> columns;
  for (const std::string& text :
       {"x=" + digits + "images.idx3-ubyte.gz:f32,/255,reshape=1x28x28", "y=" + digits + "labels.idx1-ubyte.gz:i64"}) {
    const auto spec = ParseDataSpec(text);
    ASSERT_OK(spec);
    auto opened = OpenColumns(*spec);
    ASSERT_OK(opened);
    columns.push_back(std::move((*opened)[0]));
  }
  const auto dataset = Dataset::Create(std::move(columns));
  ASSERT_OK(dataset);
  EXPECT_EQ(dataset->samples(), 1000);
  auto source = BatchLoader::Create(&*dataset, MakeSampler(1000, 64), {2, 1, {}});
  ASSERT_OK(source);
  auto loader = PrefetchingLoader::Create(std::move(source).value(), {{}, 16, 0, 2, 2});
  ASSERT_OK(loader);
  int64_t samples = 0;
  for (int step = 0; step < 16; ++step) {
    const auto batch = (*loader)->Next();
    ASSERT_OK(batch);
    EXPECT_EQ((*batch)->micro_batches[0].feeds[0].type.shape[2], 28);
    for (const LoadedMicroBatch& micro_batch : (*batch)->micro_batches) samples += micro_batch.samples;
  }
  EXPECT_EQ(samples, 1000);
}

}  // namespace
}  // namespace onnxtrain
