// SPDX-License-Identifier: Apache-2.0
// Seeded damage to small models: whatever comes out, it is a Status or a valid graph. tests/fuzz/onnx_reader_fuzzer.cc
// searches further.
#include <gtest/gtest.h>
#include <onnx/onnx_pb.h>

#include <random>

#include "graph/op_registry.h"
#include "tests/graph/reader_corpus.h"

namespace onnxtrain {
namespace {

constexpr uint64_t kSeed = 20240611;
constexpr int kRounds = 4000;  // a model each; a few seconds in all

std::string Mutated(const std::vector<std::string>& corpus, std::mt19937_64& random) {
  const auto below = [&](size_t limit) { return static_cast<size_t>(random() % std::max<size_t>(limit, 1)); };
  std::string bytes = corpus[below(corpus.size())];
  for (size_t changes = 1 + below(4); changes > 0 && !bytes.empty(); --changes) {
    const size_t at = below(bytes.size());
    switch (below(6)) {
      case 0:
        bytes[at] = static_cast<char>(random());
        break;
      case 1:
        bytes[at] = static_cast<char>(bytes[at] ^ (1 << below(8)));
        break;
      case 2:
        bytes.erase(at, 1 + below(8));
        break;
      case 3:
        bytes.insert(at, bytes.substr(below(bytes.size()), below(32)));
        break;
      case 4:
        bytes.resize(at);
        break;
      default: {
        const std::string& other = corpus[below(corpus.size())];
        bytes = bytes.substr(0, at) + other.substr(below(other.size()));
      }
    }
  }
  return bytes;
}

// Valid messages that say something else: other operators, attributes, wires, shapes and versions.
class StructureMutator {
 public:
  explicit StructureMutator(std::mt19937_64& random) : random_(random), ops_(OpRegistry::Default().Names()) {}

  void Mutate(onnx::ModelProto& model) {
    onnx::GraphProto& graph = *model.mutable_graph();
    for (size_t changes = 1 + Below(3); changes > 0; --changes) {
      onnx::NodeProto& node = *graph.mutable_node(static_cast<int>(Below(static_cast<size_t>(graph.node_size()))));
      switch (Below(8)) {
        case 0:
          SetOp(model, node);
          break;
        case 1:
          MutateAttribute(node);
          break;
        case 2:
          node.add_input(AnyName(graph));
          break;
        case 3:
          if (node.input_size() > 0)
            node.set_input(static_cast<int>(Below(static_cast<size_t>(node.input_size()))), AnyName(graph));
          break;
        case 4:
          if (node.input_size() > 0) node.mutable_input()->RemoveLast();
          break;
        case 5:
          MutateTensor(graph);
          break;
        case 6:
          model.mutable_opset_import(0)->set_version(static_cast<int64_t>(7 + Below(22)));
          break;
        default:
          node.add_output("extra" + std::to_string(Below(3)));
      }
    }
  }

