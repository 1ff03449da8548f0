// A tile's arithmetic: scores, softmax and weighted sums of up to 64 keys for all query heads of a chunk, in registers.
//
// Given float32 arrays in the thread's scratch; knows nothing of blocks or batches. One query head's numbers go through
// the same operations in the same order whatever else is in the tile: a score is one chain over head_dim, a weighted sum
// one chain over the keys, and a masked key adds an exact zero.
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

template <int kRows, int kVecs>
void score_block(const Tile& tile, int row, int column) {
  Vec sums[kRows][kVecs];
#pragma GCC unroll 8
  for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 4
    for (int j = 0; j < kVecs; ++j) sums[i][j] = zero();
  }
  const float* q = tile.q + static_cast<int64_t>(row) * tile.head_dim;
  const float* k = tile.k + column * kLanes;
  const int64_t stride = tile.head_dim;
  for (int d = 0; d < tile.head_dim; ++d) {
    Vec keys[kVecs];
#pragma GCC unroll 4
    for (int j = 0; j < kVecs; ++j) keys[j] = load(k + d * kKeyTile + j * kLanes);
#pragma GCC unroll 8
    for (int i = 0; i < kRows; ++i) {
      const Vec query = broadcast(q[i * stride + d]);
#pragma GCC unroll 4
      for (int j = 0; j < kVecs; ++j) sums[i][j] = fma(query, keys[j], sums[i][j]);
    }
  }
  float* scores = tile.scores + row * kKeyTile + column * kLanes;
#pragma GCC unroll 8
  for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 4
    for (int j = 0; j < kVecs; ++j) store(scores + i * kKeyTile + j * kLanes, sums[i][j]);
  }
}

template <int kRows, int kVecs>
void value_block(const Tile& tile, int row, int column, int keys) {
  Vec sums[kRows][kVecs];
  float* sum = tile.sum + static_cast<int64_t>(row) * tile.padded_dim + column * kLanes;
  const int64_t stride = tile.padded_dim;
#pragma GCC unroll 8
  for (int i = 0; i < kRows; ++i) {
    const Vec rescale = broadcast(tile.rescale[row + i]);
#pragma GCC unroll 4
    for (int j = 0; j < kVecs; ++j) sums[i][j] = mul(load(sum + i * stride + j * kLanes), rescale);
  }
  const float* v = tile.v + column * kLanes;
  const float* weights = tile.scores + row * kKeyTile;
  for (int key = 0; key < keys; ++key) {
    Vec values[kVecs];
#pragma GCC unroll 4
    for (int j = 0; j < kVecs; ++j) values[j] = load(v + key * stride + j * kLanes);
#pragma GCC unroll 8
    for (int i = 0; i < kRows; ++i) {
      const Vec weight = broadcast(weights[i * kKeyTile + key]);
#pragma GCC unroll 4
      for (int j = 0; j < kVecs; ++j) sums[i][j] = fma(weight, values[j], sums[i][j]);
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 4
    for (int j = 0; j < kVecs; ++j) store(sum + i * stride + j * kLanes, sums[i][j]);
  }
}

// Calls block<rows, vecs>(row, column) over a [tile.rows, vecs] grid of register blocks; rows are shared out evenly, so
// that 8 are 4 + 4 rather than 6 + 2.
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

struct ScoreBlock {
  const Tile& tile;
  int row = 0;
  int column = 0;
  template <int kRows, int kVecs>
  void run() const { score_block<kRows, kVecs>(tile, row, column); }
};

struct ValueBlock {
  const Tile& tile;
  int keys;
  int row = 0;
  int column = 0;
  template <int kRows, int kVecs>
  void run() const { value_block<kRows, kVecs>(tile, row, column, keys); }
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
