// rms_norm, add_rms_norm and qk_norm: one kernel, since a head is a segment of a row.
#include <cmath>

#include "kernels.h"
#include "vec.h"

namespace octavo::OCTAVO_ISA_NAMESPACE {
namespace {

// The sum of squares, after x + residual has replaced the residual when there is one.
float sum_of_squares(const float* x, float* residual, int32_t width) {
  Vec total = zero();
  int32_t i = 0;
  for (; i + kLanes <= width; i += kLanes) {
    Vec value = load(x + i);
    if (residual != nullptr) {
      value = value + load(residual + i);
      store(residual + i, value);
    }
    total = fma(value, value, total);
  }
  if (const int32_t rest = width - i; rest > 0) {
    Vec value = load_first(x + i, rest);
    if (residual != nullptr) {
      value = value + load_first(residual + i, rest);
      store_first(residual + i, value, rest);
    }
    total = fma(value, value, total);
  }
  return reduce_add(total);
}

void normalise(const float* x, float* residual, float* out, const float* weight, int32_t width, float eps) {
  const float mean = sum_of_squares(x, residual, width) / static_cast<float>(width);
  const Vec scale = broadcast(1.0f / std::sqrt(mean + eps));
  const float* value = residual != nullptr ? residual : x;
  int32_t i = 0;
  for (; i + kLanes <= width; i += kLanes) store(out + i, load(value + i) * scale * load(weight + i));
  if (const int32_t rest = width - i; rest > 0) {
    store_first(out + i, load_first(value + i, rest) * scale * load_first(weight + i, rest), rest);
  }
}

}  // namespace

void rms_norm(const NormArgs& args, const ThreadContext& context) {
  const int32_t rows_per_chunk = 1 + args.rows / (context.num_threads * 8);
  const int32_t chunks = (args.rows + rows_per_chunk - 1) / rows_per_chunk;
  for (int32_t chunk = context.claim(); chunk < chunks; chunk = context.claim()) {
    const int32_t stop = (chunk + 1) * rows_per_chunk < args.rows ? (chunk + 1) * rows_per_chunk : args.rows;
    for (int32_t row = chunk * rows_per_chunk; row < stop; ++row) {
      float* residual = args.residual != nullptr ? args.residual + row * args.residual_stride : nullptr;
      for (int32_t segment = 0; segment < args.segments; ++segment) {
        const int64_t column = static_cast<int64_t>(segment) * args.width;
        normalise(args.x + row * args.x_stride + column, residual, args.out + row * args.out_stride + column, args.weight,
                  args.width, args.eps);
      }
    }
  }
}

}  // namespace octavo::OCTAVO_ISA_NAMESPACE
