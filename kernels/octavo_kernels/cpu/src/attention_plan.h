// Which pieces of a batch's attention the threads take, and in which order.
//
// An item is a tile of one row's queries against a range of its context; with one kv head it is a chunk. Every thread
// makes the same list, longest first, from the batch alone. A row whose context is long enough to keep the other
// threads waiting is cut into several items along its context, whose partial results meet in the shared workspace.
// Cuts lie at multiples of kSegment from position 0, and sums are always taken segment by segment, so neither the
// batch nor the number of threads shows in a result.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels.h"

namespace octavo::OCTAVO_ISA_NAMESPACE {

inline constexpr int kKeyTile = 64;    // keys whose scores are taken together
inline constexpr int kSegment = 256;   // keys summed on their own before they are merged: a multiple of kKeyTile
// Query heads times queries in a tile, unless one group alone has more. Measured at 1,024 tokens, head_dim 64,
// AVX-512, one thread: 48 rows 97, 96 rows 108, 192 rows 104, 384 rows 100 GFLOP/s.
inline constexpr int kTileRows = 96;
inline constexpr int kMaxItems = 4096; // in a window of the plan

struct AttentionItem {
  int32_t row;
  int32_t first_query;  // within the row
  int32_t num_queries;
  int32_t first_segment;  // what this item computes
  int32_t end_segment;
  int32_t split;  // -1, or the number of the split tile this is a part of
  int32_t parts;
  int32_t all_segments[2];   // of the whole tile
  int64_t partials;          // where the split tile's partial results start, in floats
};

// One thread's view of the work. `open` makes the window of items that chunk `chunk` lies in; chunks only grow.
struct AttentionPlan {
  AttentionItem* items;  // [kMaxItems]
  int32_t* order;        // [kMaxItems], longest first
  int32_t num_items = 0;
  int32_t first_chunk = 0;  // of this window
  int32_t next_row = 0;     // where the next window starts
  int32_t next_query = 0;
  int32_t num_splits = 0;
  int64_t used_partials = 0;

