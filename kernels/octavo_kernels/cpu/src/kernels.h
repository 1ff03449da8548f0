// The kernels of the CPU backend and what they are given.
//
// Every kernel is entered by all threads of the pool at once with the same arguments, and takes chunks of its work from a
// shared counter (`ThreadContext::claim`), so a thread that the operating system holds up does not hold up the others.
// The caller puts a barrier between two kernels. Activations are float32, row-major, with a row stride in elements.
// Each file of kernels is compiled once per instruction set into its own namespace; `kernel_table_<isa>()` hands it out and
// `dispatch.cpp` picks one at load time.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace octavo {

enum class Dtype : int32_t { kFloat32 = 0, kBFloat16 = 1 };

struct ThreadContext {
  int32_t thread;
  int32_t num_threads;
  std::atomic<int32_t>* next;  // zero when the kernel starts, one counter per kernel call
  std::byte* scratch;          // this thread's own, 64-byte aligned
  size_t scratch_bytes;        // at least kScratchBytes

  // The next chunk of [0, num_chunks), or a value >= num_chunks when the work is given out.
  int32_t claim() const { return next->fetch_add(1, std::memory_order_relaxed); }
};

inline constexpr size_t kScratchBytes = 4u << 20;

// Inputs of one step (ops.py: Batch). T tokens, R rows, L logits rows.
struct BatchArgs {
  int32_t num_tokens;
  int32_t num_rows;
  int32_t max_blocks;
  int32_t num_logits;
  const int32_t* token_ids;     // [T]
  const int32_t* positions;     // [T]
  const int32_t* slots;         // [T]
  const int32_t* query_start;   // [R + 1]
  const int32_t* context_len;   // [R] tokens in the cache after this step
  const int32_t* block_tables;  // [R, max_blocks]
  const int32_t* logits_rows;   // [L]
};

// One layer of the paged cache: k [blocks, kv_heads, head_dim, block_size], v [blocks, kv_heads, block_size, head_dim].
struct CacheArgs {
  void* k;
  void* v;
  Dtype dtype;
  int32_t block_size;
  int32_t num_kv_heads;
  int32_t head_dim;
};

struct AttentionArgs {
  const float* q;  // [T, num_heads * head_dim]
  int64_t q_stride;
  float* out;  // [T, num_heads * head_dim]
  int64_t out_stride;
  const BatchArgs* batch;
  CacheArgs cache;
  int32_t num_heads;
  float scale;
  int32_t sliding_window;  // 0 = off; else a query at p sees p - window + 1 ... p
};

// One draw per entry; draw i takes its distribution from logits row rows[i] (backend.py: SamplingBatch).
struct SampleArgs {
  const float* logits;  // [L, vocab]
  int64_t stride;
  int32_t vocab;
  int32_t num_draws;
  const int32_t* rows;
  const float* temperature;  // 0 = greedy
  const int32_t* top_k;      // 0 = off
  const float* top_p;        // 1 = off
  const float* min_p;        // 0 = off
  const float* uniform;
  int32_t* token_ids;  // [num_draws]
};

void paged_attention(const AttentionArgs& args, const ThreadContext& context);  // one per instruction-set namespace
void sample(const SampleArgs& args, const ThreadContext& context);

}  // namespace octavo
