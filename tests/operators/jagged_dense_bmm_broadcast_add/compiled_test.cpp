// Kernels of products of sequences compile without spills, and wgmma is not serialised.
#include <fmt/format.h>

#include "compiler/plan/search_space.h"
#include "tests/nvrtc/compiled_kernels.h"

namespace hstujit {
namespace {

using Json = nlohmann::ordered_json;

Json bmm(const Json& changes = Json::object()) {
  Json json = {{"op", "jagged_dense_bmm_broadcast_add"}, {"k", 512}, {"n", 512}};
  json.update(changes);
  return json;
}
ProblemSize histories() {
  ProblemSize size;
  size.max_seq_len = 1024;
  return size;
}

class BmmKernels : public CompiledKernels {
 protected:
  // A config of each tile of the skeleton.
  void expect_every_tile_fits(const Json& json, const char* arch, const char* skeleton, size_t least) {
    SCOPED_TRACE(json.dump());
    const DeviceSpec device = *known_device(arch);
    const OpSpecPtr spec = *parse_op_spec(json, "");
    std::set<std::string> tiles;
    for (const Candidate& candidate : search_space(*spec, Direction::kForward, device, histories()).candidates) {
      const auto& config = std::get<GemmConfig>(candidate.config.tunables);
      const std::string tile =
          fmt::format("{} {} {} {}", config.block_m, config.block_n, config.ping_pong, config.consumers);
      if (candidate.config.skeleton != skeleton || !tiles.insert(tile).second) continue;
      EXPECT_EQ(config.cluster, 1);
      EXPECT_EQ(config.split_k, 1);
      expect_fits(*spec, Direction::kForward, candidate.config, device);
    }
    EXPECT_GE(tiles.size(), least);
  }
};

TEST_F(BmmKernels, EveryTileFits) {
  expect_every_tile_fits(bmm(), "sm_90a", "gemm/sm90", 11);
  expect_every_tile_fits({{"op", "jagged_jagged_bmm"}, {"k", 512}, {"n", 512}, {"bias", true}}, "sm_90a", "gemm/sm90",
                         11);
}

TEST_F(BmmKernels, EveryLayoutAndBiasFits) {
  const DeviceSpec device = *known_device("sm_90a");
  for (const Json& changes : {Json{{"elementwise", true}}, Json{{"bias", false}, {"transpose_dense", true}},
                              Json{{"n", 200}, {"offsets_dtype", "int32"}, {"dtype", "fp16"}}}) {
    const OpSpecPtr spec = *parse_op_spec(bmm(changes), "");
    expect_fits(*spec, Direction::kForward, heuristic_config(*spec, Direction::kForward, device, histories()).value(),
                device);
  }
}

// By mma.sync.
TEST_F(BmmKernels, BeforeHopper) {
  for (const char* arch : {"sm_80", "sm_89"}) {
    const DeviceSpec device = *known_device(arch);
    for (const Json& json : {bmm(), Json{{"op", "jagged_jagged_bmm"}, {"k", 512}, {"n", 512}}}) {
      const OpSpecPtr spec = *parse_op_spec(json, "");
      expect_fits(*spec, Direction::kForward, heuristic_config(*spec, Direction::kForward, device, histories()).value(),
                  device);
    }
  }
}

// Typical sequences decide the tile: of short ones, fewer rows of it are nobody's.
TEST_F(BmmKernels, ShortSequencesHaveShortTiles) {
  const DeviceSpec device = *known_device("sm_90a");
  const OpSpecPtr spec = *parse_op_spec(bmm(), "");
  ProblemSize size = histories();
  size.max_seq_len = 64;
  const auto tile_of = [&] {
    const KernelConfig chosen = heuristic_config(*spec, Direction::kForward, device, size).value();
    return std::get<GemmConfig>(chosen.tunables).block_m;
  };
  EXPECT_EQ(tile_of(), 64);
  size.max_seq_len = 4096;
  EXPECT_GE(tile_of(), 128);
}

}  // namespace
}  // namespace hstujit