 private:
  size_t Below(size_t limit) { return static_cast<size_t>(random_() % std::max<size_t>(limit, 1)); }
  void SetOp(onnx::ModelProto& model, onnx::NodeProto& node) {
    const std::string& op = ops_[Below(ops_.size())];
    const size_t dot = op.rfind('.');
    node.set_op_type(op.substr(dot == std::string::npos ? 0 : dot + 1));
    node.set_domain(dot == std::string::npos ? "" : op.substr(0, dot));
    if (dot == std::string::npos) return;
    onnx::OperatorSetIdProto* opset = model.add_opset_import();
    opset->set_domain(node.domain());
    opset->set_version(1);
  }
  int64_t AnyInt() {
    constexpr int64_t kInts[] = {0, 1, -1, 2, 3, -2, 7, 100, -100, INT64_MAX, INT64_MIN, int64_t{1} << 40};
    return kInts[Below(std::size(kInts))];
  }
  std::string AnyName(const onnx::GraphProto& graph) {
    const size_t kind = Below(4);
    if (kind == 0) return "";
    if (kind == 1 && graph.initializer_size() > 0)
      return graph.initializer(static_cast<int>(Below(static_cast<size_t>(graph.initializer_size())))).name();
    if (kind == 2) return graph.input(0).name();
    const onnx::NodeProto& node = graph.node(static_cast<int>(Below(static_cast<size_t>(graph.node_size()))));
    return node.output_size() > 0 ? node.output(0) : "";
  }
  void MutateAttribute(onnx::NodeProto& node) {
    constexpr const char* kNames[] = {
        "axis",         "axes",      "perm",   "keepdims",     "to",        "pads",        "strides",
        "kernel_shape", "dilations", "group",  "epsilon",      "mode",      "auto_pad",    "training_mode",
        "allowzero",    "value",     "starts", "ends",         "split",     "num_outputs", "start",
        "end",          "steps",     "ratio",  "ignore_index", "reduction", "ceil_mode",   "count_include_pad",
        "equation"};
    onnx::AttributeProto* attribute = node.add_attribute();
    attribute->set_name(kNames[Below(std::size(kNames))]);
    switch (Below(4)) {
      case 0:
        attribute->set_type(onnx::AttributeProto::INT), attribute->set_i(AnyInt());
        break;
      case 1:
        attribute->set_type(onnx::AttributeProto::FLOAT), attribute->set_f(static_cast<float>(AnyInt()));
        break;
      case 2:
        attribute->set_type(onnx::AttributeProto::STRING), attribute->set_s(Below(2) != 0 ? "SAME_UPPER" : "ij,jk->ik");
        break;
      default:
        attribute->set_type(onnx::AttributeProto::INTS);
        for (size_t i = Below(5); i > 0; --i) attribute->add_ints(AnyInt());
    }
  }
  void MutateTensor(onnx::GraphProto& graph) {
    if (graph.initializer_size() == 0) return;
    onnx::TensorProto& tensor =
        *graph.mutable_initializer(static_cast<int>(Below(static_cast<size_t>(graph.initializer_size()))));
    if (tensor.int64_data_size() > 0) tensor.set_int64_data(0, AnyInt());
    if (Below(3) == 0) tensor.add_dims(1);
    if (Below(3) == 0 && tensor.dims_size() > 0) tensor.mutable_dims()->RemoveLast();
  }

  std::mt19937_64& random_;
  const std::vector<std::string> ops_;
};

TEST(OnnxReaderFuzz, OtherStructuresAreReadOrRefused) {
  const std::vector<std::string> corpus = ReaderCorpus();
  std::mt19937_64 random(kSeed);
  StructureMutator mutator(random);
  int read = 0;
  for (int round = 0; round < kRounds; ++round) {
    onnx::ModelProto model;
    ASSERT_TRUE(model.ParseFromString(corpus[random() % (corpus.size() - 1)]));
    mutator.Mutate(model);
    const Status status = ReadHostileModel(model.SerializeAsString());
    EXPECT_NE(status.code(), StatusCode::kInternal)
        << "seed " << kSeed << " round " << round << ": " << status.message();
    read += status.ok();
  }
  EXPECT_GT(read, 0);
}

TEST(OnnxReaderFuzz, DamageIsReportedAndNeverHarms) {
  const std::vector<std::string> corpus = ReaderCorpus();
  std::mt19937_64 random(kSeed);
  int read = 0;
  for (int round = 0; round < kRounds; ++round) {
    const Status status = ReadHostileModel(Mutated(corpus, random));
    EXPECT_NE(status.code(), StatusCode::kInternal)
        << "seed " << kSeed << " round " << round << ": " << status.message();
    read += status.ok();
  }
  EXPECT_GT(read, 0) << "every mutation was refused: too much damage to test the reader's depth";
  EXPECT_LT(read, kRounds);
}

TEST(OnnxReaderFuzz, TheCorpusItselfIsRead) {
  const std::vector<std::string> corpus = ReaderCorpus();
  for (size_t i = 0; i + 1 < corpus.size(); ++i) EXPECT_EQ(ReadHostileModel(corpus[i]).message(), "") << i;
  EXPECT_EQ(ReadHostileModel(corpus.back()).code(), StatusCode::kInvalidModel) << "its external data has no folder";
}

TEST(OnnxReaderFuzz, EveryTruncationIsReported) {
  const std::string bytes = ReaderCorpus()[0];
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_NE(ReadHostileModel(bytes.substr(0, size)).code(), StatusCode::kInternal) << size;
  }
}

}  // namespace
}  // namespace onnxtrain
