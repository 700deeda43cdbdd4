// The kernels of the row family, in emulation against the float64 reference: every operator and direction, widths and
// types, and every way in which rows are shared out.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "compiler/plan/search_space.h"
#include "templates/row/operands.h"
#include "templates/row/resources.h"
#include "tests/emulation/emulated_kernel.h"
#include "tests/host/host_call.h"
#include "tests/row/large_means.h"
#include "tests/row/row_cases.h"
#include "tests/share.h"

namespace hstujit {
namespace {

using Json = nlohmann::ordered_json;

// The heuristic's choice where it is empty.
using Chosen = std::optional<RowConfig>;

RowConfig row_config(int64_t threads_per_row, int64_t warps, int64_t stages) {
  return {threads_per_row, warps, stages, 1, "accurate"};
}

Json with(Json json, const Json& changes) {
  json.update(changes);
  return json;
}

constexpr bool kDeterministic = true;

class RowKernel {
 public:
  RowKernel(OpSpecPtr spec, Direction direction, const Chosen& chosen, bool deterministic = kDeterministic)
      : spec_(std::move(spec)), direction_(direction), deterministic_(deterministic) {
    const DeviceSpec device = *known_device("sm_90a");
    KernelConfig config = heuristic_config(*spec_, direction, device, {}, {.deterministic = deterministic}).value();
    if (chosen) config.tunables = *chosen;
    // Which waits for rows in shared memory.
    if (chosen && chosen->stages <= row::kRegisterStages && config.skeleton == "row/segment_backward")
      config.skeleton = "row/table_backward";
    SCOPED_TRACE(describe(config));
    const auto emitted = emit_kernel(*spec_, direction, config, device);
    if (!emitted.ok()) throw std::runtime_error(emitted.status().message());
    kernel_ = std::make_unique<EmulatedKernel>(*emitted);
  }

  // Rows with gaps between them, twice in different orders, which give the same bits where the kernel is deterministic.
  void check(const Lengths& lengths, int64_t row_padding = 16) const {
    HostCall call(spec_, lengths, 7, row_padding, direction_), again = call;
    call.pack_inputs();
    again.pack_inputs();
    kernel_->launch(call.values(), 1);
    kernel_->launch(again.values(), 3);
    EXPECT_EQ(call.mistakes(), "");
    if (!deterministic_) {
      EXPECT_EQ(again.mistakes(), "");
    }
    EXPECT_EQ(call.written_elsewhere(), "");
    if (!deterministic_) return;
    for (const Argument& argument : spec_->signature(direction_)) {
      if (argument.role == ArgumentRole::kOutput) {
        EXPECT_EQ(call.bytes(argument.name), again.bytes(argument.name)) << argument.name;
      }
    }
  }

  void launch(const HostCall& call) const { kernel_->launch(call.values(), 1); }

  // With `change` made to the arguments, each by its number in the signature.
  void launch(HostCall& call, const std::function<void(std::vector<HstujitHostValue>&)>& change) const {
    call.pack_inputs();
    std::vector<HstujitHostValue> values = call.values();
    change(values);
    kernel_->launch(values, 1);
  }

