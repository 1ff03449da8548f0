// One token from each of several filtered distributions (sampling.py has the definition).
//
// A draw is one chunk. Its logits are read once for the largest of every group of 256; after that, groups without a
// token that can still be drawn are skipped. top_k and top_p are value thresholds (threshold.h), the draw itself is
// the inverse of the cumulative sum in token order: nothing is sorted. NaN counts as minus infinity, plus infinity as
// the largest float; a row of nothing but minus infinity gives token 0.
#include <cfloat>
#include <cmath>
#include <cstdint>

#include "kernels.h"
#include "simd.h"
#include "threshold.h"

namespace octavo::OCTAVO_ISA_NAMESPACE {
namespace {

constexpr int32_t kGroup = 256;  // tokens
constexpr float kNever = -__builtin_inff();

struct Scratch {
  float* weights;     // [vocab], rounded up to a group
  float* candidates;  // as many
  float* peaks;       // [groups, kLanes] the largest logit of every kLanes-th token of a group
  double* sums;       // [groups] of weights
};

Scratch make_scratch(std::byte* at, int32_t groups) {
  const int64_t tokens = static_cast<int64_t>(groups) * kGroup;
  auto* floats = reinterpret_cast<float*>(at);
  return {floats, floats + tokens, floats + 2 * tokens,
          reinterpret_cast<double*>(floats + 2 * tokens + static_cast<int64_t>(groups) * kLanes)};
}

struct Row {
  const float* logits;
  int32_t vocab;
  int32_t groups;
};

OCTAVO_INLINE Vec clean(Vec x) { return minimum(maximum(x, broadcast(kNever)), broadcast(FLT_MAX)); }

// The logits from `token` on, minus infinity past the end.
OCTAVO_INLINE Vec load_logits(const Row& row, int32_t token) {
  if (token + kLanes <= row.vocab) return clean(load(row.logits + token));
  alignas(64) float last[kLanes];
  for (int i = 0; i < kLanes; ++i) last[i] = token + i < row.vocab ? row.logits[token + i] : kNever;
  return clean(load(last));
}

float find_peaks(const Row& row, float* peaks) {
  Vec largest = broadcast(kNever);
  for (int32_t group = 0; group < row.groups; ++group) {
    Vec peak = broadcast(kNever);
    const int32_t first = group * kGroup;
    if (first + kGroup <= row.vocab) {
      for (int32_t i = 0; i < kGroup; i += kLanes) peak = maximum(clean(load(row.logits + first + i)), peak);
    } else {
      for (int32_t i = 0; i < kGroup; i += kLanes) peak = maximum(load_logits(row, first + i), peak);
    }
    store(peaks + group * kLanes, peak);
    largest = maximum(largest, peak);
  }
  return reduce_max(largest);
}

bool reaches(const float* peaks, int32_t group, float floor) {
  return bits(greater_equal(load(peaks + group * kLanes), broadcast(floor))) != 0;
}

int32_t first_equal(const Row& row, const float* peaks, float value) {
  for (int32_t group = 0; group < row.groups; ++group) {
    if (!reaches(peaks, group, value)) continue;
    for (int32_t token = group * kGroup;; token += kLanes) {
      const uint32_t found = bits(greater_equal(load_logits(row, token), broadcast(value)));
      if (found != 0) return token + __builtin_ctz(found);
    }
  }
  return 0;
}

// The k-th largest logit. Of the peaks, k or more are at or above their own k-th largest, so no smaller logit
// matters.
float kth_largest(const Row& row, const Scratch& scratch, float largest, int32_t k) {
  const int64_t beyond = to_ordered(largest) + 1;
  const int32_t num_peaks = row.groups * kLanes;
  float floor = kNever;
  if (k <= num_peaks) {
    float smallest = FLT_MAX;
    for (int32_t i = 0; i < num_peaks; i += kLanes) {
      const Vec peak = load(scratch.peaks + i);
      store(scratch.candidates + i, peak);
      const float least = -reduce_max(sub(zero(), peak));
      if (least < smallest) smallest = least;
    }
    floor = threshold<CountOf>(scratch.candidates, num_peaks, k, {to_ordered(smallest), beyond});
  }
  int32_t count = 0;
  for (int32_t group = 0; group < row.groups; ++group) {
    if (!reaches(scratch.peaks, group, floor)) continue;
    for (int32_t i = 0; i < kGroup; i += kLanes) {
      const Vec x = load_logits(row, group * kGroup + i);
      count += compress_store(scratch.candidates + count, greater_equal(x, broadcast(floor)), x);
    }
  }
  return threshold<CountOf>(scratch.candidates, count, k, {to_ordered(floor), beyond});
}

struct Filter {
  float largest;  // logit
  float floor;    // logits below are out
  float scale;    // weight = 2^((logit - largest) * scale)
};

// Logits -> weights, zero below the floor; sums per group. Returns the sum of all.
double weigh(const Row& row, const Filter& filter, const Scratch& scratch) {
  double total = 0;
  for (int32_t group = 0; group < row.groups; ++group) {
    scratch.sums[group] = 0;
    if (!reaches(scratch.peaks, group, filter.floor)) continue;
    Vec sum = zero();
    for (int32_t i = 0; i < kGroup; i += kLanes) {
      const int32_t token = group * kGroup + i;
      const Vec x = load_logits(row, token);
      const Vec weight = exp2_vec(mul(sub(x, broadcast(filter.largest)), broadcast(filter.scale)));
      const Vec kept = select(greater_equal(x, broadcast(filter.floor)), weight, zero());
      store(scratch.weights + token, kept);
      sum = add(sum, kept);
    }
    scratch.sums[group] = reduce_add(sum);
    total += scratch.sums[group];
  }
  return total;
}

// Keeps the smallest set of largest weights whose sum is `share` of the total; ties at its edge all stay. Returns
// their sum. Weights that together cannot make up the rest of the total are no candidates for the edge.
double keep_top_mass(const Row& row, const Scratch& scratch, double total, double share) {
  const double rest = (1.0 - share) * total;
  const float lowest = static_cast<float>(0.99 * rest / row.vocab);
  int32_t count = 0;
  for (int32_t group = 0; group < row.groups; ++group) {
    if (scratch.sums[group] == 0) continue;
    for (int32_t i = 0; i < kGroup; i += kLanes) {
      const Vec weight = load(scratch.weights + group * kGroup + i);
      const Mask eligible = both(greater(weight, zero()), greater_equal(weight, broadcast(lowest)));
      count += compress_store(scratch.candidates + count, eligible, weight);
    }
  }
  const ValueRange range{to_ordered(lowest), to_ordered(2.0f)};
  const float floor = threshold<SumOf>(scratch.candidates, count, share * total, range);
  total = 0;
  for (int32_t group = 0; group < row.groups; ++group) {
    if (scratch.sums[group] == 0) continue;
    Vec sum = zero();
    for (int32_t i = 0; i < kGroup; i += kLanes) {
      float* at = scratch.weights + group * kGroup + i;
      const Vec weight = load(at);
      const Vec kept = select(greater_equal(weight, broadcast(floor)), weight, zero());
      store(at, kept);
      sum = add(sum, kept);
    }
    scratch.sums[group] = reduce_add(sum);
    total += scratch.sums[group];
  }
  return total;
}

// The first token whose cumulative weight exceeds `target`; the last of any weight when rounding leaves none.
int32_t pick(const Row& row, const Scratch& scratch, double target) {
  double before = 0;
  int32_t last = -1;
  for (int32_t group = 0; group < row.groups; ++group) {
    if (scratch.sums[group] == 0) continue;
    last = group;
    if (before + scratch.sums[group] > target) break;
    before += scratch.sums[group];
  }
  if (last < 0) return 0;
  int32_t token = 0;
  for (int32_t i = last * kGroup; i < (last + 1) * kGroup; ++i) {
    if (scratch.weights[i] == 0) continue;
    token = i;
    before += scratch.weights[i];
    if (before > target) break;
  }
  return token;
}

int32_t draw(const SampleArgs& args, const ThreadContext& context, int32_t index) {
  const Row row{args.logits + args.rows[index] * args.stride, args.vocab, (args.vocab + kGroup - 1) / kGroup};
  const Scratch scratch = make_scratch(context.scratch, row.groups);
  const float largest = find_peaks(row, scratch.peaks);
  const float temperature = args.temperature[index];
  if (largest == kNever) return 0;
  if (!(temperature > 0)) return first_equal(row, scratch.peaks, largest);
  Filter filter{largest, -FLT_MAX, kLog2E / temperature};
  const float min_p = args.min_p[index];
  if (min_p > 0) filter.floor = static_cast<float>(largest + static_cast<double>(temperature) * std::log(min_p));
  const int32_t top_k = args.top_k[index];
  if (top_k > 0 && top_k < row.vocab) {
    const float floor = kth_largest(row, scratch, largest, top_k);
    if (floor > filter.floor) filter.floor = floor;
  }
  double total = weigh(row, filter, scratch);
  if (args.top_p[index] < 1) total = keep_top_mass(row, scratch, total, args.top_p[index]);
  return pick(row, scratch, args.uniform[index] * total);
}

}  // namespace

void sample(const SampleArgs& args, const ThreadContext& context) {
  for (int32_t i = context.claim(); i < args.num_draws; i = context.claim()) {
    args.token_ids[i] = draw(args, context, i);
  }
}

}  // namespace octavo::OCTAVO_ISA_NAMESPACE
