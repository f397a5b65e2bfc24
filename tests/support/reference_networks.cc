// SPDX-License-Identifier: Apache-2.0
#include "tests/support/reference_networks.h"

#include <vector>

namespace onnxtrain {
namespace {

std::string Type(const std::vector<int64_t>& shape) {
  std::string text;
  for (const int64_t size : shape) text += (text.empty() ? "" : ",") + std::to_string(size);
  return "float[" + text + "]";
}

// Collects states, constants and nodes, and writes the text.
class NetworkText {
 public:
  explicit NetworkText(WeightFile* weights) : weights_(weights) {}

  std::string Parameter(const std::string& name, const std::vector<int64_t>& shape) {
    return State(name, shape, "parameter");
  }
  std::string State(const std::string& name, const std::vector<int64_t>& shape, const std::string& state_class) {
    values_ += (values_.empty() ? "" : ", ") + Type(shape) + " " + name + Content(shape);
    classes_ += (classes_.empty() ? "" : ", ") + ("\"state." + name + "\": \"" + state_class + "\"");
    return name;
  }
  std::string Constant(const std::string& name, const std::string& type, const std::string& value) {
    values_ += (values_.empty() ? "" : ", ") + type + " " + name + " = {" + value + "}";
    return name;
  }
  // `call` is "Op <attributes> (inputs)".
  std::string Node(const std::string& output, const std::string& call) {
    body_ += "  " + output + " = " + call + "\n";
    return output;
  }
  std::string Text(const std::string& signature) const {
    return "< ir_version: 10, opset_import: [\"\" : 24, \"onnxtrain\" : 1], metadata_props: [" + classes_ +
           "] >\nstep " + signature + "\n<" + values_ + ">\n{\n" + body_ + "}\n";
  }

 private:
  std::string Content(const std::vector<int64_t>& shape) {
    if (weights_ == nullptr) return "";
    int64_t bytes = sizeof(float);
    for (const int64_t size : shape) bytes *= size;
    const std::string content = " = [\"location\": \"" + weights_->name + "\", \"offset\": \"" +
                                std::to_string(weights_->bytes) + "\", \"length\": \"" + std::to_string(bytes) + "\"]";
    weights_->bytes += bytes;
    return content;
  }

  WeightFile* const weights_;  // null: no content
  std::string values_, classes_, body_;
};

constexpr int64_t kWidth = 768, kTokens = 1024, kVocabulary = 50304, kHeads = 12;

std::string Normalized(NetworkText& net, const std::string& name, const std::string& x) {
  net.Parameter(name + "_scale", {kWidth});
  net.Parameter(name + "_bias", {kWidth});
  return net.Node(name, "LayerNormalization <axis = -1> (" + x + ", " + name + "_scale, " + name + "_bias)");
}

std::string Linear(NetworkText& net, const std::string& name, const std::string& x, int64_t from, int64_t to) {
  net.Parameter(name + "_weight", {from, to});
  net.Parameter(name + "_bias", {to});
  net.Node(name + "_product", "MatMul (" + x + ", " + name + "_weight)");
  return net.Node(name, "Add (" + name + "_product, " + name + "_bias)");
}

std::string Attention(NetworkText& net, const std::string& name, const std::string& x) {
  Linear(net, name + "_qkv", x, kWidth, 3 * kWidth);
  net.Node(name + "_q, " + name + "_k, " + name + "_v", "Split <axis = 2, num_outputs = 3> (" + name + "_qkv)");
  const auto heads = [&](const std::string& part, const std::string& order) {
    net.Node(name + part + "_heads", "Reshape (" + name + part + ", by_head)");
    return net.Node(name + part + "_turned", "Transpose <perm = [" + order + "]> (" + name + part + "_heads)");
  };
  net.Node(name + "_scores", "MatMul (" + heads("_q", "0, 2, 1, 3") + ", " + heads("_k", "0, 2, 3, 1") + ")");
  net.Node(name + "_scaled", "Mul (" + name + "_scores, scale)");
  net.Node(name + "_masked", "Where (mask, " + name + "_scaled, lowest)");
  net.Node(name + "_weights", "Softmax <axis = -1> (" + name + "_masked)");
  net.Node(name + "_mixed", "MatMul (" + name + "_weights, " + heads("_v", "0, 2, 1, 3") + ")");
  net.Node(name + "_back", "Transpose <perm = [0, 2, 1, 3]> (" + name + "_mixed)");
  net.Node(name + "_joined", "Reshape (" + name + "_back, by_token)");
  return Linear(net, name + "_out", name + "_joined", kWidth, kWidth);
}

class ResNet {
 public:
  explicit ResNet(NetworkText& net) : net_(net) {}

