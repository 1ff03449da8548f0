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

namespace octavo::OCTAVO_ISA {

inline constexpr int kKeyTile = 64;    // keys whose scores are taken together
inline constexpr int kSegment = 256;   // keys summed on their own before they are merged: a multiple of kKeyTile
inline constexpr int kTileRows = 96;   // query heads times queries in a tile, unless one group alone has more
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

// Fills the next window; false when there is no work left.
bool plan_window(const AttentionArgs& args, const AttentionSizes& sizes, int32_t num_threads, AttentionPlan& plan);

}  // namespace octavo::OCTAVO_ISA
