// SPDX-License-Identifier: Apache-2.0
#include "runtime/expected_content.h"

#include <algorithm>

namespace onnxtrain {
namespace {

using Kind = AliasRule::Kind;

// Bytes [begin, begin + bytes) of a value with this content.
std::vector<Content> Slice(const std::vector<Content>& whole, size_t begin, size_t bytes) {
  std::vector<Content> part;
  auto first = std::upper_bound(whole.begin(), whole.end(), begin,
                                [](size_t at, const Content& content) { return at < content.offset; });
  if (first != whole.begin()) --first;
  for (; first != whole.end() && first->offset < begin + bytes; ++first) {
    const size_t from = std::max(begin, first->offset);
    const size_t to = std::min(begin + bytes, first->offset + first->bytes);
    if (from < to)
      part.push_back({from - begin, to - from, first->source, first->source_offset + (from - first->offset)});
  }
  return part;
}

}  // namespace

ExpectedContent::ExpectedContent(const Graph& graph, const ExecutionPlan& plan, const std::vector<bool>& launched,
                                 const Complaint& complain) {
  std::unordered_map<const Value*, const Placement*> places;
  for (const PlacedValue& placed : plan.placements) places[placed.value] = &placed.placement;
  const auto add = [&](const Value* value) -> Entry& {
    Entry& entry = entries_[value];
    entry.source = static_cast<int64_t>(entries_.size());
    const auto place = places.find(value);
    if (place != places.end()) entry.place = place->second;
    return entry;
  };
  std::unordered_map<size_t, const Value*> constant_at;
  for (const std::vector<Value*>* values : {&graph.states(), &graph.constants(), &graph.inputs()}) {
    for (const Value* value : *values) {
      Entry& entry = add(value);
      if (value->constant() != nullptr && entry.place != nullptr) {  // equal constants may share one place
        const Value* twin = constant_at.emplace(entry.place->offset, value).first->second;
        if (twin->constant()->Identical(*value->constant())) entry.source = entries_.at(twin).source;
      }
      entry.content = {{0, value->type().bytes(), entry.source, 0}};
    }
  }
  for (const std::unique_ptr<Node>& node : graph.nodes()) {
    const int index = static_cast<int>(nodes_.size());
    nodes_.push_back(node.get());
    rules_.push_back(node->def().aliases ? node->def().aliases(*node) : std::vector<AliasRule>());
    for (const Value* output : node->outputs()) {
      if (output != nullptr) add(output);
    }
    for (size_t i = 0; i < node->outputs().size(); ++i) {
      if (node->output(i) == nullptr) continue;
      entries_.at(node->output(i)).content =
          OutputContent(index, static_cast<int>(i), launched[static_cast<size_t>(index)], complain);
    }
  }
}

const Placement* ExpectedContent::PlaceOf(const Value* value) const {
  const auto entry = entries_.find(value);
  return entry == entries_.end() ? nullptr : entry->second.place;
}

bool ExpectedContent::IsAtItsPlace(const Node& node, const AliasRule& rule) const {
  const Value* in = node.input(static_cast<size_t>(rule.input));
  const Value* out = node.output(static_cast<size_t>(rule.output));
  if (in == nullptr || out == nullptr || rule.kind == Kind::kInPlace || rule.offset < 0) return false;
  const Placement* inner = PlaceOf(rule.kind == Kind::kView ? out : in);
  const Placement* outer = PlaceOf(rule.kind == Kind::kView ? in : out);
  const size_t offset = static_cast<size_t>(rule.offset);
  return inner != nullptr && outer != nullptr && inner->region == outer->region &&
         inner->offset == outer->offset + offset && offset + inner->bytes <= outer->bytes;
}

std::vector<Content> ExpectedContent::OutputContent(int node, int output, bool launched,
                                                    const Complaint& complain) const {
  const Node& producer = *nodes_[static_cast<size_t>(node)];
  const Value* value = producer.output(static_cast<size_t>(output));
  bool packs = false;
  for (const AliasRule& rule : rules_[static_cast<size_t>(node)]) {
    if (rule.output != output) continue;
    packs = packs || rule.kind == Kind::kPack;
    if (rule.kind != Kind::kView || !IsAtItsPlace(producer, rule)) continue;
    const Value* viewed = producer.input(static_cast<size_t>(rule.input));
    return Slice(entries_.at(viewed).content, static_cast<size_t>(rule.offset), value->type().bytes());
  }
  if (packs) return PackedContent(node, output, launched, complain);
  if (!launched)
    complain(producer.Describe() + " is never launched, and '" + value->name() + "' is not a view of its input");
  return {{0, value->type().bytes(), entries_.at(value).source, 0}};
}

std::vector<Content> ExpectedContent::PackedContent(int node, int output, bool launched,
                                                    const Complaint& complain) const {
  const Node& pack = *nodes_[static_cast<size_t>(node)];
  const Value* bucket = pack.output(static_cast<size_t>(output));
  const int64_t source = entries_.at(bucket).source;
  std::vector<const AliasRule*> parts;
  for (const AliasRule& rule : rules_[static_cast<size_t>(node)]) {
    if (rule.output == output && rule.kind == Kind::kPack && pack.input(static_cast<size_t>(rule.input)) != nullptr) {
      parts.push_back(&rule);
    }
  }
  std::sort(parts.begin(), parts.end(), [](auto* a, auto* b) { return a->offset < b->offset; });
  std::vector<Content> content;
  size_t end = 0;
  const auto fill_up_to = [&](size_t to) {
    if (to > end) content.push_back({end, to - end, Content::kZero, 0});
    end = std::max(end, to);
  };
  for (const AliasRule* rule : parts) {
    const Value* part = pack.input(static_cast<size_t>(rule->input));
    const size_t offset = static_cast<size_t>(rule->offset);
    const size_t bytes = part->type().bytes();
    fill_up_to(offset);
    if (IsAtItsPlace(pack, *rule)) {
      for (Content piece : entries_.at(part).content) {
        piece.offset += offset;
        content.push_back(piece);
      }
    } else {
      if (!launched)
        complain(pack.Describe() + " is never launched, and '" + part->name() + "' lies outside the bucket");
      content.push_back({offset, bytes, source, offset});
    }
    end = std::max(end, offset + bytes);
  }
  fill_up_to(bucket->type().bytes());
  return content;
}

std::vector<LaunchRange> ExpectedContent::Reads(int node) const {
  const Node& reader = *nodes_[static_cast<size_t>(node)];
  std::vector<bool> at_its_place(reader.inputs().size(), false);
  for (const AliasRule& rule : rules_[static_cast<size_t>(node)]) {
    if (rule.kind == Kind::kPack && IsAtItsPlace(reader, rule)) at_its_place[static_cast<size_t>(rule.input)] = true;
  }
  std::vector<LaunchRange> ranges;
  for (size_t i = 0; i < reader.inputs().size(); ++i) {
    const Value* value = reader.input(i);
    if (value == nullptr || at_its_place[i]) continue;
    ranges.push_back({value, static_cast<int>(i), 0, value->type().bytes()});
  }
  return ranges;
}

std::vector<LaunchRange> ExpectedContent::Writes(int node) const {
  const Node& writer = *nodes_[static_cast<size_t>(node)];
  std::vector<LaunchRange> ranges;
  for (size_t i = 0; i < writer.outputs().size(); ++i) {
    const Value* value = writer.output(i);
    if (value == nullptr) continue;
    bool whole = true;
    for (const AliasRule& rule : rules_[static_cast<size_t>(node)]) {
      if (static_cast<size_t>(rule.output) != i || rule.kind == Kind::kInPlace) continue;
      const bool placed = IsAtItsPlace(writer, rule);
      if (rule.kind == Kind::kView && placed) whole = false;
      if (rule.kind != Kind::kPack) continue;
      whole = false;
      const Value* part = writer.input(static_cast<size_t>(rule.input));
      if (part == nullptr || placed) continue;
      ranges.push_back({value, static_cast<int>(i), static_cast<size_t>(rule.offset), part->type().bytes()});
    }
    if (whole) ranges.push_back({value, static_cast<int>(i), 0, value->type().bytes()});
  }
  return ranges;
}

bool ExpectedContent::MayOverwrite(int node, int input, int output) const {
  const std::vector<AliasRule>& rules = rules_[static_cast<size_t>(node)];
  return std::any_of(rules.begin(), rules.end(), [&](const AliasRule& rule) {
    return rule.kind == Kind::kInPlace && rule.input == input && rule.output == output;
  });
}

}  // namespace onnxtrain
