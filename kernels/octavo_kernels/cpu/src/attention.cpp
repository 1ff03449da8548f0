// Causal attention on the paged cache.
//
// A chunk is a tile of queries with all query heads of one kv head (attention_plan.h). Its context is taken 64 keys
// at a time (attention_context.h), each read once for all query heads of the chunk (attention_tile.h). A decode row
// is a tile of one query. Sums are taken segment by segment and merged in order, so a result does not depend on the
// batch, on how a prompt was chunked, or on the number of threads: the same bits.
#include <atomic>
#include <cstdint>
#include <utility>

#include "attention_context.h"
#include "attention_plan.h"
#include "attention_tile.h"
#include "kernels.h"
#include "simd.h"

namespace octavo::OCTAVO_ISA_NAMESPACE {
namespace {

void fill(float* to, float value, int64_t count) {
  for (int64_t i = 0; i < count; ++i) to[i] = value;
}

// One segment's keys [begin, end) -> tile.top, tile.lanes, tile.sum.
template <typename Element>
void attend_segment(const Context<Element>& context, const Tile& tile, const Queries& queries, int32_t begin,
                    int32_t end, int32_t context_end) {
  // Reading in place saves a pass over memory; widening first saves doing it for every six query heads.
  const bool in_place =
      tile.rows <= 2 * kMicroRows && context.block_size % kLanes == 0 && tile.head_dim == tile.padded_dim;
  fill(tile.top, kNoScore, tile.rows);
  fill(tile.lanes, 0.0f, static_cast<int64_t>(tile.rows) * kLanes);
  fill(tile.sum, 0.0f, static_cast<int64_t>(tile.rows) * tile.padded_dim);
  Pieces pieces = context.pieces(begin, least(begin + kKeyTile, end));
  for (int32_t at = begin; at < end; at += kKeyTile) {
    const int32_t next = least(at + kKeyTile, context_end);
    const Pieces ahead = context.pieces(next, least(next + kKeyTile, context_end));
    const int32_t vecs = (least(kKeyTile, end - at) + kLanes - 1) / kLanes;
    if (in_place) {
      attend_tile(tile, cache_source(context, pieces), FetchAhead<Element>{context, ahead}, queries, {at, vecs});
    } else {
      attend_tile(tile, widened_source(context, pieces, tile), NothingAhead{}, queries, {at, vecs});
    }
    pieces = ahead;
  }
}

// All chunks of one thread go through this.
template <typename Element>
struct Attention {
  const AttentionArgs& args;
  const AttentionSizes& sizes;
  Tile tile;

  void run(const AttentionItem& item, int32_t head) {
    const int32_t queries = args.batch->query_start[item.row + 1] - args.batch->query_start[item.row];
    const Queries shape{sizes.group, args.batch->context_len[item.row] - queries + item.first_query,
                        args.sliding_window};
    const int32_t end_position = shape.first_position + item.num_queries;
    const int32_t item_end = least(item.end_segment * kSegment, end_position);
    const int32_t first_seen = shape.visible(0, 0).first;
    const int32_t first_tile = first_seen > 0 ? first_seen / kKeyTile * kKeyTile : 0;
    const Context<Element> context(args, item.row, head);
    tile.rows = item.num_queries * sizes.group;
    const int32_t first_key = most(item.first_segment * kSegment, first_tile);
    const Pieces pieces = context.pieces(first_key, least(first_key + kKeyTile, item_end));
    for (int quarter = 0; quarter < 4; ++quarter) FetchAhead<Element>{context, pieces}.keys(quarter);
    for (int quarter = 0; quarter < 4; ++quarter) FetchAhead<Element>{context, pieces}.values(quarter);
    load_queries(item, head);
    for (int32_t segment = item.first_segment; segment < item.end_segment; ++segment) {
      const int32_t begin = most(segment * kSegment, first_tile);
      attend_segment(context, tile, shape, begin, least((segment + 1) * kSegment, end_position), item_end);
      if (item.split >= 0) {
        save_partial(partial(item, head, segment));
      } else if (segment == item.first_segment) {
        adopt();
      } else {
        for (int32_t row = 0; row < tile.rows; ++row) merge(row, tile.top[row], weight(row), sum(row));
      }
    }
    if (item.split >= 0 && !complete_split(item, head)) return;
    write_out(item, head);
  }

 private:
  float* sum(int32_t row) const { return tile.sum + static_cast<int64_t>(row) * tile.padded_dim; }
  float* all_sum(int32_t row) const { return tile.all_sum + static_cast<int64_t>(row) * tile.padded_dim; }
  float weight(int32_t row) const { return reduce_add(load(tile.lanes + row * kLanes)); }
  void merge(int32_t row, float top, float weight, const float* sum) {
    merge_row(top, weight, sum, tile.padded_dim, tile.all_top[row], tile.all_weight[row], all_sum(row));
  }
  // The first segment's result is all there is so far: what merging it into nothing would give, to the bit.
  void adopt() {
    for (int32_t row = 0; row < tile.rows; ++row) tile.all_weight[row] = weight(row);
    std::swap(tile.top, tile.all_top);
    std::swap(tile.sum, tile.all_sum);
  }
  int64_t token(const AttentionItem& item, int32_t query) const {
    return args.batch->query_start[item.row] + item.first_query + query;
  }

  void load_queries(const AttentionItem& item, int32_t head) {
    const float scale = args.scale * kLog2E;
    const int32_t width = sizes.group * tile.head_dim;  // the heads of a group lie side by side
    for (int32_t query = 0; query < item.num_queries; ++query) {
      const float* from = args.q + token(item, query) * args.q_stride + static_cast<int64_t>(head) * width;
      float* to = tile.q + static_cast<int64_t>(query) * width;
      for (int32_t i = 0; i < width; ++i) to[i] = from[i] * scale;
    }
  }

