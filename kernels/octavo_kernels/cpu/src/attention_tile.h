// A tile's arithmetic: scores, softmax and weighted sums of up to 64 keys for all query heads of a chunk, in
// registers.
//
// Given float32 arrays in the thread's scratch; knows nothing of blocks or batches. One query head's numbers go
// through the same operations in the same order whatever else is in the tile: a score is one chain over head_dim, a
// weighted sum one chain over the keys, and a masked key adds an exact zero.
#pragma once

#include <cstdint>

#include "attention_plan.h"
#include "simd.h"

namespace octavo::OCTAVO_ISA_NAMESPACE {
namespace {

constexpr int kMicroRows = 6;                       // query heads held in registers
constexpr int kMicroVecs = kLanes == 16 ? 4 : 2;    // times this many vectors of keys or of head_dim
constexpr float kNoScore = -1e30f;                  // below every score; finite, so that differences stay finite

// A chunk's arrays, all in the thread's scratch. M = query heads of the tile (query-major), Dp = padded head_dim.
struct Tile {
  int32_t rows;        // M
  int32_t head_dim;
  int32_t padded_dim;  // Dp
  float* q;        // [M, head_dim], times scale and log2(e): scores are exponents of 2
  float* k;        // [head_dim, kKeyTile]
  float* v;        // [kKeyTile, Dp]
  float* scores;   // [M, kKeyTile]
  float* top;      // [M] largest score of the segment
  float* rescale;  // [M]
  float* lanes;    // [M, kLanes] sum of weights, per lane
  float* sum;      // [M, Dp] weighted sum of V
  float* all_top;  // the same over the segments so far
  float* all_weight;
  float* all_sum;
};

// Where a tile's K and V lie: in the cache itself, or widened to float32 in the scratch. `Element` is float or
// uint16_t (bf16). Keys of vector j at head_dim index d: keys[j] + d * key_stride. Value rows: `runs` runs of
// neighbouring keys.
template <typename Element>
struct Source {
  const Element* keys[kKeyTile / kLanes];
  int64_t key_stride;
  const Element* values[kKeyTile / 8];
  int32_t run_keys[kKeyTile / 8];
  int32_t runs;
  int64_t value_stride;
};

// Called four times while a tile is computed, so that the next one is on its way; this one does nothing.
struct NothingAhead {
  void keys(int /*quarter*/) const {}
  void values(int /*quarter*/) const {}
};

template <int kRows, int kVecs, typename Element, typename Ahead>
void score_block(const Tile& tile, const Source<Element>& source, const Ahead& ahead, int row, int column) {
  Vec sums[kRows][kVecs];
  const Element* from[kVecs];
#pragma GCC unroll 4
  for (int j = 0; j < kVecs; ++j) from[j] = source.keys[column + j];
#pragma GCC unroll 8
  for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 4
    for (int j = 0; j < kVecs; ++j) sums[i][j] = zero();
  }
  const int64_t stride = tile.head_dim;
  const float* q = tile.q + row * stride;
  for (int quarter = 0; quarter < 4; ++quarter) {
    ahead.keys(quarter);
    const int32_t end = tile.head_dim * (quarter + 1) / 4;
    for (int64_t d = tile.head_dim * quarter / 4; d < end; ++d) {
      Vec keys[kVecs];
#pragma GCC unroll 4
      for (int j = 0; j < kVecs; ++j) keys[j] = widen(from[j] + d * source.key_stride);
#pragma GCC unroll 8
      for (int i = 0; i < kRows; ++i) {
        const Vec query = broadcast(q[i * stride + d]);
#pragma GCC unroll 4
        for (int j = 0; j < kVecs; ++j) sums[i][j] = fma(query, keys[j], sums[i][j]);
      }
    }
  }
  float* scores = tile.scores + row * kKeyTile + column * kLanes;
#pragma GCC unroll 8
  for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 4
    for (int j = 0; j < kVecs; ++j) store(scores + i * kKeyTile + j * kLanes, sums[i][j]);
  }
}

