// Every config of the Hopper kernel compiles without spills, and wgmma is not serialised.
#include <fmt/format.h>

#include "compiler/plan/search_space.h"
#include "tests/nvrtc/compiled_kernels.h"

namespace hstujit {
namespace {

class GemmKernels : public CompiledKernels {
 protected:
  // By mma.sync, and by fused multiply-adds: with every input, layout and kind of sum. `data` may have other sizes.
  void expect_tiles_fit(const nlohmann::ordered_json& data, std::initializer_list<const char*> archs, size_t least) {
    for (const char* arch : archs) {
      const DeviceSpec device = *known_device(arch);
      std::set<std::string> tiles;
      for (nlohmann::ordered_json json :
           {nlohmann::ordered_json{{"op", "addmm"}, {"k", 512}, {"n", 2048}, {"input", "matrix"}},
            nlohmann::ordered_json{{"op", "addmm"}, {"k", 2048}, {"n", 520}, {"transpose_mat2", true}},
            nlohmann::ordered_json{{"op", "addmm_wgrad"}, {"k", 512}, {"n", 1024}, {"bias", true}}}) {
        json.update(data);
        const OpSpecPtr spec = *parse_op_spec(json, "");
        for (const Candidate& candidate : search_space(*spec, Direction::kForward, device, {}).candidates) {
          const auto& config = std::get<GemmConfig>(candidate.config.tunables);
          EXPECT_EQ(candidate.config.skeleton, "gemm/sm80");
          const std::string tile = fmt::format("{} {} {} {} {}", json.dump(), config.block_m, config.block_n,
                                               config.consumers, config.split_k > 1);
          if (tiles.insert(tile).second) expect_fits(*spec, Direction::kForward, candidate.config, device);
        }
      }
      EXPECT_GE(tiles.size(), least) << arch;
    }
  }
};

TEST_F(GemmKernels, EveryTileFits) {
  const DeviceSpec device = *known_device("sm_90a");
  const OpSpecPtr spec = *parse_op_spec({{"op", "addmm"}, {"k", 512}, {"n", 2048}, {"input", "matrix"}}, "");
  const SearchSpace space = search_space(*spec, Direction::kForward, device, {});
  std::set<std::string> tiles;
  for (const Candidate& candidate : space.candidates) {
    const auto& config = std::get<GemmConfig>(candidate.config.tunables);
    const std::string tile = fmt::format("{} {} {} {} {} {}", config.block_m, config.block_n, config.ping_pong,
                                         config.consumers, config.cluster, config.cluster_k);
    if (candidate.config.skeleton != "gemm/sm90" || !tiles.insert(tile).second) continue;
    expect_fits(*spec, Direction::kForward, candidate.config, device);
  }
  EXPECT_GE(tiles.size(), 36u);
  // The other kernel is for whoever asks for it: no choice is near it.
  ASSERT_EQ(space.candidates.front().config.skeleton, "gemm/sm90");
  const auto other = std::find_if(space.candidates.begin(), space.candidates.end(),
                                  [](const Candidate& candidate) { return candidate.config.skeleton == "gemm/sm80"; });
  ASSERT_NE(other, space.candidates.end());
  EXPECT_GT(other->estimate_ms, 1.3 * space.candidates.front().estimate_ms);
}

TEST_F(GemmKernels, EveryTileFitsBeforeHopper) {
  expect_tiles_fit(nlohmann::ordered_json::object(), {"sm_80", "sm_89"}, 15);
}

TEST_F(GemmKernels, EveryTileOfFp32Fits) {
  expect_tiles_fit({{"dtype", "fp32"}}, {"sm_80", "sm_89", "sm_90a"}, 15);
  expect_tiles_fit({{"dtype", "fp32"}, {"precision", "ieee"}}, {"sm_80", "sm_89", "sm_90a"}, 12);
}

// Rows that no tensor map loads, on Hopper, too: elements one by one, and copies of 4 bytes.
TEST_F(GemmKernels, EveryTileOfAnyWidthFits) {
  for (const auto& [k, n] : {std::pair{25, 131}, {50, 130}}) expect_tiles_fit({{"k", k}, {"n", n}}, {"sm_90a"}, 15);
  expect_tiles_fit({{"k", 25}, {"n", 131}, {"dtype", "fp32"}}, {"sm_90a"}, 15);
  expect_tiles_fit({{"k", 25}, {"n", 131}, {"dtype", "fp32"}, {"precision", "ieee"}}, {"sm_90a"}, 12);
}

// The estimate of a cluster that has no room divided by zero.
TEST_F(GemmKernels, ADeviceOfOneMultiprocessorHasNoClusters) {
  DeviceSpec device = *known_device("sm_90a");
  device.sm_count = 1;
  const OpSpecPtr spec = *parse_op_spec({{"op", "addmm"}, {"k", 512}, {"n", 2048}}, "");
  const SearchSpace space = search_space(*spec, Direction::kForward, device, {});
  ASSERT_FALSE(space.candidates.empty());
  for (const Candidate& candidate : space.candidates) {
    const auto& config = std::get<GemmConfig>(candidate.config.tunables);
    EXPECT_EQ(config.cluster * config.cluster_k, 1);
  }
}

// Each tile with sums of columns beside the products.
TEST_F(GemmKernels, SumsOfColumnsFit) {
  const DeviceSpec device = *known_device("sm_90a");
  for (const bool transpose : {false, true}) {
    const OpSpecPtr spec = *parse_op_spec(
        {{"op", "addmm_wgrad"}, {"k", 512}, {"n", 2048}, {"transpose_mat2", transpose}, {"bias", true}}, "");
    std::set<std::string> tiles;
    for (const Candidate& candidate : search_space(*spec, Direction::kForward, device, {}).candidates) {
      const auto& config = std::get<GemmConfig>(candidate.config.tunables);
      const std::string tile =
          fmt::format("{} {} {} {}", config.block_m, config.block_n, config.ping_pong, config.consumers);
      if (candidate.config.skeleton != "gemm/sm90" || config.split_k == 1 || !tiles.insert(tile).second) continue;
      expect_fits(*spec, Direction::kForward, candidate.config, device);
    }
    EXPECT_GE(tiles.size(), 8u);
  }
}

TEST_F(GemmKernels, SumsOverRowsFit) {
  const DeviceSpec device = *known_device("sm_90a");
  for (const bool transpose : {false, true}) {
    const OpSpecPtr spec =
        *parse_op_spec({{"op", "addmm_wgrad"}, {"k", 512}, {"n", 2048}, {"transpose_mat2", transpose}}, "");
    const KernelConfig chosen = heuristic_config(*spec, Direction::kForward, device, {}).value();
    const auto& config = std::get<GemmConfig>(chosen.tunables);
    EXPECT_GT(config.split_k * config.cluster_k, 1);
    expect_fits(*spec, Direction::kForward, chosen, device);
  }
}

TEST_F(GemmKernels, EveryLayoutAndInputFits) {
  const DeviceSpec device = *known_device("sm_90a");
  for (const char* input : {"none", "vector", "matrix"}) {
    for (const bool transpose : {false, true}) {
      for (const int silu_columns : {0, 512}) {
        const OpSpecPtr spec = *parse_op_spec({{"op", "addmm"},
                                               {"k", 512},
                                               {"n", 1536},
                                               {"input", input},
                                               {"transpose_mat2", transpose},
                                               {"silu_columns", silu_columns}},
                                              "");
        expect_fits(*spec, Direction::kForward, heuristic_config(*spec, Direction::kForward, device, {}).value(),
                    device);
      }
    }
  }
}

}  // namespace
}  // namespace hstujit
