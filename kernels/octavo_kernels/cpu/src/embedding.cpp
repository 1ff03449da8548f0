// Rows of a packed table (embedding) and rows of a matrix (logits_rows): copies, one row a chunk.
#include "pack.h"
#include "vec.h"

namespace octavo::OCTAVO_ISA_NAMESPACE {

// One lane of one panel: k strided by a panel's width, each cache line used for one pair. About 2 us a row of 576, which
// the tied lm_head's single copy of the table is worth.
void embedding(const GatherArgs& args, const ThreadContext& context) {
  for (int32_t row = context.claim(); row < args.rows; row = context.claim()) {
    const int32_t id = args.ids[row];
    const auto* panel =
        static_cast<const std::byte*>(args.source) + static_cast<int64_t>(id / kPanel) * panel_bytes(args.width, args.dtype);
    const int32_t lane = id % kPanel;
    float* out = args.out + row * args.out_stride;
    if (args.dtype == Dtype::kBFloat16) {
      const auto* packed = reinterpret_cast<const uint16_t*>(panel) + lane * 2;
      for (int32_t i = 0; i < args.width; ++i) out[i] = bf16_to_float(packed[static_cast<int64_t>(i / 2) * kPanel * 2 + i % 2]);
    } else {
      const auto* packed = reinterpret_cast<const float*>(panel) + lane;
      for (int32_t i = 0; i < args.width; ++i) out[i] = packed[static_cast<int64_t>(i) * kPanel];
    }
  }
}

void gather_rows(const GatherArgs& args, const ThreadContext& context) {
  for (int32_t row = context.claim(); row < args.rows; row = context.claim()) {
    const float* source = static_cast<const float*>(args.source) + args.ids[row] * args.source_stride;
    std::memcpy(args.out + row * args.out_stride, source, args.width * sizeof(float));
  }
}

}  // namespace octavo::OCTAVO_ISA_NAMESPACE