 private:
  OpSpecPtr spec_;
  Direction direction_;
  bool deterministic_;
  std::unique_ptr<EmulatedKernel> kernel_;
};

void check(const Json& json, const Chosen& config, int64_t rows) {
  for (const Direction direction : {Direction::kForward, Direction::kBackward}) {
    SCOPED_TRACE(fmt::format("{} {}, {} rows", json.dump(), to_string(direction), rows));
    RowKernel(make_spec(json), direction, config).check({{rows}, {}, rows, {}});
  }
}

Json layer_norm(int64_t width, const Json& changes = Json::object()) {
  return with({{"op", "layer_norm"}, {"width", width}}, changes);
}
// Per head, with dropout of a wider result.
Json group_norm(int64_t heads, int64_t head_width, const Json& changes = Json::object()) {
  return with({{"op", "hstu_norm_mul_dropout"},
               {"width", heads * head_width},
               {"group_norm", true},
               {"heads", heads},
               {"concat_x", true}},
              changes);
}
Json rms_norm(int64_t width, const Json& changes = Json::object()) {
  return with({{"op", "rms_norm"}, {"width", width}}, changes);
}

TEST(EmulatedRows, EveryType) {
  for (const auto& [dtype, weight] : {std::pair{"bf16", "fp32"}, std::pair{"bf16", "bf16"}, std::pair{"fp16", "fp32"},
                                      std::pair{"fp16", "fp16"}, std::pair{"fp32", "fp32"}}) {
    const Json types = {{"dtype", dtype}, {"weight_dtype", weight}};
    check(layer_norm(64, types), row_config(8, 4, 2), 37);
    check(rms_norm(40, with(types, {{"silu", true}})), row_config(4, 4, 1), 37);
  }
}

// Times from one end of their type to the other: ages saturate, and none wraps.
TEST(EmulatedRows, TimesThatLieFurtherApartThanAnAgeMayBe) {
  constexpr int64_t kMin = std::numeric_limits<int64_t>::min(), kMax = std::numeric_limits<int64_t>::max();
  const std::vector<int64_t> times = {kMin, kMax, 0,    -1,         kMin + 1,   kMax - 1,
                                      1,    kMin, kMax, kMax - 100, kMin + 100, kMin};
  for (const Json& changes : {Json::object(), Json{{"query_time", true}}, Json{{"time_bucket_fn", "log"}}}) {
    SCOPED_TRACE(changes.dump());
    const OpSpecPtr spec = make_spec(with({{"op", "add_timestamp_positional_embeddings"}, {"width", 8}}, changes));
    const Signature signature = spec->signature(Direction::kForward);
    HostCall call(spec, {{9, 0, 3}, {}, 9, {}}, 7);
    call.inputs()[static_cast<size_t>(find_argument(signature, "timestamps"))].tensor.integers = times;
    if (const int now = find_argument(signature, "query_time"); now >= 0)
      call.inputs()[static_cast<size_t>(now)].tensor.integers = {kMax, 0, kMin};
    call.pack_inputs();
    RowKernel(spec, Direction::kForward, {}).launch(call);
    EXPECT_EQ(call.mistakes(), "");
    HostCall on_host = call;
    ASSERT_EQ(on_host.launch(HostHandle(*spec, 1)), 0) << on_host.error();
    EXPECT_EQ(on_host.mistakes(), "");
  }
}

TEST(EmulatedRows, EveryOption) {
  for (const RowCase& row : row_cases({{"width", 72}})) check(row.json, row_config(16, 4, 2), 21);
}

// No row at all, fewer than a CTA takes, and more than one time for each CTA.
TEST(EmulatedRows, EveryNumberOfRows) {
  for (const int64_t rows : {0, 1, 16, 131}) check(layer_norm(64), row_config(8, 4, 2), rows);
}

// Widths whose last accesses some threads do not have, and those that no wide access suits.
TEST(EmulatedRows, EveryWidth) {
  for (const int64_t width : {1, 2, 7, 8, 100, 250, 256}) check(layer_norm(width), {}, 19);
  for (const int64_t width : {1, 7, 100, 1000}) check(rms_norm(width, {{"dtype", "fp32"}}), {}, 19);
  check(rms_norm(64, {{"alignment", 4}}), {}, 19);
}

TEST(EmulatedRows, EveryLayout) {
  for (const int64_t threads_per_row : {1, 2, 8, 32, 64, 128}) {
    const int64_t width = std::max<int64_t>(8 * threads_per_row - 8, 16);
    check(layer_norm(width), row_config(threads_per_row, 4, /*stages=*/2), 23);
    check(rms_norm(width + 8), row_config(threads_per_row, 4, /*stages=*/1), 23);
  }
}

// Rows that wait in shared memory: several of a warp, one of it, one of several warps; of fewer rows than buffers, too.
TEST(EmulatedRows, RowsInSharedMemory) {
  for (const int64_t threads_per_row : {1, 4, 32, 64, 128}) {
    const int64_t width = std::max<int64_t>(8 * threads_per_row - 8, 16);
    for (const int64_t stages : {3, 4, 5}) {
      check(layer_norm(width), row_config(threads_per_row, 4, stages), threads_per_row > 32 ? 40 : 300);
      check(rms_norm(width + 8), row_config(threads_per_row, 4, stages), 5);
    }
  }
  check(rms_norm(16, {{"dtype", "fp32"}}), row_config(2, 2, 3), 0);
  check(group_norm(2, 32, {{"dropout", true}}), row_config(8, 4, 3), 200);
  for (const RowCase& row : row_cases({{"width", 72}})) {
    if (row.spec->elements_together() * size_of(row.spec->dtype()) == 16) check(row.json, row_config(16, 4, 5), 150);
  }
}

// A thread's elements are too many for registers: they are read from shared memory for each round of sums.
TEST(EmulatedRows, RowsThatStayInSharedMemory) {
  check(rms_norm(256 * 40, {{"silu", true}}), row_config(256, 8, 3), 5);
  check({{"op", "swish_layer_norm"}, {"width", 256 * 40}}, row_config(256, 8, 3), 0);
  check({{"op", "swish_layer_norm"}, {"width", 256 * 40}}, row_config(256, 8, 3), 5);
  check(layer_norm(256 * 36 + 8), row_config(256, 8, 3), 9);  // a chunk that some threads lack
  check(layer_norm(8192), row_config(256, 16, 3), 5);         // two rows at a time
  check(layer_norm(256 * 40), row_config(256, 8, 5), 1);
  check(group_norm(4, 2560, {{"dropout", true}}), row_config(256, 8, 3), 5);
}

// Groups that are lanes of a warp, warps, several chunks of a thread, and none of these.
TEST(EmulatedRows, EveryLayoutOfGroups) {
  check(group_norm(4, 32), row_config(16, 4, 2), 23);    // 4 lanes
  check(group_norm(2, 64), row_config(2, 4, 1), 23);     // 4 chunks of both threads
  check(group_norm(8, 8), row_config(2, 4, 1), 23);      // single vectors
  check(group_norm(1, 64), row_config(4, 4, 1), 23);     // the whole row
  check(group_norm(2, 1024), row_config(128, 4, 1), 7);  // 4 warps, twice
  check(group_norm(4, 512), row_config(128, 8, 1), 7);   // 2 warps
  check(group_norm(3, 24), row_config(4, 4, 1), 23);     // 3 vectors
  check(group_norm(3, 384), row_config(64, 4, 1), 7);    // 48 vectors
  check(group_norm(3, 7), row_config(8, 4, 1), 23);      // 7 elements, one by one
  check(group_norm(6, 20, {{"dtype", "fp32"}}), {}, 23);
}

// Vectors of one, two, four and eight elements, whose random numbers are parts of one counter's, or two counters'.
TEST(EmulatedRows, RandomNumbersOfEveryVector) {
  for (const int64_t alignment : {2, 4, 8, 16})
    check({{"op", "hstu_norm_mul_dropout"},
           {"width", 24},
           {"alignment", alignment},
           {"concat_u", true},
           {"dropout", true}},
          row_config(2, 4, 1), 19);
  check(group_norm(2, 32, {{"dropout", true}}), row_config(8, 4, 2), 19);
}

// Drawn by numbers in a tensor: of rows in registers and in shared memory, also where a CTA has fewer than it could.
TEST(EmulatedRows, RandomNumbersOfNumberedRows) {
  const Json numbered = {{"dropout", true}, {"row_numbers", true}};
  for (const int64_t rows : {0, 1, 19, 200}) {
    check(group_norm(2, 32, numbered), row_config(8, 4, 3), rows);
    check(with(layer_norm(24),
               {{"op", "hstu_norm_mul_dropout"}, {"concat_u", true}, {"dropout", true}, {"row_numbers", true}}),
          row_config(2, 4, 1), rows);
  }
}

// Rows in registers, in shared memory, and of groups.
TEST(EmulatedRows, LargeMeansLeaveWhatElementsDifferBy) {
  for (const int64_t width : {100, 1024, 8192}) {
    for (const Json& json : centered_norms(width, "fp32")) {
      SCOPED_TRACE(json.dump());
      const OpSpecPtr spec = make_spec(json);
      const auto launch = [&](Direction direction) {
        const auto kernel = std::make_shared<RowKernel>(spec, direction, Chosen());
        return [kernel](HostCall& call) { kernel->launch(call, [](auto&) {}); };
      };
      const auto forward = launch(Direction::kForward);
      check_large_mean(spec, Direction::kForward, 9, forward);
      check_constant_rows(spec, 9, forward);
      if (width < 8192) check_large_mean(spec, Direction::kBackward, 9, launch(Direction::kBackward));
    }
  }
}

// The emulated tanh is off by 2^-11, as the hardware's is. What goes into sums over rows is not computed by it.
TEST(EmulatedRows, SumsOverRowsAreOfNothingApproximate) {
  const Lengths lengths{{300}, {}, 300, {}};
  for (const Json& json : std::vector<Json>{{{"op", "swish_layer_norm"}, {"width", 64}},
                                            {{"op", "rms_norm"}, {"width", 64}, {"silu", true}},
                                            {{"op", "hstu_norm_mul_dropout"},
                                             {"width", 64},
                                             {"mul_u_activation", "silu"},
                                             {"concat_u", true},
                                             {"silu_u", true}},
                                            group_norm(4, 16, {{"silu_u", true}, {"concat_u", true}})}) {
    SCOPED_TRACE(json.dump());
    const OpSpecPtr spec = make_spec(json);
    RowConfig config = row_config(8, 4, 2);
    config.activation = "mufu";
    HostCall call(spec, lengths, 7, 0, Direction::kBackward);
    RowKernel(spec, Direction::kBackward, config).launch(call, [](auto&) {});
    for (const Argument& argument : spec->signature(Direction::kBackward)) {
      if (argument.name != "dweight" && argument.name != "dbias") continue;
      EXPECT_LE(error_beside_reference(*spec, Direction::kBackward, lengths, call, argument.name), 1e-6)
          << argument.name;
    }
  }
}

// Sequences without rows, of one and of more than a CTA takes at a time, first and last; none at all.
void check_sequences(const RowCase& row, Direction direction, const Chosen& config,
                     bool deterministic = kDeterministic) {
  SCOPED_TRACE(row.name + " " + std::string(to_string(direction)));
  const RowKernel kernel(row.spec, direction, config, deterministic);
  for (const std::vector<int64_t>& drawn : std::vector<std::vector<int64_t>>{{0, 1, 37, 0, 9, 0}, {13}, {0}, {}}) {
    SCOPED_TRACE(fmt::format("{} sequences", drawn.size()));
    kernel.check(sequence_lengths(*row.spec, drawn));
  }
}

TEST(EmulatedRows, EveryOperatorOverSequences) {
  for (const RowCase& row : sequence_cases({{"width", 72}})) {
    check_sequences(row, Direction::kForward, row_config(16, 4, 1));
    const bool kernel = row.spec->supports(Direction::kBackward) && row.spec->program(Direction::kBackward) == nullptr;
    if (kernel) check_sequences(row, Direction::kBackward, row_config(16, 4, 1));
  }
}

// Rows that whole warps share, that are loaded ahead, and that a CTA has each of.
TEST(EmulatedRows, EveryLayoutOfSequences) {
  const auto check = [](int64_t width, const RowConfig& config) {
    const RowCase row = sequence_cases({{"width", width}}).front();
    check_sequences(row, Direction::kForward, config);
    if (config.schedule == "persistent" && config.stages == 1) check_sequences(row, Direction::kBackward, config);
  };
  check(264, row_config(32, 4, 1));
  check(520, row_config(64, 4, 1));
  check(120, row_config(4, 4, 2));
  check(120, {4, 4, 1, 1, "accurate", "grid"});
}

// A table of more rows than a digit has values is sorted by two of them, and has runs that many CTAs share.
TEST(EmulatedRows, TablesOfManyRows) {
  for (const RowCase& row : sequence_cases({{"width", 8}})) {
    if (row.op != "add_timestamp_positional_embeddings" || row.json.value("num_targets", false)) continue;
    RowKernel(row.spec, Direction::kBackward, row_config(1, 4, 1)).check(sequence_lengths(*row.spec, {2200, 1, 300}));
    break;
  }
}

bool has_table_sums(const RowCase& row) {
  return row.spec->supports(Direction::kBackward) && row.spec->program(Direction::kBackward) == nullptr &&
         row::has_table_sums(*row.spec);
}

bool finds_sequences(const RowCase& row) {
  return row::finds_in_order(row.spec->interface(Direction::kBackward).outputs_of(RowOperandKind::kTableSum));
}

// Chooses every second case, from `first` on, and all of them in the nightly run: how a config shares rows out does not
// depend on the operator, so that each config has half of the cases, and each case some of the configs.
template <class Chooses>
std::vector<RowCase> half_of_cases(int64_t width, size_t first, const Chooses& chooses) {
  std::vector<RowCase> cases = sequence_cases({{"width", width}});
  std::erase_if(cases, [&](const RowCase& row) { return !chooses(row); });
  return share_of(cases, first % 2, 2);
}

// Segments of rows that several groups of a warp, a warp and several warps have, in parts that begin and end in them.
TEST(EmulatedRows, SegmentsOfSequences) {
  const auto check = [](int64_t width, const std::vector<Chosen>& configs) {
    const auto chooses = [](const RowCase& row) { return has_table_sums(row) && finds_sequences(row); };
    for (size_t i = 0; i < configs.size(); ++i) {
      for (const RowCase& row : half_of_cases(width, i, chooses)) {
        check_sequences(row, Direction::kBackward, configs[i]);
        if (i + 1 < configs.size()) continue;
        const RowKernel kernel(row.spec, Direction::kBackward, configs[i]);
        kernel.check(sequence_lengths(*row.spec, {0, 700, 1, 0, 0, 333, 2, 0}));
        kernel.check(sequence_lengths(*row.spec, std::vector<int64_t>(70, 3)), /*row_padding=*/0);
      }
    }
  };
  check(8, {{}, row_config(1, 2, 3)});
  check(72, {{}, row_config(16, 2, 3), row_config(4, 2, 5)});
  check(264, {{}, row_config(32, 2, 4)});
  check(520, {row_config(64, 4, 3)});
}

// Rows that no sequence has, rows that a sequence has and the tensor has not, and sequences that come before others
// end.
TEST(EmulatedRows, SegmentsOfOffsetsThatDoNotFit) {
  constexpr int64_t kRows = 15, kWidth = 8;
  const OpSpecPtr spec = make_spec({{"op", "jagged_dense_broadcast_add"}, {"width", kWidth}, {"dtype", "fp32"}});
  const Signature signature = spec->signature(Direction::kBackward);
  const auto number = [&](std::string_view name) {
    return static_cast<size_t>(
        std::find_if(signature.begin(), signature.end(), [&](const Argument& one) { return one.name == name; }) -
        signature.begin());
  };
  // The sums of rows of ones: how many rows each sequence has. None where it is not defined.
  using Counts = std::vector<float>;
  const auto sums = [&](const RowKernel& kernel, const std::vector<int64_t>& offsets) {
    HostCall call(spec, sequence_lengths(*spec, {10, 4, 1}), 7, 0, Direction::kBackward);
    kernel.launch(call, [&](std::vector<HstujitHostValue>& values) {
      std::copy(offsets.begin(), offsets.end(), static_cast<int64_t*>(values[number("seq_offsets")].data));
      std::fill_n(static_cast<float*>(values[number("dout")].data), kRows * kWidth, 1.0f);
    });
    Counts counts(3);
    const auto bytes = call.bytes("ddense");
    for (size_t i = 0; i < counts.size(); ++i)
      std::memcpy(&counts[i], bytes.data() + i * kWidth * sizeof(float), sizeof(float));
    return counts;
  };
  for (const Chosen& config : {Chosen(), Chosen(row_config(2, 2, 3))}) {
    const RowKernel kernel(spec, Direction::kBackward, config);
    EXPECT_EQ(sums(kernel, {0, 10, 14, 15}), (Counts{10, 4, 1}));
    EXPECT_EQ(sums(kernel, {0, 10, 20, 30}), (Counts{10, 5, 0}));
    EXPECT_EQ(sums(kernel, {0, 15, 40, 41}), (Counts{15, 0, 0}));
    EXPECT_EQ(sums(kernel, {5, 10, 12, 12}), (Counts{5, 2, 0}));
    EXPECT_EQ(sums(kernel, {-5, -1, 3, 9}), (Counts{0, 3, 6}));
    EXPECT_EQ(sums(kernel, {100, 100, 100, 100}), (Counts{0, 0, 0}));
    // Whatever the sums are, they are of rows that there are.
    for (const std::vector<int64_t>& offsets :
         {std::vector<int64_t>{0, 8, 3, 15}, {15, 0, 15, 0}, {9, 2, 12, 15}, {0, INT64_MAX, INT64_MIN, 15}}) {
      sums(kernel, offsets);
    }
  }
}

// Rows that several groups of a warp, a warp and several warps share, with vectors of eight elements and of four.
TEST(EmulatedRows, TablesByAtomicAdditions) {
  const auto check = [](int64_t width, size_t first, const Chosen& config) {
    for (const RowCase& row : half_of_cases(width, first, has_table_sums))
      check_sequences(row, Direction::kBackward, config, !kDeterministic);
  };
  check(8, 0, RowConfig{1, 1, 1, 2, "mufu"});
  check(72, 1, RowConfig{16, 2, 1, 2, "mufu"});
  check(264, 0, {});
  check(264, 1, RowConfig{64, 4, 1, 2, "mufu"});
}

// More sequences than a warp has lanes, of lengths that differ, and one that has most of all tiles. Rows without gaps.
TEST(EmulatedRows, TilesOfManySequences) {
  std::vector<int64_t> lengths;
  for (int64_t i = 0; i < 40; ++i) lengths.push_back(i * 7 % 23);
  lengths[20] = 700;
  for (const RowCase& row : sequence_cases({{"width", 8}})) {
    if (has_table_sums(row))
      RowKernel(row.spec, Direction::kBackward, {}, !kDeterministic)
          .check(sequence_lengths(*row.spec, lengths), /*row_padding=*/0);
  }
}

TEST(EmulatedRows, WideRows) {
  check(layer_norm(4096), {}, 5);
  check(layer_norm(16384), {}, 3);
  // Too wide for registers: loaded for each use.
  check(layer_norm(16384, {{"dtype", "fp32"}}), {}, 3);
}

}  // namespace
}  // namespace hstujit
