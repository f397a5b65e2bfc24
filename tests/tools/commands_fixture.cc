// SPDX-License-Identifier: Apache-2.0
#include "tests/tools/commands_fixture.h"

#include "graph/onnx_model.h"
#include "tests/support/status_matchers.h"

namespace onnxtrain {

const std::vector<std::string> CommandsTest::kLoss = Words("--loss ce --labels labels");
const std::vector<std::string> CommandsTest::kTrain = kLoss + Words("--train x={d}/x.npy --train labels={d}/y.npy");
const std::vector<std::string> CommandsTest::kVal = Words("--val x={d}/x.npy --val labels={d}/y.npy");
const std::vector<std::string> CommandsTest::kQuiet = Words("--quiet --json");

Tensor CommandsTest::Weight(const std::string& file, const std::string& name) {
  const StatusOr<OnnxModel> model = OnnxModel::Load(line_.Expand(file));
  EXPECT_OK(model);
  const StatusOr<Tensor> tensor = model.ok() ? model->Initializer(name) : StatusOr<Tensor>(model.status());
  EXPECT_OK(tensor);
  return tensor.ok() ? *tensor : Tensor();
}

void CommandsTest::ExpectSameFile(const std::string& one, const std::string& other) {
  EXPECT_EQ(ReadBytes(line_.Path(one)), ReadBytes(line_.Path(other))) << one << " " << other;
}

}  // namespace onnxtrain
