// SPDX-License-Identifier: Apache-2.0
// The plan verifier's model of memory: for every byte what it holds, who wrote it, and who has read it since, over
// streams that advance independently.
#ifndef ONNXTRAIN_RUNTIME_BYTE_LEDGER_H_
#define ONNXTRAIN_RUNTIME_BYTE_LEDGER_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace onnxtrain {

inline constexpr int kLedgerStreams = 8;

// Happens-before knowledge: how many tasks of each stream are certainly over.
using VectorClock = std::array<int, kLedgerStreams>;

// A task that touched bytes: the `count`-th of its stream (from 1; 0: nobody), and a number by which to name it.
struct Toucher {
  int stream = 0;
  int count = 0;
  int64_t label = -1;
  bool IsBefore(const VectorClock& clock) const { return count <= clock[static_cast<size_t>(stream)]; }
};

// What `bytes` bytes, starting `offset` into a value, hold: those bytes of `source`.
struct Content {
  static constexpr int64_t kUndefined = -1;
  static constexpr int64_t kZero = -2;     // offset is of no meaning
  static constexpr int64_t kForeign = -3;  // belongs to another graph of the session
  size_t offset = 0;
  size_t bytes = 0;
  int64_t source = kUndefined;
  size_t source_offset = 0;
};

class ByteLedger {
 public:
  // Receives what is wrong: the byte range, a Toucher where another task is to blame (else null), and a phrase.
  using Complaint = std::function<void(size_t begin, size_t end, const Toucher* other, const std::string& problem)>;

  // Bytes [begin, ...) must hold `wanted`, written before `clock`.
  void Read(size_t begin, const std::vector<Content>& wanted, const Toucher& reader, const VectorClock& clock,
            const Complaint& complain);
  // The same without knowing what must be there: returns what is, offsets from 0.
  std::vector<Content> ReadAnything(size_t begin, size_t end, const Toucher& reader, const VectorClock& clock,
                                    const Complaint& complain);
  // All earlier readers and writers must be before `clock`.
  void Write(size_t begin, const Content& content, const Toucher& writer, const VectorClock& clock,
             const Complaint& complain);
  // Between runs: what all known bytes, or some bytes, hold now. Who touched them is remembered.
  void ForgetContents(int64_t source);
  void SetContent(size_t begin, const Content& content);
  // All bytes of the range hold something that is not foreign.
  bool IsOwned(size_t begin, size_t end) const;

 private:
  struct Segment {
    size_t end = 0;
    int64_t source = Content::kUndefined;
    size_t source_offset = 0;
    Toucher writer;
    std::array<Toucher, kLedgerStreams> readers;  // latest of each stream since the last write
  };
  using Segments = std::map<size_t, Segment>;

  void Cut(size_t at);
  // Segments that cover exactly [begin, end), made where bytes are unknown.
  std::pair<Segments::iterator, Segments::iterator> Cover(size_t begin, size_t end);

  Segments segments_;
};

}  // namespace onnxtrain

#endif  // ONNXTRAIN_RUNTIME_BYTE_LEDGER_H_
