// SPDX-License-Identifier: Apache-2.0
#include "tests/graph/reader_corpus.h"

#include <onnx/defs/parser.h>
#include <onnx/onnx_pb.h>

#include "graph/onnx_model.h"
#include "graph/onnx_reader.h"
#include "graph/text_reader.h"
#include "graph/text_writer.h"
#include "graph/verifier.h"

namespace onnxtrain {
namespace {

constexpr const char* kModels[] = {
    R"(<ir_version: 8, opset_import: ["" : 17]>
       g (float[N,4] x, int64[N] labels) => (float loss, float[N,3] logits)
       <float[4,3] w = {1,2,3,4,5,6,7,8,9,10,11,12}, float[3] b = {0.5,1,2}> {
         s = Shape (x) zero = Constant <value_int = 0> () n = Gather (s, zero)
         h = MatMul (x, w) logits = Add (h, b) loss = SoftmaxCrossEntropyLoss (logits, labels) })",
    R"(<ir_version: 8, opset_import: ["" : 17, "local" : 1]>
       g (float[2,4] x) => (float[4,2] y) <int64 two = {2}, int64 zero = {0}, bool flag = {1}, float[4] u = {1,2,3,4}> {
         parts = SplitToSequence <axis = 1> (x, two) a = SequenceAt (parts, zero)
         c = ConcatFromSequence <axis = 1> (parts) d = local.F <k = 2> (c, u)
         e = If (flag) <then_branch = t () => (float[2,4] r) { r = Identity (d) },
                        else_branch = f () => (float[2,4] r) { r = Neg (d) }>
         v = Identity (u) m = Mul (e, v) y = Transpose <perm = [1, 0]> (m) }
       <opset_import: ["" : 17], domain: "local"> F <k: int = 1> (p, q) => (r) { i = Constant <value_int = @k> () f = CastLike (i, p) s = Mul (p, q) r = Add (s, f) })",
    R"(<ir_version: 10, opset_import: ["" : 18]>
       g (float[1,2,5,5] x) => (float[1,2,3,3] y) <float[2,2,3,3] k = {1,0,0,0,1,0,0,0,1,1,0,0,0,1,0,0,0,1,1,0,0,0,1,0,0,0,1,1,0,0,0,1,0,0,0,1},
         float[2] one = {1,1}, float ratio = {0.5}, bool on = {1}, int64[2] axes = {2,3}, int64[4] shape = {1,2,-1,3}> {
         c = Conv <pads = [0,0,0,0], strides = [1,1]> (x, k)
         n, mean, var = BatchNormalization <training_mode = 1, epsilon = 1e-05> (c, one, one, one, one)
         d = Dropout (n, ratio, on) p = MaxPool <kernel_shape = [1,1]> (d) r = ReduceMean (p, axes)
         z = Add (p, r) y = Reshape (z, shape) })",
    R"(<ir_version: 7, opset_import: ["" : 9]>
       g (float[3,4] x) => (float[1,4] y, int64[4] i) <int64[1] starts = {0}> {
         a = Softmax <axis = 1> (x) b = Slice <starts = [0], ends = [2], axes = [0]> (a)
         i = ArgMax <axis = 0, keepdims = 0> (b) c = Unsqueeze <axes = [0]> (b) e = Squeeze <axes = [0]> (c)
         y = ReduceSum <axes = [0]> (e) })",
};

std::string Serialised(const char* text) {
  onnx::ModelProto model;
  onnx::OnnxParser parser(text);
  const onnx::Common::Status status = parser.Parse(model);
  CHECK_WITH(status.IsOK(), status.ErrorMessage());
  return model.SerializeAsString();
}

std::string ExternalAndTraining() {
  onnx::ModelProto model;
  CHECK(model.ParseFromString(Serialised(kModels[0])));
  onnx::TensorProto* w = model.mutable_graph()->mutable_initializer(0);
  w->clear_float_data();
  w->set_data_location(onnx::TensorProto::EXTERNAL);
  for (const auto& [key, value] : {std::pair("location", "weights.bin"), {"offset", "0"}, {"length", "48"}}) {
    onnx::StringStringEntryProto* entry = w->add_external_data();
    entry->set_key(key);
    entry->set_value(value);
  }
  model.add_training_info()->mutable_algorithm()->set_name("step");
  return model.SerializeAsString();
}

void LookAtAll(const OnnxModel& model) {
  for (const ModelInitializer& initializer : model.initializers()) (void)model.Initializer(initializer.name).ok();
  for (const ModelNode& node : model.nodes()) (void)node.Describe(1);
  (void)model.mode_nodes();
  (void)model.ignored();
}

Status CheckText(const Graph& graph) {
  const std::string text = WriteGraphText(graph, {.full = true});
  StatusOr<TextGraph> read = ReadGraphText(text, graph.registry());
  if (!read.ok()) return OkStatus();  // names with control characters and non-finite attributes may not survive text
  return VerifyGraph(read->graph);
}

}  // namespace

std::vector<std::string> ReaderCorpus() {
  std::vector<std::string> corpus;
  for (const char* text : kModels) corpus.push_back(Serialised(text));
  corpus.push_back(ExternalAndTraining());
  return corpus;
}

Status ReadHostileModel(std::string_view bytes) {
  ASSIGN_OR_RETURN(OnnxModel model, OnnxModel::Parse(bytes, "", "hostile.onnx"));
  LookAtAll(model);
  SpecializeOptions options;
  options.dims = {{"N", 3}};
  options.max_constant_elements = 1 << 12;
  options.is_state = [](const ModelInitializer& initializer) { return IsFloating(initializer.type.dtype); };
  for (const bool widen : {false, true}) {
    options.widen_to_double = widen;
    ASSIGN_OR_RETURN(const Graph graph, Specialize(model, options));
    RETURN_IF_ERROR(VerifyGraph(graph));
    RETURN_IF_ERROR(CheckText(graph));
  }
  return OkStatus();
}

}  // namespace onnxtrain