  std::string Convolution(const std::string& name, const std::string& x, int64_t from, int64_t to, int64_t kernel,
                          int64_t stride) {
    net_.Parameter(name + "_weight", {to, from, kernel, kernel});
    for (const char* part : {"_scale", "_bias"}) net_.Parameter(name + part, {to});
    for (const char* part : {"_mean", "_variance"}) net_.State(name + part, {to}, "buffer");
    const std::string pad = std::to_string(kernel / 2);
    const std::string pads = pad + ", " + pad + ", " + pad + ", " + pad;
    const std::string twice = std::to_string(stride) + ", " + std::to_string(stride);
    net_.Node(name + "_product",
              "Conv <pads = [" + pads + "], strides = [" + twice + "]> (" + x + ", " + name + "_weight)");
    return net_.Node(name, "BatchNormalization (" + name + "_product, " + name + "_scale, " + name + "_bias, " + name +
                               "_mean, " + name + "_variance)");
  }

  std::string Relu(const std::string& x) { return net_.Node(x + "_relu", "Relu (" + x + ")"); }

  std::string Bottleneck(const std::string& name, const std::string& x, int64_t from, int64_t width, int64_t stride) {
    const std::string narrow = Relu(Convolution(name + "_1", x, from, width, 1, 1));
    const std::string spatial = Relu(Convolution(name + "_2", narrow, width, width, 3, stride));
    const std::string wide = Convolution(name + "_3", spatial, width, 4 * width, 1, 1);
    const bool projects = from != 4 * width || stride != 1;
    const std::string beside = projects ? Convolution(name + "_p", x, from, 4 * width, 1, stride) : x;
    return Relu(net_.Node(name, "Add (" + wide + ", " + beside + ")"));
  }

 private:
  NetworkText& net_;
};

}  // namespace

std::string Gpt2Text(int64_t batch, WeightFile* weights) {
  NetworkText net(weights);
  const std::string b = std::to_string(batch);
  net.Parameter("wte", {kVocabulary, kWidth});
  net.Parameter("wpe", {kTokens, kWidth});
  net.Constant("by_head", "int64[4]", b + ", " + std::to_string(kTokens) + ", " + std::to_string(kHeads) + ", 64");
  net.Constant("by_token", "int64[3]", b + ", " + std::to_string(kTokens) + ", " + std::to_string(kWidth));
  net.Constant("scale", "float", "0.125");
  net.Constant("lowest", "float", "-3.4028235e38");
  net.Node("rows", "Gather <axis = 0> (wte, idx)");
  std::string x = net.Node("x0", "Add (rows, wpe)");
  for (int layer = 0; layer < 12; ++layer) {
    const std::string h = "h" + std::to_string(layer);
    const std::string attended = Attention(net, h + "_attn", Normalized(net, h + "_ln1", x));
    x = net.Node(h + "_mid", "Add (" + x + ", " + attended + ")");
    Linear(net, h + "_fc", Normalized(net, h + "_ln2", x), kWidth, 4 * kWidth);
    net.Node(h + "_gelu", "Gelu <approximate = \"tanh\"> (" + h + "_fc)");
    const std::string projected = Linear(net, h + "_proj", h + "_gelu", 4 * kWidth, kWidth);
    x = net.Node("x" + std::to_string(layer + 1), "Add (" + x + ", " + projected + ")");
  }
  net.Node("head", "Transpose <perm = [1, 0]> (wte)");
  net.Node("logits", "MatMul (" + Normalized(net, "ln_f", x) + ", head)");
  const std::string tokens = std::to_string(kTokens);
  return net.Text("(int64[" + b + "," + tokens + "] idx, bool[" + tokens + "," + tokens + "] mask) => (float[" + b +
                  "," + tokens + "," + std::to_string(kVocabulary) + "] logits)");
}

std::string ResNet50Text(int64_t batch, WeightFile* weights) {
  NetworkText net(weights);
  ResNet resnet(net);
  const std::string stem = resnet.Relu(resnet.Convolution("stem", "image", 3, 64, 7, 2));
  std::string x = net.Node("pooled", "MaxPool <kernel_shape = [3, 3], pads = [1, 1, 1, 1], strides = [2, 2]> (" + stem + ")");
  int64_t channels = 64;
  const int64_t blocks[] = {3, 4, 6, 3};
  for (int stage = 0; stage < 4; ++stage) {
    const int64_t width = int64_t{64} << stage;
    for (int64_t block = 0; block < blocks[stage]; ++block) {
      const std::string name = "s" + std::to_string(stage) + "b" + std::to_string(block);
      x = resnet.Bottleneck(name, x, channels, width, block == 0 && stage > 0 ? 2 : 1);
      channels = 4 * width;
    }
  }
  net.Node("mean", "GlobalAveragePool (" + x + ")");
  net.Node("features", "Flatten <axis = 1> (mean)");
  net.Parameter("fc_weight", {channels, 1000});
  net.Parameter("fc_bias", {1000});
  net.Node("logits", "Gemm (features, fc_weight, fc_bias)");
  const std::string b = std::to_string(batch);
  return net.Text("(float[" + b + ",3,224,224] image) => (float[" + b + ",1000] logits)");
}

}  // namespace onnxtrain