template <int kRows, int kVecs, typename Element, typename Ahead>
void value_block(const Tile& tile, const Source<Element>& source, const Ahead& ahead, int row, int column) {
  Vec sums[kRows][kVecs];
  const int64_t sum_stride = tile.padded_dim;
  float* sum = tile.sum + row * sum_stride + column * kLanes;
#pragma GCC unroll 8
  for (int i = 0; i < kRows; ++i) {
    const Vec rescale = broadcast(tile.rescale[row + i]);
#pragma GCC unroll 4
    for (int j = 0; j < kVecs; ++j) sums[i][j] = mul(load(sum + i * sum_stride + j * kLanes), rescale);
  }
  const float* weights = tile.scores + row * kKeyTile;
  for (int32_t run = 0; run < source.runs; ++run) {
    if (run < 4) ahead.values(run);
    const Element* v = source.values[run] + column * kLanes;
    for (int32_t key = 0; key < source.run_keys[run]; ++key) {
      Vec values[kVecs];
#pragma GCC unroll 4
      for (int j = 0; j < kVecs; ++j) values[j] = widen(v + j * kLanes);
#pragma GCC unroll 8
      for (int i = 0; i < kRows; ++i) {
        const Vec weight = broadcast(weights[i * kKeyTile]);
#pragma GCC unroll 4
        for (int j = 0; j < kVecs; ++j) sums[i][j] = fma(weight, values[j], sums[i][j]);
      }
      v += source.value_stride;
      ++weights;
    }
  }
  for (int quarter = source.runs; quarter < 4; ++quarter) ahead.values(quarter);
#pragma GCC unroll 8
  for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 4
    for (int j = 0; j < kVecs; ++j) store(sum + i * sum_stride + j * kLanes, sums[i][j]);
  }
}

// Calls block<rows, vecs>(row, column) over a [tile.rows, vecs] grid of register blocks; rows are shared out evenly,
// so that 8 are 4 + 4 rather than 6 + 2.
template <int kVecs, typename Block>
OCTAVO_INLINE void with_rows(int rows, const Block& block) {
  switch (rows) {
    case 1: block.template run<1, kVecs>(); break;
    case 2: block.template run<2, kVecs>(); break;
    case 3: block.template run<3, kVecs>(); break;
    case 4: block.template run<4, kVecs>(); break;
    case 5: block.template run<5, kVecs>(); break;
    default: block.template run<6, kVecs>(); break;
  }
}

template <typename Block>
OCTAVO_INLINE void over_blocks(int rows, int vecs, Block block) {
  const int groups = (rows + kMicroRows - 1) / kMicroRows;
  for (block.column = 0; block.column < vecs;) {
    const int width = vecs - block.column < kMicroVecs ? vecs - block.column : kMicroVecs;
    for (int g = 0; g < groups; ++g) {
      block.row = rows * g / groups;
      const int height = rows * (g + 1) / groups - block.row;
      switch (width) {
        case 1: with_rows<1>(height, block); break;
        case 2: with_rows<2>(height, block); break;
#if defined(__AVX512F__)
        case 3: with_rows<3>(height, block); break;
        default: with_rows<4>(height, block); break;
#else
        default: break;
#endif
      }
    }
    block.column += width;
  }
}

// The first block of a tile also asks for the next tile.
template <typename Element, typename Ahead>
struct ScoreBlock {
  const Tile& tile;
  const Source<Element>& source;
  const Ahead& ahead;
  int row = 0;
  int column = 0;
  template <int kRows, int kVecs>
  void run() const {
    if (row == 0 && column == 0) {
      score_block<kRows, kVecs>(tile, source, ahead, row, column);
    } else {
      score_block<kRows, kVecs>(tile, source, NothingAhead{}, row, column);
    }
  }
};

template <typename Element, typename Ahead>
struct ValueBlock {
  const Tile& tile;
  const Source<Element>& source;
  const Ahead& ahead;
  int row = 0;
  int column = 0;
  template <int kRows, int kVecs>
  void run() const {
    if (row == 0 && column == 0) {
      value_block<kRows, kVecs>(tile, source, ahead, row, column);
    } else {
      value_block<kRows, kVecs>(tile, source, NothingAhead{}, row, column);
    }
  }
};

// Which keys of a tile each query sees: those from `first` up to before `last`, counted from the tile's first key.
struct Visible {
  int32_t first;
  int32_t last;
};

