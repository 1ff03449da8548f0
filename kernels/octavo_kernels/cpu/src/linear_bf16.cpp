// y = x @ weight^T + bias with VDPBF16PS: two bfloat16 products a lane and instruction, sums in float32.
//
// x is rounded to bfloat16 once a call (`prepare_bf16`), the packed weight is read as it lies. Tiles of rows x 32 output
// features stay in registers while k runs from start to end, so a row's result does not depend on the other rows.
#include <immintrin.h>

#include "linear_bf16.h"

namespace octavo::OCTAVO_ISA_NAMESPACE {
namespace {

constexpr int kRows = 12;
constexpr int64_t kPrefetch = 2048;

template <int R>
void tile(const uint16_t* x, int64_t x_stride, const uint16_t* w, int64_t depth, float (*sums)[kPanel]) {
  __m512 total[R][2];
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r) total[r][0] = total[r][1] = _mm512_setzero_ps();
  for (int64_t k = 0; k < depth; k += 2, w += 2 * kPanel) {
    const auto first = reinterpret_cast<__m512bh>(_mm512_loadu_si512(w));
    const auto second = reinterpret_cast<__m512bh>(_mm512_loadu_si512(w + kPanel));
    _mm_prefetch(reinterpret_cast<const char*>(w) + kPrefetch, _MM_HINT_T0);
    _mm_prefetch(reinterpret_cast<const char*>(w) + kPrefetch + 64, _MM_HINT_T0);
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) {
      int32_t pair;
      __builtin_memcpy(&pair, x + r * x_stride + k, 4);
      const auto value = reinterpret_cast<__m512bh>(_mm512_set1_epi32(pair));
      total[r][0] = _mm512_dpbf16_ps(total[r][0], value, first);
      total[r][1] = _mm512_dpbf16_ps(total[r][1], value, second);
    }
  }
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r) {
    _mm512_storeu_ps(sums[r], total[r][0]);
    _mm512_storeu_ps(sums[r] + 16, total[r][1]);
  }
}

using TileFunction = void (*)(const uint16_t*, int64_t, const uint16_t*, int64_t, float (*)[kPanel]);
constexpr TileFunction kTiles[kRows] = {tile<1>, tile<2>, tile<3>, tile<4>,  tile<5>,  tile<6>,
                                        tile<7>, tile<8>, tile<9>, tile<10>, tile<11>, tile<12>};

}  // namespace

void prepare_bf16(const LinearArgs& args, const ThreadContext& context) { round_rows(args, context); }

void linear_bf16(const LinearArgs& args, const ThreadContext& context) {
  const LinearTasks tasks(args, context.num_threads, kRows);
  const int64_t depth = round_up(args.k, 32);
  alignas(64) float sums[kRows][kPanel];
  for (int32_t chunk = context.claim(); chunk < tasks.count(); chunk = context.claim()) {
    const LinearTask task = tasks.task(chunk);
    for (int32_t panel = task.first_panel; panel < task.end_panel; ++panel) {
      const auto* weight = static_cast<const uint16_t*>(args.weight) + panel * depth * kPanel;
      const int32_t rows = task.end_row - task.first_row;
      const int32_t count = (rows + kRows - 1) / kRows;
      for (int32_t i = 0; i < count; ++i) {
        const int32_t start = task.first_row + static_cast<int32_t>(static_cast<int64_t>(rows) * i / count);
        const int32_t stop = task.first_row + static_cast<int32_t>(static_cast<int64_t>(rows) * (i + 1) / count);
        kTiles[stop - start - 1](args.x_bf16 + start * depth, depth, weight, depth, sums);
        write_tile(args, sums, start, stop, panel * kPanel);
      }
    }
  }
}

}  // namespace octavo::OCTAVO_ISA_NAMESPACE
