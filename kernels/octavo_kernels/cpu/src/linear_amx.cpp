// y = x @ weight^T + bias on AMX tiles: 32 rows x 32 output features in four accumulators, 32 k an instruction.
//
// x is rounded to bfloat16 and padded to whole tiles once a call, the packed weight is a B tile as it lies. Every row count
// takes the same path, so a row's result does not depend on the other rows.
#include <immintrin.h>

#include "linear_bf16.h"

namespace octavo::OCTAVO_ISA_NAMESPACE {
namespace {

constexpr int32_t kTileRows = 16;
constexpr int32_t kBlockRows = 2 * kTileRows;
constexpr int64_t kWeightStride = 2 * kPanel * sizeof(uint16_t);  // bytes from one pair of k to the next

struct alignas(64) TileConfig {
  uint8_t palette = 1;
  uint8_t start_row = 0;
  uint8_t reserved[14] = {};
  uint16_t bytes_per_row[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};

// Tile registers 0-3: sums; 4, 5: x; 6, 7: weights. A second block of rows when `two`.
template <bool two>
void multiply(const uint16_t* x, int64_t depth, const uint16_t* weight, float (*sums)[kPanel]) {
  const auto x_stride = static_cast<int64_t>(depth * sizeof(uint16_t));
  _tile_zero(0);
  _tile_zero(1);
  if (two) {
    _tile_zero(2);
    _tile_zero(3);
  }
  for (int64_t k = 0; k < depth; k += 32) {
    const uint16_t* w = weight + k * kPanel;
    _tile_loadd(6, w, kWeightStride);
    _tile_loadd(7, w + kPanel, kWeightStride);
    _tile_loadd(4, x + k, x_stride);
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    if (two) {
      _tile_loadd(5, x + kTileRows * depth + k, x_stride);
      _tile_dpbf16ps(2, 5, 6);
      _tile_dpbf16ps(3, 5, 7);
    }
  }
  constexpr int64_t kSumStride = kPanel * sizeof(float);
  _tile_stored(0, sums[0], kSumStride);
  _tile_stored(1, sums[0] + 16, kSumStride);
  if (two) {
    _tile_stored(2, sums[kTileRows], kSumStride);
    _tile_stored(3, sums[kTileRows] + 16, kSumStride);
  }
}

}  // namespace

void prepare_bf16(const LinearArgs& args, const ThreadContext& context) { round_rows(args, context); }

void linear_bf16(const LinearArgs& args, const ThreadContext& context) {
  const TileConfig config;
  _tile_loadconfig(&config);
  const LinearTasks tasks(args, context.num_threads, kTileRows);
  const int64_t depth = round_up(args.k, 32);
  alignas(64) float sums[kBlockRows][kPanel];
  for (int32_t chunk = context.claim(); chunk < tasks.count(); chunk = context.claim()) {
    const LinearTask task = tasks.task(chunk);
    // Whole tiles of rows, counted from row 0: the padding below the last row is only there once.
    const auto first = static_cast<int32_t>(round_up(task.first_row, kTileRows));
    const int32_t end = task.end_row == args.rows ? args.rows : static_cast<int32_t>(round_up(task.end_row, kTileRows));
    for (int32_t panel = task.first_panel; panel < task.end_panel; ++panel) {
      const auto* weight = static_cast<const uint16_t*>(args.weight) + panel * depth * kPanel;
      for (int32_t row = first; row < end; row += kBlockRows) {
        const int32_t stop = row + kBlockRows < end ? row + kBlockRows : end;
        const uint16_t* x = args.x_bf16 + row * depth;
        if (stop - row > kTileRows) {
          multiply<true>(x, depth, weight, sums);
        } else {
          multiply<false>(x, depth, weight, sums);
        }
        write_tile(args, sums, row, stop, panel * kPanel);
      }
    }
  }
  _tile_release();
}

}  // namespace octavo::OCTAVO_ISA_NAMESPACE
