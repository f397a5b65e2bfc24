// SPDX-License-Identifier: Apache-2.0
// Writing the user's model back. The file is put together from its three parts (graph/model_contents.h): protobuf
// allows a message's fields in any order, so the graph is written as its structure followed by one initializer after
// the other, and at most one payload is copied at a time.
#include <onnx/onnx_pb.h>
#include <unistd.h>

#include <algorithm>
#include <set>

#include "graph/external_data.h"
#include "graph/model_contents.h"
#include "graph/onnx_file.h"
#include "graph/onnx_proto.h"

namespace onnxtrain {
namespace {

constexpr uint8_t kGraphTag = (7 << 3) | 2;        // ModelProto.graph
constexpr uint8_t kInitializerTag = (5 << 3) | 2;  // GraphProto.initializer
// When a model becomes external as a whole, small tensors still stay inside.
constexpr size_t kSmallTensor = 1024;
// Large tensors start on a page, so that readers can map them.
constexpr size_t kPage = 4096, kLargeTensor = 1 << 16, kAlignment = 64;

std::string Varint(uint64_t value) {
  std::string bytes;
  for (; value >= 128; value >>= 7) bytes += static_cast<char>(128 | (value & 127));
  return bytes + static_cast<char>(value);
}

void ClearPayload(onnx::TensorProto& tensor) {
  tensor.clear_raw_data();
  tensor.clear_float_data();
  tensor.clear_double_data();
  tensor.clear_int32_data();
  tensor.clear_int64_data();
  tensor.clear_uint64_data();
  tensor.clear_external_data();
  tensor.clear_data_location();
}

void AddExternal(onnx::TensorProto& tensor, const char* key, const std::string& value) {
  onnx::StringStringEntryProto* entry = tensor.add_external_data();
  entry->set_key(key);
  entry->set_value(value);
}

std::string FileNameOf(const std::string& path) { return path.substr(path.rfind('/') + 1); }
std::string FolderPrefixOf(const std::string& path) { return path.substr(0, path.rfind('/') + 1); }

class ModelWriter {
 public:
  using Updates = std::map<std::string, const Tensor*>;

  ModelWriter(const onnx::ModelProto& shell, const onnx::GraphProto& graph,
              const std::vector<const onnx::TensorProto*>& tensors, const std::string& folder, const Updates& updates,
              const std::string& path, size_t largest)
      : shell_(shell),
        graph_(graph),
        tensors_(tensors),
        folder_(folder),
        updates_(updates),
        path_(path),
        largest_(largest) {}

  Status Run() {
    RETURN_IF_ERROR(CheckUpdates());
    ChooseExternal();
    if (!external_.empty()) RETURN_IF_ERROR(WriteData());
    RETURN_IF_ERROR(WriteModel());
    RemoveOldData();
    return OkStatus();
  }

 private:
  Status CheckUpdates() const {
    std::set<std::string> unused;
    for (const auto& [name, tensor] : updates_) unused.insert(name);
    for (const onnx::TensorProto* tensor : tensors_) {
      const auto found = updates_.find(tensor->name());
      if (found == updates_.end()) continue;
      unused.erase(tensor->name());
      ASSIGN_OR_RETURN(const TensorType type, TensorTypeFromProto(*tensor));
      if (type == found->second->type()) continue;
      return InternalError("initializer '" + tensor->name() + "' of type " + ToString(type) + " cannot be saved as " +
                           ToString(found->second->type()));
    }
    if (unused.empty()) return OkStatus();
    return InternalError("the model has no initializer '" + *unused.begin() + "' to save");
  }

  // Those that were external, and all large ones where the file would not fit into one message.
  void ChooseExternal() {
    size_t total = shell_.ByteSizeLong() + graph_.ByteSizeLong();
    for (const onnx::TensorProto* tensor : tensors_) {
      const bool was_external = tensor->data_location() == onnx::TensorProto::EXTERNAL;
      if (was_external) external_.insert(tensor);
      const auto update = updates_.find(tensor->name());
      total += 64 + tensor->ByteSizeLong() + (update != updates_.end() && !was_external ? update->second->bytes() : 0);
    }
    if (total < largest_) return;
    for (const onnx::TensorProto* tensor : tensors_) {
      const StatusOr<TensorType> type = TensorTypeFromProto(*tensor);
      if (type.ok() && type->bytes() >= kSmallTensor) external_.insert(tensor);
    }
  }

  // Two names take turns, so that the model there and its data stay whole until the new model has its name.
  std::string FreeDataName() const {
    const std::string first = FileNameOf(path_) + ".data", second = FileNameOf(path_) + ".1.data";
    return access((FolderPrefixOf(path_) + first).c_str(), F_OK) == 0 ? second : first;
  }

