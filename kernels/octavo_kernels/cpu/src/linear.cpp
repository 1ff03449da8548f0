// y = x @ weight^T + bias with float32 multiply-adds, for float32 weights and for bfloat16 weights widened on the way.
//
// A tile of up to kRows rows x kColumns output features stays in registers while k goes by in order: one chain of
// multiply-adds an output element, whatever the number of rows. bfloat16 is widened in registers in every tile, a shift
// and a mask for 24 multiply-adds: widening once into a scratch was measured 10 % slower, since float32 doubles what the
// caches must deliver (81 % against 72 % of the peak of one Ice Lake core at 128 rows of 576 x 576).
#include "linear_tasks.h"
#include "pack.h"
#include "vec.h"

namespace octavo::OCTAVO_ISA_NAMESPACE {
namespace {

#if defined(__AVX512F__)
constexpr int kRows = 12;  // 12 x 2 accumulators, 2 weight vectors, 1 of x: 27 of 32 registers
#else
constexpr int kRows = 6;  // 6 x 2 accumulators, 2 weight vectors, 1 of x: 15 of 16 registers
#endif
constexpr int kVectors = 2;                  // vectors of a tile
constexpr int kColumns = kVectors * kLanes;  // output features of a tile: a panel, or half of one
constexpr int64_t kPrefetch = 2048;          // bytes ahead of the weight stream

struct Tile {
  const float* x;
  int64_t x_stride;
  float* y;
  int64_t y_stride;
  int32_t k;
  int32_t columns;  // that exist in y, at most kColumns of them are this tile's
  const float* bias;  // of the first column; null = none
  const std::byte* ahead;  // weights to bring into the second-level cache meanwhile
  int64_t ahead_step;      // bytes of them per pair of k
};


OCTAVO_INLINE Vec load_columns(const float* p, int32_t columns) {
  return columns >= kLanes ? load(p) : columns > 0 ? load_first(p, columns) : zero();
}
OCTAVO_INLINE void store_columns(float* p, Vec v, int32_t columns) {
  if (columns >= kLanes) {
    store(p, v);
  } else if (columns > 0) {
    store_first(p, v, columns);
  }
}

// Byte offsets of a tile's rows of x, so that every row is one address of the form base + offset * scale: without them
// the compiler adds its way from row to row on the ports that multiply.
struct RowOffsets {
  int64_t one, three, five, seven, nine, eleven;

  inline __attribute__((always_inline)) explicit RowOffsets(int64_t stride)
      : one(stride * 4), three(one * 3), five(one * 5), seven(one * 7), nine(one * 9), eleven(one * 11) {
    __asm__("" : "+r"(one), "+r"(three), "+r"(five), "+r"(seven), "+r"(nine), "+r"(eleven));
  }

  inline __attribute__((always_inline)) int64_t row(int r) const {
    const int64_t odd[12] = {0, one, one * 2, three, one * 4, five, three * 2, seven, one * 8, nine, five * 2, eleven};
    return odd[r];
  }
};

template <int R>
OCTAVO_INLINE void multiply_add(Vec (&sums)[R][kVectors], const Vec (&w)[kVectors], const float* x, const RowOffsets& offsets) {
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r) {
    const Vec value = broadcast(*reinterpret_cast<const float*>(reinterpret_cast<const char*>(x) + offsets.row(r)));
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) sums[r][v] = fma(value, w[v], sums[r][v]);
  }
}

template <int R>
OCTAVO_INLINE void clear(Vec (&sums)[R][kVectors]) {
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) sums[r][v] = zero();
  }
}

template <int R>
OCTAVO_INLINE void finish(Vec (&sums)[R][kVectors], const Tile& tile) {
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      const int32_t columns = tile.columns - v * kLanes;
      Vec value = sums[r][v];
      if (tile.bias != nullptr) value = value + load_columns(tile.bias + v * kLanes, columns);
      store_columns(tile.y + r * tile.y_stride + v * kLanes, value, columns);
    }
  }
}

template <int R>
void tile_f32(const Tile& tile, const void* weight) {
  const auto* w = static_cast<const float*>(weight);
  Vec sums[R][kVectors];
  clear<R>(sums);
  const float* x = tile.x;
  const RowOffsets offsets(tile.x_stride);
  for (int32_t k = 0; k < tile.k; ++k, w += kPanel) {
    const Vec wide[kVectors] = {load(w), load(w + kLanes)};
    _mm_prefetch(reinterpret_cast<const char*>(w) + kPrefetch, _MM_HINT_T0);
    _mm_prefetch(reinterpret_cast<const char*>(w) + kPrefetch + 64, _MM_HINT_T0);
    multiply_add<R>(sums, wide, x + k, offsets);
  }
  finish<R>(sums, tile);
}

