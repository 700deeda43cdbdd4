// The kernels of products of sequences in emulation, and the host backend, against the float64 reference.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "compiler/plan/search_space.h"
#include "tests/emulation/emulated_kernel.h"
#include "tests/host/host_call.h"

namespace hstujit {
namespace {

using Json = nlohmann::ordered_json;
using Rows = std::vector<int64_t>;

// Sequences without rows, of one, of those about a tile or a stage.
const Rows kLengths = {0, 1, 63, 64, 65, 0, 127, 128, 129, 2, 0};

Json bmm(int64_t k, int64_t n, const Json& changes = Json::object()) {
  Json json = {{"op", "jagged_dense_bmm_broadcast_add"}, {"k", k}, {"n", n}};
  json.update(changes);
  return json;
}
Json jagged_jagged(int64_t k, int64_t n, const Json& changes = Json::object()) {
  Json json = {{"op", "jagged_jagged_bmm"}, {"k", k}, {"n", n}};
  json.update(changes);
  return json;
}
Lengths of(const Rows& rows) {
  return {rows, {}, rows.empty() ? 1 : std::max<int64_t>(1, *std::max_element(rows.begin(), rows.end())), {}};
}

class HostBmm : public testing::Test {
 protected:
  static void check(const Json& json, const Rows& rows) {
    SCOPED_TRACE(json.dump());
    const OpSpecPtr spec = make_spec(json);
    const HostHandle handle(*spec, 2);
    ASSERT_NE(handle.get(), nullptr) << handle.error();
    HostCall call(spec, of(rows), 7, /*row_padding=*/16);
    call.add_rows(5);
    call.pack_inputs();
    ASSERT_EQ(call.launch(handle), 0) << call.error();
    EXPECT_EQ(call.mistakes(), "");
    EXPECT_EQ(call.written_elsewhere(), "");
  }
};

TEST_F(HostBmm, EveryBiasTypeAndLayout) {
  for (const Json& bias : {Json{{"bias", false}}, Json{{"elementwise", false}}, Json{{"elementwise", true}}}) {
    for (const bool transpose : {false, true}) {
      Json changes = {{"dtype", transpose ? "bf16" : "fp16"}, {"transpose_dense", transpose}};
      changes.update(bias);
      check(bmm(136, 264, changes), kLengths);
    }
  }
  check(bmm(8, 8, {{"offsets_dtype", "int32"}}), {0, 0, 3});
  check(bmm(8, 8), {0});
}

TEST_F(HostBmm, SumsOverTheRowsOfSequences) {
  for (const bool transpose : {false, true}) {
    check(jagged_jagged(136, 264, {{"transpose_out", transpose}}), kLengths);
    check(jagged_jagged(136, 264, {{"transpose_out", transpose}, {"bias", true}}), kLengths);
    check(jagged_jagged(8, 72, {{"transpose_out", transpose}, {"dtype", "fp16"}}), {0, 300});
    check(jagged_jagged(25, 7, {{"transpose_out", transpose}, {"bias", true}}), {0, 300, 1});
    check(bmm(50, 25, {{"transpose_dense", transpose}}), {0, 300, 1});
  }
}

// In emulation. Rows with gaps between them, and rows behind the last sequence; twice in different orders, which give
// the same bits.
class EmulatedBmm : public testing::Test {
 protected:
  static EmulatedKernel kernel_of(const OpSpecPtr& spec, const KernelConfig& config) {
    const char* arch = config.skeleton == "gemm/sm80" ? "sm_80" : "sm_90a";
    const auto emitted = emit_kernel(*spec, Direction::kForward, config, *known_device(arch));
    if (!emitted.ok()) throw std::runtime_error(emitted.status().message());
    return EmulatedKernel(*emitted);
  }
  static void check(const Json& json, const GemmConfig& config, const Rows& rows = kLengths,
                    const char* skeleton = "gemm/sm90") {
    SCOPED_TRACE(json.dump() + describe({skeleton, config}));
    const OpSpecPtr spec = make_spec(json);
    const EmulatedKernel kernel = kernel_of(spec, {skeleton, config});
    HostCall call(spec, of(rows), 7, /*row_padding=*/16);
    call.add_rows(70);
    call.pack_inputs();
    HostCall again = call;
    again.pack_inputs();
    kernel.launch(call.values(), 1);
    kernel.launch(again.values(), 4);
    EXPECT_EQ(call.mistakes(), "");
    for (const Argument& argument : spec->signature(Direction::kForward)) {
      if (argument.role != ArgumentRole::kOutput) continue;
      EXPECT_EQ(call.bytes(argument.name), again.bytes(argument.name)) << argument.name;
    }
    EXPECT_EQ(call.written_elsewhere(), "");
  }
};

TEST_F(EmulatedBmm, EveryBiasTypeAndLayout) {
  for (const Json& bias : {Json{{"bias", false}}, Json{{"elementwise", false}}, Json{{"elementwise", true}}}) {
    for (const bool transpose : {false, true}) {
      Json changes = {{"dtype", transpose ? "bf16" : "fp16"}, {"transpose_dense", transpose}};
      changes.update(bias);
      check(bmm(136, 104, changes), {128, 128, 2});
    }
  }
}

// Tiles that end where the matrices do, one before and one behind; few columns and many.
TEST_F(EmulatedBmm, EveryExtent) {
  check(bmm(64, 64), {128, 64, 2}, {128, 127, 129, 64, 1});
  check(bmm(72, 136), {128, 64, 3});
  check(bmm(8, 8, {{"offsets_dtype", "int32"}}), {64, 64, 2, 1}, {0, 0, 3});
  check(bmm(200, 248), {128, 256, 2}, {130, 0, 5});
  check(bmm(64, 64), {64, 64, 2, 1}, {0});
  check(bmm(64, 64), {64, 64, 2, 1}, {});
}

// Consumers that share the rows of a tile, have two blocks of them, or tiles of their own; more sequences than lanes
// look at together; one long sequence among tiny ones.
TEST_F(EmulatedBmm, EveryTile) {
  Rows many;
  for (int64_t i = 0; i < 75; ++i) many.push_back(i % 7 == 3 ? 0 : i * 13 % 90);
  many[40] = 700;
  check(bmm(264, 136), {128, 128, 3}, many);
  check(bmm(136, 136, {{"transpose_dense", true}}), {64, 128, 2, 1});
  check(bmm(136, 72, {{"elementwise", true}}), {256, 64, 2});
  check(bmm(72, 200), {128, 256, 4});  // two pieces of a warp's four in shared memory at a time
  check(bmm(264, 136), {64, 64, 3, 2, /*ping_pong=*/true}, many);
  check(bmm(72, 72, {{"transpose_dense", true}}), {128, 64, 2, 2, /*ping_pong=*/true});
  check(bmm(72, 72), {64, 64, 2, 2, /*ping_pong=*/true}, {1});
  check(bmm(72, 72), {64, 64, 2, 2, /*ping_pong=*/true}, {});
}

TEST_F(EmulatedBmm, SumsOverTheRowsOfSequences) {
  check(jagged_jagged(136, 72), {128, 64, 2});
  check(jagged_jagged(72, 264, {{"transpose_out", true}, {"dtype", "fp16"}}), {256, 64, 3});
  check(jagged_jagged(64, 128, {{"offsets_dtype", "int32"}}), {64, 128, 2, 2, /*ping_pong=*/true});
  check(jagged_jagged(136, 200), {128, 192, 4}, {500, 1, 1, 0, 66});
  check(jagged_jagged(8, 8), {64, 64, 2, 1}, {0, 0});
  check(jagged_jagged(72, 104), {64, 64, 2, 1}, {0, 200});
}

TEST_F(EmulatedBmm, SumsOfColumns) {
  const Json bias = {{"bias", true}}, transposed = {{"bias", true}, {"transpose_out", true}, {"dtype", "fp16"}};
  check(jagged_jagged(136, 72, bias), {128, 64, 2});
  check(jagged_jagged(72, 264, transposed), {256, 64, 3});
  check(jagged_jagged(64, 200, bias), {64, 256, 2, 2, /*ping_pong=*/true});
  check(jagged_jagged(136, 200, bias), {128, 192, 4}, {500, 1, 1, 0, 66});
  check(jagged_jagged(72, 136, transposed), {64, 64, 2, 1}, {0, 200});
}

class EmulatedMmaBmm : public EmulatedBmm, public testing::WithParamInterface<GemmConfig> {};

TEST_P(EmulatedMmaBmm, EveryBiasLayoutAndSum) {
  const auto check_mma = [](const Json& json, const Rows& rows = kLengths) {
    check(json, GetParam(), rows, "gemm/sm80");
  };
  for (const bool transpose : {false, true}) {
    check_mma(bmm(136, 104, {{"transpose_dense", transpose}}));
    check_mma(bmm(72, 200, {{"transpose_dense", transpose}, {"elementwise", true}, {"dtype", "fp16"}}));
    check_mma(jagged_jagged(136, 72, {{"transpose_out", transpose}}));
    check_mma(jagged_jagged(72, 136, {{"transpose_out", transpose}, {"bias", true}}));
  }
  check_mma(bmm(8, 8, {{"bias", false}, {"offsets_dtype", "int32"}}), {0, 300, 0});
  for (const bool transpose : {false, true}) {  // rows that no tensor map loads
    check_mma(bmm(50, 25, {{"transpose_dense", transpose}}), {0, 3, 70, 1});
    check_mma(bmm(7, 130, {{"transpose_dense", transpose}, {"elementwise", true}, {"dtype", "fp32"}}), {0, 3, 70});
    check_mma(jagged_jagged(25, 50, {{"transpose_out", transpose}, {"bias", true}}), {0, 3, 70, 1});
    check_mma(jagged_jagged(1, 7, {{"transpose_out", transpose}, {"bias", true}, {"dtype", "fp32"}}), {0, 70});
  }
  check_mma(jagged_jagged(8, 264, {{"dtype", "fp16"}}), {300, 0, 1});
}

INSTANTIATE_TEST_SUITE_P(Tiles, EmulatedMmaBmm, testing::Values(GemmConfig{128, 128, 3, 2}, GemmConfig{64, 64, 4, 1}),
                         [](const auto& info) { return fmt::format("{}x{}", info.param.block_m, info.param.block_n); });

const KernelConfig kKernels[] = {{"gemm/sm90", GemmConfig{128, 64, 2}},
                                 {"gemm/sm90", GemmConfig{64, 64, 3, 2, /*ping_pong=*/true}},
                                 {"gemm/sm80", GemmConfig{64, 64, 3, 1}}};

// NaN in all sequences but one, and behind the last one, leaves the one's bits as they were.
class Neighbours {
 public:
  Neighbours(const OpSpecPtr& spec, const Rows& rows, size_t kept) : spec_(spec), rows_(rows), kept_(kept) {}

