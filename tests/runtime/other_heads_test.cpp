// A key that was tuned with another number of heads.
#include "runtime/dispatch/kernel_choice.h"
#include "tests/runtime/support.h"
#include "tests/runtime/winners.h"

namespace hstujit::test {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kRowsOfBucket = 1024;

class OtherHeads : public RuntimeTest {
 protected:
  void SetUp() override {
    RuntimeTest::SetUp();
    engine_ = make_engine();
  }
  static OpSpecPtr spec_of(int64_t heads, const std::string& op = "hstu_attention", Json more = Json::object()) {
    Json json = {{"op", op}, {"heads", heads}, {"attn_dim", 64}, {"hidden_dim", 64}};
    json.update(more);
    return parse_op_spec(json, "").value();
  }
  void tune(const OpSpecPtr& spec, int64_t consumers, const std::string& device = "H200") {
    const TuningKey key = tuning_key(*spec, Direction::kForward, *known_device(device), kRowsOfBucket);
    ASSERT_TRUE(add_winner(*engine_, key, forward_tile(consumers)).ok());
  }
  KernelChoice choice(const OpSpecPtr& spec) {
    const auto choice = choose_kernel(*engine_, *spec, Direction::kForward, *known_device("H200"), kRowsOfBucket);
    EXPECT_TRUE(choice.ok()) << choice.status().message();
    return choice.ok() ? *choice : KernelChoice();
  }

  EnginePtr engine_;
};

TEST_F(OtherHeads, TheirWinnerServesAsAGuess) {
  tune(spec_of(4), 2);
  const KernelChoice chosen = choice(spec_of(6));
  EXPECT_EQ(chosen.source, ChoiceSource::kOtherHeads);
  EXPECT_EQ(chosen.config, forward_tile(2));
  EXPECT_FALSE(chosen.tuned);
  EXPECT_THAT(chosen.why, HasSubstr("untuned; with 4 heads, the tuning database's winner, 10.0 us"));
}

TEST_F(OtherHeads, TheNearestNumberComesFirst) {
  tune(spec_of(2), 1);
  tune(spec_of(8), 2);
  EXPECT_EQ(choice(spec_of(3)).config, forward_tile(1));
  EXPECT_EQ(choice(spec_of(12)).config, forward_tile(2));
}

TEST_F(OtherHeads, OwnRecordsComeFirstAndThoseOfOtherDevicesLast) {
  tune(spec_of(4), 2, "H100");
  EXPECT_EQ(choice(spec_of(4)).source, ChoiceSource::kNearDevice);
  tune(spec_of(8), 1);
  EXPECT_EQ(choice(spec_of(4)).source, ChoiceSource::kOtherHeads);
  tune(spec_of(4), 2);
  EXPECT_EQ(choice(spec_of(4)).source, ChoiceSource::kTuning);
}

// The process that prewarmed may have known no such record.
TEST_F(OtherHeads, DoNotTakeAwayAKernelThatIsThere) {
  const OpSpecPtr spec = spec_of(6);
  const auto prepare = [&](const EnginePtr& engine) {
    Instance instance = make_instance();
    instance.spec = spec;
    return Op::create(engine, {instance, Direction::kForward, Backend::kCuda, LengthMode::kPow2, {}})
        .value()
        ->prepare(kRowsOfBucket, 0);
  };
  CurrentContext context(*engine_);
  ASSERT_TRUE(prepare(engine_).ok());
  const TuningKey key = tuning_key(*spec_of(4), Direction::kForward, *engine_->device(0), kRowsOfBucket);
  ASSERT_TRUE(add_winner(*engine_, key, forward_tile(2)).ok());
  values_["HSTUJIT_ON_MISS"] = "fail";
  const Status status = prepare(make_engine());
  EXPECT_TRUE(status.ok()) << status.message();
}

TEST_F(OtherHeads, OneHeadIsAnotherMatterAndSoIsABias) {
  tune(spec_of(2), 2);
  tune(spec_of(1), 2);
  EXPECT_EQ(choice(spec_of(1, "hstu_attention", {{"num_targets", true}})).source, ChoiceSource::kHeuristic);
  EXPECT_TRUE(spec_of(1)->tuned_alike().empty());
  EXPECT_TRUE(spec_of(4, "hstu_attention", {{"rab_heads", 4}})->tuned_alike().empty());
  EXPECT_EQ(choice(spec_of(4)).config, forward_tile(2)) << "of two heads, not of one";
}

TEST_F(OtherHeads, OfAnOperatorOfFewRowsAreThatOperators) {
  const auto alike = spec_of(4, "delta_hstu_attention")->tuned_alike();
  ASSERT_EQ(alike.size(), 2u);
  for (const auto& [other, difference] : alike) {
    EXPECT_EQ(other->op(), "delta_hstu_attention");
    EXPECT_EQ(difference, other->to_json()["heads"].dump() + " heads");
    EXPECT_NE(difference, "4 heads");
  }
}

TEST_F(OtherHeads, AddedGradientsTakeTheWinnerOfGradientsThatAreNot) {
  const auto spec = [](bool adds) {
    return spec_of(4, "hstu_attention", {{"attn_scale", "rows"}, {"adds_gradients", adds}});
  };
  const DeviceSpec device = *known_device("H200");
  const auto choice = [&] { return choose_kernel(*engine_, *spec(true), Direction::kBackward, device, 1024).value(); };
  const KernelConfig winner = choice().config;
  EXPECT_EQ(choice().source, ChoiceSource::kHeuristic);
  ASSERT_TRUE(add_winner(*engine_, tuning_key(*spec(false), Direction::kBackward, device, 1024), winner).ok());
  engine_ = make_engine();  // which has made no choice yet
  EXPECT_EQ(choice().source, ChoiceSource::kOtherGradients);
  EXPECT_EQ(choice().config, winner);
}

TEST_F(OtherHeads, ASeedInATensorTakesTheWinnerOfANumber) {
  Json json = {{"op", "hstu_norm_mul_dropout"}, {"width", 512}, {"dropout", true}};
  const OpSpecPtr number = parse_op_spec(json, "").value();
  json["seed_tensor"] = true;
  const OpSpecPtr tensor = parse_op_spec(json, "").value();
  const DeviceSpec device = *known_device("H200");
  const auto choice = [&] { return choose_kernel(*engine_, *tensor, Direction::kForward, device, 1).value(); };
  KernelConfig winner = choice().config;
  EXPECT_EQ(choice().source, ChoiceSource::kHeuristic);
  winner.row().warps = 8;
  winner.row().blocks_per_sm = 2;
  ASSERT_TRUE(add_winner(*engine_, tuning_key(*number, Direction::kForward, device, 1), winner).ok());
  engine_ = make_engine();  // which has made no choice yet
  EXPECT_EQ(choice().source, ChoiceSource::kOtherSeed);
  EXPECT_EQ(choice().config, winner);
  EXPECT_THAT(choice().why, HasSubstr("untuned; with the seed as a number, the tuning database's winner, 10.0 us"));
}

}  // namespace
}  // namespace hstujit::test
