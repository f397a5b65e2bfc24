// SPDX-License-Identifier: Apache-2.0
#include "tools/run_options.h"

#include <limits>

namespace onnxtrain {
namespace {

std::vector<std::string> Split(const std::string& text, char separator) {
  std::vector<std::string> parts{""};
  for (char c : text) {
    if (c == separator) {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

template <typename T>
OptionSet::Setter OptionalInt(std::optional<T>* target, T least) {
  return [target, least](const std::string& value) -> Status {
    ASSIGN_OR_RETURN(const int64_t number, ParseInt(value));
    if (number < least) return UsageError("must be at least " + std::to_string(least) + ", found " + value);
    *target = number;
    return OkStatus();
  };
}

OptionSet::Setter IntInto(int* target, int64_t least) {
  return [target, least](const std::string& value) -> Status {
    ASSIGN_OR_RETURN(const int64_t number, ParseInt(value));
    if (number < least || number > std::numeric_limits<int>::max()) {
      return UsageError("must be at least " + std::to_string(least) + ", found " + value);
    }
    *target = static_cast<int>(number);
    return OkStatus();
  };
}

Status SetDim(std::map<std::string, int64_t>& dims, const std::string& value) {
  const size_t equals = value.find('=');
  if (equals == std::string::npos || equals == 0) return UsageError("expected NAME=K, found '" + value + "'");
  ASSIGN_OR_RETURN(const int64_t size, ParseInt(value.substr(equals + 1)));
  if (size < 1) return UsageError("a dimension must be at least 1, found " + value);
  dims[value.substr(0, equals)] = size;
  return OkStatus();
}

Status SetBetas(TrainingOptions& training, const std::string& value) {
  const std::vector<std::string> parts = Split(value, ',');
  if (parts.size() != 2) return UsageError("expected A,B, found '" + value + "'");
  ASSIGN_OR_RETURN(training.beta1, ParseDouble(parts[0]));
  ASSIGN_OR_RETURN(training.beta2, ParseDouble(parts[1]));
  for (double beta : {*training.beta1, *training.beta2}) {
    if (!(beta >= 0 && beta < 1)) return UsageError("betas lie in [0, 1), found " + value);
  }
  return OkStatus();
}

// 'GLOB:lr=..,weight-decay=..': split at the last ':' before a "key=".
Status AddGroup(std::vector<ParameterGroup>& groups, const std::string& value) {
  const size_t equals = value.find('=');
  const size_t colon = equals == std::string::npos ? std::string::npos : value.rfind(':', equals);
  if (colon == std::string::npos || colon == 0) {
    return UsageError("expected 'GLOB:lr=..,weight-decay=..', found '" + value + "'");
  }
  ParameterGroup group;
  group.glob = value.substr(0, colon);
  for (const std::string& setting : Split(value.substr(colon + 1), ',')) {
    const size_t at = setting.find('=');
    const std::string key = setting.substr(0, at);
    if (at == std::string::npos) return UsageError("expected key=value, found '" + setting + "'");
    ASSIGN_OR_RETURN(const double number, ParseDouble(setting.substr(at + 1)));
    if (number < 0) return UsageError(key + " must not be negative, found " + setting);
    if (key == "lr") {
      group.lr = number;
    } else if (key == "weight-decay" || key == "weight_decay") {
      group.weight_decay = number;
    } else {
      return UsageError("a group sets lr and weight-decay, found '" + key + "'");
    }
  }
  groups.push_back(std::move(group));
  return OkStatus();
}

Status SetBytes(int64_t* target, const std::string& value) {
  std::string number = value;
  double unit = 1;
  if (!number.empty()) {
    const std::string units = "KMGT";
    const size_t place = units.find(number.back());
    if (place != std::string::npos) {
      number.pop_back();
      for (size_t i = 0; i <= place; ++i) unit *= 1024;
    }
  }
  ASSIGN_OR_RETURN(const double amount, ParseDouble(number));
  if (!(amount > 0)) return UsageError("expected bytes, with K, M, G or T behind it, found '" + value + "'");
  *target = static_cast<int64_t>(amount * unit);
  return OkStatus();
}

void AddLossOptions(OptionSet& o, RunOptions& run, std::vector<std::string> losses) {
  TrainingOptions& t = run.training;
  o.Positional("MODEL", &run.model, 1, 1);
  o.Section("Loss");
  o.Choice("loss", &t.loss, std::move(losses), "loss to append; auto takes the graph's only scalar output");
  o.String("loss-on", &t.loss_on, "OUTPUT", "value the loss is taken of, any value of the graph");
  o.String("labels", &t.labels, "NAME", "feed that holds the targets");
  o.Int("ignore-index", &t.ignore_index, "K", "label that does not count (-100)");
  o.Double("label-smoothing", &t.label_smoothing, "E", "share of the target given to all classes", {0, false, 1});
  o.Section("Weights and modes");
  o.Strings("trainable", &t.trainable, "GLOB", "train exactly the matching tensors");
  o.Strings("freeze", &t.freeze, "GLOB", "do not train the matching tensors");
  o.Choice("bn", &t.batch_norm, {"as-exported", "train", "frozen"}, "BatchNormalization statistics");
  o.Choice("dropout", &t.dropout, {"as-exported", "on", "off"}, "Dropout");
  o.Flag("untie", &t.untie, "train tensors apart that the exporter merged because they were equal");
  o.String("init-weights", &run.init_weights, "FILE", "weights by name: safetensors or npz");
  o.Custom(
      "dim", "NAME=K", "binds a symbolic dimension", [&t](const std::string& value) { return SetDim(t.dims, value); },
      /*repeats=*/true);
}

// A flag of the interface that this build does not have.
void AddRefused(OptionSet& o, const char* name, const char* why, const char* metavar) {
  // Without help text the option is known, refused with its reason, and not listed.
  o.Custom(name, metavar, "",
           [why](const std::string&) { return UsageError(std::string(why) + ": not part of this build"); });
}

}  // namespace

void AddModelOptions(OptionSet& o, RunOptions& run) {
  AddLossOptions(o, run, {"auto", "ce", "mse", "bce", "l1", "smooth_l1", "nll"});
}

void AddGradientLossOptions(OptionSet& o, RunOptions& run) {
  AddLossOptions(o, run, {"auto", "ce", "mse", "bce", "l1", "smooth_l1", "nll", "sum", "mean", "l2"});
}

void AddOptimizerOptions(OptionSet& o, RunOptions& run) {
  TrainingOptions& t = run.training;
  o.Section("Optimizer");
  o.Choice("optimizer", &t.optimizer, {"sgd", "adam", "adamw", "adagrad", "lion"}, "formulas are PyTorch's (adamw)",
           {"lamb"});
  o.Double("lr", &t.lr, "X", "learning rate (1e-3; adagrad 1e-2, lion 1e-4)");
  o.Double("momentum", &t.momentum, "X", "of sgd (0)");
  o.Flag("nesterov", &t.nesterov, "Nesterov momentum of sgd");
  o.Custom("betas", "A,B", "of adam, adamw (0.9,0.999) and lion (0.9,0.99)",
           [&t](const std::string& value) { return SetBetas(t, value); });
  o.Double("eps", &t.eps, "X", "of adam, adamw (1e-8) and adagrad (1e-10)", {0, true});
  o.Double("weight-decay", &t.weight_decay, "X", "0; adamw 0.01");
  o.Strings("no-decay", &t.no_decay, "GLOB", "no weight decay for matches, or for 'rank<2'");
  o.Custom(
      "param-group", "'GLOB:lr=..,weight-decay=..'", "own settings for matching parameters; the first match wins",
      [&t](const std::string& value) { return AddGroup(t.groups, value); }, /*repeats=*/true);
  o.Double("clip-grad", &t.clip_grad, "NORM", "clips the global 2-norm of the gradient");
  o.Choice("schedule", &t.schedule, {"constant", "linear", "cosine", "step", "wsd"}, "of the learning rate");
  o.Int("warmup-steps", &t.warmup_steps, "N", "linear warm-up", 0);
  o.Double("min-lr", &t.min_lr, "X", "where linear, cosine and wsd end");
  o.Int("step-size", &t.step_size, "N", "of schedule step", 1);
  o.Double("gamma", &t.gamma, "X", "of schedule step (0.1)");
  o.Custom("decay-steps", "N", "of schedule wsd (a tenth of the steps)", OptionalInt<int64_t>(&t.decay_steps, 1));
}

void AddLengthOptions(OptionSet& o, RunOptions& run) {
  o.Section("Length");
  o.Custom("epochs", "E", "passes over the data (1)", OptionalInt<int64_t>(&run.epochs, 1));
  o.Custom("max-steps", "N", "steps from the start of the run; repeats the data",
           OptionalInt<int64_t>(&run.max_steps, 0));
  o.Flag("drop-last", &run.drop_last, "leave out the last, partial batch of an epoch");
  o.Flag("no-shuffle", &run.no_shuffle, "samples in the order of the file");
  o.Flag("deterministic", &run.deterministic, "the same bits every time; always so here");
}

void AddBatchOptions(OptionSet& o, RunOptions& run) {
  TrainingOptions& t = run.training;
  o.Section("Batch and ranks");
  o.Custom("batch-size", "B", "samples per rank and micro-batch (32)", OptionalInt<int64_t>(&run.batch_size, 1));
  o.Custom("global-batch-size", "G", "samples of a step: B x ranks x accumulation",
           OptionalInt<int64_t>(&run.global_batch_size, 1));
  o.Custom("accum", "A", "micro-batches of a step (1)", IntInto(&t.accumulation, 1));
  o.Custom("ranks", "N", "ranks as threads of this process (1)", IntInto(&t.ranks, 1));
  o.Custom("zero", "0|1|2", "ZeRO stage: what is sharded over the ranks (0)", [&t](const std::string& value) -> Status {
    if (value == "3") return UsageError("stage 3 is not part of this build, which has 0|1|2");
    if (value != "0" && value != "1" && value != "2") return UsageError("must be one of 0|1|2, found '" + value + "'");
    t.zero = value[0] - '0';
    return OkStatus();
  });
  o.Double("bucket-mb", &t.bucket_mb, "X", "size of gradient buckets in 2^20 bytes, 'inf' for one (planned)",
           {0, true, std::numeric_limits<double>::infinity(), true});
  o.Custom("overlap", "on|off", "communication beside compute (on)", [&t](const std::string& value) -> Status {
    if (value != "on" && value != "off") return UsageError("must be one of on|off, found '" + value + "'");
    t.overlap = value == "on";
    return OkStatus();
  });
  o.Custom("reduce", "sum|mean", "mean; sum multiplies the gradient by the ranks",
           [&t](const std::string& value) -> Status {
             if (value != "sum" && value != "mean") return UsageError("must be one of sum|mean, found '" + value + "'");
             t.reduce_sum = value == "sum";
             return OkStatus();
           });
  AddRefused(o, "sync-bn", "BatchNormalization over the global batch", "");
  o.Int("timeout", &t.timeout_seconds, "S", "seconds a rank waits for the others (600)", 1);
  o.Custom("threads", "T", "compute threads, shared by the ranks", IntInto(&t.threads, 1));
  o.Custom("seed", "K", "of shuffling and random draws (0)", [&t](const std::string& value) -> Status {
    ASSIGN_OR_RETURN(const int64_t seed, ParseInt(value));
    t.seed = static_cast<uint64_t>(seed);
    return OkStatus();
  });
}

// f16 needs a loss scale, which this build has not.
Status SetPrecision(DType* dtype, const std::string& value) {
  if (value != "f32" && value != "bf16") {
    const std::string reason = value == "f16" ? "needs a loss scale, which this build has not" : "is no choice";
    return UsageError("'" + value + "' " + reason + ": f32 or bf16");
  }
  *dtype = value == "f32" ? DType::kFloat : DType::kBfloat16;
  return OkStatus();
}

void AddNumberOptions(OptionSet& o, RunOptions& run) {
  o.Section("Precision and memory");
  o.Custom("dtype", "f32|bf16", "of products and activations; parameters stay f32 (f32)",
           [&run](const std::string& value) { return SetPrecision(&run.training.dtype, value); });
  AddRefused(o, "loss-scale", "of --dtype f16", "dynamic|K");
  o.Custom("reduce-dtype", "f32|bf16", "of gradients on the link (f32)",
           [&run](const std::string& value) { return SetPrecision(&run.training.reduce_dtype, value); });
  o.Custom("recompute", "none", "what is computed again in backward", [&run](const std::string& value) -> Status {
    if (value != "none") return UsageError("'" + value + "' is not part of this build, which has none");
    run.recompute = value;
    return OkStatus();
  });
  o.Custom("memory-limit", "BYTES", "refuse a plan that needs more per rank; K, M, G behind a number",
           [&run](const std::string& value) { return SetBytes(&run.training.memory_limit, value); });
  o.Choice("device", &run.training.device, {"cpu", "cuda"}, "where it runs");
  o.Flag("cuda-graphs", &run.training.cuda_graphs, "replay every step as a whole after its first run");
  o.Flag("tf32", &run.training.tf32, "let GPUs round factors of f32 products to TF32");
  o.Custom("fallback", "none|cpu", "where nodes run that a GPU has no kernel for (none: they are refused)",
           [&run](const std::string& value) -> Status {
             if (value != "none" && value != "cpu") return UsageError("'" + value + "' is no choice: none or cpu");
             run.training.fallback_to_cpu = value == "cpu";
             return OkStatus();
           });
  o.String("cache", &run.training.cache_folder, "DIR", "keep the choices of algorithms for GPUs from run to run");
}

void AddDataOptions(OptionSet& o, RunOptions& run) {
  o.Section("Data");
  o.Strings("train", &run.train, "NAME=FILE[:MAP]", "training data: npy, npz, IDX, CIFAR, safetensors, CSV");
  o.Strings("val", &run.val, "NAME=FILE[:MAP]", "validation data, the same");
  o.Strings("feed", &run.feed, "NAME=FILE", "the same input every step; FILE.npz or NAME=[[1,2]] too");
  o.Strings("tokens", &run.tokens, "GLOB", "token files for language models");
  o.Strings("val-tokens", &run.val_tokens, "GLOB", "token files for validation");
  o.Int("seq-len", &run.seq_len, "T", "tokens of a sample", 1);
  o.String("tokens-to", &run.tokens_to, "IDX[,TARGETS]", "inputs that take tokens and targets");
  o.Custom("target-shift", "0|1", "0 for graphs that shift the targets themselves (1)",
           [&run](const std::string& value) -> Status {
             if (value != "0" && value != "1") return UsageError("must be one of 0|1, found '" + value + "'");
             run.target_shift = value[0] - '0';
             return OkStatus();
           });
}

void AddRunningOptions(OptionSet& o, RunOptions& run) {
  o.Section("Running");
  o.String("out", &run.out, "RUN", "the run folder");
  o.Custom("save-every", "N", "checkpoint every N steps (each epoch)", OptionalInt<int64_t>(&run.save_every, 1));
  o.Custom("eval-every", "N", "validate every N steps (each epoch)", OptionalInt<int64_t>(&run.eval_every, 1));
  o.Custom("keep", "N", "newest checkpoints to keep (all)", [&run](const std::string& value) -> Status {
    if (value == "all") return run.keep = 0, OkStatus();
    ASSIGN_OR_RETURN(run.keep, ParseInt(value));
    return run.keep < 1 ? UsageError("must be at least 1, or 'all', found " + value) : OkStatus();
  });
  o.Int("log-every", &run.log_every, "N", "progress every N steps (1)", 1);
  o.Flag("resume", &run.resume, "go on from the newest checkpoint of --out");
  o.Flag("overwrite", &run.overwrite, "discard what --out holds");
  o.Flag("override", &run.override_resume, "let a resumed run change its global batch");
  o.Flag("nan-check", &run.nan_check, "test the output of every node at every step (slow)");
  o.String("trace", &run.trace, "FILE", "timeline of steps 2 to 4 for Perfetto");
  o.Flag("dump-passes", &run.dump_passes, "RUN/passes/NN-<pass>.onnxtxt, the program after each pass");
  o.Flag("dry-run", &run.dry_run, "prepare everything, train nothing");
  o.IgnoreInConfig("planned-steps");
}

void AddOutputOptions(OptionSet& o, RunOptions& run) {
  o.Section("Output");
  o.Flag("json", &run.json, "stdout becomes one JSON document");
  o.Flag("quiet", &run.quiet, "no progress on stderr");
}

void AddTrainingOptions(OptionSet& o, RunOptions& run) {
  AddModelOptions(o, run);
  AddDataOptions(o, run);
  AddOptimizerOptions(o, run);
  AddLengthOptions(o, run);
  AddBatchOptions(o, run);
  AddNumberOptions(o, run);
  o.ShowOnly({"loss", "labels", "trainable", "freeze", "train", "val", "tokens", "seq-len", "optimizer", "lr",
              "weight-decay", "schedule", "clip-grad", "epochs", "max-steps", "batch-size", "accum", "ranks", "zero",
              "dtype", "device"});
}

}  // namespace onnxtrain
