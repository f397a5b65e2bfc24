// SPDX-License-Identifier: Apache-2.0
// Scalars for TensorBoard: records {uint64 length, masked CRC-32C of it, Event, masked CRC-32C of that}, the Event
// message encoded by hand (tensorboard/compat/proto/event.proto, summary.proto).
#ifndef ONNXTRAIN_RUNTIME_TENSORBOARD_EVENTS_H_
#define ONNXTRAIN_RUNTIME_TENSORBOARD_EVENTS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "graph/status.h"
#include "runtime/file_system.h"

namespace onnxtrain {

// CRC with the Castagnoli polynomial, reflected, as in RFC 3720 B.4.
uint32_t Crc32c(std::span<const std::byte> bytes);

struct TensorboardScalar {
  std::string tag;  // "loss", "validation/loss"
  float value = 0;
};

// One thread at a time.
class TensorboardEvents {
 public:
  // A new file events.out.tfevents.SECONDS.HOST.PID in the folder; never an existing one. `seconds` is the time of day,
  // since 1970. `first_step` of a resumed run makes TensorBoard drop what older files say from that step on; 0 for a
  // new run.
  static StatusOr<TensorboardEvents> Create(FileSystem& files, const std::string& folder, double seconds,
                                            int64_t first_step);
  // One event; reaches the operating system at once.
  Status Write(double seconds, int64_t step, std::span<const TensorboardScalar> scalars);
  Status Close();
  const std::string& path() const { return path_; }

 private:
  TensorboardEvents(std::unique_ptr<WritableFile> file, std::string path)
      : file_(std::move(file)), path_(std::move(path)) {}
  Status WriteRecord(const std::string& event);

  std::unique_ptr<WritableFile> file_;
  std::string path_;
};

}  // namespace onnxtrain

#endif  // ONNXTRAIN_RUNTIME_TENSORBOARD_EVENTS_H_