  Status WriteData() {
    data_name_ = FreeDataName();
    ASSIGN_OR_RETURN(AtomicFile file, AtomicFile::Create(FolderPrefixOf(path_) + data_name_));
    for (const onnx::TensorProto* tensor : tensors_) {
      if (external_.count(tensor) == 0) continue;
      const auto update = updates_.find(tensor->name());
      Tensor loaded;
      if (update == updates_.end()) {
        ASSIGN_OR_RETURN(loaded, LoadTensor(*tensor, folder_));
      }
      const Tensor& bytes = update == updates_.end() ? loaded : *update->second;
      RETURN_IF_ERROR(Align(file, bytes.bytes() >= kLargeTensor ? kPage : kAlignment));
      offsets_[tensor] = file.position();
      RETURN_IF_ERROR(file.Write(bytes.data(), bytes.bytes()));
    }
    return file.Commit();
  }

  static Status Align(AtomicFile& file, size_t alignment) {
    const std::string padding((alignment - file.position() % alignment) % alignment, '\0');
    return file.Write(padding.data(), padding.size());
  }

  // The tensor as it will stand in the file; `storage` holds it where it differs from what was read.
  const onnx::TensorProto& Written(const onnx::TensorProto& tensor, onnx::TensorProto& storage) const {
    const auto update = updates_.find(tensor.name());
    const bool external = external_.count(&tensor) != 0;
    if (update == updates_.end() && !external) return tensor;
    storage = tensor;
    const StatusOr<TensorType> type = TensorTypeFromProto(tensor);
    ClearPayload(storage);
    if (external) {
      storage.set_data_location(onnx::TensorProto::EXTERNAL);
      AddExternal(storage, "location", data_name_);
      AddExternal(storage, "offset", std::to_string(offsets_.at(&tensor)));
      AddExternal(storage, "length", std::to_string(type->bytes()));
    } else {
      storage.set_raw_data(update->second->data(), update->second->bytes());
    }
    return storage;
  }

  Status WriteModel() {
    const std::string structure = graph_.SerializeAsString();
    size_t graph_bytes = structure.size();
    for (const onnx::TensorProto* tensor : tensors_) {
      onnx::TensorProto storage;
      const size_t bytes = Written(*tensor, storage).ByteSizeLong();
      graph_bytes += 1 + Varint(bytes).size() + bytes;
    }
    if (graph_bytes > kLargestMessage) {
      return InternalError("'" + path_ + "' would have more than 2 GiB even with external data");
    }
    ASSIGN_OR_RETURN(AtomicFile file, AtomicFile::Create(path_));
    RETURN_IF_ERROR(WriteString(file, shell_.SerializeAsString()));
    RETURN_IF_ERROR(WriteString(file, static_cast<char>(kGraphTag) + Varint(graph_bytes) + structure));
    for (const onnx::TensorProto* tensor : tensors_) {
      onnx::TensorProto storage;
      const std::string bytes = Written(*tensor, storage).SerializeAsString();
      RETURN_IF_ERROR(WriteString(file, static_cast<char>(kInitializerTag) + Varint(bytes.size())));
      RETURN_IF_ERROR(WriteString(file, bytes));
    }
    return file.Commit();
  }

  static Status WriteString(AtomicFile& file, const std::string& bytes) {
    return file.Write(bytes.data(), bytes.size());
  }

  // The data of the model that was replaced, unless it is what this model was read from.
  void RemoveOldData() const {
    if (data_name_.empty()) return;
    std::set<std::string> own;
    for (const onnx::TensorProto* tensor : tensors_) {
      for (const onnx::StringStringEntryProto& entry : tensor->external_data()) own.insert(entry.value());
    }
    for (const char* ending : {".data", ".1.data"}) {
      const std::string name = FileNameOf(path_) + ending;
      if (name != data_name_ && own.count(name) == 0) unlink((FolderPrefixOf(path_) + name).c_str());
    }
  }

  const onnx::ModelProto& shell_;
  const onnx::GraphProto& graph_;
  const std::vector<const onnx::TensorProto*>& tensors_;
  const std::string& folder_;
  const Updates& updates_;
  const std::string& path_;
  const size_t largest_;
  std::set<const onnx::TensorProto*> external_;
  std::map<const onnx::TensorProto*, size_t> offsets_;
  std::string data_name_;
};

}  // namespace

Status OnnxModel::Save(const std::string& path, const std::map<std::string, const Tensor*>& updated) const {
  std::vector<const onnx::TensorProto*> tensors;
  for (const auto& tensor : contents_->tensors) tensors.push_back(tensor.get());
  return WriteModelParts(*contents_->shell, *contents_->graph, tensors, folder_, updated, path);
}

Status WriteModelParts(const onnx::ModelProto& shell, const onnx::GraphProto& graph,
                       const std::vector<const onnx::TensorProto*>& tensors, const std::string& folder,
                       const std::map<std::string, const Tensor*>& updates, const std::string& path, size_t largest) {
  return ModelWriter(shell, graph, tensors, folder, updates, path, largest).Run();
}

}  // namespace onnxtrain