  void write_out(const AttentionItem& item, int32_t head) {
    const int32_t width = sizes.group * tile.head_dim;
    for (int32_t row = 0; row < tile.rows; ++row) {
      float* to = args.out + token(item, row / sizes.group) * args.out_stride + static_cast<int64_t>(head) * width +
                  row % sizes.group * tile.head_dim;
      const float* from = all_sum(row);
      const float inverse = 1.0f / tile.all_weight[row];
      for (int32_t d = 0; d < tile.head_dim; ++d) to[d] = from[d] * inverse;
    }
  }

  // Where a split tile's segment leaves its tops [M], weights [M] and sums [M, Dp].
  float* partial(const AttentionItem& item, int32_t head, int32_t segment) const {
    const int64_t segments = item.all_segments[1] - item.all_segments[0];
    const int64_t index = head * segments + segment - item.all_segments[0];
    return reinterpret_cast<float*>(args.workspace + kWorkspaceCounterBytes) + item.partials +
           index * sizes.partial_floats(tile.rows);
  }

  void save_partial(float* to) const {
    for (int32_t row = 0; row < tile.rows; ++row) {
      to[row] = tile.top[row];
      to[tile.rows + row] = weight(row);
    }
    float* sums = to + 2 * tile.rows;
    for (int64_t i = 0; i < static_cast<int64_t>(tile.rows) * tile.padded_dim; i += kLanes) {
      store(sums + i, load(tile.sum + i));
    }
  }

  // The last part to arrive merges them all, in order, and leaves the counter at zero for the next call.
  bool complete_split(const AttentionItem& item, int32_t head) {
    auto* counters = reinterpret_cast<std::atomic<int32_t>*>(args.workspace);
    std::atomic<int32_t>& arrived = counters[item.split * args.cache.num_kv_heads + head];
    if (arrived.fetch_add(1, std::memory_order_acq_rel) + 1 < item.parts) return false;
    arrived.store(0, std::memory_order_relaxed);
    fill(tile.all_top, kNoScore, tile.rows);
    fill(tile.all_weight, 0.0f, tile.rows);
    fill(tile.all_sum, 0.0f, static_cast<int64_t>(tile.rows) * tile.padded_dim);
    for (int32_t segment = item.all_segments[0]; segment < item.all_segments[1]; ++segment) {
      const float* from = partial(item, head, segment);
      for (int32_t row = 0; row < tile.rows; ++row) {
        merge(row, from[row], from[tile.rows + row],
              from + 2 * tile.rows + static_cast<int64_t>(row) * tile.padded_dim);
      }
    }
    return true;
  }
};

// Hands out pieces of the thread's scratch, 64-byte aligned.
struct ScratchCursor {
  std::byte* at;
  template <typename T>
  T* take(int64_t count) {
    T* piece = reinterpret_cast<T*>(at);
    at += (count * static_cast<int64_t>(sizeof(T)) + 63) / 64 * 64;
    return piece;
  }
};

Tile make_tile(const AttentionSizes& sizes, int32_t head_dim, ScratchCursor& scratch) {
  const int64_t rows = sizes.tile_queries * sizes.group + kLanes;  // vector stores may pass the last row's end
  const int64_t padded = sizes.padded_dim;
  Tile tile{};
  tile.head_dim = head_dim;
  tile.padded_dim = sizes.padded_dim;
  tile.q = scratch.take<float>(rows * head_dim);
  tile.k = scratch.take<float>(static_cast<int64_t>(head_dim) * kKeyTile);
  tile.v = scratch.take<float>(kKeyTile * padded);
  tile.scores = scratch.take<float>(rows * kKeyTile);
  tile.top = scratch.take<float>(rows);
  tile.rescale = scratch.take<float>(rows);
  tile.lanes = scratch.take<float>(rows * kLanes);
  tile.sum = scratch.take<float>(rows * padded);
  tile.all_top = scratch.take<float>(rows);
  tile.all_weight = scratch.take<float>(rows);
  tile.all_sum = scratch.take<float>(rows * padded);
  if (head_dim != sizes.padded_dim) fill(tile.v, 0.0f, kKeyTile * padded);
  return tile;
}

template <typename Element>
void attend(const AttentionArgs& args, const ThreadContext& context) {
  const int32_t heads = args.cache.num_kv_heads;
  const int32_t group = args.num_heads / heads;
  const AttentionSizes sizes{group, (args.cache.head_dim + kLanes - 1) / kLanes * kLanes, most(1, kTileRows / group)};
  ScratchCursor scratch{context.scratch};
  AttentionPlan plan{scratch.take<AttentionItem>(kMaxItems), scratch.take<int32_t>(kMaxItems)};
  Attention<Element> attention{args, sizes, make_tile(sizes, args.cache.head_dim, scratch)};
  int32_t chunk = context.claim();
  while (plan_window(args, sizes, context.num_threads, plan)) {
    const int32_t end_chunk = plan.first_chunk + plan.num_items * heads;
    for (; chunk < end_chunk; chunk = context.claim()) {
      attention.run(plan.item(chunk, heads), (chunk - plan.first_chunk) % heads);
    }
  }
}

}  // namespace

void paged_attention(const AttentionArgs& args, const ThreadContext& context) {
  if (args.cache.dtype == Dtype::kBFloat16) {
    attend<uint16_t>(args, context);
  } else {
    attend<float>(args, context);
  }
}

}  // namespace octavo::OCTAVO_ISA_NAMESPACE