  const AttentionItem& item(int32_t chunk, int32_t heads) const {
    return items[order[(chunk - first_chunk) / heads]];
  }
};

inline constexpr size_t kPlanBytes = kMaxItems * (sizeof(AttentionItem) + sizeof(int32_t));

// Shared workspace: a counter per split tile and kv head, then the partial results.
inline constexpr int64_t kWorkspaceCounters = 4096;
inline constexpr int64_t kWorkspaceCounterBytes = kWorkspaceCounters * 4;

struct AttentionSizes {
  int32_t group;         // query heads per kv head
  int32_t padded_dim;    // head_dim rounded up to whole vectors
  int32_t tile_queries;  // queries of a full tile
  int64_t partial_floats(int32_t rows) const { return static_cast<int64_t>(rows) * (padded_dim + 2); }
};

namespace {

constexpr int64_t kTileOverhead = 6;  // reading and widening a K and V tile costs as much as this many query heads

int32_t least(int32_t a, int32_t b) { return a < b ? a : b; }
int32_t most(int32_t a, int32_t b) { return a > b ? a : b; }

struct RowShape {
  int32_t queries;
  int32_t context;
};

RowShape row_shape(const BatchArgs& batch, int32_t row) {
  return {batch.query_start[row + 1] - batch.query_start[row], batch.context_len[row]};
}

int64_t item_cost(const AttentionItem& item, const AttentionSizes& sizes) {
  const int64_t segments = item.end_segment - item.first_segment;
  return segments * (static_cast<int64_t>(item.num_queries) * sizes.group + kTileOverhead);
}

// The work of a fair chunk: a quarter of a thread's share, so that the last chunks even out.
int64_t fair_cost(const AttentionArgs& args, const AttentionSizes& sizes, int32_t num_threads) {
  int64_t total = 0;
  for (int32_t row = 0; row < args.batch->num_rows; ++row) {
    const auto [queries, context] = row_shape(*args.batch, row);
    const int64_t segments = (context + kSegment - 1) / kSegment;
    const int64_t tiles = (queries + sizes.tile_queries - 1) / sizes.tile_queries;
    total += segments * (static_cast<int64_t>(queries) * sizes.group + tiles * kTileOverhead);
  }
  return total * args.cache.num_kv_heads / (static_cast<int64_t>(num_threads) * 4);
}

AttentionItem make_item(const AttentionArgs& args, const AttentionSizes& sizes, int32_t row, int32_t query) {
  const auto [queries, context] = row_shape(*args.batch, row);
  AttentionItem item{};
  item.row = row;
  item.first_query = query;
  item.num_queries = least(sizes.tile_queries, queries - query);
  const int32_t first_position = context - queries + query;
  const int32_t end_position = first_position + item.num_queries;
  const int32_t begin = args.sliding_window > 0 ? most(0, first_position - args.sliding_window + 1) : 0;
  item.first_segment = begin / kSegment;
  item.end_segment = (end_position + kSegment - 1) / kSegment;
  item.split = -1;
  item.parts = 1;
  item.all_segments[0] = item.first_segment;
  item.all_segments[1] = item.end_segment;
  return item;
}

// In how many items to cut this one: 1 when it is short or the workspace is full.
int32_t parts_of(const AttentionArgs& args, const AttentionSizes& sizes, const AttentionPlan& plan,
                 const AttentionItem& item, int64_t fair) {
  const int64_t segments = item.end_segment - item.first_segment;
  const int64_t cost = item_cost(item, sizes);
  if (cost <= fair || segments < 2 || args.workspace == nullptr) return 1;
  const int64_t heads = args.cache.num_kv_heads;
  const int64_t room = (static_cast<int64_t>(args.workspace_bytes) - kWorkspaceCounterBytes) / 4 - plan.used_partials;
  const int64_t need = heads * segments * sizes.partial_floats(item.num_queries * sizes.group);
  if (need > room || (plan.num_splits + 1) * heads > kWorkspaceCounters) return 1;
  const int64_t parts = fair > 0 ? (cost + fair - 1) / fair : segments;
  const int64_t fit = kMaxItems - plan.num_items;
  const int64_t limit = segments < fit ? segments : fit;
  return static_cast<int32_t>(parts < limit ? parts : limit);
}

void add_item(const AttentionArgs& args, const AttentionSizes& sizes, AttentionItem item, int32_t parts,
              AttentionPlan& plan) {
  if (parts == 1) {
    plan.items[plan.num_items++] = item;
    return;
  }
  const int32_t first = item.first_segment;
  const int64_t segments = item.end_segment - first;
  item.split = plan.num_splits++;
  item.parts = parts;
  item.partials = plan.used_partials;
  plan.used_partials +=
      args.cache.num_kv_heads * segments * sizes.partial_floats(item.num_queries * sizes.group);
  for (int32_t part = 0; part < parts; ++part) {
    item.first_segment = first + static_cast<int32_t>(segments * part / parts);
    item.end_segment = first + static_cast<int32_t>(segments * (part + 1) / parts);
    plan.items[plan.num_items++] = item;
  }
}

// Longest first, to within a factor of two, and otherwise in the batch's order.
void sort_items(const AttentionSizes& sizes, AttentionPlan& plan) {
  int32_t starts[65] = {};
  const auto bucket = [&](int32_t i) {
    return __builtin_clzll(static_cast<uint64_t>(item_cost(plan.items[i], sizes)));
  };
  for (int32_t i = 0; i < plan.num_items; ++i) ++starts[bucket(i) + 1];
  for (int32_t b = 0; b < 64; ++b) starts[b + 1] += starts[b];
  for (int32_t i = 0; i < plan.num_items; ++i) plan.order[starts[bucket(i)]++] = i;
}

// Fills the next window; false when there is no work left.
bool plan_window(const AttentionArgs& args, const AttentionSizes& sizes, int32_t num_threads, AttentionPlan& plan) {
  plan.first_chunk += plan.num_items * args.cache.num_kv_heads;
  plan.num_items = 0;
  const int64_t fair = num_threads > 1 ? fair_cost(args, sizes, num_threads) : INT64_MAX;
  while (plan.next_row < args.batch->num_rows && plan.num_items < kMaxItems) {
    if (plan.next_query >= row_shape(*args.batch, plan.next_row).queries) {
      ++plan.next_row;
      plan.next_query = 0;
      continue;
    }
    const AttentionItem item = make_item(args, sizes, plan.next_row, plan.next_query);
    plan.next_query += item.num_queries;
    add_item(args, sizes, item, parts_of(args, sizes, plan, item, fair), plan);
  }
  sort_items(sizes, plan);
  return plan.num_items > 0;
}

}  // namespace
}  // namespace octavo::OCTAVO_ISA_NAMESPACE