struct Queries {
  int32_t group;           // query heads per query
  int32_t first_position;  // of the tile's first query
  int32_t window;          // 0 = off
  Visible visible(int32_t query, int32_t tile_begin) const {
    const int32_t position = first_position + query;
    return {window > 0 ? position - window + 1 - tile_begin : 0, position + 1 - tile_begin};
  }
};

// Scores of keys a query does not see -> minus infinity.
void mask_scores(const Tile& tile, const Queries& queries, int32_t tile_begin, int32_t vecs) {
  for (int32_t query = 0, row = 0; row < tile.rows; ++query, row += queries.group) {
    const auto [first, last] = queries.visible(query, tile_begin);
    if (first <= 0 && last >= vecs * kLanes) continue;
    for (int32_t j = 0; j < vecs; ++j) {
      const Vec key = add(lane_index(), broadcast(static_cast<float>(j * kLanes)));
      const Mask seen = both(greater_equal(key, broadcast(static_cast<float>(first))),
                             greater(broadcast(static_cast<float>(last)), key));
      for (int32_t g = 0; g < queries.group; ++g) {
        float* scores = tile.scores + (row + g) * kKeyTile + j * kLanes;
        store(scores, select(seen, load(scores), broadcast(-__builtin_inff())));
      }
    }
  }
}

// Scores -> weights 2^(score - top); `rescale` is what sums under the old top are multiplied by.
void softmax_tile(const Tile& tile, int32_t vecs) {
  for (int32_t row = 0; row < tile.rows; ++row) {
    const float* scores = tile.scores + row * kKeyTile;
    Vec top = load(scores);
    for (int32_t j = 1; j < vecs; ++j) top = maximum(top, load(scores + j * kLanes));
    const float before = tile.top[row];
    const float largest = reduce_max(top);
    tile.top[row] = largest > before ? largest : before;
    tile.rescale[row] = before - tile.top[row];
  }
  for (int32_t row = 0; row < tile.rows; row += kLanes) store(tile.rescale + row, exp2_vec(load(tile.rescale + row)));
  for (int32_t row = 0; row < tile.rows; ++row) {
    float* scores = tile.scores + row * kKeyTile;
    const Vec top = broadcast(tile.top[row]);
    Vec weight = mul(load(tile.lanes + row * kLanes), broadcast(tile.rescale[row]));
    for (int32_t j = 0; j < vecs; ++j) {
      const Vec w = exp2_vec(sub(load(scores + j * kLanes), top));
      store(scores + j * kLanes, w);
      weight = add(weight, w);
    }
    store(tile.lanes + row * kLanes, weight);
  }
}

// Keys [begin, begin + vecs * kLanes) at most -> tile.top, tile.lanes, tile.sum.
struct TileRange {
  int32_t begin;
  int32_t vecs;
};

template <typename Element, typename Ahead>
void attend_tile(const Tile& tile, const Source<Element>& source, const Ahead& ahead, const Queries& queries,
                 TileRange range) {
  over_blocks(tile.rows, range.vecs, ScoreBlock<Element, Ahead>{tile, source, ahead});
  mask_scores(tile, queries, range.begin, range.vecs);
  softmax_tile(tile, range.vecs);
  over_blocks(tile.rows, tile.padded_dim / kLanes, ValueBlock<Element, Ahead>{tile, source, ahead});
}

// Takes one segment's result of one query head into that of all before it.
void merge_row(float top, float weight, const float* sum, int32_t dim, float& all_top, float& all_weight,
               float* all_sum) {
  const float largest = top > all_top ? top : all_top;
  alignas(64) float shift[kLanes] = {all_top - largest, top - largest};
  store(shift, exp2_vec(load(shift)));
  const Vec old_scale = broadcast(shift[0]);
  const Vec new_scale = broadcast(shift[1]);
  all_top = largest;
  all_weight = shift[0] * all_weight + shift[1] * weight;
  for (int32_t d = 0; d < dim; d += kLanes) {
    store(all_sum + d, fma(old_scale, load(all_sum + d), mul(new_scale, load(sum + d))));
  }
}

}  // namespace
}  // namespace octavo::OCTAVO_ISA_NAMESPACE
