// Batches without room for their data: refused before they are made, with what takes the bytes and what it follows
// from; and one that runs out of memory all the same ends itself alone.
#include "operations/tuning/data/data_memory.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "operations/configs/operation.h"
#include "operations/tuning/data/problem_data.h"
#include "tests/paths.h"
#include "tests/runtime/support.h"
#include "tests/support/little_memory.h"

namespace hstujit::test {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

Config config_of(const std::string& ops) {
  auto config = parse_config(R"({"version": 1, "ops": [)" + ops + "]}", "test", "");
  EXPECT_TRUE(config.ok()) << config.status().message();
  return *config;
}

std::string refused(const std::string& op, DrawnFor use = DrawnFor::kRunning) {
  const Config config = config_of(op);
  const Instance& instance = config.instances[0];
  const auto drawn = draw_lengths(instance, instance.directions[0], instance.max_seq_lens[0], use);
  EXPECT_EQ(drawn.ok() ? Code::kOk : drawn.status().code(), Code::kOutOfMemory) << op;
  return drawn.status().message();
}

bool machine_has(double bytes) {
  return static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGESIZE)) > bytes;
}

TEST(DataMemory, WeightsCountThoughTheBatchIsSmall) {
  if (machine_has(6e10)) GTEST_SKIP() << "there is room for it";
  const std::string addmm = R"({"name": "x", "op": "addmm", "k": 65536, "n": 65536, "rows": 1})";
  for (const DrawnFor use : {DrawnFor::kRunning, DrawnFor::kTiming}) {
    EXPECT_THAT(refused(addmm, use),
                AllOf(HasSubstr("(65536, 65536) take 6.87e+10 bytes to generate; the machine has "),
                      HasSubstr(", so there must be parameters that make "), Not(HasSubstr("rows"))));
  }
}

TEST(DataMemory, WhatFollowsFromTheLongestSequenceIsNotSaidToFollowFromRows) {
  if (machine_has(2e11)) GTEST_SKIP() << "there is room for it";
  EXPECT_THAT(refused(R"({"name": "d", "op": "dense_to_jagged", "width": 32, "max_seq_len": 268435456,
                          "lengths": [0, 0, 0]})"),
              AllOf(HasSubstr("dense of 3 sequences with max_seq_len 268435456 take 4.12e+11 bytes to generate; "),
                    HasSubstr(", so there must be fewer sequences or a smaller max_seq_len")));
}

// Advice must help: a batch of one sequence cannot have fewer, and a sequence of one row cannot be shorter.
TEST(DataMemory, OnlyWhatMakesTheDataLargeIsToBeLess) {
  const auto dense = [](const char* sizes, const char* batch) {
    return refused(fmt::format(R"({{"name": "j", "op": "jagged_dense_bmm_broadcast_add", {}, {}}})", sizes, batch));
  };
  const char* const large = R"("k": 65536, "n": 65536)";
  if (!machine_has(6e10)) {
    EXPECT_THAT(dense(large, R"("max_seq_len": 1, "lengths": [1])"),
                AllOf(HasSubstr("dense of 1 sequence with max_seq_len 1 take "),
                      HasSubstr(", so there must be parameters that make dense smaller")));
    EXPECT_THAT(dense(large, R"("max_seq_len": 128, "lengths": [100, 100, 100])"),
                HasSubstr(", so there must be parameters that make dense smaller"));
  }
  if (!machine_has(1e12)) {
    // The weights of a sequence fit; those of all of them do not, however short each is.
    EXPECT_THAT(
        dense(R"("k": 4096, "n": 4096)",
              R"("max_seq_len": 1, "lengths": {"distribution": "uniform", "low": 1.0, "high": 1.0, "batch": 100000})"),
        EndsWith(", so there must be fewer sequences"));
    EXPECT_THAT(refused(R"({"name": "d", "op": "dense_to_jagged", "width": 4096, "max_seq_len": 268435456,
                            "lengths": [0]})"),
                EndsWith(", so there must be a smaller max_seq_len"));
  }
}

TEST(DataMemory, RowsAreWhatAnOperatorWithoutSequencesHas) {
  if (machine_has(2e11)) GTEST_SKIP() << "there is room for it";
  EXPECT_THAT(refused(R"({"name": "s", "op": "silu", "width": 32, "rows": 268435456})"),
              AllOf(HasSubstr(" of 268435456 rows take 2.75e+11 bytes"), HasSubstr("so there must be fewer rows")));
}

TEST(DataMemory, AProcessMayHaveLessThanTheMachine) {
  if (!memory_can_be_limited()) GTEST_SKIP() << "a sanitizer needs all of the address space";
  EXPECT_TRUE(with_little_memory([] {
    const std::string sentence = refused(R"({"name": "s", "op": "silu", "width": 4096, "rows": 1000000})");
    return sentence.find(" bytes to generate; this process may have (ulimit -v) ") != std::string::npos;
  }));
}

class CheckedRun : public RuntimeTest {
 protected:
  // Bytes, of a process of its own.
  double peak(const Config& config) {
    const pid_t child = ::fork();
    if (child == 0) {
      OperationOptions options;
      options.backend = Backend::kHost;
      options.check = true;
      const Status status = run(make_engine(), config, options).status;
      if (!status.ok()) std::fprintf(stderr, "%s\n", status.message().c_str());
      ::_exit(status.ok() ? 0 : 1);
    }
    int status = -1;
    rusage used{};
    EXPECT_EQ(::wait4(child, &status, 0, &used), child);
    EXPECT_EQ(status, 0);
    return 1024.0 * static_cast<double>(used.ru_maxrss);
  }
};

