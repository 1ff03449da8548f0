// Where a row's K and V lie in the paged cache, and how a tile of them is got at: read in place, widened to float32
// in the thread's scratch, or asked for ahead of time. Knows blocks and layouts; the arithmetic is
// attention_tile.h's.
#pragma once

#include <cstdint>

#include "attention_plan.h"
#include "attention_tile.h"
#include "kernels.h"
#include "simd.h"

namespace octavo::OCTAVO_ISA_NAMESPACE {
namespace {

// Part of a tile that lies in one block.
struct Piece {
  int64_t block;  // where the block starts, in elements
  int32_t offset;
  int32_t keys;
};

struct Pieces {
  Piece at[kKeyTile / 8];  // blocks are multiples of 8 tokens (native.py)
  int32_t count = 0;
};

// Where a row's keys lie.
template <typename Element>
struct Context {
  const Element* k;  // of this kv head, in block 0
  const Element* v;
  int64_t block_stride;
  const int32_t* table;
  int32_t block_size;
  int32_t head_dim;

  Context(const AttentionArgs& args, int32_t row, int32_t head)
      : block_stride(static_cast<int64_t>(args.cache.num_kv_heads) * args.cache.head_dim * args.cache.block_size),
        table(args.batch->block_tables + static_cast<int64_t>(row) * args.batch->max_blocks),
        block_size(args.cache.block_size),
        head_dim(args.cache.head_dim) {
    const int64_t offset = static_cast<int64_t>(head) * head_dim * block_size;
    k = static_cast<const Element*>(args.cache.k) + offset;
    v = static_cast<const Element*>(args.cache.v) + offset;
  }

  // Blocks that keys [begin, end) of a tile lie in.
  Pieces pieces(int32_t begin, int32_t end) const {
    Pieces pieces;
    const int32_t* block = table + begin / block_size;
    int32_t offset = begin % block_size;
    for (int32_t left = end - begin; left > 0; offset = 0) {
      const int32_t keys = least(block_size - offset, left);
      pieces.at[pieces.count++] = {*block++ * block_stride, offset, keys};
      left -= keys;
    }
    return pieces;
  }

  const Element* piece_keys(const Piece& piece) const { return k + piece.block + piece.offset; }
  const Element* piece_values(const Piece& piece) const {
    return v + piece.block + static_cast<int64_t>(piece.offset) * head_dim;
  }
};

// Asks for K and V of the pieces of a tile, a quarter at a time.
template <typename Element>
struct FetchAhead {
  const Context<Element>& context;
  const Pieces& pieces;
  static constexpr int32_t kLine = 64 / sizeof(Element);

  OCTAVO_MEMBER_INLINE void keys(int quarter) const {
    for (int32_t p = 0; p < pieces.count; ++p) {
      const Piece& piece = pieces.at[p];
      const Element* from = context.piece_keys(piece);
      if (context.block_size <= kKeyTile) {
        part(from, context.block_size * context.head_dim, quarter);
      } else {
        const int32_t end = context.head_dim * (quarter + 1) / 4;
        for (int64_t d = context.head_dim * quarter / 4; d < end; ++d) {
          for (int32_t i = 0; i < piece.keys; i += kLine) prefetch(from + d * context.block_size + i);
        }
      }
    }
  }
  OCTAVO_MEMBER_INLINE void values(int quarter) const {
    for (int32_t p = 0; p < pieces.count; ++p) {
      part(context.piece_values(pieces.at[p]), pieces.at[p].keys * context.head_dim, quarter);
    }
  }

 private:
  static void prefetch(const Element* p) { __builtin_prefetch(p, 0, 2); }
  OCTAVO_MEMBER_INLINE static void part(const Element* from, int32_t elements, int quarter) {
    const int32_t end = elements * (quarter + 1) / 4;
    for (int32_t i = elements * quarter / 4; i < end; i += kLine) prefetch(from + i);
  }
};

// K and V read in place.
template <typename Element>
Source<Element> cache_source(const Context<Element>& context, const Pieces& pieces) {
  Source<Element> source;
  source.key_stride = context.block_size;
  source.value_stride = context.head_dim;
  source.runs = pieces.count;
  int32_t vector = 0;
  for (int32_t p = 0; p < pieces.count; ++p) {
    const Piece& piece = pieces.at[p];
    const Element* keys = context.piece_keys(piece);
    for (int32_t i = 0; i < piece.keys; i += kLanes) source.keys[vector++] = keys + i;
    source.values[p] = context.piece_values(piece);
    source.run_keys[p] = piece.keys;
  }
  return source;
}

// K [head_dim, stride] of `keys` neighbouring tokens -> columns of tile.k, in whole groups of 8.
template <typename Element>
void widen_keys(const Element* from, int64_t stride, int32_t keys, const Tile& tile, float* to) {
  for (int32_t d = 0; d < tile.head_dim; ++d) {
    int32_t i = 0;
    for (; i + kLanes <= keys; i += kLanes) store(to + i, widen(from + i));
    for (; i < keys; i += 8) copy8(to + i, from + i);
    from += stride;
    to += kKeyTile;
  }
}

// V [keys, head_dim] -> rows of tile.v, whose padding is already zero.
template <typename Element>
void widen_values(const Element* from, int32_t keys, const Tile& tile, float* to) {
  if (tile.head_dim == tile.padded_dim) {
    for (int32_t i = 0; i < keys * tile.head_dim; i += kLanes) store(to + i, widen(from + i));
    return;
  }
  for (int32_t key = 0; key < keys; ++key) {
    int32_t i = 0;
    for (; i + 8 <= tile.head_dim; i += 8) copy8(to + i, from + i);
    for (; i < tile.head_dim; ++i) to[i] = widen_one(from + i);
    from += tile.head_dim;
    to += tile.padded_dim;
  }
}

// K and V widened into the scratch. Reads whole groups of 8 slots of K: what lies past the last key is never used.
template <typename Element>
Source<float> widened_source(const Context<Element>& context, const Pieces& pieces, const Tile& tile) {
  int32_t first = 0;
  for (int32_t p = 0; p < pieces.count; ++p) {
    const Piece& piece = pieces.at[p];
    widen_keys(context.piece_keys(piece), context.block_size, piece.keys, tile, tile.k + first);
    widen_values(context.piece_values(piece), piece.keys, tile, tile.v + static_cast<int64_t>(first) * tile.padded_dim);
    first += piece.keys;
  }
  Source<float> source;
  for (int32_t j = 0; j < kKeyTile / kLanes; ++j) source.keys[j] = tile.k + j * kLanes;
  source.key_stride = kKeyTile;
  source.value_stride = tile.padded_dim;
  source.runs = 1;
  source.values[0] = tile.v;
  source.run_keys[0] = first;
  return source;
}

}  // namespace
}  // namespace octavo::OCTAVO_ISA_NAMESPACE
