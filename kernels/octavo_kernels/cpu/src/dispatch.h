// Which instruction set this machine runs, decided once when the library is loaded.
#pragma once

#include "kernels.h"

namespace octavo {

enum class Isa : int32_t { kAvx2 = 0, kAvx512 = 1, kAvx512Bf16 = 2, kAmx = 3 };

inline constexpr int32_t kNumIsas = 4;

// The kernels of an instruction set; null when this build or this machine lacks it, or when its matrix product did not
// give the right numbers in a small trial (AVX512-BF16 and AMX: on hardware, or an emulator, that we have not seen).
const KernelTable* kernel_table(Isa isa);

}  // namespace octavo
