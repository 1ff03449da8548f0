// Shared by the kernels that multiply in bfloat16: rounding x once a call, and writing a finished tile.
#pragma once

#include <cstring>

#include "linear_tasks.h"
#include "pack.h"

namespace octavo::OCTAVO_ISA_NAMESPACE {
namespace {

// x -> bfloat16 [round_up(rows, 16), round_up(k, 32)], round to nearest even, padding zero. One row a chunk.
inline void round_rows(const LinearArgs& args, const ThreadContext& context) {
  const int64_t depth = round_up(args.k, 32);
  const auto rows = static_cast<int32_t>(round_up(args.rows, 16));
  for (int32_t row = context.claim(); row < rows; row = context.claim()) {
    uint16_t* out = args.x_bf16 + row * depth;
    int64_t k = 0;
    if (row < args.rows) {
      const float* x = args.x + row * args.x_stride;
      for (; k + 16 <= args.k; k += 16) {
        const __m256bh rounded = _mm512_cvtneps_pbh(_mm512_loadu_ps(x + k));
        std::memcpy(out + k, &rounded, 32);
      }
      if (k < args.k) {
        const auto mask = static_cast<__mmask16>((1u << (args.k - k)) - 1u);
        const __m256bh rounded = _mm512_cvtneps_pbh(_mm512_maskz_loadu_ps(mask, x + k));
        std::memcpy(out + k, &rounded, 32);  // within the row: depth is a multiple of 32
        k += 16;
      }
    }
    if (k < depth) std::memset(out + k, 0, (depth - k) * sizeof(uint16_t));
  }
}

// Rows first_row ... end_row - 1 of the sums, with bias, to the columns of y that exist.
inline void write_tile(const LinearArgs& args, const float (*sums)[kPanel], int32_t first_row, int32_t end_row, int32_t column) {
  const int32_t columns = args.n - column < kPanel ? args.n - column : kPanel;
  for (int32_t row = first_row; row < end_row; ++row) {
    float* y = args.y + row * args.y_stride + column;
    for (int32_t i = 0; i < columns; ++i) {
      y[i] = sums[row - first_row][i] + (args.bias != nullptr ? args.bias[column + i] : 0.0f);
    }
  }
}

}  // namespace
}  // namespace octavo::OCTAVO_ISA_NAMESPACE
