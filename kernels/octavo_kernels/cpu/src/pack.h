// The packed form of a weight [n, k]: panels of 32 output features, so that a kernel reads one contiguous stream.
//
// bfloat16: [ceil(n / 32)][round_up(k, 32) / 2][32][2], two neighbouring k side by side: what VDPBF16PS and an AMX B tile
// read as they are, and what AVX2 and AVX-512 split into two float32 vectors with a shift and a mask.
// float32: [ceil(n / 32)][k][32]. Padding is zero.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels.h"

namespace octavo {

inline constexpr int32_t kPanel = 32;

inline constexpr int64_t round_up(int64_t value, int64_t step) { return (value + step - 1) / step * step; }

// Bytes of one panel and of the whole weight.
inline constexpr int64_t panel_bytes(int64_t k, Dtype dtype) {
  return dtype == Dtype::kBFloat16 ? round_up(k, 32) * kPanel * 2 : k * kPanel * 4;
}
inline constexpr int64_t packed_bytes(int64_t n, int64_t k, Dtype dtype) {
  return round_up(n, kPanel) / kPanel * panel_bytes(k, dtype);
}

// source [n, k] row-major, of `dtype` (bfloat16 as its 16 bits) -> packed.
void pack_linear(const void* source, int64_t n, int64_t k, Dtype dtype, void* packed);

}  // namespace octavo
