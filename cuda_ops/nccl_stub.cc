// SPDX-License-Identifier: Apache-2.0
// Takes the place of nccl_communicator.cc and nccl_rank.cc where NCCL is not found: a world of one rank.
#include "cuda_ops/copy_communicator.h"
#include "cuda_ops/nccl_communicator.h"

namespace onnxtrain {

class NcclGroup::State {
 public:
  explicit State(int device) : communicator(device) {}
  CopyCommunicator communicator;
};

StatusOr<std::string> NcclGroup::NewId() {
  return UsageError("this build has no NCCL, which several processes need: install it and build again");
}

std::string NcclGroup::LibraryVersion() { return "none"; }

StatusOr<std::unique_ptr<NcclGroup>> NcclGroup::Create(const NcclGroupOptions& options) {
  const size_t ranks = options.world_size == 0 ? options.devices.size() : static_cast<size_t>(options.world_size);
  if (ranks != 1 || options.devices.size() != 1 || options.first_rank != 0) {
    return UsageError(std::to_string(ranks) + " ranks on GPUs need NCCL, and this build has none: install it (nccl.h " +
                      "and libnccl.so.2) and build again, or use --ranks 1");
  }
  return std::unique_ptr<NcclGroup>(new NcclGroup(std::make_unique<State>(options.devices[0])));
}

NcclGroup::NcclGroup(std::unique_ptr<State> state) : state_(std::move(state)) {}
NcclGroup::~NcclGroup() = default;
int NcclGroup::size() const { return 1; }
Communicator& NcclGroup::communicator(int) { return state_->communicator; }
Status NcclGroup::status() const { return state_->communicator.status(); }
std::string NcclGroup::History(int) const { return ""; }

}  // namespace onnxtrain
