// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/cifar.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/support/status_matchers.h"
#include "tests/support/temporary_folder.h"

namespace onnxtrain {
namespace {

// `count` records: labels count upwards from `label`, pixels are the index of the record.
std::string Records(int count, int labels, int label) {
  std::string content;
  for (int i = 0; i < count; ++i) {
    for (int j = 0; j < labels; ++j) content += static_cast<char>(label + i + j);
    content += std::string(3072, static_cast<char>(i));
  }
  return content;
}

StatusOr<Tensor> Read(const std::string& path, const std::string& name) {
  ASSIGN_OR_RETURN(FileContents file, FileContents::Open(path));
  ASSIGN_OR_RETURN(const Array array, OpenCifar(std::move(file), name));
  return array.ToTensor();
}

TEST(CifarTest, ReadsImagesAndLabels) {
  const TemporaryFolder folder;
  const std::string path = folder.Write("a.bin", Records(3, 1, 7));
  const auto images = Read(path, "images");
  ASSERT_OK(images);
  EXPECT_EQ(images->type(), (TensorType{DType::kUint8, {3, 3, 32, 32}}));
  EXPECT_EQ(images->IntAt(3071), 0);
  EXPECT_EQ(images->IntAt(3072), 1);
  EXPECT_EQ(images->IntAt(3 * 3072 - 1), 2);
  EXPECT_TRUE(Read(path, "labels")->Identical(Tensor::FromVector<uint8_t>({3}, {7, 8, 9})));
}

TEST(CifarTest, ReadsCoarseAndFine) {
  const TemporaryFolder folder;
  const std::string path = folder.Write("a.bin", Records(2, 2, 18));
  EXPECT_TRUE(Read(path, "coarse")->Identical(Tensor::FromVector<uint8_t>({2}, {18, 19})));
  EXPECT_TRUE(Read(path, "fine")->Identical(Tensor::FromVector<uint8_t>({2}, {19, 20})));
  EXPECT_DATA_ERROR(Read(path, "labels"), "it has: images, coarse, fine");
}

TEST(CifarTest, ChecksSizeAndLabels) {
  const TemporaryFolder folder;
  EXPECT_FALSE(MayBeCifar(0));
  EXPECT_FALSE(MayBeCifar(3072));
  EXPECT_DATA_ERROR(Read(folder.Write("a.bin", std::string(100, 'x')), "images"),
                    "not a whole number of CIFAR records");
  EXPECT_DATA_ERROR(Read(folder.Write("b.bin", Records(2, 1, 9)), "images"), "byte 3073: record 1 has labels 10");
}

}  // namespace
}  // namespace onnxtrain
