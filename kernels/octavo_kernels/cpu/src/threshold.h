// The value at which a descending walk through a set of numbers has seen enough: the k-th largest, or the point where
// the sum of all larger ones reaches a bound. Nothing is sorted: seven cuts at a time narrow the range eightfold,
// what lies outside is dropped, and the last few numbers are walked one by one. At most fifteen rounds whatever the
// numbers.
#pragma once

#include <cstdint>

#include "simd.h"

namespace octavo::OCTAVO_ISA_NAMESPACE {
namespace {

constexpr int kCuts = 7;
constexpr int32_t kFewValues = 32;

// Floats in the order of whole numbers.
inline int64_t to_ordered(float x) {
  int32_t bits;
  std::memcpy(&bits, &x, 4);
  return bits ^ ((bits >> 31) & 0x7fffffff);
}
inline float from_ordered(int64_t ordered) {
  int32_t bits = static_cast<int32_t>(ordered);
  bits ^= (bits >> 31) & 0x7fffffff;
  float value;
  std::memcpy(&value, &bits, 4);
  return value;
}

// What a number adds to the walk, and where cuts go first: counted numbers (logits) are spread evenly, summed ones
// (weights) over their powers of two.
struct CountOf {
  static constexpr int kLinearRounds = 4;
  static Vec of(Vec) { return broadcast(1.0f); }
  static double of(float) { return 1.0; }
};
struct SumOf {
  static constexpr int kLinearRounds = 0;
  static Vec of(Vec x) { return x; }
  static double of(float x) { return x; }
};

// total[i] += measure of the values at or above cuts[i]. Float32 lanes are emptied into doubles every 128 vectors.
template <typename Measure>
void measure_above(const float* values, int32_t count, const float* cuts, double* total) {
  Vec cut[kCuts];
  for (int i = 0; i < kCuts; ++i) cut[i] = broadcast(cuts[i]);
  int32_t at = 0;
  while (at + kLanes <= count) {
    const int32_t stop = count - at > 128 * kLanes ? at + 128 * kLanes : count;
    Vec sums[kCuts];
    for (int i = 0; i < kCuts; ++i) sums[i] = zero();
    for (; at + kLanes <= stop; at += kLanes) {
      const Vec x = load(values + at);
      const Vec weight = Measure::of(x);
      for (int i = 0; i < kCuts; ++i) {
        sums[i] = add(sums[i], select(greater_equal(x, cut[i]), weight, zero()));
      }
    }
    for (int i = 0; i < kCuts; ++i) total[i] += reduce_add(sums[i]);
  }
  for (; at < count; ++at) {
    for (int i = 0; i < kCuts; ++i) {
      if (values[at] >= cuts[i]) total[i] += Measure::of(values[at]);
    }
  }
}

// Keeps values in [low, high) at the front, in order; returns how many.
inline int32_t keep_between(float* values, int32_t count, float low, float high) {
  int32_t kept = 0;
  int32_t at = 0;
  for (; at + kLanes <= count; at += kLanes) {
    const Vec x = load(values + at);
    kept += compress_store(values + kept, both(greater_equal(x, broadcast(low)), greater(broadcast(high), x)), x);
  }
  for (; at < count; ++at) {
    const float x = values[at];
    if (x >= low && x < high) values[kept++] = x;
  }
  return kept;
}

inline void sort_descending(float* values, int32_t count) {
  for (int32_t i = 1; i < count; ++i) {
    const float x = values[i];
    int32_t j = i;
    for (; j > 0 && values[j - 1] < x; --j) values[j] = values[j - 1];
    values[j] = x;
  }
}

// Values lie in [low, high), as ordered whole numbers.
struct ValueRange {
  int64_t low;
  int64_t high;
};

// Border `i` of 8 parts of the range. Halving whole numbers ends for sure, even steps in value are quicker for most
// sets.
inline int64_t border(const ValueRange& range, int i, bool linear) {
  const float low = from_ordered(range.low);
  const float width = from_ordered(range.high) - low;
  if (!linear || !(width < __FLT_MAX__)) return range.low + (range.high - range.low) * i / (kCuts + 1);
  const int64_t at = to_ordered(low + width * static_cast<float>(i) / (kCuts + 1));
  return at < range.low ? range.low : at > range.high ? range.high : at;
}

// The largest of `values` such that those at or above it measure `target` or more; a number at or below all of them
// when rounding keeps the whole set under the target. Values have no NaN and lie in `range`. Overwrites `values`.
template <typename Measure>
float threshold(float* values, int32_t count, double target, ValueRange range) {
  double above = 0;  // measure of the values at or above range.high
  for (int round = 0; count > kFewValues && range.high - range.low > 1; ++round) {
    const bool linear = round < Measure::kLinearRounds;
    float cuts[kCuts];
    double measure[kCuts] = {};
    for (int i = 0; i < kCuts; ++i) cuts[i] = from_ordered(border(range, i + 1, linear));
    measure_above<Measure>(values, count, cuts, measure);
    int part = kCuts;  // the answer lies between borders `part` and `part + 1`
    while (part > 0 && above + measure[part - 1] < target) --part;
    above += part < kCuts ? measure[part] : 0.0;
    range = {part == 0 ? range.low : to_ordered(cuts[part - 1]), part == kCuts ? range.high : to_ordered(cuts[part])};
    count = keep_between(values, count, from_ordered(range.low), from_ordered(range.high));
  }
  if (count > kFewValues) return from_ordered(range.low);  // all equal
  sort_descending(values, count);
  for (int32_t i = 0; i < count; ++i) {
    above += Measure::of(values[i]);
    if (above >= target) return values[i];
  }
  return from_ordered(range.low);
}

}  // namespace
}  // namespace octavo::OCTAVO_ISA_NAMESPACE
