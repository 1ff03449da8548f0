// A model's forward as an array of ops, made once by `program_builder.py` and run once a step. `native.py` mirrors these structs.
#pragma once

#include "kernels.h"
#include "thread_pool.h"

namespace octavo {

enum class OpCode : int32_t {
  kEmbedding = 0,
  kRmsNorm = 1,
  kLinear = 2,
  kRopeStore = 3,
  kPagedAttention = 4,
  kSiluMul = 5,
  kLogitsRows = 6,
};

enum class Rows : int32_t { kNone = 0, kTokens = 1, kLogits = 2, kOutput = 3 };

// Where an activation lies: row r at arena + start * rows + column + r * stride, in float32 elements. `rows` names the arena
// and how many rows a step has there, so one program serves every batch size.
struct Value {
  int64_t start;
  int32_t column;
  int32_t width;
  int32_t stride;
  Rows rows;
};

struct Op {
  OpCode code;
  Dtype dtype;  // of the packed weight
  Value in;
  Value residual;
  Value out;
  const void* weight;  // packed weight, norm weight, or cos_sin
  const float* bias;
  int32_t n;  // linear: out features; embedding: vocabulary; rope_store: positions
  int32_t k;  // linear: in features
  int32_t layer;
  int32_t segments;  // rms_norm
  int32_t num_heads;
  int32_t sliding_window;
  float eps;
  float scale;
};

struct RunArgs {
  BatchArgs batch;
  CacheArgs cache;      // of layer 0
  int64_t layer_bytes;  // of k, and of v
  int64_t num_blocks;
  float* token_arena;
  float* logits_arena;
  float* output;
  uint16_t* x_bf16;
  std::byte* attention_workspace;
  size_t attention_workspace_bytes;
};

enum class RunError : int32_t {
  kNone = 0,
  kTokenId = 1,
  kPosition = 2,
  kLogitsRow = 3,
  kSlot = 4,
  kQueryStart = 5,
  kBlockTable = 6,
};

// Checks what the ops would otherwise read out of bounds with, then runs them all; returns a RunError.
RunError run_program(ThreadPool& pool, const KernelTable& kernels, const Op* ops, int32_t num_ops, const RunArgs& args);

}  // namespace octavo
