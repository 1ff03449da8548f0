// y = x @ weight^T + bias with float32 multiply-adds, for float32 weights and for bfloat16 weights widened on the way.
//
// A task is (panel of 32 output features, run of rows). Its tile of up to kRows rows stays in registers while k runs from
// start to end, one multiply-add chain an output element. Few rows: the weight streams past once, widened in registers.
// Many rows: 512 k of the panel are widened once into the thread's scratch (64 KiB, within L2) and serve every row.
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
constexpr int32_t kDepth = 512;              // k widened at a time
constexpr int32_t kWidenFrom = 3 * kRows;    // rows from which widening once beats widening in every tile
constexpr int64_t kPrefetch = 2048;          // bytes ahead of the weight stream

struct Tile {
  const float* x;
  int64_t x_stride;
  float* y;
  int64_t y_stride;
  int32_t k;
  int32_t columns;    // of kColumns that exist in y
  bool add_to_y;      // continue the sums of an earlier stretch of k
  const float* bias;  // added at the end; null = not now
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

template <int R>
OCTAVO_INLINE void multiply_add(Vec (&sums)[R][kVectors], const Vec (&w)[kVectors], const float* x, int64_t x_stride) {
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r) {
    const Vec value = broadcast(x[r * x_stride]);
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) sums[r][v] = fma(value, w[v], sums[r][v]);
  }
}

template <int R>
OCTAVO_INLINE void begin(Vec (&sums)[R][kVectors], const Tile& tile) {
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      sums[r][v] = tile.add_to_y ? load_columns(tile.y + r * tile.y_stride + v * kLanes, tile.columns - v * kLanes) : zero();
    }
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
  begin<R>(sums, tile);
  const float* x = tile.x;
  for (int32_t k = 0; k < tile.k; ++k, w += kPanel) {
    const Vec wide[kVectors] = {load(w), load(w + kLanes)};
    if (R <= 4) _mm_prefetch(reinterpret_cast<const char*>(w) + kPrefetch, _MM_HINT_T0);
    multiply_add<R>(sums, wide, x + k, tile.x_stride);
  }
  finish<R>(sums, tile);
}

template <int R>
void tile_bf16(const Tile& tile, const void* weight) {
  const auto* w = static_cast<const uint16_t*>(weight);
  Vec sums[R][kVectors];
  begin<R>(sums, tile);
  const float* x = tile.x;
  for (int32_t k = 0; k < tile.k; k += 2, w += 2 * kPanel) {
    const PairBits pairs[kVectors] = {load_pairs(w), load_pairs(w + 2 * kLanes)};
    _mm_prefetch(reinterpret_cast<const char*>(w) + kPrefetch, _MM_HINT_T0);
    _mm_prefetch(reinterpret_cast<const char*>(w) + kPrefetch + 64, _MM_HINT_T0);
    const Vec first[kVectors] = {first_of_pairs(pairs[0]), first_of_pairs(pairs[1])};
    multiply_add<R>(sums, first, x + k, tile.x_stride);
    if (k + 1 == tile.k) break;
    const Vec second[kVectors] = {second_of_pairs(pairs[0]), second_of_pairs(pairs[1])};
    multiply_add<R>(sums, second, x + k + 1, tile.x_stride);
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

// Rows in tiles of nearly equal height, for every tile of columns in the panel. `step` is the weight's distance in bytes from
// one tile of columns to the next.
void run_tiles(const TileFunction* tiles, Tile tile, int32_t rows, int32_t columns, const std::byte* weight, int64_t step) {
  const int32_t count = (rows + kRows - 1) / kRows;
  for (int32_t column = 0; column < columns; column += kColumns, weight += step) {
    Tile part = tile;
    part.y += column;
    part.columns = columns - column;
    if (part.bias != nullptr) part.bias += column;
    for (int32_t i = 0; i < count; ++i) {
      const int32_t start = static_cast<int64_t>(rows) * i / count, stop = static_cast<int64_t>(rows) * (i + 1) / count;
      Tile block = part;
      block.x += start * tile.x_stride;
      block.y += start * tile.y_stride;
      tiles[stop - start - 1](block, weight);
    }
  }
}

// depth k of a packed bfloat16 panel -> float32 [depth, 32].
void widen(const uint16_t* packed, int32_t depth, float* wide) {
  for (int32_t k = 0; k < depth; k += 2, packed += 2 * kPanel) {
    for (int32_t lane = 0; lane < kPanel; lane += kLanes) {
      const PairBits pairs = load_pairs(packed + 2 * lane);
      store(wide + k * kPanel + lane, first_of_pairs(pairs));
      store(wide + (k + 1) * kPanel + lane, second_of_pairs(pairs));
    }
  }
}

struct Task {
  Tile tile;
  int32_t rows;
  int32_t columns;
  const std::byte* panel;
};

void run_f32(const Task& task, const ThreadContext&) {
  run_tiles(kTilesF32, task.tile, task.rows, task.columns, task.panel, kColumns * sizeof(float));
}

void run_bf16(const Task& task, const ThreadContext& context) {
  if (task.rows < kWidenFrom) {
    run_tiles(kTilesBf16, task.tile, task.rows, task.columns, task.panel, kColumns * 2 * sizeof(uint16_t));
    return;
  }
  auto* wide = reinterpret_cast<float*>(context.scratch);
  for (int32_t start = 0; start < task.tile.k; start += kDepth) {
    Tile part = task.tile;
    part.k = task.tile.k - start < kDepth ? task.tile.k - start : kDepth;
    part.x += start;
    part.add_to_y = start > 0;
    if (start + part.k < task.tile.k) part.bias = nullptr;
    widen(reinterpret_cast<const uint16_t*>(task.panel) + static_cast<int64_t>(start) * kPanel, part.k, wide);
    run_tiles(kTilesF32, part, task.rows, task.columns, reinterpret_cast<std::byte*>(wide), kColumns * sizeof(float));
  }
}

template <Dtype dtype>
void linear(const LinearArgs& args, const ThreadContext& context) {
  const LinearTasks tasks(args, context.num_threads, kRows);
  for (int32_t chunk = context.claim(); chunk < tasks.count(); chunk = context.claim()) {
    const LinearTask part = tasks.task(chunk);
    for (int32_t panel = part.first_panel; panel < part.end_panel; ++panel) {
      const int32_t column = panel * kPanel;
      Tile tile = {};
      tile.x = args.x + part.first_row * args.x_stride;
      tile.x_stride = args.x_stride;
      tile.y = args.y + part.first_row * args.y_stride + column;
      tile.y_stride = args.y_stride;
      tile.k = args.k;
      tile.bias = args.bias != nullptr ? args.bias + column : nullptr;
      const Task task = {tile, part.end_row - part.first_row, args.n - column < kPanel ? args.n - column : kPanel,
                         static_cast<const std::byte*>(args.weight) + panel * panel_bytes(args.k, dtype)};
      if (dtype == Dtype::kBFloat16) {
        run_bf16(task, context);
      } else {
        run_f32(task, context);
      }
    }
  }
}

}  // namespace

void linear_f32(const LinearArgs& args, const ThreadContext& context) { linear<Dtype::kFloat32>(args, context); }
void linear_bf16(const LinearArgs& args, const ThreadContext& context) { linear<Dtype::kBFloat16>(args, context); }

}  // namespace octavo::OCTAVO_ISA_NAMESPACE
