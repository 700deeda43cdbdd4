// Batches of more sequences than a list of work tiles sorts, 1024 or 2048 of them: its entries are groups of 32
// neighbours or more, into which a warp looks.
#include <fmt/format.h>

#include <random>

#include "templates/attention/sm90_backward_fused/resources.h"
#include "tests/emulation/attention_case.h"

namespace hstujit {
namespace {

// Lengths with every kind of group: empty ones, the first and the last among them, ones with a single row and ones with
// many.
Lengths many(size_t sequences, bool targets, int64_t max_rows = 150) {
  std::mt19937 random(static_cast<unsigned>(sequences));
  const auto below = [&](int64_t limit) { return static_cast<int64_t>(random() % static_cast<uint64_t>(limit)); };
  Lengths lengths{.rows = std::vector<int64_t>(sequences, 0), .num_targets = {}, .max_seq_len = max_rows};
  for (size_t group = 32; group + 64 < sequences; group += 32) {
    const int64_t filled = group % 5 == 0 ? 0 : below(3);
    for (int64_t i = 0; i < filled; ++i) {
      lengths.rows[group + static_cast<size_t>(below(32))] = i == 0 ? 1 + below(3) : 60 + below(max_rows - 60);
    }
  }
  if (targets) {
    for (const int64_t rows : lengths.rows) lengths.num_targets.push_back(below(rows + 1));
  }
  return lengths;
}

void check(const Json& changes, Direction direction, const KernelConfig& config, const Lengths& lengths) {
  const Json json = with(base(), changes);
  SCOPED_TRACE(fmt::format("{} {}", json.dump(), describe(config)));
  Case(json, direction, config, lengths).check();
}

KernelConfig forward(int64_t consumers, int64_t blocks_per_sm) {
  return hopper_tile("sm90_forward", consumers, 64, 2, "persistent", blocks_per_sm);
}

KernelConfig two_passes(int64_t consumers, int64_t blocks_per_sm) {
  return hopper_tile("sm90_backward_twopass", consumers, 64, 2, "persistent", blocks_per_sm);
}

KernelConfig fused(int64_t consumers, int64_t blocks_per_sm, const char* schedule) {
  return hopper_tile("sm90_backward_fused", consumers, 64, 2, schedule, blocks_per_sm);
}

const Json kLastTilesLong = {{"num_targets", true}, {"sla_k1", 9}, {"sla_k2", 3}};

// Single tiles, pairs of them, and first or last tiles that are the longest.
TEST(ManySequences, ForwardOfEveryOrder) {
  check({{"num_targets", true}}, Direction::kForward, forward(1, 3), many(1030, true));
  check({{"full_mask", true}, {"heads", 3}}, Direction::kForward, forward(1, 2), many(1400, false));
  check({{"num_targets", true}, {"contextual_seq_len", 6}, {"max_attn_len", 9}}, Direction::kForward, forward(1, 3),
        many(1100, true, 400));
  check(kLastTilesLong, Direction::kForward, forward(1, 3), many(1100, true, 400));
  check({{"dtype", "fp16"}}, Direction::kForward, forward(2, 1), many(2100, false, 300));
}

// So few that each CTA's rounds are weighed; more long tiles than CTAs; a grid.
TEST(ManySequences, LongTilesGoFirst) {
  const Lengths few{
      .rows = {0, 400, 1, 64, 65, 0, 130, 3}, .num_targets = {0, 7, 1, 0, 2, 0, 60, 3}, .max_seq_len = 400};
  const Json first = {{"num_targets", true}, {"contextual_seq_len", 3}, {"max_attn_len", 9}};
  for (const Json& mask : {first, kLastTilesLong}) {
    check(with(mask, {{"heads", 1}}), Direction::kForward, forward(1, 3), few);
    check(with(mask, {{"heads", 4}}), Direction::kForward, forward(2, 1), few);
    check(mask, Direction::kForward, forward(1, 2), many(200, true, 300));
    check(mask, Direction::kForward, hopper_tile("sm90_forward", 1, 64, 2, "grid", 2), few);
  }
}

TEST(ManySequences, GroupsOfMoreThan32) {
  // At D = 128 a list has 448 entries.
  const Json wide = {{"heads", 1}, {"attn_dim", 128}, {"hidden_dim", 128}};
  const KernelConfig config = fused(2, 1, "semaphore");
  const OpSpecPtr spec = make_spec(with(base(), wide));
  const sm90::backward::FusedResources resources(dynamic_cast<const AttentionSpec&>(*spec), config.attention());
  ASSERT_LE(32 * resources.schedule_sequences, 14'400);
  check(wide, Direction::kBackward, config, many(14'400, false, 70));
}

TEST(ManySequences, BackwardInTwoPasses) {
  check(Json::object(), Direction::kBackward, two_passes(1, 2), many(1030, false));
  check({{"num_targets", true}, {"contextual_seq_len", 6}, {"heads", 1}}, Direction::kBackward, two_passes(2, 1),
        many(2100, true));
}

TEST(ManySequences, BackwardFused) {
  check(Json::object(), Direction::kBackward, fused(1, 2, "persistent"), many(1030, false));
  check(Json::object(), Direction::kBackward, fused(1, 1, "semaphore"), many(2100, false));
  check({{"num_targets", true}, {"contextual_seq_len", 6}}, Direction::kBackward, fused(1, 1, "semaphore"),
        many(2100, true));
  check(Json::object(), Direction::kBackward, fused(1, 2, "per_sequence"), many(2100, false));
}

// Pairs of the long sequence's tiles would be few; the tiny ones do not make up for that. Where sequences are sorted,
// and in a group. The emulation has three blocks: pairs are of 9 times the longest or more, of all heads and roles.
TEST(ManySequences, OneIsLongAmongTinyOnes) {
  for (const size_t sequences : {size_t{40}, size_t{1030}}) {
    Lengths lengths{.rows = std::vector<int64_t>(sequences, 0), .num_targets = {}, .max_seq_len = 300};
    for (size_t i = 1; i < 5; ++i) lengths.rows[i * (sequences / 5)] = static_cast<int64_t>(i);
    lengths.rows[17] = 300;
    check(Json::object(), Direction::kForward, forward(1, 3), lengths);
    check({{"heads", 1}}, Direction::kBackward, two_passes(1, 2), lengths);
    check(Json::object(), Direction::kBackward, fused(1, 2, "persistent"), lengths);
  }
}

// Offsets of no sense, among which counts of tiles that differ from one sequence to the next by the whole tensor.
TEST(ManySequences, SenselessOffsetsStayInBounds) {
  for (const auto& [direction, config] :
       {std::pair(Direction::kForward, forward(1, 3)), std::pair(Direction::kBackward, two_passes(1, 2)),
        std::pair(Direction::kBackward, fused(1, 1, "semaphore"))}) {
    const Json json = with(base(), {{"heads", 1}, {"num_targets", true}});
    const Case kernel(json, direction, config, many(2100, true, 70));
    const Signature signature = kernel.spec()->signature(direction);
    HostCall call = kernel.call();
    std::mt19937_64 random(5);
    std::vector<int64_t>& offsets = integers_of(call, signature, "seq_offsets");
    for (size_t i = 100; i < offsets.size(); i += 700) offsets[i] = static_cast<int64_t>(random());
    offsets.back() = std::numeric_limits<int64_t>::max();
    for (int64_t& targets : integers_of(call, signature, "num_targets")) targets = static_cast<int64_t>(random());
    expect_within_bounds(call, tensor_names(signature), [&](HostCall& ready) { kernel.launch_packed(ready, 1); });
  }
}

}  // namespace
}  // namespace hstujit
