// Packs a weight, panel by panel, in steps that stay within a first-level cache.
#include "pack.h"

#include <algorithm>
#include <cstring>

namespace octavo {
namespace {

void pack_bf16_panel(const uint16_t* source, int64_t lanes, int64_t k, uint16_t* packed) {
  const int64_t padded_k = round_up(k, 32);
  if (lanes < kPanel || padded_k != k) std::memset(packed, 0, padded_k * kPanel * 2);
  // 32 k at a time: 32 source rows of one cache line each against 16 destination lines pairs, all of it within L1.
  for (int64_t start = 0; start < k; start += 32) {
    const int64_t stop = std::min<int64_t>(k, start + 32);
    for (int64_t lane = 0; lane < lanes; ++lane) {
      const uint16_t* row = source + lane * k;
      for (int64_t i = start; i < stop; ++i) packed[(i / 2 * kPanel + lane) * 2 + i % 2] = row[i];
    }
  }
}

void pack_f32_panel(const float* source, int64_t lanes, int64_t k, float* packed) {
  if (lanes < kPanel) std::memset(packed, 0, k * kPanel * 4);
  for (int64_t start = 0; start < k; start += 16) {
    const int64_t stop = std::min<int64_t>(k, start + 16);
    for (int64_t lane = 0; lane < lanes; ++lane) {
      for (int64_t i = start; i < stop; ++i) packed[i * kPanel + lane] = source[lane * k + i];
    }
  }
}

}  // namespace

void pack_linear(const void* source, int64_t n, int64_t k, Dtype dtype, void* packed) {
  const int64_t stride = panel_bytes(k, dtype);
  for (int64_t first = 0; first < n; first += kPanel) {
    const int64_t lanes = std::min<int64_t>(kPanel, n - first);
    auto* panel = static_cast<std::byte*>(packed) + first / kPanel * stride;
    if (dtype == Dtype::kBFloat16) {
      pack_bf16_panel(static_cast<const uint16_t*>(source) + first * k, lanes, k, reinterpret_cast<uint16_t*>(panel));
    } else {
      pack_f32_panel(static_cast<const float*>(source) + first * k, lanes, k, reinterpret_cast<float*>(panel));
    }
  }
}

}  // namespace octavo
