// SPDX-License-Identifier: Apache-2.0
// What scripts rely on of every command: documents, files, exit codes.
#include <gtest/gtest.h>
#include <onnx/onnx_pb.h>

#include <nlohmann/json.hpp>

#include "graph/onnx_model.h"
#include "runtime/checkpoint.h"
#include "runtime/data/npz.h"
#include "tests/support/status_matchers.h"
#include "tests/tools/command_line.h"

namespace onnxtrain {
namespace {

using nlohmann::json;
using Strings = std::vector<std::string>;

const Strings kLoss = Words("--loss ce --labels labels");
const Strings kTrain = kLoss + Words("--train x={d}/x.npy --train labels={d}/y.npy");
const Strings kVal = Words("--val x={d}/x.npy --val labels={d}/y.npy");
const Strings kQuiet = Words("--quiet --json");

CommandOptions In(std::map<std::string, std::string> environment) {
  CommandOptions options;
  options.environment = std::move(environment);
  return options;
}

class CommandsTest : public ::testing::Test {
 protected:
  json RunJson(const Strings& arguments, const CommandOptions& options = {}) {
    return json::parse(line_.RunOk(arguments + kQuiet, options));
  }
  json TrainClassifier(const std::string& run, const std::string& more) {
    return RunJson(Words("train {m}/classifier.onnxtxt --out {d}/" + run + " " + more) + kTrain);
  }
  std::vector<json> Metrics(const std::string& run) {
    std::vector<json> lines;
    for (const std::string& line : LinesOf(line_.Path(run + "/metrics.jsonl"))) lines.push_back(json::parse(line));
    return lines;
  }
  Tensor Weight(const std::string& file, const std::string& name) {
    const StatusOr<OnnxModel> model = OnnxModel::Load(line_.Expand(file));
    EXPECT_OK(model);
    const StatusOr<Tensor> tensor = model.ok() ? model->Initializer(name) : StatusOr<Tensor>(model.status());
    EXPECT_OK(tensor);
    return tensor.ok() ? *tensor : Tensor();
  }
  void ExpectSameFile(const std::string& one, const std::string& other) {
    EXPECT_EQ(ReadBytes(line_.Path(one)), ReadBytes(line_.Path(other))) << one << " " << other;
  }

