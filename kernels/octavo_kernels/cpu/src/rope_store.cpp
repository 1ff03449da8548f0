// Rotary embedding of q and k in place, and k and v into the paged cache: the last touch of qkv before attention.
#include "kernels.h"
#include "vec.h"

namespace octavo::OCTAVO_ISA_NAMESPACE {
namespace {

// Halves-style rotation of one head: (a, b) -> (a cos - b sin, b cos + a sin), a and b the head's halves.
void rotate(float* head, const float* cos, const float* sin, int32_t half) {
  int32_t i = 0;
  for (; i + kLanes <= half; i += kLanes) {
    const Vec a = load(head + i), b = load(head + half + i), c = load(cos + i), s = load(sin + i);
    store(head + i, a * c - b * s);
    store(head + half + i, b * c + a * s);
  }
  if (const int32_t rest = half - i; rest > 0) {
    const Vec a = load_first(head + i, rest), b = load_first(head + half + i, rest);
    const Vec c = load_first(cos + i, rest), s = load_first(sin + i, rest);
    store_first(head + i, a * c - b * s, rest);
    store_first(head + half + i, b * c + a * s, rest);
  }
}

OCTAVO_INLINE void put(float* slot, float value) { *slot = value; }
OCTAVO_INLINE void put(uint16_t* slot, float value) { *slot = float_to_bf16(value); }

// k goes across [head_dim, block_size], v along [block_size, head_dim].
template <typename T>
void store_slot(const CacheArgs& cache, int32_t slot, const float* k, const float* v) {
  const int64_t block = slot / cache.block_size, offset = slot % cache.block_size;
  const int64_t head_elements = static_cast<int64_t>(cache.block_size) * cache.head_dim;
  for (int32_t head = 0; head < cache.num_kv_heads; ++head) {
    const int64_t base = (block * cache.num_kv_heads + head) * head_elements;
    T* k_cache = static_cast<T*>(cache.k) + base + offset;
    T* v_cache = static_cast<T*>(cache.v) + base + offset * cache.head_dim;
    for (int32_t i = 0; i < cache.head_dim; ++i) put(k_cache + static_cast<int64_t>(i) * cache.block_size, k[i]);
    for (int32_t i = 0; i < cache.head_dim; ++i) put(v_cache + i, v[i]);
    k += cache.head_dim;
    v += cache.head_dim;
  }
}

void one_token(const RopeStoreArgs& args, int32_t token) {
  const CacheArgs& cache = args.cache;
  const int32_t half = cache.head_dim / 2;
  float* row = args.qkv + token * args.qkv_stride;
  const float* cos = args.cos_sin + static_cast<int64_t>(args.batch->positions[token]) * cache.head_dim;
  for (int32_t head = 0; head < args.num_heads + cache.num_kv_heads; ++head) {
    rotate(row + static_cast<int64_t>(head) * cache.head_dim, cos, cos + half, half);
  }
  const float* k = row + static_cast<int64_t>(args.num_heads) * cache.head_dim;
  const float* v = k + static_cast<int64_t>(cache.num_kv_heads) * cache.head_dim;
  const int32_t slot = args.batch->slots[token];
  if (cache.dtype == Dtype::kBFloat16) {
    store_slot<uint16_t>(cache, slot, k, v);
  } else {
    store_slot<float>(cache, slot, k, v);
  }
}

}  // namespace

// Neighbouring tokens share the cache lines of K's [head_dim, block_size], so a chunk is a run of 16.
void rope_store(const RopeStoreArgs& args, const ThreadContext& context) {
  constexpr int32_t kRun = 16;
  const int32_t tokens = args.batch->num_tokens;
  const int32_t run = tokens >= kRun * context.num_threads ? kRun : 1;
  const int32_t chunks = (tokens + run - 1) / run;
  for (int32_t chunk = context.claim(); chunk < chunks; chunk = context.claim()) {
    const int32_t stop = (chunk + 1) * run < tokens ? (chunk + 1) * run : tokens;
    for (int32_t token = chunk * run; token < stop; ++token) one_token(args, token);
  }
}

}  // namespace octavo::OCTAVO_ISA_NAMESPACE
