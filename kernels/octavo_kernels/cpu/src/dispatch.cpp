// What the processor can do and the operating system lets it, and a trial of the kernels for hardware we have not seen.
#include "dispatch.h"

#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cmath>
#include <cstring>
#include <vector>

#include "pack.h"

namespace octavo {

namespace avx2 {
const KernelTable& kernel_table();
}
namespace avx512 {
const KernelTable& kernel_table();
}
namespace avx512_bf16 {
void prepare_bf16(const LinearArgs& args, const ThreadContext& context);
void linear_bf16(const LinearArgs& args, const ThreadContext& context);
}
namespace amx {
void prepare_bf16(const LinearArgs& args, const ThreadContext& context);
void linear_bf16(const LinearArgs& args, const ThreadContext& context);
}

namespace {

struct Leaf {
  uint32_t eax = 0, ebx = 0, ecx = 0, edx = 0;
};

Leaf cpuid(uint32_t leaf, uint32_t subleaf) {
  Leaf result;
  __get_cpuid_count(leaf, subleaf, &result.eax, &result.ebx, &result.ecx, &result.edx);
  return result;
}

// Register state that the operating system saves (XCR0).
uint64_t saved_state() {
  if ((cpuid(1, 0).ecx & (1u << 27)) == 0) return 0;  // OSXSAVE
  uint32_t low, high;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return static_cast<uint64_t>(high) << 32 | low;
}

bool all_set(uint64_t value, uint64_t bits) { return (value & bits) == bits; }

bool has_avx2() {
  const uint32_t fma_f16c_avx = 1u << 12 | 1u << 29 | 1u << 28;
  return all_set(saved_state(), 0x6) && all_set(cpuid(1, 0).ecx, fma_f16c_avx) && (cpuid(7, 0).ebx & 1u << 5) != 0;
}

bool has_avx512() {
  const uint32_t f_dq_bw_vl = 1u << 16 | 1u << 17 | 1u << 30 | 1u << 31;
  return has_avx2() && all_set(saved_state(), 0xe6) && all_set(cpuid(7, 0).ebx, f_dq_bw_vl);
}

bool has_avx512_bf16() { return has_avx512() && (cpuid(7, 1).eax & 1u << 5) != 0; }

// Linux hands out AMX tile registers only on request; threads started later inherit the permission.
bool has_amx() {
  constexpr long kRequestPermission = 0x1023, kTileData = 18;
  const uint32_t bf16_tile = 1u << 22 | 1u << 24;
  return has_avx512_bf16() && all_set(cpuid(7, 0).edx, bf16_tile) && all_set(saved_state(), 0x60000) &&
         syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

// A small product with a ragged edge against plain arithmetic, one thread.
bool multiplies_right(const KernelTable& kernels) {
  constexpr int32_t kRowsOfX = 19, kOut = 50, kIn = 70;
  std::vector<uint16_t> weight(kOut * kIn);
  std::vector<float> x(kRowsOfX * kIn), y(kRowsOfX * kOut, NAN);
  for (size_t i = 0; i < weight.size(); ++i) {
    const float value = static_cast<float>(static_cast<int>(i * 37 % 65) - 32) / 16.0f;  // exact in bfloat16
    uint32_t bits;
    std::memcpy(&bits, &value, 4);
    weight[i] = static_cast<uint16_t>(bits >> 16);
  }
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(static_cast<int>(i * 29 % 127) - 63) / 32.0f;
  const size_t bytes = packed_bytes(kOut, kIn, Dtype::kBFloat16);
  std::vector<std::byte> memory(bytes + 64 + kScratchBytes);
  auto* packed = reinterpret_cast<std::byte*>(round_up(reinterpret_cast<intptr_t>(memory.data()), 64));
  pack_linear(weight.data(), kOut, kIn, Dtype::kBFloat16, packed);
  std::vector<uint16_t> x_bf16(round_up(kRowsOfX, 16) * round_up(kIn, 32));
  std::atomic<int32_t> next{0};
  std::byte* scratch = packed + round_up(bytes, 64);
  const ThreadContext context = {0, 1, &next, scratch, static_cast<size_t>(memory.data() + memory.size() - scratch)};
  const LinearArgs args = {x.data(), kIn, y.data(), kOut, kRowsOfX, kOut, kIn, packed, nullptr, x_bf16.data()};
  kernels.prepare_bf16(args, context);
  next.store(0);
  kernels.linear_bf16(args, context);
  for (int32_t row = 0; row < kRowsOfX; ++row) {
    for (int32_t column = 0; column < kOut; ++column) {
      double sum = 0;
      for (int32_t k = 0; k < kIn; ++k) {
        uint32_t bits = static_cast<uint32_t>(weight[column * kIn + k]) << 16;
        float value;
        std::memcpy(&value, &bits, 4);
        sum += static_cast<double>(value) * x[row * kIn + k];
      }
      if (!(std::fabs(y[row * kOut + column] - sum) <= 1e-3)) return false;
    }
  }
  return true;
}

[[maybe_unused]] const KernelTable* with_linear(const char* name, void (*prepare)(const LinearArgs&, const ThreadContext&),
                                                void (*linear)(const LinearArgs&, const ThreadContext&), KernelTable& table) {
  table.name = name;
  table.prepare_bf16 = prepare;
  table.linear_bf16 = linear;
  return multiplies_right(table) ? &table : nullptr;
}

std::array<const KernelTable*, kNumIsas> find_tables() {
  std::array<const KernelTable*, kNumIsas> tables = {};
#ifdef OCTAVO_HAVE_AVX2
  if (has_avx2()) tables[0] = &avx2::kernel_table();
#endif
#ifdef OCTAVO_HAVE_AVX512
  if (has_avx512()) tables[1] = &avx512::kernel_table();
#ifdef OCTAVO_HAVE_AVX512_BF16
  static KernelTable bf16_table = avx512::kernel_table();
  if (has_avx512_bf16()) tables[2] = with_linear("avx512_bf16", avx512_bf16::prepare_bf16, avx512_bf16::linear_bf16, bf16_table);
#endif
#ifdef OCTAVO_HAVE_AMX
  static KernelTable amx_table = avx512::kernel_table();
  if (has_amx()) tables[3] = with_linear("amx", amx::prepare_bf16, amx::linear_bf16, amx_table);
#endif
#endif
  return tables;
}

}  // namespace

const KernelTable* kernel_table(Isa isa) {
  static const std::array<const KernelTable*, kNumIsas> tables = find_tables();
  return tables[static_cast<size_t>(isa)];
}

}  // namespace octavo
