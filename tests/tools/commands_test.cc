// SPDX-License-Identifier: Apache-2.0
// What scripts rely on of every command but `train`: documents, files, exit codes.
#include <onnx/onnx_pb.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "graph/onnx_model.h"
#include "runtime/data/npz.h"
#include "tests/support/status_matchers.h"
#include "tests/tools/commands_fixture.h"

namespace onnxtrain {
namespace {

using nlohmann::json;

class OtherCommandsTest : public CommandsTest {
 protected:
  json RunJson(const Strings& arguments) { return json::parse(line_.RunOk(arguments + kQuiet)); }
};

TEST_F(OtherCommandsTest, HelpListsWhatThereIs) {
  const std::string help = line_.RunOk({"--help"});
  for (const char* command : {"train", "eval", "export", "inspect", "check", "grad", "plan", "build", "opt", "test"}) {
    EXPECT_NE(help.find(std::string("\n  ") + command + " "), std::string::npos) << command;
    EXPECT_NE(line_.RunOk({command, "--help"}).find("onnx-train " + std::string(command)), std::string::npos);
  }
  EXPECT_EQ(line_.Run({}).exit_code, 2);
  const CommandResult unknown = line_.Run({"trian"});
  EXPECT_EQ(unknown.exit_code, 2);
  EXPECT_NE(unknown.err.find("did you mean 'train'"), std::string::npos);
}

TEST_F(OtherCommandsTest, PlansForAnotherMachineTakeItsRateOfTf32) {
  const std::string machine = line_.folder().Write("machine.json", R"({"gflops": 0.001, "tf32_gflops": 0.004})");
  const Strings plan = Words("plan {m}/classifier.onnxtxt --batch-size 8") + kTrain;
  const auto compute = [&](const Strings& more) {
    return RunJson(plan + Strings{"--machine", machine} + more)["links"][0]["compute_us"].get<double>();
  };
  EXPECT_GT(compute({}), 2 * compute({"--tf32"}));
  // Without a machine the plan is the CPU's, which has no TF32.
  const CommandResult refused = line_.Run(plan + Strings{"--tf32"});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_NE(refused.err.find("--tf32"), std::string::npos) << refused.err;
}

TEST_F(OtherCommandsTest, EvalCountsEverySampleOnAnyRanks) {
  const json one = RunJson(Words("eval {m}/classifier.onnxtxt --batch-size 7") + kLoss + kVal);
  EXPECT_EQ(one["samples"], 50);
  const json three = RunJson(Words("eval {m}/classifier.onnxtxt --ranks 3 --batch-size 6") + kLoss + kVal);
  EXPECT_EQ(three["samples"], 50);
  EXPECT_NEAR(three["loss"].get<double>(), one["loss"].get<double>(), 1e-6);
  EXPECT_EQ(three["accuracy"], one["accuracy"]);
  const json tokens = RunJson(Words("eval {m}/token_classifier.onnxtxt --val-tokens {d}/tokens.bin --seq-len 8"));
  EXPECT_NEAR(tokens["perplexity"].get<double>(), std::exp(tokens["loss"].get<double>()), 1e-9);
}

TEST_F(OtherCommandsTest, GradWritesWhatIsAskedFor) {
  line_.RunOk(Words("grad {m}/classifier.onnxtxt --feed {d}/batch.npz --out {d}/g.npz") + kLoss);
  const StatusOr<std::vector<NamedTensor>> entries = ReadNpz(line_.Path("g.npz"));
  ASSERT_OK(entries);
  Strings names;
  for (const auto& [name, tensor] : *entries) names.push_back(name);
  EXPECT_EQ(names,
            (Strings{"loss", "output/logits", "grad/fc1_weight", "grad/fc1_bias", "grad/fc2_weight", "grad/fc2_bias"}));
  EXPECT_EQ((*entries)[0].second.type(), (TensorType{DType::kDouble, {}}));
  EXPECT_EQ((*entries)[2].second.dtype(), DType::kFloat);
  const json some =
      RunJson(Words("grad {m}/classifier.onnxtxt --feed {d}/batch.npz --wrt x --wrt hidden --loss l2 "
                    "--loss-on active --dtype f64"));
  EXPECT_EQ(some["tensors"][2]["name"], "grad/x");
  EXPECT_EQ(some["tensors"][3]["name"], "grad/hidden");
  EXPECT_EQ(some["tensors"][3]["dtype"], "double");
  const json checked = RunJson(Words("grad {m}/classifier.onnxtxt --feed {d}/batch.npz --numeric") + kLoss);
  EXPECT_TRUE(checked["passed"].get<bool>());
  EXPECT_EQ(line_.Run(Words("grad {m}/classifier.onnxtxt --feed {d}/batch.npz --numeric --tolerance 1e-300") + kLoss)
                .exit_code,
            1);
}

TEST_F(OtherCommandsTest, InspectGivesAVerdictOnEveryInitializer) {
  const json inspected = RunJson(Words("inspect {m}/token_classifier.onnxtxt --seq-len 4 --freeze head"));
  std::map<std::string, std::string> verdicts;
  for (const json& tensor : inspected["initializers"]) {
    verdicts[tensor["name"]] = tensor["verdict"];
    EXPECT_FALSE(tensor["reason"].get<std::string>().empty());
  }
  EXPECT_EQ(verdicts, (std::map<std::string, std::string>{
                          {"embedding", "trainable"}, {"head", "frozen"}, {"flat", "constant"}, {"one", "constant"}}));
  EXPECT_EQ(inspected["inputs"][0]["shape"], (json{"batch", "time"}));
  EXPECT_EQ(inspected["ops"]["Reshape"], 2);
  EXPECT_TRUE(inspected["traps"].is_array());
  line_.RunOk(Words("inspect --ops"));
}

TEST_F(OtherCommandsTest, CheckSaysYesOrNo) {
  EXPECT_TRUE(RunJson(Words("check {m}/classifier_loss.onnxtxt"))["trainable"].get<bool>());
  const CommandResult no = line_.Run(Words("check {m}/no_gradient.onnxtxt") + kQuiet);
  EXPECT_EQ(no.exit_code, 3);
  EXPECT_FALSE(json::parse(no.out)["trainable"].get<bool>());
}

TEST_F(OtherCommandsTest, PlanHasThePinnedKeys) {
  const Strings plan = Words("plan {m}/classifier.onnxtxt --ranks 2 --zero 1") + kLoss;
  const json two = RunJson(plan + Words("--trace {d}/trace.json"));
  for (const char* key : {"streams", "steps", "buckets", "memory", "exposed_us", "bound_us", "digest", "links"}) {
    EXPECT_TRUE(two.contains(key)) << key;
  }
  ASSERT_EQ(two["links"].size(), 2u);
  EXPECT_EQ(two["links"][0]["gbps"], 10);
  EXPECT_EQ(two["links"][1]["gbps"], 100);
  EXPECT_EQ(two["exposed_us"], two["links"][0]["exposed_us"]);
  EXPECT_EQ(two["bound_us"], two["links"][0]["bound_us"]);
  const json trace = json::parse(ReadText(line_.Path("trace.json")));
  EXPECT_GT(trace["traceEvents"].size(), two["steps"].size() / 2);
  const json other = RunJson(plan + Words("--link-gbps 1 --link-gbps 40 --link-gbps 400 --link-latency-us 5"));
  EXPECT_EQ(other["links"].size(), 3u);
  EXPECT_NE(line_.RunOk(plan).find("communication  launch"), std::string::npos);
  EXPECT_EQ(line_.Run(plan + Words("--memory-limit 1K")).exit_code, 1);
}

TEST_F(OtherCommandsTest, BuildWritesAModelFolder) {
  line_.RunOk(
      Words("build {m}/classifier.onnxtxt -o {d}/built --ranks 2 --zero 1 --bucket-mb inf --dump-passes --quiet") +
      kLoss);
  EXPECT_EQ(NamesIn(line_.Path("built")), (Strings{"eval.onnx", "model.onnx", "passes", "plan.json", "train.onnx"}));
  onnx::ModelProto step;
  ASSERT_TRUE(step.ParseFromString(ReadText(line_.Path("built/train.onnx"))));
  std::map<std::string, int> ops;
  for (const onnx::NodeProto& node : step.graph().node()) ++ops[node.op_type()];
  EXPECT_EQ(ops["ReduceScatter"], 1);
  EXPECT_EQ(ops["AllGather"], 1);
  EXPECT_EQ(NamesIn(line_.Path("built/passes"))[0], "00-read.onnxtxt");
  EXPECT_TRUE(json::parse(ReadText(line_.Path("built/plan.json"))).contains("links"));
  EXPECT_EQ(RunJson(Words("train {d}/built --out {d}/run --max-steps 1") + kTrain)["steps"], 1);
}

TEST_F(OtherCommandsTest, ExportDropsTheLossAndKeepsNames) {
  RunJson(
      Words("train {m}/classifier_loss.onnxtxt --out {d}/run --max-steps 4 --save-every 2 --train x={d}/x.npy --train "
            "labels={d}/y.npy"));
  std::remove(line_.Path("x.npy").c_str());  // the data is not needed any more
  line_.RunOk(Words("export {d}/run -o {d}/new.onnx --quiet"));
  EXPECT_EQ(RunJson(Words("export {d}/run -o {d}/old.onnx --step 2"))["step"], 2);
  const StatusOr<OnnxModel> exported = OnnxModel::Load(line_.Path("new.onnx"));
  ASSERT_OK(exported);
  ASSERT_EQ(exported->inputs().size(), 1u);
  EXPECT_EQ(exported->inputs()[0].name, "x");
  ASSERT_EQ(exported->outputs().size(), 1u);
  EXPECT_EQ(exported->outputs()[0].name, "logits");
  EXPECT_TRUE(Weight("{d}/new.onnx", "fc_weight").Identical(Weight("{d}/run/model.onnx", "fc_weight")));
  EXPECT_FALSE(Weight("{d}/old.onnx", "fc_weight").Identical(Weight("{d}/new.onnx", "fc_weight")));
}

void WriteTensorProto(const TemporaryFolder& folder, const std::string& name, const std::vector<float>& values) {
  onnx::TensorProto tensor;
  tensor.set_data_type(onnx::TensorProto::FLOAT);
  tensor.add_dims(static_cast<int64_t>(values.size()));
  for (const float value : values) tensor.add_float_data(value);
  folder.Write(name, tensor.SerializeAsString());
}

TEST_F(OtherCommandsTest, TestCountsPassedFailedAndSkipped) {
  const auto add_case = [&](const std::string& name, const std::string& op, const std::vector<float>& expected) {
    const StatusOr<OnnxModel> model = OnnxModel::ParseText(
        "<ir_version: 8, opset_import: [\"\" : 17]>\nmain (float[3] x) => (float[3] y) {\n  y = " + op + " (x)\n}", "",
        name);
    ASSERT_OK(model);
    PosixFileSystem files;
    ASSERT_OK(files.CreateFolders(line_.Path(name + "/test_data_set_0")));
    ASSERT_OK(model->Save(line_.Path(name + "/model.onnx"), {}));
    WriteTensorProto(line_.folder(), name + "/test_data_set_0/input_0.pb", {-1, 0, 4});
    WriteTensorProto(line_.folder(), name + "/test_data_set_0/output_0.pb", expected);
  };
  const float nan = std::numeric_limits<float>::quiet_NaN();
  add_case("cases/good/relu", "Relu", {0, 0, 4.002f});
  add_case("cases/good/sqrt", "Sqrt", {nan, 0, 2});
  add_case("cases/skipped", "Hardmax", {0, 0, 1});
  const std::string out = line_.RunOk(Words("test {d}/cases"));
  EXPECT_TRUE(out.ends_with("\n2 passed, 0 failed, 1 skipped\n")) << out;
  add_case("cases/bad", "Abs", {1, 0, 4.1f});
  const CommandResult failed = line_.Run(Words("test {d}/cases/bad {d}/cases/skipped {d}/cases/good") + kQuiet);
  EXPECT_EQ(failed.exit_code, 1);
  const json counts = json::parse(failed.out);
  EXPECT_EQ(counts["passed"], 2);
  EXPECT_EQ(counts["failed"], 1);
  EXPECT_EQ(counts["skipped_by_op"], json({{"Hardmax", 1}}));
  EXPECT_NE(counts["failures"][0]["reason"].get<std::string>().find("'y'[2] is 4"), std::string::npos);
  EXPECT_EQ(line_.Run(Words("test {d}/nowhere")).exit_code, 2);
}

TEST_F(OtherCommandsTest, OptPrintsCanonicalText) {
  const std::string text = line_.RunOk(Words("opt {m}/classifier.onnxtxt --passes append_loss,build_backward") + kLoss);
  EXPECT_NE(text.find("SoftmaxCrossEntropyLossGrad"), std::string::npos);
  EXPECT_NE(line_.RunOk(Words("opt {m}/classifier.onnxtxt")).find("Gemm"), std::string::npos);
  EXPECT_NE(line_.RunOk(Words("opt --list-passes")).find("bucket_gradients"), std::string::npos);
  const CommandResult unknown = line_.Run(Words("opt {m}/classifier.onnxtxt --passes build_bckward"));
  EXPECT_EQ(unknown.exit_code, 2);
  EXPECT_NE(unknown.err.find("build_backward"), std::string::npos);
}

}  // namespace
}  // namespace onnxtrain