  CommandLine line_;
};

TEST_F(CommandsTest, HelpListsWhatThereIs) {
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

TEST_F(CommandsTest, UsageErrorsWriteNothing) {
  const Strings cases[] = {Words("--momentum 0.9"),
                           Words("--optimizer sgd --betas 0.9,0.99"),
                           Words("--schedule linear --gamma 0.5"),
                           Words("--optimizer sgd --nesterov"),
                           Words("--zero 3"),
                           Words("--dtype bf16"),
                           Words("--loss-scale dynamic"),
                           Words("--reduce-dtype bf16"),
                           Words("--recompute auto"),
                           Words("--device cuda"),
                           Words("--sync-bn"),
                           Words("--optimizer lamb"),
                           Words("--batch-size 4 --global-batch-size 9"),
                           Words("--warmup-steps 3 --max-steps 3"),
                           Words("--lr -1"),
                           Words("--no-decay nothing*"),
                           Words("--freeze nothing*"),
                           Words("--param-group nothing*:lr=1"),
                           Words("--resume --overwrite"),
                           Words("--override"),
                           Words("--val-tokens {d}/tokens.bin")};
  for (const Strings& more : cases) {
    const CommandResult result = line_.Run(Words("train {m}/classifier.onnxtxt --out {d}/refused") + kTrain + more);
    EXPECT_EQ(result.exit_code, 2) << more[0] << "\n" << result.err;
    EXPECT_NE(result.err.find("onnx-train train: "), std::string::npos);
    EXPECT_TRUE(result.out.empty());
    EXPECT_TRUE(NamesIn(line_.Path("refused")).empty()) << more[0];
  }
}

TEST_F(CommandsTest, WorldsThatCannotBeJoinedAreRefused) {
  const std::map<std::string, std::string> worlds[] = {{{"RANK", "0"}, {"WORLD_SIZE", "2"}},
                                                       {{"OMPI_COMM_WORLD_RANK", "1"}, {"OMPI_COMM_WORLD_SIZE", "4"}},
                                                       {{"PMI_RANK", "0"}, {"PMI_SIZE", "2"}},
                                                       {{"SLURM_PROCID", "0"}, {"SLURM_STEP_NUM_TASKS", "2"}}};
  const Strings train = Words("train {m}/classifier.onnxtxt --max-steps 1 --quiet --out {d}/world") + kTrain;
  for (const auto& world : worlds) {
    EXPECT_EQ(line_.Run(train, In(world)).exit_code, 2);
    EXPECT_TRUE(NamesIn(line_.Path("world")).empty());
  }
  line_.RunOk(train, In({{"RANK", "0"}, {"WORLD_SIZE", "1"}}));
}

TEST_F(CommandsTest, RunFolderHoldsWhatIsPromised) {
  const json summary = TrainClassifier("run",
                                       "--max-steps 3 --batch-size 10 --ranks 2 --zero 1 --save-every 2 --dump-passes "
                                       "--val x={d}/x.npy --val labels={d}/y.npy");
  EXPECT_EQ(summary["steps"], 3);
  EXPECT_EQ(summary["samples"], 50);
  for (const char* key : {"loss", "val_loss", "val_accuracy", "seconds"}) EXPECT_TRUE(summary[key].is_number()) << key;
  EXPECT_EQ(summary["checkpoint"], line_.Path("run/checkpoints/step-00000003"));
  EXPECT_EQ(summary["model"], line_.Path("run/model.onnx"));
  EXPECT_EQ(NamesIn(line_.Path("run/checkpoints")), (Strings{"step-00000002", "step-00000003"}));
  const json config = json::parse(ReadText(line_.Path("run/config.json")));
  EXPECT_EQ(config["lr"], 1e-3);
  EXPECT_EQ(config["global-batch-size"], 20);
  EXPECT_EQ(config["threads"], 1);
  const std::vector<json> metrics = Metrics("run");
  ASSERT_EQ(metrics.size(), 4u);  // the third step is a partial batch; then validation
  for (int step = 0; step < 3; ++step) {
    EXPECT_EQ(metrics[static_cast<size_t>(step)]["step"], step);
    EXPECT_EQ(metrics[static_cast<size_t>(step)]["samples"], step == 2 ? 10 : 20);
    for (const char* key : {"loss", "lr", "grad_norm", "step_ms"}) {
      EXPECT_TRUE(metrics[static_cast<size_t>(step)][key].is_number()) << key;
    }
  }
  EXPECT_EQ(metrics[3]["step"], 2);
  EXPECT_EQ(metrics[3]["val_samples"], 50);
  EXPECT_TRUE(json::parse(ReadText(line_.Path("run/plan.json"))).contains("digest"));
  EXPECT_EQ(NamesIn(line_.Path("run/passes"))[0], "00-read.onnxtxt");
  EXPECT_GT(NamesIn(line_.Path("run/passes")).size(), 10u);
}

TEST_F(CommandsTest, NoStepAndNoRateChangeNothing) {
  TrainClassifier("none", "--max-steps 0");
  TrainClassifier("zero", "--max-steps 2 --lr 0");
  for (const char* name : {"fc1_weight", "fc1_bias", "fc2_weight", "fc2_bias"}) {
    const Tensor before = Weight("{m}/classifier.onnxtxt", name);
    EXPECT_TRUE(Weight("{d}/none/model.onnx", name).Identical(before)) << name;
    EXPECT_TRUE(Weight("{d}/zero/model.onnx", name).Identical(before)) << name;
  }
  EXPECT_EQ(NamesIn(line_.Path("none/checkpoints")), Strings{"step-00000000"});
}

TEST_F(CommandsTest, EpochsAndStepsEndAtTheEarlier) {
  EXPECT_EQ(TrainClassifier("a", "--batch-size 20")["steps"], 3);
  EXPECT_EQ(TrainClassifier("b", "--batch-size 20 --drop-last")["steps"], 2);
  EXPECT_EQ(TrainClassifier("c", "--batch-size 20 --epochs 2 --max-steps 5")["steps"], 5);
  EXPECT_EQ(TrainClassifier("d", "--batch-size 20 --epochs 2 --max-steps 50")["steps"], 6);
  EXPECT_EQ(TrainClassifier("e", "--batch-size 20 --max-steps 7")["steps"], 7);
  EXPECT_EQ(NamesIn(line_.Path("d/checkpoints")), (Strings{"step-00000003", "step-00000006"}));
}

TEST_F(CommandsTest, ResumedRunHasTheBitsOfAnUninterruptedOne) {
  TrainClassifier("whole", "--max-steps 7 --ranks 2 --batch-size 6 --optimizer adam --schedule step --step-size 3");
  TrainClassifier("parts", "--max-steps 3 --ranks 2 --batch-size 6 --optimizer adam --schedule step --step-size 3");
  const json summary = RunJson(Words("train {m}/classifier.onnxtxt --resume --out {d}/parts --max-steps 7"));
  EXPECT_EQ(summary["steps"], 7);
  ExpectSameFile("whole/model.onnx", "parts/model.onnx");
  ExpectSameFile("whole/checkpoints/step-00000007/state.safetensors",
                 "parts/checkpoints/step-00000007/state.safetensors");
  const std::vector<json> whole = Metrics("whole"), parts = Metrics("parts");
  ASSERT_EQ(whole.size(), parts.size());
  for (size_t i = 0; i < whole.size(); ++i) {
    for (const char* key : {"step", "loss", "lr", "grad_norm", "samples"})
      EXPECT_EQ(whole[i][key], parts[i][key]) << key;
  }
}

TEST_F(CommandsTest, ResumeMayChangeRanksAndKeepsTheGlobalBatch) {
  TrainClassifier("run", "--max-steps 2 --ranks 2 --zero 1 --batch-size 6 --keep 1");
  RunJson(Words("train {m}/classifier.onnxtxt --resume --out {d}/run --max-steps 4 --ranks 3 --zero 2 --overlap off"));
  EXPECT_EQ(json::parse(ReadText(line_.Path("run/config.json")))["batch-size"], 4);
  EXPECT_EQ(Metrics("run").back()["samples"], 12);
  EXPECT_EQ(NamesIn(line_.Path("run/checkpoints")), Strings{"step-00000004"}) << "--keep comes from config.json";
  const CommandResult refused =
      line_.Run(Words("train {m}/classifier.onnxtxt --resume --out {d}/run --ranks 5 --max-steps 6"));
  EXPECT_EQ(refused.exit_code, 2) << "12 samples do not divide by 5 ranks";
  EXPECT_EQ(
      line_.Run(Words("train {m}/classifier.onnxtxt --resume --out {d}/run --batch-size 2 --max-steps 6")).exit_code,
      2);
  RunJson(Words("train {m}/classifier.onnxtxt --resume --out {d}/run --batch-size 2 --max-steps 6 --override"));
  EXPECT_EQ(Metrics("run").back()["samples"], 6);
}

TEST_F(CommandsTest, ScheduleWithAnEndKeepsIt) {
  TrainClassifier("run", "--max-steps 4 --schedule cosine");
  EXPECT_EQ(line_.Run(Words("train {m}/classifier.onnxtxt --resume --out {d}/run --max-steps 6")).exit_code, 2);
  RunJson(Words("train {m}/classifier.onnxtxt --resume --out {d}/run --max-steps 6 --override"));
  EXPECT_EQ(Metrics("run").size(), 6u);
}

TEST_F(CommandsTest, ResumeBeginsWhereThereIsNoCheckpoint) {
  const CommandResult result =
      line_.Run(Words("train {m}/classifier.onnxtxt --resume --out {d}/new --max-steps 1") + kTrain);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(result.err.find("starting from the beginning"), std::string::npos);
  EXPECT_EQ(Metrics("new").size(), 1u);
}

TEST_F(CommandsTest, ConfigurationOfARunRepeatsIt) {
  TrainClassifier("first", "--max-steps 3 --lr 0.02 --no-shuffle --param-group fc1*:lr=0.001,weight-decay=0");
  RunJson(Words("train --config {d}/first/config.json --out {d}/second"));
  ExpectSameFile("first/model.onnx", "second/model.onnx");
}

TEST_F(CommandsTest, RunIsAModelToTrainOn) {
  TrainClassifier("first", "--max-steps 2");
  const json summary = RunJson(Words("train {d}/first --out {d}/second --max-steps 0") + kTrain);
  EXPECT_EQ(summary["steps"], 0);
  EXPECT_TRUE(Weight("{d}/second/model.onnx", "fc1_weight").Identical(Weight("{d}/first/model.onnx", "fc1_weight")));
}

TEST_F(CommandsTest, EvalCountsEverySampleOnAnyRanks) {
  const json one = RunJson(Words("eval {m}/classifier.onnxtxt --batch-size 7") + kLoss + kVal);
  EXPECT_EQ(one["samples"], 50);
  const json three = RunJson(Words("eval {m}/classifier.onnxtxt --ranks 3 --batch-size 6") + kLoss + kVal);
  EXPECT_EQ(three["samples"], 50);
  EXPECT_NEAR(three["loss"].get<double>(), one["loss"].get<double>(), 1e-6);
  EXPECT_EQ(three["accuracy"], one["accuracy"]);
  const json tokens = RunJson(Words("eval {m}/token_classifier.onnxtxt --val-tokens {d}/tokens.bin --seq-len 8"));
  EXPECT_NEAR(tokens["perplexity"].get<double>(), std::exp(tokens["loss"].get<double>()), 1e-9);
}

TEST_F(CommandsTest, FixedBatchLeavesOutTheRest) {
  const CommandResult result = line_.Run(
      Words("train {m}/fixed_batch.onnxtxt --out {d}/run --train x={d}/x.npy --train labels={d}/y.npy --epochs 1"));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(result.err.find("the last 2 of 50 training samples"), std::string::npos) << result.err;
  EXPECT_EQ(Metrics("run").size(), 6u);
}

TEST_F(CommandsTest, GradWritesWhatIsAskedFor) {
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

TEST_F(CommandsTest, InspectGivesAVerdictOnEveryInitializer) {
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

TEST_F(CommandsTest, CheckSaysYesOrNo) {
  EXPECT_TRUE(RunJson(Words("check {m}/classifier_loss.onnxtxt"))["trainable"].get<bool>());
  const CommandResult no = line_.Run(Words("check {m}/no_gradient.onnxtxt") + kQuiet);
  EXPECT_EQ(no.exit_code, 3);
  EXPECT_FALSE(json::parse(no.out)["trainable"].get<bool>());
}

TEST_F(CommandsTest, PlanHasThePinnedKeys) {
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

TEST_F(CommandsTest, TrainWritesATimelineOfThreeSteps) {
  TrainClassifier("run", "--max-steps 6 --ranks 2 --trace {d}/trace.json");
  std::map<std::pair<int, int>, int> events;
  const json trace = json::parse(ReadText(line_.Path("trace.json")));
  for (const json& event : trace["traceEvents"]) {
    if (event["ph"] != "X") continue;
    EXPECT_GE(event["dur"].get<double>(), 0);
    ++events[{event["pid"].get<int>(), event["tid"].get<int>()}];
  }
  EXPECT_EQ(events.size(), 4u) << "two ranks, two streams";
  for (const auto& [place, count] : events) EXPECT_EQ(count % 3, 0) << "three steps";
}

TEST_F(CommandsTest, BuildWritesAModelFolder) {
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

TEST_F(CommandsTest, ExportDropsTheLossAndKeepsNames) {
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

TEST_F(CommandsTest, UntieGivesEveryUseATensor) {
  const Strings train =
      Words("train {m}/tied.onnxtxt --loss mse --labels t --train x={d}/x.npy --train t={d}/x.npy --max-steps 3");
  line_.RunOk(train + Words("--out {d}/tied --quiet"));
  const CommandResult untied = line_.Run(train + Words("--out {d}/untied --untie"));
  EXPECT_EQ(untied.exit_code, 0) << untied.err;
  EXPECT_NE(untied.err.find("--untie changes the model: 'second'"), std::string::npos) << untied.err;
  EXPECT_FALSE(Weight("{d}/untied/model.onnx", "second").Identical(Weight("{d}/untied/model.onnx", "first")));
  const StatusOr<OnnxModel> tied = OnnxModel::Load(line_.Path("tied/model.onnx"));
  ASSERT_OK(tied);
  EXPECT_EQ(tied->FindInitializer("second"), nullptr);
  line_.RunOk(Words("train {m}/tied.onnxtxt --resume --out {d}/untied --max-steps 4 --quiet"));
}

TEST_F(CommandsTest, InitialWeightsComeByName) {
  PosixFileSystem files;
  Tensor bias({DType::kFloat, {3}});
  bias.values<float>()[1] = 2;
  const std::vector<NamedTensor> weights{{"fc2_bias", bias}};
  ASSERT_OK(WriteNpz(files, line_.Path("w.npz"), std::span<const NamedTensor>(weights)));
  TrainClassifier("run", "--max-steps 0 --init-weights {d}/w.npz");
  EXPECT_TRUE(Weight("{d}/run/model.onnx", "fc2_bias").Identical(bias));
  TrainClassifier("frozen", "--max-steps 0 --init-weights {d}/w.npz --freeze fc2_bias");
  EXPECT_TRUE(Weight("{d}/frozen/model.onnx", "fc2_bias").Identical(bias));
  const CommandResult unknown = line_.Run(Words("check {m}/classifier_loss.onnxtxt --init-weights {d}/w.npz"));
  EXPECT_EQ(unknown.exit_code, 4);
  EXPECT_NE(unknown.err.find("'fc2_bias' is no initializer of the model, did you mean 'fc_bias'"), std::string::npos);
}

TEST_F(CommandsTest, DryRunWritesNothing) {
  EXPECT_EQ(RunJson(Words("train {m}/classifier.onnxtxt --dry-run --max-steps 5") + kTrain)["steps"], 5);
}

void WriteTensorProto(const TemporaryFolder& folder, const std::string& name, const std::vector<float>& values) {
  onnx::TensorProto tensor;
  tensor.set_data_type(onnx::TensorProto::FLOAT);
  tensor.add_dims(static_cast<int64_t>(values.size()));
  for (const float value : values) tensor.add_float_data(value);
  folder.Write(name, tensor.SerializeAsString());
}

TEST_F(CommandsTest, TestCountsPassedFailedAndSkipped) {
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

TEST_F(CommandsTest, OptPrintsCanonicalText) {
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