  HostCall clean() const {
    HostCall call(spec_, of(rows_), 7);
    call.add_rows(kBehind);
    call.pack_inputs();
    return call;
  }
  HostCall poisoned() const {
    HostCall call = clean();
    const Signature signature = spec_->signature(Direction::kForward);
    for (size_t i = 0; i < signature.size(); ++i) {
      std::vector<double>& reals = call.inputs()[i].tensor.reals;
      if (reals.empty()) continue;
      const auto [begin, end] = kept_elements(reals.size(), signature[i].shape[0].is_jagged());
      for (size_t e = 0; e < reals.size(); ++e) {
        if (e < begin || e >= end) reals[e] = std::numeric_limits<double>::quiet_NaN();
      }
    }
    call.pack_inputs();
    for (const Argument& argument : signature) {
      if (argument.role == ArgumentRole::kOutput || argument.shape.empty() || !argument.shape[0].is_jagged()) continue;
      HstujitHostValue& value = call.value(argument.name);
      const int64_t bytes = value.strides[0] * 2, end = (value.shape[0] - kBehind) * bytes;
      std::memset(static_cast<std::byte*>(value.data) + end, 0xff, static_cast<size_t>(kBehind * bytes));
    }
    return call;
  }
  // The one's results.
  std::vector<double> result(const HostCall& call) const {
    std::vector<double> kept;
    for (const Argument& argument : spec_->signature(Direction::kForward)) {
      if (argument.role != ArgumentRole::kOutput) continue;
      const std::vector<double> all = call.read(argument.name).reals;
      const auto [begin, end] = kept_elements(all.size(), argument.shape[0].is_jagged());
      kept.insert(kept.end(), all.begin() + static_cast<ptrdiff_t>(begin), all.begin() + static_cast<ptrdiff_t>(end));
    }
    return kept;
  }

