// silu(gate) * up, in pieces of at most 512 columns so that one row is shared by the threads too.
#include "kernels.h"
#include "vec.h"

namespace octavo::OCTAVO_ISA_NAMESPACE {
namespace {

// gate / (1 + e^-gate) * up; e^-gate stops at 2^126, where the quotient is as good as zero.
OCTAVO_INLINE Vec silu_times(Vec gate, Vec up) {
  const Vec power = exp2_vec(minimum(mul(gate, broadcast(-kLog2E)), broadcast(126.0f)));
  return mul(divide(gate, add(broadcast(1.0f), power)), up);
}

void piece(const float* gate, const float* up, float* out, int32_t width) {
  int32_t i = 0;
  for (; i + kLanes <= width; i += kLanes) store(out + i, silu_times(load(gate + i), load(up + i)));
  if (const int32_t rest = width - i; rest > 0) {
    store_first(out + i, silu_times(load_first(gate + i, rest), load_first(up + i, rest)), rest);
  }
}

}  // namespace

void silu_mul(const SiluMulArgs& args, const ThreadContext& context) {
  constexpr int32_t kPiece = 512;
  const int32_t pieces = (args.width + kPiece - 1) / kPiece;
  const int32_t chunks = args.rows * pieces;
  for (int32_t chunk = context.claim(); chunk < chunks; chunk = context.claim()) {
    const int32_t row = chunk / pieces;
    const int32_t start = chunk % pieces * kPiece;
    const int32_t width = args.width - start < kPiece ? args.width - start : kPiece;
    const float* gate = args.gate_up + row * args.gate_up_stride + start;
    piece(gate, gate + args.width, args.out + row * args.out_stride + start, width);
  }
}

}  // namespace octavo::OCTAVO_ISA_NAMESPACE
