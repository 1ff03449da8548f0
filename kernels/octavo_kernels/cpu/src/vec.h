// What the elementwise and matrix kernels need on top of simd.h: the ragged end of a row, pairs of bfloat16 as packed
// weights hold them, and rounding to bfloat16.
#pragma once

#include "simd.h"

namespace octavo::OCTAVO_ISA_NAMESPACE {

#if defined(__AVX512F__)

using PairBits = __m512i;

OCTAVO_INLINE __mmask16 first_lanes(int n) { return static_cast<__mmask16>((1u << n) - 1u); }
// The first n < kLanes elements; the rest reads as zero and is not written.
OCTAVO_INLINE Vec load_first(const float* p, int n) { return _mm512_maskz_loadu_ps(first_lanes(n), p); }
OCTAVO_INLINE void store_first(float* p, Vec x, int n) { _mm512_mask_storeu_ps(p, first_lanes(n), x); }
OCTAVO_INLINE Vec divide(Vec a, Vec b) { return _mm512_div_ps(a, b); }
// kLanes pairs of bfloat16, and the first or second of each pair as float32.
OCTAVO_INLINE PairBits load_pairs(const uint16_t* p) { return _mm512_loadu_si512(p); }
OCTAVO_INLINE Vec first_of_pairs(PairBits pairs) { return _mm512_castsi512_ps(_mm512_slli_epi32(pairs, 16)); }
OCTAVO_INLINE Vec second_of_pairs(PairBits pairs) {
  return _mm512_castsi512_ps(_mm512_and_si512(pairs, _mm512_set1_epi32(static_cast<int>(0xffff0000u))));
}

#else

using PairBits = __m256i;

OCTAVO_INLINE __m256i first_lanes(int n) {
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
OCTAVO_INLINE Vec load_first(const float* p, int n) { return _mm256_maskload_ps(p, first_lanes(n)); }
OCTAVO_INLINE void store_first(float* p, Vec x, int n) { _mm256_maskstore_ps(p, first_lanes(n), x); }
OCTAVO_INLINE Vec divide(Vec a, Vec b) { return _mm256_div_ps(a, b); }
OCTAVO_INLINE PairBits load_pairs(const uint16_t* p) { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)); }
OCTAVO_INLINE Vec first_of_pairs(PairBits pairs) { return _mm256_castsi256_ps(_mm256_slli_epi32(pairs, 16)); }
OCTAVO_INLINE Vec second_of_pairs(PairBits pairs) {
  return _mm256_castsi256_ps(_mm256_and_si256(pairs, _mm256_set1_epi32(static_cast<int>(0xffff0000u))));
}

#endif

// Round to nearest even; NaN stays NaN.
OCTAVO_INLINE uint16_t float_to_bf16(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, 4);
  if (value != value) return static_cast<uint16_t>((bits >> 16) | 0x40u);
  return static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

}  // namespace octavo::OCTAVO_ISA_NAMESPACE
