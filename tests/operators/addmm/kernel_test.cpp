// The kernels of products in emulation, and the host backend, against the float64 reference.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "compiler/plan/search_space.h"
#include "tests/emulation/emulated_kernel.h"
#include "tests/host/host_call.h"

namespace hstujit {
namespace {

using Json = nlohmann::ordered_json;

Json addmm(int64_t k, int64_t n, const Json& changes = Json::object()) {
  Json json = {{"op", "addmm"}, {"k", k}, {"n", n}, {"input", "vector"}};
  json.update(changes);
  return json;
}
Json wgrad(int64_t k, int64_t n, const Json& changes = Json::object()) {
  Json json = addmm(k, n, changes);
  json["op"] = "addmm_wgrad";
  json.erase("input");
  return json;
}
Lengths of(int64_t rows) { return {{rows}, {}, rows, {}}; }

// The result, and sums of columns where they are a second one.
std::vector<std::string> outputs_of(const OpSpecPtr& spec) {
  std::vector<std::string> outputs;
  for (const Argument& argument : spec->signature(Direction::kForward)) {
    if (argument.role == ArgumentRole::kOutput) outputs.push_back(argument.name);
  }
  return outputs;
}

// Factors that differ from 1, and from each other.
void scale(const OpSpecPtr& spec, HostCall& call) {
  const Signature signature = spec->signature(Direction::kForward);
  for (const auto& [name, value] : {std::pair{"alpha", 2.0}, {"beta", 0.5}}) {
    const int index = find_argument(signature, name);
    if (index >= 0) call.inputs()[static_cast<size_t>(index)].scalar = value;
  }
}

// Rows with gaps between them, twice in different orders, which give the same bits; nothing else is written.
void check(const EmulatedKernel& kernel, const OpSpecPtr& spec, int64_t rows) {
  SCOPED_TRACE(fmt::format("{} {} rows", spec->to_json().dump(), rows));
  HostCall call(spec, of(rows), 7, /*row_padding=*/16);
  scale(spec, call);
  HostCall again = call;
  call.pack_inputs();
  again.pack_inputs();
  kernel.launch(call.values(), 1);
  kernel.launch(again.values(), 3);
  EXPECT_EQ(call.mistakes(), "");
  EXPECT_EQ(call.written_elsewhere(), "");
  for (const std::string& output : outputs_of(spec)) EXPECT_EQ(call.bytes(output), again.bytes(output));
}

void check(const Json& json, const GemmConfig& config, const std::vector<int64_t>& rows,
           const char* skeleton = "gemm/sm90", const char* arch = "sm_90a") {
  SCOPED_TRACE(describe({skeleton, config}));
  const OpSpecPtr spec = make_spec(json);
  const auto emitted = emit_kernel(*spec, Direction::kForward, {skeleton, config}, *known_device(arch));
  ASSERT_TRUE(emitted.ok()) << emitted.status().message();
  const EmulatedKernel kernel(*emitted);
  for (const int64_t count : rows) check(kernel, spec, count);
}

// Tiles that end where the matrices do, one before and one behind, in all three extents.
TEST(EmulatedGemm, EveryExtent) {
  check(addmm(64, 64), {128, 64, 2}, {0, 1, 63, 64, 127, 128, 129, 300});
  check(addmm(72, 136), {128, 64, 3}, {200});
  check(addmm(8, 8), {128, 64, 2}, {77});
  check(addmm(200, 248), {128, 256, 2}, {130});
}

TEST(EmulatedGemm, EveryInputTypeAndLayout) {
  for (const char* input : {"none", "vector", "matrix"}) {
    for (const bool transpose : {false, true}) {
      const char* dtype = transpose ? "bf16" : "fp16";
      check(addmm(136, 104, {{"input", input}, {"dtype", dtype}, {"transpose_mat2", transpose}}), {128, 128, 2}, {150});
    }
  }
}

// silu ends inside of a tile, and of a pair of neighbours.
TEST(EmulatedGemm, SiluOfFirstColumns) {
  check(addmm(72, 136, {{"silu_columns", 67}}), {128, 64, 3}, {1, 130});
  check(addmm(72, 136, {{"silu_columns", 136}, {"input", "none"}}), {128, 128, 2, 2, /*ping_pong=*/true}, {200});
  check(addmm(72, 136, {{"silu_columns", 8}, {"input", "matrix"}}), {64, 64, 4, 1}, {100}, "gemm/sm80", "sm_80");
}

// Consumers that share the rows of a tile, have two blocks of them, or tiles of their own.
TEST(EmulatedGemm, EveryTile) {
  check(addmm(264, 136), {128, 128, 3}, {400});
  check(addmm(264, 136), {256, 64, 2}, {400});
  check(addmm(136, 136, {{"transpose_mat2", true}}), {64, 128, 2, 1}, {150});
  check(addmm(136, 136), {192, 64, 2, 3}, {400});
  check(addmm(72, 200), {128, 256, 4}, {600});  // two pieces of a warp's four in shared memory at a time
  for (const int64_t rows : {1, 100, 700}) {
    check(addmm(264, 136), {64, 64, 3, 2, /*ping_pong=*/true}, {rows});
    check(addmm(72, 72), {128, 64, 2, 2, /*ping_pong=*/true}, {rows});
  }
}

// CTAs that load columns for one another, where all have rows, one has, and where a cluster of several has none.
TEST(EmulatedGemm, Clusters) {
  for (const int64_t rows : {1, 130, 700}) {
    check(addmm(264, 136), {128, 128, 3, 2, false, 1, 8, /*cluster=*/2}, {rows});
    check(addmm(136, 72, {{"transpose_mat2", true}, {"input", "matrix"}}), {64, 64, 2, 1, false, 1, 2, 4}, {rows});
    check(addmm(72, 136), {64, 128, 3, 2, /*ping_pong=*/true, 1, 1, 2}, {rows});
    check(wgrad(136, 200), {64, 128, 2, 1, false, /*split_k=*/3, 8, 2}, {rows});
  }
}

// CTAs of a cluster that share the sum of a tile: each with stages of it, some without, and no rows at all; tiles that
// end behind the last row and the last column; one consumer, two, and two blocks of each.
TEST(EmulatedGemm, SumsOfClusters) {
  for (const int64_t cluster_k : {2, 4, 8}) {
    const auto shared = [&](int64_t block_m, int64_t block_n, int64_t stages, int64_t consumers) {
      return GemmConfig{block_m, block_n, stages, consumers, false, 1, 8, 1, cluster_k};
    };
    check(addmm(264, 136), shared(128, 64, 2, 2), {0, 1, 130, 300});
    check(addmm(520, 200, {{"transpose_mat2", true}, {"input", "matrix"}}), shared(64, 64, 4, 1), {1, 64, 65});
    check(addmm(136, 264, {{"input", "none"}, {"dtype", "fp16"}}), shared(64, 128, 3, 1), {130});
    check(addmm(264, 264, {{"silu_columns", 67}}), shared(128, 256, 3, 2), {200});
    check(addmm(264, 136), shared(256, 128, 3, 2), {300});
    check(addmm(136, 200, {{"input", "matrix"}}), shared(64, 192, 4, 1), {100});
    check(wgrad(136, 72), shared(128, 64, 2, 2), {0, 1, 64, 65, 500});
    check(wgrad(72, 264, {{"transpose_mat2", true}, {"dtype", "fp16"}}), shared(64, 128, 3, 1), {0, 1, 500});
  }
}

// Sums over rows, of none to more than there are CTAs that share them.
TEST(EmulatedGemm, SumsOverRows) {
  const std::vector<int64_t> rows = {0, 1, 64, 65, 500};
  check(wgrad(136, 72), {128, 64, 2}, rows);
  check(wgrad(72, 264, {{"transpose_mat2", true}, {"dtype", "fp16"}}), {256, 64, 3}, rows);
  check(wgrad(64, 128), {64, 128, 2, 2, /*ping_pong=*/true}, rows);
  for (const int64_t split : {2, 5}) {
    check(wgrad(136, 72), {128, 64, 2, 2, false, split}, rows);
    check(wgrad(72, 104, {{"transpose_mat2", true}}), {64, 64, 3, 2, true, split}, rows);
  }
}

// Sums of columns beside the products: boxes of them that warps share out evenly or not, in every way that CTAs and
// consumers share tiles.
TEST(EmulatedGemm, SumsOfColumns) {
  const std::vector<int64_t> rows = {0, 1, 64, 65, 500};
  const Json bias = {{"bias", true}}, transposed = {{"bias", true}, {"transpose_mat2", true}, {"dtype", "fp16"}};
  for (const int64_t split : {1, 3}) {
    check(wgrad(136, 72, bias), {128, 64, 2, 2, false, split}, rows);
    check(wgrad(264, 264, transposed), {256, 64, 3, 2, false, split}, {1, 200});
    check(wgrad(136, 200, bias), {64, 192, 2, 1, false, split}, {200});
    check(wgrad(136, 520, bias), {64, 256, 2, 2, /*ping_pong=*/true, split}, {200});
    check(wgrad(136, 136, transposed), {128, 128, 2, 2, /*ping_pong=*/true, split}, {200});
    check(wgrad(200, 136, bias), {64, 128, 3, 1, false, split, 8, /*cluster=*/2}, {1, 200});
    check(wgrad(136, 200, transposed), {128, 128, 3, 2, false, split, 1, /*cluster=*/2}, {1, 200});
    check(wgrad(136, 136, bias), {64, 128, 3, 1, false, split, 8, /*cluster=*/2}, {200});  // a tile below the last row
    check(wgrad(72, 264, bias), {128, 256, 2, 2, false, split, 8, /*cluster=*/2}, {200});  // and one of two
  }
}

// By mma.sync: every tile, layout, input and type, extents on both sides of a tile's, sums over rows by one CTA and by
// several.
class EmulatedMma : public testing::TestWithParam<GemmConfig> {
 protected:
  static void check_mma(const Json& json, GemmConfig config, const std::vector<int64_t>& rows) {
    check(json, config, rows, "gemm/sm80", "sm_80");
  }
};

TEST_P(EmulatedMma, EveryLayoutAndInput) {
  for (const char* input : {"none", "vector", "matrix"}) {
    for (const bool transpose : {false, true}) {
      const char* dtype = transpose ? "bf16" : "fp16";
      check_mma(addmm(136, 104, {{"input", input}, {"dtype", dtype}, {"transpose_mat2", transpose}}), GetParam(),
                {1, 150});
    }
  }
}

TEST_P(EmulatedMma, EveryExtent) {
  check_mma(addmm(8, 8), GetParam(), {0, 1, 77});
  check_mma(addmm(264, 264), GetParam(), {63, 64, 65, 127, 128, 129, 300});
}

TEST_P(EmulatedMma, SumsOverRows) {
  for (const int64_t split : {1, 3}) {
    GemmConfig config = GetParam();
    config.split_k = split;
    check_mma(wgrad(136, 72), config, {0, 1, 64, 65, 500});
    check_mma(wgrad(72, 264, {{"transpose_mat2", true}, {"dtype", "fp16"}}), config, {200});
    if (config.block_m == 256) continue;  // sums of columns have no registers there
    check_mma(wgrad(136, 200, {{"bias", true}}), config, {0, 1, 65, 300});
    check_mma(wgrad(136, 264, {{"bias", true}, {"transpose_mat2", true}, {"dtype", "fp16"}}), config, {200});
  }
}

// fp32 by tf32 and by fused multiply-adds: lines of 32 elements.
class EmulatedFp32 : public EmulatedMma {
 protected:
  static constexpr const char* kPrecisions[] = {"tf32", "ieee"};
  static Json fp32(const char* precision, const Json& changes = Json::object()) {
    Json json = {{"dtype", "fp32"}, {"precision", precision}};
    json.update(changes);
    return json;
  }
};

TEST_P(EmulatedFp32, EveryLayoutAndInput) {
  for (const char* precision : kPrecisions) {
    for (const char* input : {"none", "vector", "matrix"}) {
      for (const bool transpose : {false, true}) {
        check_mma(addmm(136, 104, fp32(precision, {{"input", input}, {"transpose_mat2", transpose}})), GetParam(),
                  {1, 150});
      }
    }
  }
}

TEST_P(EmulatedFp32, EveryExtent) {
  for (const char* precision : kPrecisions) {
    check_mma(addmm(8, 8, fp32(precision)), GetParam(), {0, 1, 77});
    check_mma(addmm(40, 264, fp32(precision)), GetParam(), {63, 64, 65, 127, 128, 129, 300});
  }
}

TEST_P(EmulatedFp32, SumsOverRows) {
  for (const char* precision : kPrecisions) {
    for (const int64_t split : {1, 3}) {
      GemmConfig config = GetParam();
      config.split_k = split;
      check_mma(wgrad(136, 72, fp32(precision)), config, {0, 1, 32, 33, 300});
      check_mma(wgrad(72, 264, fp32(precision, {{"transpose_mat2", true}})), config, {200});
      check_mma(wgrad(136, 200, fp32(precision, {{"bias", true}})), config, {0, 1, 200});
      check_mma(wgrad(72, 136, fp32(precision, {{"bias", true}, {"transpose_mat2", true}})), config, {77});
    }
  }
}

std::string tile_name(const testing::TestParamInfo<GemmConfig>& info) {
  return fmt::format("{}x{}", info.param.block_m, info.param.block_n);
}

INSTANTIATE_TEST_SUITE_P(Tiles, EmulatedFp32,
                         testing::Values(GemmConfig{128, 128, 3, 2}, GemmConfig{128, 64, 2, 1},
                                         GemmConfig{64, 128, 3, 1}, GemmConfig{64, 64, 4, 1}),
                         tile_name);

INSTANTIATE_TEST_SUITE_P(Tiles, EmulatedMma,
                         testing::Values(GemmConfig{128, 128, 3, 2}, GemmConfig{256, 128, 2, 2},
                                         GemmConfig{64, 128, 3, 1}, GemmConfig{64, 64, 4, 1}),
                         tile_name);

// Halfway between two numbers of tf32, either factor in every layout: away from 0, where tensor cores would cut off.
TEST(EmulatedTf32, RoundsToNearest) {
  constexpr double kHalfway = 1 + 0x1p-11, kAway = 1 + 0x1p-10;
  constexpr int64_t kSize = 8;
  for (const char* precision : {"tf32", "ieee"}) {
    for (const bool transpose : {false, true}) {
      Json changes = {{"dtype", "fp32"}, {"precision", precision}, {"transpose_mat2", transpose}, {"input", "none"}};
      for (const Json& json : {addmm(kSize, kSize, changes), wgrad(kSize, kSize, changes)}) {
        const OpSpecPtr spec = make_spec(json);
        const GemmConfig config = {64, 64, 2, 1};
        const auto emitted = emit_kernel(*spec, Direction::kForward, {"gemm/sm80", config}, *known_device("sm_80"));
        ASSERT_TRUE(emitted.ok()) << emitted.status().message();
        const EmulatedKernel kernel(*emitted);
        for (const size_t factor : {0, 1}) {
          HostCall call(spec, of(kSize), 7);
          std::vector<double>&halfway = call.inputs()[factor].tensor.reals,
          &identity = call.inputs()[1 - factor].tensor.reals;
          for (size_t i = 0; i < halfway.size(); ++i) {
            halfway[i] = i % 3 == 0 ? -kHalfway : kHalfway;
            identity[i] = i % (kSize + 1) == 0 ? 1 : 0;
          }
          call.pack_inputs();
          kernel.launch(call.values(), 1);
          const double wanted = std::string_view(precision) == "tf32" ? kAway : kHalfway;
          for (const double element : call.read("out").reals) ASSERT_EQ(std::abs(element), wanted) << json.dump();
        }
      }
    }
  }
}

TEST(HostGemm, Fp32) {
  for (const char* precision : {"tf32", "ieee"}) {
    for (const bool transpose : {false, true}) {
      Json changes = {{"dtype", "fp32"}, {"precision", precision}, {"transpose_mat2", transpose}};
      for (const Json& json : {addmm(136, 264, changes), wgrad(136, 264, changes)}) {
        const OpSpecPtr spec = make_spec(json);
        const HostHandle handle(*spec, 2);
        ASSERT_NE(handle.get(), nullptr) << handle.error();
        for (const int64_t rows : {0, 1, 65, 200}) {
          HostCall call(spec, of(rows), 7, /*row_padding=*/16);
          ASSERT_EQ(call.launch(handle), 0) << call.error();
          EXPECT_EQ(call.mistakes(), "") << json << rows;
        }
      }
    }
  }
}

TEST(HostGemm, SumsOverRows) {
  for (const bool transpose : {false, true}) {
    for (const bool bias : {false, true}) {
      const OpSpecPtr spec = make_spec(wgrad(136, 264, {{"transpose_mat2", transpose}, {"bias", bias}}));
      const HostHandle handle(*spec, 2);
      ASSERT_NE(handle.get(), nullptr) << handle.error();
      for (const int64_t rows : {0, 1, 127, 300}) {
        HostCall call(spec, of(rows), 7, /*row_padding=*/16);
        scale(spec, call);
        call.pack_inputs();
        ASSERT_EQ(call.launch(handle), 0) << call.error();
        EXPECT_EQ(call.mistakes(), "") << spec->to_json() << rows;
      }
    }
  }
}

TEST(HostGemm, EveryInputTypeAndLayout) {
  for (const char* input : {"none", "vector", "matrix"}) {
    for (const bool transpose : {false, true}) {
      const OpSpecPtr spec = make_spec(addmm(136, 264,
                                             {{"input", input},
                                              {"dtype", transpose ? "bf16" : "fp16"},
                                              {"transpose_mat2", transpose},
                                              {"silu_columns", transpose ? 131 : 0}}));
      const HostHandle handle(*spec, 2);
      ASSERT_NE(handle.get(), nullptr) << handle.error();
      for (const int64_t rows : {0, 1, 64, 65, 200}) {
        HostCall call(spec, of(rows), 7, /*row_padding=*/16);
        ASSERT_EQ(call.launch(handle), 0) << call.error();
        EXPECT_EQ(call.mistakes(), "") << spec->to_json() << rows;
      }
    }
  }
}

}  // namespace
}  // namespace hstujit