// Instances of every family: rows, sums, products, sequences, caches, attention and programs; narrow and wide rows; all
// types.
TEST_F(CheckedRun, TakesNoMoreThanIsEstimated) {
  if (kSanitized) GTEST_SKIP() << "a sanitizer takes memory of its own";
  values_["HSTUJIT_HOST_LIBRARY"] = binary_path("/lib/libhstujit_host.so");
  if (::access(values_["HSTUJIT_HOST_LIBRARY"].c_str(), R_OK) != 0) GTEST_SKIP() << "this build has no host backend";
  constexpr const char* kSequences = R"("max_seq_len": 128, "lengths": {{"low": 1, "high": 1, "batch": {}}}, )";
  constexpr const char* kRows = R"("rows": {}, )";
  constexpr const char* kHeads = R"("heads": 2, "attn_dim": 64, "hidden_dim": 64)";
  const struct {
    const char* op;
    const char* size;
    std::string parameters;
    int small, large;
  } cases[] = {
      {"complete_cumsum", kRows, R"("directions": ["forward"])", 1000, 1500000},
      {"silu", kRows, R"("width": 1)", 100, 1000000},
      {"silu", kRows, R"("width": 256, "dtype": "fp32")", 100, 10000},
      {"layer_norm", kRows, R"("width": 250)", 100, 10000},
      {"hstu_norm_mul_dropout", kRows, R"("heads": 2, "width": 64)", 100, 20000},
      {"addmm", kRows, R"("k": 64, "n": 64)", 100, 30000},
      {"addmm_wgrad", kRows, R"("k": 64, "n": 64, "dtype": "fp32")", 100, 30000},
      {"jagged_dense_bmm_broadcast_add", kSequences, R"("k": 64, "n": 64)", 2, 200},
      {"concat_2d_jagged", kSequences, R"("width": 64)", 2, 300},
      {"jagged_to_padded_dense", kSequences, R"("width": 3, "dtype": "fp32")", 2, 3000},
      {"add_timestamp_positional_embeddings", kSequences, R"("width": 64)", 2, 300},
      {"update_kv_cache", kSequences, kHeads, 2, 100},
      {"hstu_attention", kSequences, kHeads, 2, 60},
      {"delta_hstu_attention", kSequences, kHeads, 2, 100},
      {"norm_attention", kSequences, kHeads, 2, 60},
      {"stu_layer", kSequences, R"("width": 128, "heads": 2, "attn_dim": 64, "hidden_dim": 64)", 2, 30},
  };
  for (const auto& each : cases) {
    const auto config = [&](int size) {
      return config_of(fmt::format(R"({{"name": "x", "op": "{}", {}{}}})", each.op,
                                   fmt::format(fmt::runtime(each.size), size), each.parameters));
    };
    const auto estimate = [&](const Config& config) {
      const Instance& instance = config.instances[0];
      double most = 0;
      for (const Direction direction : instance.directions) {
        const int64_t max_seq_len = instance.max_seq_lens[0];
        most = std::max(most, data_memory(*instance.spec, direction, batch_size(instance, max_seq_len, kAllRows),
                                          max_seq_len, DrawnFor::kChecking));
      }
      return most;
    };
    const Config small = config(each.small), large = config(each.large);
    peak(small);  // keeps the machine code, which neither of the next two then takes memory to generate
    const double measured = peak(large) - peak(small), estimated = estimate(large) - estimate(small);
    EXPECT_LE(measured, estimated + 4e6) << each.op << " " << each.parameters;
    EXPECT_GE(measured, 0.4 * estimated) << each.op << " " << each.parameters;
  }
}
class OutOfMemory : public RuntimeTest {};

TEST_F(OutOfMemory, AnInstanceThatRunsOutOfMemoryFailsAndTheOthersGoOn) {
  if (!memory_can_be_limited()) GTEST_SKIP() << "a sanitizer needs all of the address space";
  const auto engine = make_engine();
  EXPECT_TRUE(with_little_memory([&] {
    constexpr int kWidth = 1024;
    rlimit limit{};
    ::getrlimit(RLIMIT_AS, &limit);
    const std::vector<std::byte> taken(size_t{48} << 20);
    // As many rows as the whole process might have room for, by the estimate; more than is left of it.
    const auto rows = static_cast<int64_t>(0.97 * static_cast<double>(limit.rlim_cur) / (2 * 16 * kWidth));
    const std::string small = R"("op": "silu", "width": 64, "rows": 3})";
    const Config config =
        config_of(R"({"name": "y", )" + small + "," +
                  fmt::format(R"({{"name": "x", "op": "silu", "width": {}, "rows": {}}},)", kWidth, rows) +
                  R"({"name": "z", )" + small);
    const OperationResult result = run(engine, config, {});
    const Json& runs = result.report["runs"];
    const std::string sentence = result.status.message();
    if (sentence != "x forward: there is no memory for its data" || runs.size() != 3) {
      std::fprintf(stderr, "%s\n%s\n", sentence.c_str(), runs.dump().c_str());
      return false;
    }
    return runs[0].contains("ms") && runs[2].contains("ms") && runs[1]["failure"]["code"] == "out_of_memory";
  }));
}

}  // namespace
}  // namespace hstujit::test
