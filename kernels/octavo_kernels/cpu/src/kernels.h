// The kernels of the CPU backend and what they are given.
//
// Every kernel is entered by all threads of the pool at once with the same arguments, and takes chunks of its work from a
// shared counter (`ThreadContext::claim`), so a thread that the operating system holds up does not hold up the others.
// The caller puts a barrier between two kernels. Activations are float32, row-major, with a row stride in elements.
// Each file of kernels is compiled once per instruction set into its own namespace, whose `kernel_table()` hands them out;
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
  // Optional room in which threads share one long context: 64-byte aligned, all zero when allocated and then kept
  // across calls, but never given to two calls at a time. Without it a (row, kv head) is always one thread's.
  std::byte* workspace = nullptr;
  size_t workspace_bytes = 0;  // kAttentionWorkspaceBytes covers 100,000 tokens; untouched pages cost nothing
};

inline constexpr size_t kAttentionWorkspaceBytes = 16u << 20;

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

inline constexpr int32_t kMaxVocab = 400'000;  // what `sample` has scratch for; native.py has it too, and checks

// T tokens of `width` elements each, gathered from packed rows or from rows of a matrix.
struct GatherArgs {
  const int32_t* ids;  // [rows]
  int32_t rows;
  int32_t width;
  const void* source;  // embedding: a packed table (pack.h); gather_rows: float32 [.., width]
  int64_t source_stride;
  Dtype dtype;  // of the packed table
  float* out;
  int64_t out_stride;
};

// out = x / rms(x) * weight for `segments` pieces of `width` elements in each row; with `residual` the sum x + residual is
// normalised and kept there. `out` may be `x`.
struct NormArgs {
  const float* x;
  int64_t x_stride;
  float* residual;  // null = none
  int64_t residual_stride;
  float* out;
  int64_t out_stride;
  const float* weight;  // [width]
  int32_t rows;
  int32_t segments;
  int32_t width;
  float eps;
};

struct SiluMulArgs {
  const float* gate_up;  // [rows, 2 * width]
  int64_t gate_up_stride;
  float* out;  // [rows, width]
  int64_t out_stride;
  int32_t rows;
  int32_t width;
};

// Rotates q and k inside qkv [T, (num_heads + 2 num_kv_heads) * head_dim] and writes k and v into the step's slots.
struct RopeStoreArgs {
  float* qkv;
  int64_t qkv_stride;
  const float* cos_sin;  // [max_positions, head_dim]
  const BatchArgs* batch;
  CacheArgs cache;
  int32_t num_heads;
};

// y [rows, n] = x [rows, k] @ weight^T + bias. Each output element is one sum in the order of k, so a row's result does not
// depend on how many rows there are.
struct LinearArgs {
  const float* x;
  int64_t x_stride;
  float* y;
  int64_t y_stride;
  int32_t rows;
  int32_t n;
  int32_t k;
  const void* weight;  // packed (pack.h)
  const float* bias;   // null = none
  uint16_t* x_bf16;    // shared scratch [round_up(rows, 16), round_up(k, 32)] for kernels that multiply bfloat16
};

// The kernels of one instruction set. `prepare_bf16` runs before `linear_bf16`, a barrier between them; null = not needed.
struct KernelTable {
  const char* name;
  void (*embedding)(const GatherArgs&, const ThreadContext&);
  void (*gather_rows)(const GatherArgs&, const ThreadContext&);
  void (*rms_norm)(const NormArgs&, const ThreadContext&);
  void (*silu_mul)(const SiluMulArgs&, const ThreadContext&);
  void (*rope_store)(const RopeStoreArgs&, const ThreadContext&);
  void (*linear_f32)(const LinearArgs&, const ThreadContext&);
  void (*prepare_bf16)(const LinearArgs&, const ThreadContext&);
  void (*linear_bf16)(const LinearArgs&, const ThreadContext&);
  void (*paged_attention)(const AttentionArgs&, const ThreadContext&);
  void (*sample)(const SampleArgs&, const ThreadContext&);
};

}  // namespace octavo

// Set by the build (build_native.py) to `avx2` or `avx512`: the namespace that this compilation of a kernel file fills.
#ifdef OCTAVO_ISA_NAMESPACE
namespace octavo::OCTAVO_ISA_NAMESPACE {
void embedding(const GatherArgs& args, const ThreadContext& context);
void gather_rows(const GatherArgs& args, const ThreadContext& context);
void rms_norm(const NormArgs& args, const ThreadContext& context);
void silu_mul(const SiluMulArgs& args, const ThreadContext& context);
void rope_store(const RopeStoreArgs& args, const ThreadContext& context);
void linear_f32(const LinearArgs& args, const ThreadContext& context);
void prepare_bf16(const LinearArgs& args, const ThreadContext& context);
void linear_bf16(const LinearArgs& args, const ThreadContext& context);
void paged_attention(const AttentionArgs& args, const ThreadContext& context);
void sample(const SampleArgs& args, const ThreadContext& context);
}  // namespace octavo::OCTAVO_ISA_NAMESPACE
#endif
