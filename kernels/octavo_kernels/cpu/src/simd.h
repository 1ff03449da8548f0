// One name per vector operation for AVX2 and AVX-512, so that a kernel is written once.
//
// Included by kernel files that are compiled once per instruction set; everything here lies in that file's namespace
// (`OCTAVO_ISA_NAMESPACE`), so that no inline function of one instruction set can be linked into another. `Vec` holds
// kLanes floats; a `Mask` says yes or no per lane.
#pragma once

#include <immintrin.h>

#include <cstdint>
#include <cstring>

namespace octavo::OCTAVO_ISA_NAMESPACE {

#define OCTAVO_INLINE static inline __attribute__((always_inline))
#define OCTAVO_MEMBER_INLINE inline __attribute__((always_inline))

#if defined(__AVX512F__)

using Vec = __m512;
using Mask = __mmask16;
inline constexpr int kLanes = 16;

OCTAVO_INLINE Vec zero() { return _mm512_setzero_ps(); }
OCTAVO_INLINE Vec broadcast(float x) { return _mm512_set1_ps(x); }
OCTAVO_INLINE Vec load(const float* p) { return _mm512_loadu_ps(p); }
OCTAVO_INLINE void store(float* p, Vec x) { _mm512_storeu_ps(p, x); }
OCTAVO_INLINE Vec add(Vec a, Vec b) { return _mm512_add_ps(a, b); }
OCTAVO_INLINE Vec sub(Vec a, Vec b) { return _mm512_sub_ps(a, b); }
OCTAVO_INLINE Vec mul(Vec a, Vec b) { return _mm512_mul_ps(a, b); }
OCTAVO_INLINE Vec fma(Vec a, Vec b, Vec c) { return _mm512_fmadd_ps(a, b, c); }
OCTAVO_INLINE Vec minimum(Vec a, Vec b) { return _mm512_min_ps(a, b); }
// The second operand when the first is NaN.
OCTAVO_INLINE Vec maximum(Vec a, Vec b) { return _mm512_max_ps(a, b); }
OCTAVO_INLINE Mask greater_equal(Vec a, Vec b) { return _mm512_cmp_ps_mask(a, b, _CMP_GE_OQ); }
OCTAVO_INLINE Mask greater(Vec a, Vec b) { return _mm512_cmp_ps_mask(a, b, _CMP_GT_OQ); }
OCTAVO_INLINE Mask both(Mask a, Mask b) { return a & b; }
OCTAVO_INLINE Vec select(Mask m, Vec yes, Vec no) { return _mm512_mask_blend_ps(m, no, yes); }
OCTAVO_INLINE uint32_t bits(Mask m) { return m; }
OCTAVO_INLINE float reduce_max(Vec x) { return _mm512_reduce_max_ps(x); }
OCTAVO_INLINE float reduce_add(Vec x) { return _mm512_reduce_add_ps(x); }
OCTAVO_INLINE Vec lane_index() {
  return _mm512_setr_ps(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
}
// kLanes neighbouring bf16 values.
OCTAVO_INLINE Vec load_bf16(const uint16_t* p) {
  const __m256i half = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(half), 16));
}
// Writes the lanes of `m` side by side; returns how many. May write kLanes floats.
OCTAVO_INLINE int compress_store(float* p, Mask m, Vec x) {
  _mm512_storeu_ps(p, _mm512_maskz_compress_ps(m, x));
  return __builtin_popcount(m);
}
OCTAVO_INLINE Vec scale_by_power(Vec x, Vec exponent, Mask m) { return _mm512_maskz_scalef_ps(m, x, exponent); }
OCTAVO_INLINE Vec nearest(Vec x) { return _mm512_roundscale_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }

#elif defined(__AVX2__)

using Vec = __m256;
using Mask = __m256;
inline constexpr int kLanes = 8;

