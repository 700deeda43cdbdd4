// The scan kernels in emulation, and the host backend, against the reference: the same integers.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "compiler/plan/search_space.h"
#include "tests/emulation/emulated_kernel.h"
#include "tests/host/host_call.h"

namespace hstujit {
namespace {

OpSpecPtr cumsum(const char* dtype) { return make_spec({{"op", "complete_cumsum"}, {"dtype", dtype}}); }
Lengths of(int64_t count) { return {{count}, {}, count, {}}; }

// Twice, with threads in different orders.
void check(const EmulatedKernel& kernel, const OpSpecPtr& spec, int64_t count) {
  SCOPED_TRACE(fmt::format("{} {} lengths", spec->to_json().dump(), count));
  for (const unsigned seed : {1u, 3u}) {
    HostCall call(spec, of(count), 7);
    call.pack_inputs();
    kernel.launch(call.values(), seed);
    EXPECT_EQ(call.mistakes(), "");
  }
}

void check(const char* dtype, const ScanConfig& config, const std::vector<int64_t>& counts) {
  const OpSpecPtr spec = cumsum(dtype);
  const auto emitted = emit_kernel(*spec, Direction::kForward, {"scan/forward", config}, *known_device("sm_90a"));
  ASSERT_TRUE(emitted.ok()) << emitted.status().message();
  const EmulatedKernel kernel(*emitted);
  for (const int64_t count : counts) check(kernel, spec, count);
}

// Tiles of 512. One offset more than lengths: the last offset of a tile is that before 511 lengths.
TEST(EmulatedScan, EveryNumberOfTiles) {
  for (const char* dtype : {"int32", "int64"})
    check(dtype, {4, 4}, {0, 1, 31, 32, 33, 510, 511, 512, 513, 1023, 1024, 5000});
}

TEST(EmulatedScan, EveryConfig) {
  check("int64", {1, 1}, {0, 31, 32, 1000});
  check("int32", {2, 16}, {1022, 1023, 1024, 3000});
  check("int64", {32, 4}, {4095, 4096, 9000});
}

// More tiles than chunks: a CTA has several.
TEST(EmulatedScan, ManyTilesOfAChunk) { check("int32", {1, 2}, {100000}); }

TEST(EmulatedScan, TheHeuristicsConfig) {
  const OpSpecPtr spec = cumsum("int64");
  const DeviceSpec device = *known_device("sm_90a");
  const KernelConfig config = heuristic_config(*spec, Direction::kForward, device, {}).value();
  check("int64", std::get<ScanConfig>(config.tunables), {100000});
}

TEST(HostScan, EveryNumberOfLengths) {
  for (const char* dtype : {"int32", "int64"}) {
    const OpSpecPtr spec = cumsum(dtype);
    const HostHandle handle(*spec, 2);
    ASSERT_NE(handle.get(), nullptr) << handle.error();
    for (const int64_t count : {0, 1, 100000}) {
      HostCall call(spec, of(count), 7);
      ASSERT_EQ(call.launch(handle), 0) << call.error();
      EXPECT_EQ(call.mistakes(), "");
    }
  }
}

}  // namespace
}  // namespace hstujit
