// SPDX-License-Identifier: Apache-2.0
#include "runtime/byte_ledger.h"

#include <algorithm>

namespace onnxtrain {

void ByteLedger::Cut(size_t at) {
  auto next = segments_.upper_bound(at);
  if (next == segments_.begin()) return;
  auto [begin, segment] = *std::prev(next);
  if (begin == at || segment.end <= at) return;
  std::prev(next)->second.end = at;
  segment.source_offset += at - begin;
  segments_.emplace_hint(next, at, segment);
}

std::pair<ByteLedger::Segments::iterator, ByteLedger::Segments::iterator> ByteLedger::Cover(size_t begin, size_t end) {
  Cut(begin);
  Cut(end);
  size_t at = begin;
  for (auto segment = segments_.lower_bound(begin); at < end; ++segment) {
    if (segment == segments_.end() || segment->first > at) {
      Segment unknown;
      unknown.end = segment == segments_.end() ? end : std::min(end, segment->first);
      segment = segments_.emplace_hint(segment, at, unknown);
    }
    at = segment->second.end;
  }
  return {segments_.lower_bound(begin), segments_.lower_bound(end)};
}

std::vector<Content> ByteLedger::ReadAnything(size_t begin, size_t end, const Toucher& reader, const VectorClock& clock,
                                              const Complaint& complain) {
  std::vector<Content> found;
  if (begin == end) return found;
  const auto [first, last] = Cover(begin, end);
  for (auto at = first; at != last; ++at) {
    Segment& segment = at->second;
    if (!segment.writer.IsBefore(clock)) {
      complain(at->first, segment.end, &segment.writer, "reads bytes that are written by an unordered task");
    }
    segment.readers[static_cast<size_t>(reader.stream)] = reader;
    found.push_back({at->first - begin, segment.end - at->first, segment.source, segment.source_offset});
  }
  return found;
}

void ByteLedger::Read(size_t begin, const std::vector<Content>& wanted, const Toucher& reader, const VectorClock& clock,
                      const Complaint& complain) {
  for (const Content& want : wanted) {
    const size_t from = begin + want.offset;
    if (want.bytes == 0) continue;
    const auto [first, last] = Cover(from, from + want.bytes);
    for (auto at = first; at != last; ++at) {
      Segment& segment = at->second;
      const bool same_place =
          want.source == Content::kZero || segment.source_offset == want.source_offset + (at->first - from);
      if (segment.source == Content::kUndefined) {
        complain(at->first, segment.end, nullptr, "reads bytes that nobody has written in this run");
      } else if (segment.source != want.source || !same_place) {
        complain(at->first, segment.end, segment.writer.count == 0 ? nullptr : &segment.writer,
                 want.source == Content::kZero ? "needs zeros (padding) but finds other bytes"
                                               : "finds the bytes of something else");
      } else if (!segment.writer.IsBefore(clock)) {
        complain(at->first, segment.end, &segment.writer, "is not ordered after their writer");
      }
      segment.readers[static_cast<size_t>(reader.stream)] = reader;
    }
  }
}

void ByteLedger::Write(size_t begin, const Content& content, const Toucher& writer, const VectorClock& clock,
                       const Complaint& complain) {
  if (content.bytes == 0) return;
  const auto [first, last] = Cover(begin, begin + content.bytes);
  const auto is_self = [&](const Toucher& other) {
    return other.stream == writer.stream && other.count == writer.count;
  };
  for (auto at = first; at != last; ++at) {
    const Segment& segment = at->second;
    if (!is_self(segment.writer) && !segment.writer.IsBefore(clock)) {
      complain(at->first, segment.end, &segment.writer, "overwrites bytes that an unordered task writes");
    }
    for (const Toucher& reader : segment.readers) {
      if (is_self(reader) || reader.IsBefore(clock)) continue;
      complain(at->first, segment.end, &reader, "overwrites bytes that an unordered task may still read");
    }
  }
  Segment fresh;
  fresh.end = begin + content.bytes;
  fresh.source = content.source;
  fresh.source_offset = content.source_offset;
  fresh.writer = writer;
  segments_.erase(first, last);
  segments_.emplace(begin, fresh);
}

void ByteLedger::ForgetContents(int64_t source) {
  for (auto& [begin, segment] : segments_) segment.source = source;
}

void ByteLedger::SetContent(size_t begin, const Content& content) {
  if (content.bytes == 0) return;
  const auto [first, last] = Cover(begin, begin + content.bytes);
  for (auto at = first; at != last; ++at) {
    at->second.source = content.source;
    at->second.source_offset = content.source_offset + (at->first - begin);
  }
}

bool ByteLedger::IsOwned(size_t begin, size_t end) const {
  auto at = segments_.upper_bound(begin);
  if (begin == end) return true;
  if (at == segments_.begin()) return false;
  for (--at; begin < end; ++at) {
    if (at == segments_.end() || at->first > begin || at->second.end <= begin) return false;
    if (at->second.source == Content::kForeign) return false;
    begin = at->second.end;
  }
  return true;
}

}  // namespace onnxtrain
