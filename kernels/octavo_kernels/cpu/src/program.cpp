// Runs a program: checks the batch, then every op on all threads, a barrier between two.
#include "program.h"

namespace octavo {
namespace {

struct Run {
  const KernelTable& kernels;
  const Op* ops;
  int32_t num_ops;
  const RunArgs& args;
};

int32_t num_rows(const RunArgs& args, Rows rows) {
  return rows == Rows::kTokens ? args.batch.num_tokens : args.batch.num_logits;
}

float* address(const RunArgs& args, const Value& value) {
  switch (value.rows) {
    case Rows::kNone: return nullptr;
    case Rows::kTokens: return args.token_arena + value.start * args.batch.num_tokens + value.column;
    case Rows::kLogits: return args.logits_arena + value.start * args.batch.num_logits + value.column;
    case Rows::kOutput: return args.output;
  }
  return nullptr;
}

CacheArgs layer_cache(const RunArgs& args, int32_t layer) {
  CacheArgs cache = args.cache;
  cache.k = static_cast<std::byte*>(cache.k) + layer * args.layer_bytes;
  cache.v = static_cast<std::byte*>(cache.v) + layer * args.layer_bytes;
  return cache;
}

void run_linear(const Run& run, const Op& op, ThreadPool& pool, const ThreadContext& context) {
  const LinearArgs args = {address(run.args, op.in),  op.in.stride, address(run.args, op.out), op.out.stride,
                           num_rows(run.args, op.in.rows), op.n,     op.k,                      op.weight,
                           op.bias,                    run.args.x_bf16};
  if (op.dtype == Dtype::kFloat32) {
    run.kernels.linear_f32(args, context);
    return;
  }
  if (run.kernels.prepare_bf16 != nullptr) {
    run.kernels.prepare_bf16(args, context);
    pool.barrier();
  }
  run.kernels.linear_bf16(args, context);
}

void run_op(const Run& run, const Op& op, ThreadPool& pool, const ThreadContext& context) {
  const RunArgs& args = run.args;
  float* const in = address(args, op.in);
  float* const out = address(args, op.out);
  const int32_t rows = num_rows(args, op.in.rows == Rows::kNone ? op.out.rows : op.in.rows);
  switch (op.code) {
    case OpCode::kEmbedding:
      run.kernels.embedding({args.batch.token_ids, rows, op.out.width, op.weight, 0, op.dtype, out, op.out.stride}, context);
      break;
    case OpCode::kRmsNorm:
      run.kernels.rms_norm({in, op.in.stride, address(args, op.residual), op.residual.stride, out, op.out.stride,
                            static_cast<const float*>(op.weight), rows, op.segments, op.k, op.eps},
                           context);
      break;
    case OpCode::kLinear:
      run_linear(run, op, pool, context);
      break;
    case OpCode::kRopeStore:
      run.kernels.rope_store({in, op.in.stride, static_cast<const float*>(op.weight), &args.batch,
                              layer_cache(args, op.layer), op.num_heads},
                             context);
      break;
    case OpCode::kPagedAttention:
      run.kernels.paged_attention({in, op.in.stride, out, op.out.stride, &args.batch, layer_cache(args, op.layer),
                                   op.num_heads, op.scale, op.sliding_window, args.attention_workspace,
                                   args.attention_workspace_bytes},
                                  context);
      break;
    case OpCode::kSiluMul:
      run.kernels.silu_mul({in, op.in.stride, out, op.out.stride, rows, op.out.width}, context);
      break;
    case OpCode::kLogitsRows:
      run.kernels.gather_rows({args.batch.logits_rows, args.batch.num_logits, op.out.width, in, op.in.stride,
                               Dtype::kFloat32, out, op.out.stride},
                              context);
      break;
  }
}

void run_all(void* argument, ThreadPool& pool, const ThreadContext& context) {
  const Run& run = *static_cast<const Run*>(argument);
  for (int32_t i = 0; i < run.num_ops; ++i) {
    if (i > 0) pool.barrier();
    run_op(run, run.ops[i], pool, context);
  }
}

bool within(const int32_t* values, int64_t count, int64_t limit) {
  for (int64_t i = 0; i < count; ++i) {
    if (values[i] < 0 || values[i] >= limit) return false;
  }
  return true;
}

// Rows cover the tokens in order, and every block that holds context exists.
RunError check_rows(const RunArgs& args) {
  const BatchArgs& batch = args.batch;
  int32_t tokens = 0;
  for (int32_t row = 0; row < batch.num_rows; ++row) {
    const int32_t queries = batch.query_start[row + 1] - batch.query_start[row];
    if (batch.query_start[row] != tokens || queries < 0 || batch.context_len[row] < queries) return RunError::kQueryStart;
    tokens += queries;
    const int64_t blocks = (static_cast<int64_t>(batch.context_len[row]) + args.cache.block_size - 1) / args.cache.block_size;
    if (blocks > batch.max_blocks) return RunError::kBlockTable;
    const int32_t* table = batch.block_tables + static_cast<int64_t>(row) * batch.max_blocks;
    if (!within(table, blocks, args.num_blocks)) return RunError::kBlockTable;
  }
  return tokens == batch.num_tokens ? RunError::kNone : RunError::kQueryStart;
}

RunError check(const Op* ops, int32_t num_ops, const RunArgs& args) {
  const BatchArgs& batch = args.batch;
  if (!within(batch.logits_rows, batch.num_logits, batch.num_tokens)) return RunError::kLogitsRow;
  bool rope_checked = false, attention_checked = false;
  for (int32_t i = 0; i < num_ops; ++i) {
    const Op& op = ops[i];
    if (op.code == OpCode::kEmbedding && !within(batch.token_ids, batch.num_tokens, op.n)) return RunError::kTokenId;
    if (op.code == OpCode::kRopeStore && !rope_checked) {
      if (!within(batch.positions, batch.num_tokens, op.n)) return RunError::kPosition;
      if (!within(batch.slots, batch.num_tokens, args.num_blocks * args.cache.block_size)) return RunError::kSlot;
      rope_checked = true;
    }
    if (op.code == OpCode::kPagedAttention && !attention_checked) {
      if (const RunError error = check_rows(args); error != RunError::kNone) return error;
      attention_checked = true;
    }
  }
  return RunError::kNone;
}

}  // namespace

RunError run_program(ThreadPool& pool, const KernelTable& kernels, const Op* ops, int32_t num_ops, const RunArgs& args) {
  if (const RunError error = check(ops, num_ops, args); error != RunError::kNone) return error;
  Run run = {kernels, ops, num_ops, args};
  pool.run(run_all, &run);
  return RunError::kNone;
}

}  // namespace octavo
