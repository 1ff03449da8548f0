// The table of this instruction set's kernels, handed to dispatch.cpp.
#include "kernels.h"

namespace octavo::OCTAVO_ISA_NAMESPACE {

#define OCTAVO_TEXT(name) #name
#define OCTAVO_NAME(name) OCTAVO_TEXT(name)

const KernelTable& kernel_table() {
  static const KernelTable table = {OCTAVO_NAME(OCTAVO_ISA_NAMESPACE), embedding,  gather_rows, rms_norm,        silu_mul,
                                    rope_store, linear_f32, nullptr,     linear_bf16,     paged_attention, sample};
  return table;
}

}  // namespace octavo::OCTAVO_ISA_NAMESPACE