 private:
  static constexpr int64_t kBehind = 64;

  std::pair<size_t, size_t> kept_elements(size_t count, bool jagged) const {
    const std::vector<int64_t> offsets = offsets_of(rows_);
    const size_t lines = jagged ? static_cast<size_t>(offsets.back()) : rows_.size(), width = count / lines;
    if (!jagged) return {kept_ * width, (kept_ + 1) * width};
    return {static_cast<size_t>(offsets[kept_]) * width, static_cast<size_t>(offsets[kept_ + 1]) * width};
  }

  OpSpecPtr spec_;
  Rows rows_;
  size_t kept_;
};

TEST_F(EmulatedBmm, NaNStaysInItsSequence) {
  const Rows rows = {70, 65, 0, 3, 130};
  for (const Json& json :
       {bmm(72, 72), bmm(72, 72, {{"elementwise", true}, {"transpose_dense", true}}),
        jagged_jagged(72, 72, {{"bias", true}}), jagged_jagged(72, 72, {{"transpose_out", true}, {"bias", true}})}) {
    const OpSpecPtr spec = make_spec(json);
    for (const KernelConfig& config : kKernels) {
      const EmulatedKernel kernel = kernel_of(spec, config);
      for (const size_t kept : {0u, 1u, 2u, 3u, 4u}) {
        const Neighbours neighbours(spec, rows, kept);
        HostCall clean = neighbours.clean(), poisoned = neighbours.poisoned();
        kernel.launch(clean.values(), 1);
        kernel.launch(poisoned.values(), 1);
        const std::vector<double> expected = neighbours.result(clean);
        EXPECT_EQ(neighbours.result(poisoned), expected) << json << describe(config) << kept;
        for (const double element : expected) ASSERT_TRUE(std::isfinite(element));
      }
    }
  }
}

// Offsets that decrease, are negative or pass the end: nothing outside of the tensors' rows is written.
TEST_F(EmulatedBmm, BrokenOffsetsStayInside) {
  constexpr int64_t kRows = 200, kAround = 300;
  const std::vector<std::vector<int64_t>> broken = {{-500, 50, 20, 700},
                                                    {150, 90, 1000000000000, 10},
                                                    {0, 200, 200, std::numeric_limits<int64_t>::max()},
                                                    {std::numeric_limits<int64_t>::min(), 1, 0, 201}};
  for (const Json& json : {bmm(72, 72), jagged_jagged(72, 72, {{"bias", true}})}) {
    const OpSpecPtr spec = make_spec(json);
    for (const KernelConfig& config : kKernels) {
      const EmulatedKernel kernel = kernel_of(spec, config);
      for (const std::vector<int64_t>& offsets : broken) {
        HostCall call(spec, of({kRows, 0, 0}), 7);
        call.add_rows(2 * kAround);
        call.pack_inputs();
        std::copy(offsets.begin(), offsets.end(), static_cast<int64_t*>(call.value("seq_offsets").data));
        std::vector<std::vector<int64_t>> shapes;
        shapes.reserve(8);
        for (const Argument& argument : spec->signature(Direction::kForward)) {
          if (argument.shape.empty() || !argument.shape[0].is_jagged()) continue;
          HstujitHostValue& value = call.value(argument.name);
          value.data = static_cast<std::byte*>(value.data) + kAround * value.strides[0] * 2;
          shapes.push_back({kRows, value.shape[1]});
          value.shape = shapes.back().data();
        }
        kernel.launch(call.values(), 1);
        if (!spec->signature(Direction::kForward).back().shape[0].is_jagged()) continue;
        const std::vector<std::byte>& bytes = call.bytes("out");
        const size_t row_bytes = 72 * 2;
        for (size_t i = 0; i < bytes.size(); ++i) {
          if (i >= kAround * row_bytes && i < (kAround + kRows) * row_bytes) continue;
          ASSERT_EQ(bytes[i], HostCall::kUntouched) << describe(config) << i / row_bytes;
        }
      }
    }
  }
}

}  // namespace
}  // namespace hstujit