template <int R>
void tile_bf16(const Tile& tile, const void* weight) {
  const auto* w = static_cast<const uint16_t*>(weight);
  Vec sums[R][kVectors];
  clear<R>(sums);
  const float* x = tile.x;
  const RowOffsets offsets(tile.x_stride);
  for (int32_t k = 0; k < tile.k; k += 2, w += 2 * kPanel) {
    const PairBits pairs[kVectors] = {load_pairs(w), load_pairs(w + 2 * kLanes)};
    _mm_prefetch(reinterpret_cast<const char*>(w) + kPrefetch, _MM_HINT_T0);
    _mm_prefetch(reinterpret_cast<const char*>(w) + kPrefetch + 64, _MM_HINT_T0);
    _mm_prefetch(reinterpret_cast<const char*>(tile.ahead) + k / 2 * tile.ahead_step, _MM_HINT_T1);
    const Vec first[kVectors] = {first_of_pairs(pairs[0]), first_of_pairs(pairs[1])};
    multiply_add<R>(sums, first, x + k, offsets);
    if (k + 1 == tile.k) break;
    const Vec second[kVectors] = {second_of_pairs(pairs[0]), second_of_pairs(pairs[1])};
    multiply_add<R>(sums, second, x + k + 1, offsets);
  }
  finish<R>(sums, tile);
}

using TileFunction = void (*)(const Tile&, const void*);

// tiles[r - 1] works on r rows.
#if defined(__AVX512F__)
constexpr TileFunction kTilesF32[kRows] = {tile_f32<1>, tile_f32<2>, tile_f32<3>, tile_f32<4>,  tile_f32<5>,  tile_f32<6>,
                                           tile_f32<7>, tile_f32<8>, tile_f32<9>, tile_f32<10>, tile_f32<11>, tile_f32<12>};
constexpr TileFunction kTilesBf16[kRows] = {tile_bf16<1>, tile_bf16<2>,  tile_bf16<3>,  tile_bf16<4>,
                                            tile_bf16<5>, tile_bf16<6>,  tile_bf16<7>,  tile_bf16<8>,
                                            tile_bf16<9>, tile_bf16<10>, tile_bf16<11>, tile_bf16<12>};
#else
constexpr TileFunction kTilesF32[kRows] = {tile_f32<1>, tile_f32<2>, tile_f32<3>, tile_f32<4>, tile_f32<5>, tile_f32<6>};
constexpr TileFunction kTilesBf16[kRows] = {tile_bf16<1>, tile_bf16<2>, tile_bf16<3>,
                                            tile_bf16<4>, tile_bf16<5>, tile_bf16<6>};
#endif

// A run of panels against a stretch of rows, in tiles of nearly equal height. A panel goes past all rows before the next
// one does: from the second tile on it comes from a cache.
//
// While the tiles of a panel are multiplied, the panel that this thread will probably claim next is on its way from memory:
// each tile asks for its share of it, so that memory is never idle while the rows are many enough to keep it waiting.
template <Dtype dtype>
void run_task(const LinearArgs& args, const LinearTask& task, int32_t num_threads) {
  constexpr bool narrow = dtype == Dtype::kBFloat16;
  const TileFunction* tiles = narrow ? kTilesBf16 : kTilesF32;
  const int64_t rows = task.end_row - task.first_row, count = (rows + kRows - 1) / kRows;
  const int64_t panel_size = panel_bytes(args.k, dtype), share = panel_size / count / 64 * 64;
  const int32_t end = (args.n + kPanel - 1) / kPanel;
  for (int32_t column = task.first_panel * kPanel; column < task.end_panel * kPanel && column < args.n; column += kColumns) {
    const std::byte* weight = static_cast<const std::byte*>(args.weight) + column / kPanel * panel_size +
                              column % kPanel * 4;  // a pair of bfloat16 is as wide as a float32
    const int32_t panel = column / kPanel, likely = panel + 1 < task.end_panel ? panel + 1 : panel + num_threads;
    const bool fetch = count > 1 && likely < end;
    const std::byte* next = fetch ? static_cast<const std::byte*>(args.weight) + likely * panel_size : weight;
    for (int64_t i = 0; i < count; ++i) {
      const int64_t start = task.first_row + rows * i / count, stop = task.first_row + rows * (i + 1) / count;
      const Tile tile = {args.x + start * args.x_stride,
                         args.x_stride,
                         args.y + start * args.y_stride + column,
                         args.y_stride,
                         args.k,
                         args.n - column,
                         args.bias != nullptr ? args.bias + column : nullptr,
                         fetch ? next + i * share : next,
                         fetch ? 2 * kPanel * 2 / count : 0};
      tiles[stop - start - 1](tile, weight);
    }
  }
}

template <Dtype dtype>
void linear(const LinearArgs& args, const ThreadContext& context) {
  const LinearTasks tasks(args, context.num_threads, kRows);
  for (int32_t chunk = context.claim(); chunk < tasks.count(); chunk = context.claim()) {
    run_task<dtype>(args, tasks.task(chunk), context.num_threads);
  }
}

}  // namespace

void linear_f32(const LinearArgs& args, const ThreadContext& context) { linear<Dtype::kFloat32>(args, context); }
void linear_bf16(const LinearArgs& args, const ThreadContext& context) { linear<Dtype::kBFloat16>(args, context); }

}  // namespace octavo::OCTAVO_ISA_NAMESPACE