OCTAVO_INLINE Vec zero() { return _mm256_setzero_ps(); }
OCTAVO_INLINE Vec broadcast(float x) { return _mm256_set1_ps(x); }
OCTAVO_INLINE Vec load(const float* p) { return _mm256_loadu_ps(p); }
OCTAVO_INLINE void store(float* p, Vec x) { _mm256_storeu_ps(p, x); }
OCTAVO_INLINE Vec add(Vec a, Vec b) { return _mm256_add_ps(a, b); }
OCTAVO_INLINE Vec sub(Vec a, Vec b) { return _mm256_sub_ps(a, b); }
OCTAVO_INLINE Vec mul(Vec a, Vec b) { return _mm256_mul_ps(a, b); }
OCTAVO_INLINE Vec fma(Vec a, Vec b, Vec c) { return _mm256_fmadd_ps(a, b, c); }
OCTAVO_INLINE Vec minimum(Vec a, Vec b) { return _mm256_min_ps(a, b); }
// The second operand when the first is NaN.
OCTAVO_INLINE Vec maximum(Vec a, Vec b) { return _mm256_max_ps(a, b); }
OCTAVO_INLINE Mask greater_equal(Vec a, Vec b) { return _mm256_cmp_ps(a, b, _CMP_GE_OQ); }
OCTAVO_INLINE Mask greater(Vec a, Vec b) { return _mm256_cmp_ps(a, b, _CMP_GT_OQ); }
OCTAVO_INLINE Mask both(Mask a, Mask b) { return _mm256_and_ps(a, b); }
OCTAVO_INLINE Vec select(Mask m, Vec yes, Vec no) { return _mm256_blendv_ps(no, yes, m); }
OCTAVO_INLINE uint32_t bits(Mask m) { return static_cast<uint32_t>(_mm256_movemask_ps(m)); }
OCTAVO_INLINE float reduce_max(Vec x) {
  __m128 y = _mm_max_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
  y = _mm_max_ps(y, _mm_movehl_ps(y, y));
  return _mm_cvtss_f32(_mm_max_ss(y, _mm_shuffle_ps(y, y, 1)));
}
OCTAVO_INLINE float reduce_add(Vec x) {
  __m128 y = _mm_add_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
  y = _mm_add_ps(y, _mm_movehl_ps(y, y));
  return _mm_cvtss_f32(_mm_add_ss(y, _mm_shuffle_ps(y, y, 1)));
}
OCTAVO_INLINE Vec lane_index() { return _mm256_setr_ps(0, 1, 2, 3, 4, 5, 6, 7); }
// kLanes neighbouring bf16 values.
OCTAVO_INLINE Vec load_bf16(const uint16_t* p) {
  const __m128i half = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(half), 16));
}
// For every mask of 8 lanes, the indices of its lanes side by side, one per byte.
struct LaneOrders {
  uint64_t of[256];
};
constexpr LaneOrders make_lane_orders() {
  LaneOrders orders{};
  for (int mask = 0; mask < 256; ++mask) {
    int count = 0;
    for (uint64_t lane = 0; lane < 8; ++lane) {
      if (mask >> lane & 1) orders.of[mask] |= lane << (8 * count++);
    }
  }
  return orders;
}
inline constexpr LaneOrders kLaneOrders = make_lane_orders();
// Writes the lanes of `m` side by side; returns how many. May write kLanes floats.
OCTAVO_INLINE int compress_store(float* p, Mask m, Vec x) {
  const uint32_t mask = bits(m);
  const __m256i order = _mm256_cvtepu8_epi32(_mm_cvtsi64_si128(static_cast<int64_t>(kLaneOrders.of[mask])));
  _mm256_storeu_ps(p, _mm256_permutevar8x32_ps(x, order));
  return __builtin_popcount(mask);
}
OCTAVO_INLINE Vec scale_by_power(Vec x, Vec exponent, Mask m) {
  const __m256i biased = _mm256_add_epi32(_mm256_cvtps_epi32(exponent), _mm256_set1_epi32(127));
  return _mm256_and_ps(m, _mm256_mul_ps(x, _mm256_castsi256_ps(_mm256_slli_epi32(biased, 23))));
}
OCTAVO_INLINE Vec nearest(Vec x) { return _mm256_round_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }

#else
#error "simd.h needs AVX2 or AVX-512"
#endif

// Eight neighbouring values, for the ends of rows that are not a multiple of kLanes.
OCTAVO_INLINE void copy8(float* to, const float* from) { _mm256_storeu_ps(to, _mm256_loadu_ps(from)); }
OCTAVO_INLINE void copy8(float* to, const uint16_t* from) {
  const __m128i half = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
  _mm256_storeu_ps(to, _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(half), 16)));
}

OCTAVO_INLINE float bf16_to_float(uint16_t bits) {
  const uint32_t wide = static_cast<uint32_t>(bits) << 16;
  float value;
  std::memcpy(&value, &wide, 4);
  return value;
}

// kLanes neighbouring cache elements as float32, or one.
OCTAVO_INLINE Vec widen(const float* p) { return load(p); }
OCTAVO_INLINE Vec widen(const uint16_t* p) { return load_bf16(p); }
OCTAVO_INLINE float widen_one(const float* p) { return *p; }
OCTAVO_INLINE float widen_one(const uint16_t* p) { return bf16_to_float(*p); }

// 2^x for x <= 127; exactly 1 at 0, and 0 below -126, at minus infinity and at NaN. Relative error < 2e-7: a degree-6
// minimax polynomial on [-0.5, 0.5] (its own error 2e-9) times an exact power of two.
OCTAVO_INLINE Vec exp2_vec(Vec x) {
  const Mask in_range = greater_equal(x, broadcast(-126.0f));
  const Vec whole = nearest(x);
  const Vec r = sub(x, whole);
  Vec p = broadcast(0x1.41d334p-13f);
  p = fma(p, r, broadcast(0x1.5f456ap-10f));
  p = fma(p, r, broadcast(0x1.3b2dbcp-7f));
  p = fma(p, r, broadcast(0x1.c6aed4p-5f));
  p = fma(p, r, broadcast(0x1.ebfbdap-3f));
  p = fma(p, r, broadcast(0x1.62e430p-1f));
  p = fma(p, r, broadcast(1.0f));
  return scale_by_power(p, whole, in_range);
}

inline constexpr float kLog2E = 1.44269504088896340736f;

}  // namespace octavo::OCTAVO_ISA_NAMESPACE
