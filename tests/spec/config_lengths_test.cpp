// Lengths of sequences in a config, the files that it names, and the work that follows.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <chrono>
#include <fstream>
#include <numeric>

#include "compiler/spec/batch.h"
#include "compiler/spec/operators/hstu_attention/spec.h"
#include "compiler/spec/sequence_rows.h"
#include "compiler/spec/small_batch.h"
#include "compiler/support/files.h"
#include "tests/paths.h"
#include "tests/spec/config_text.h"
#include "tests/support/whole_file.h"

namespace hstujit {
namespace {

using testing::HasSubstr;

std::vector<int64_t> delta_rows(const std::string& text) {
  const auto config = parse_config(text, "m", "");
  EXPECT_TRUE(config.ok()) << config.status().message();
  return config.ok() ? make_lengths(config->instances[0], 8).rows_of(kQueryAxis) : std::vector<int64_t>();
}

TEST(Config, DeltaLenSaysTheRowsOfQOfEachSequence) {
  using Rows = std::vector<int64_t>;
  EXPECT_EQ(delta_rows(one_delta(R"("heads": 1)")), (Rows{64, 64, 64}));
  EXPECT_EQ(delta_rows(one_delta(R"("delta_len": 3)")), (Rows{3, 3, 3}));
  EXPECT_EQ(delta_rows(one_delta(R"("delta_len": 0)")), (Rows{0, 0, 0}));
  EXPECT_EQ(delta_rows(one_delta(R"("jagged_queries": true, "delta_len": 3)")), (Rows{3, 3, 3}));
  EXPECT_EQ(delta_rows(one_delta(R"("jagged_queries": true, "delta_len": [2, 0])")), (Rows{2, 0, 2}));
  EXPECT_EQ(delta_rows(one_config(R"("max_seq_len": 8)")), Rows{}) << "q of all rows";
  const auto config = parse_config(R"({"version": 1, "defaults": {"attn_dim": 8, "hidden_dim": 8, "max_seq_len": 8,
      "lengths": [5], "delta_len": 2}, "ops": [{"name": "a", "op": "delta_hstu_attention"},
      {"name": "b", "op": "hstu_attention"}]})",
                                   "m", "");
  ASSERT_TRUE(config.ok()) << config.status().message();
  EXPECT_EQ(make_lengths(config->instances[0], 8).rows_of(kQueryAxis), (Rows{2}));
  EXPECT_EQ(make_lengths(config->instances[1], 8).rows_of(kQueryAxis), Rows{});
}

TEST(Config, ADeltaLenThatIsWrong) {
  EXPECT_EQ(
      config_error(one_delta(R"("delta_len": -1)")),
      "model.json:2:67: ops[0].delta_len is -1; allowed: an integer from 0 to 268435456 (rows of q of a sequence)");
  EXPECT_EQ(
      config_error(one_delta(R"("delta_len": [1, 2])")),
      "model.json:2:67: ops[0].delta_len is [1,2], but every sequence has the same number of rows of q; allowed: an "
      "integer from 0 to 268435456 (rows of q of a sequence), or jagged_queries=true with a list of them");
  EXPECT_THAT(config_error(R"({"version": 1, "ops": [{"name": "a", "op": "cached_stu_layer", "width": 64,
                  "attn_dim": 32, "hidden_dim": 32, "max_seq_len": 8, "delta_len": [1, 2]}]})"),
              HasSubstr("(rows of q of a sequence); delta_hstu_attention has lists of them, with jagged_queries=true"));
  EXPECT_THAT(config_error(one_delta(R"("jagged_queries": true, "delta_len": [])")),
              HasSubstr("ops[0].delta_len is []; allowed: a list of at least one delta_len"));
  EXPECT_THAT(config_error(one_delta(R"("jagged_queries": true, "delta_len": [1, 0.5])")),
              HasSubstr("ops[0].delta_len[1] is 0.5; allowed: an integer"));
  EXPECT_THAT(config_error(one_config(R"("max_seq_len": 8, "delta_len": 3)")),
              HasSubstr("ops[0].delta_len (value 3) is not a known field"));
}

TEST(Config, LengthsAreTheSameEveryTimeAndWithinBounds) {
  const auto config =
      parse_config(one_config(R"("max_seq_len": 100, "lengths": {"distribution": "uniform", "low": 0.5, "high": 1.0, )"
                              R"("batch": 500, "seed": 3})"),
                   "m", "");
  ASSERT_TRUE(config.ok()) << config.status().message();
  const Lengths lengths = make_lengths(config->instances[0], 100);
  EXPECT_EQ(lengths.rows, make_lengths(config->instances[0], 100).rows);
  EXPECT_EQ(lengths.rows.size(), 500u);
  EXPECT_EQ(*std::min_element(lengths.rows.begin(), lengths.rows.end()), 50);
  EXPECT_EQ(*std::max_element(lengths.rows.begin(), lengths.rows.end()), 100);
  EXPECT_EQ((std::vector<int64_t>(lengths.rows.begin(), lengths.rows.begin() + 4)),
            (std::vector<int64_t>{69, 85, 62, 55}));
  EXPECT_TRUE(lengths.num_targets.empty());
}

TEST(Config, LengthsThatAreWrong) {
  const auto with = [](const std::string& lengths) {
    return one_config(R"("max_seq_len": 64, "lengths": )" + lengths);
  };
  EXPECT_THAT(config_error(with("[]")), HasSubstr("ops[0].lengths is []; allowed: a list of at least one length"));
  EXPECT_THAT(config_error(with("[1, -2]")), HasSubstr("ops[0].lengths[1] is -2; allowed: an integer from 0"));
  EXPECT_THAT(config_error(with("5")), HasSubstr("ops[0].lengths is 5; allowed: a list of lengths"));
  EXPECT_THAT(config_error(with(R"({"distribution": "zipf"})")),
              HasSubstr("ops[0].lengths.distribution is \"zipf\"; allowed: uniform"));
  EXPECT_THAT(config_error(with(R"({"low": 0.9, "high": 0.5})")),
              HasSubstr("ops[0].lengths.low is 0.9; allowed: a number up to \"high\""));
  EXPECT_THAT(config_error(with(R"({"low": 1.5})")),
              HasSubstr("ops[0].lengths.low is 1.5; allowed: a number from 0 to 1"));
  EXPECT_THAT(config_error(with(R"({"bach": 3})")),
              HasSubstr("ops[0].lengths.bach (value 3) is not a known field, did you mean \"batch\"?"));
  EXPECT_THAT(config_status(with(R"({"file": "none.txt"})")).message(), HasSubstr("none.txt"));
}

TEST(Config, FilesAreRelativeToTheConfig) {
  const auto folder = TempDir::create();
  ASSERT_TRUE(folder.ok());
  std::ofstream(folder->path() / "lengths.txt") << "# from a log\n12\n\n 7 \r\n";
  std::ofstream(folder->path() / "bad.txt") << "12\nx7\n";
  std::ofstream(folder->path() / "board.json")
      << R"({"name": "Board", "arch": "sm_90a", "sm_count": 10, "shared_memory": 1000})";
  const auto with = [&](const std::string& file) {
    std::string text = one_config(R"("max_seq_len": 64, "lengths": {"file": ")" + file + "\"}");
    text.insert(1, R"("device": "board.json", )");
    std::ofstream(folder->path() / "model.json") << text;
    return load_config(folder->path() / "model.json");
  };
  const auto config = with("lengths.txt");
  ASSERT_TRUE(config.ok()) << config.status().message();
  EXPECT_EQ(config->device->sm_count, 10);
  EXPECT_EQ(make_lengths(config->instances[0], 64).rows, (std::vector<int64_t>{12, 7}));
  EXPECT_THAT(with("bad.txt").status().message(),
              HasSubstr("bad.txt:2: the line is no length; allowed: an integer from 0"));
  // It may be any file, and any kind of file.
  EXPECT_THAT(with("bad.txt").status().message(), testing::Not(HasSubstr("x7")));
  std::ofstream(folder->path() / "secret.txt") << "7\nTOKEN=secret\n";
  EXPECT_THAT(with("secret.txt").status().message(),
              testing::AllOf(HasSubstr("secret.txt:2"), testing::Not(HasSubstr("TOKEN"))));
  EXPECT_THAT(with("/proc/self/environ").status().message(),
              testing::AllOf(HasSubstr(":1: "), testing::Not(HasSubstr("PATH="))));
  EXPECT_THAT(with("/dev/zero").status().message(), HasSubstr("it is a device, no regular file"));
  EXPECT_EQ(load_config(folder->path() / "none.json").status().code(), Code::kNotFound);
}

TEST(Config, AFileOfLengthsIsReadOnce) {
  const auto folder = TempDir::create();
  ASSERT_TRUE(folder.ok());
  std::ofstream(folder->path() / "lengths.txt") << "12\n7\n";
  std::ofstream(folder->path() / "bad.txt") << "x\n";
  const auto entry = [](const char* name, const char* file) {
    return fmt::format(R"({{"name": "{}", "op": "hstu_attention", "attn_dim": 64, "hidden_dim": 64, "max_seq_len": 64,
                          "lengths": {{"file": "{}"}}}})",
                       name, file);
  };
  const auto config =
      parse_config("[" + entry("a", "lengths.txt") + "," + entry("b", "./lengths.txt") + "]", "m", folder->path());
  ASSERT_TRUE(config.ok()) << config.status().message();
  EXPECT_EQ(config->instances[0].lengths.list, (std::vector<int64_t>{12, 7}));
  EXPECT_EQ(&config->instances[0].lengths.list.values(), &config->instances[1].lengths.list.values());
  const Status status =
      parse_config("[" + entry("a", "bad.txt") + "," + entry("b", "bad.txt") + "]", "m", folder->path()).status();
  EXPECT_THAT(status.message(), HasSubstr("[0].lengths.file: "));
  EXPECT_THAT(status.message(), HasSubstr("[1].lengths.file: ")) << "who names it";
}

TEST(Config, TheSizeOfABatchIsCountedWithoutDrawingIt) {
  const auto config =
      parse_config(one_config(R"("max_seq_len": 100, "num_targets": 3, "lengths": [20, 0, 200, 7])"), "m", "");
  ASSERT_TRUE(config.ok()) << config.status().message();
  const Instance& instance = config->instances[0];
  EXPECT_EQ(batch_sequences(instance), 4);
  EXPECT_EQ(batch_size(instance, 100).sequences, 4);
  EXPECT_EQ(batch_size(instance, 100).rows, 127);
  const Lengths cut = make_lengths(instance, 100, 21);
  EXPECT_EQ(cut.rows, (std::vector<int64_t>{20, 0, 1}));
  EXPECT_EQ(cut.num_targets, (std::vector<int64_t>{3, 0, 1}));
  EXPECT_EQ(batch_size(instance, 100, 21).rows, 21);
  const auto drawn = parse_config(one_config(R"("max_seq_len": 100, "lengths": {"batch": 50})"), "m", "");
  const Lengths all = make_lengths(drawn->instances[0], 100);
  EXPECT_EQ(batch_size(drawn->instances[0], 100).rows, all.total_rows());
  EXPECT_EQ(all.rows.size(), 50u);
  EXPECT_EQ(batch_sequences(drawn->instances[0]), 50);
}

// A batch of 2^28 sequences, of which as many are drawn as are used.
TEST(Config, NoMoreOfABatchIsDrawnThanIsUsed) {
  const auto config =
      parse_config(one_config(R"("max_seq_len": 100, "num_targets": 3, "lengths": {"batch": 268435456})"), "m", "");
  ASSERT_TRUE(config.ok()) << config.status().message();
  const Instance& instance = config->instances[0];
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(batch_sequences(instance), 268435456);
  EXPECT_EQ(make_lengths(instance, 100, 50).total_rows(), 50);
  const Lengths small = make_small_lengths(instance, 100, 4);
  EXPECT_EQ(small.rows, (std::vector<int64_t>{100}));
  EXPECT_EQ(small.num_targets, (std::vector<int64_t>{3}));
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(500));
}

TEST(Config, CountsHaveOneBound) {
  const std::string max = "268435456", more = "268435457";
  const auto norm = [](const std::string& rows) {
    return R"({"version": 1, "ops": [{"name": "n", "op": "layer_norm", "width": 8, "rows": )" + rows + "}]}";
  };
  EXPECT_TRUE(parse_config(norm(max), "m", "").ok());
  EXPECT_THAT(parse_config(norm(more), "m", "").status().message(), HasSubstr(max));
  for (const std::string field : {"\"max_seq_len\": ", "\"max_seq_len\": 64, \"lengths\": {\"batch\": "}) {
    const std::string end = field.ends_with("\"batch\": ") ? "}" : "";
    for (const std::string& count : {more, std::string("18446744073709551615"), std::string("1e400")}) {
      const Status status = parse_config(one_config(field + count + end), "m", "").status();
      EXPECT_EQ(status.code(), Code::kInvalidConfig) << field << count;
      EXPECT_THAT(status.message(), testing::AnyOf(HasSubstr(max), HasSubstr("out of range"))) << field << count;
    }
  }
}

TEST(Config, RowsStandForOneSequence) {
  const auto config =
      parse_config(R"({"version": 1, "ops": [{"name": "n", "op": "layer_norm", "width": 8, "rows": 1000}]})", "m", "");
  ASSERT_TRUE(config.ok()) << config.status().message();
  EXPECT_EQ(config->instances[0].max_seq_lens, (std::vector<int64_t>{1000}));
  EXPECT_EQ(make_lengths(config->instances[0], 1000).rows, (std::vector<int64_t>{1000}));
}

// The recorded baselines hold the number of valid pairs and rows that other programs counted for the same shapes.
TEST(Grid, WorkAgreesWithTheRecordedBaselines) {
  const std::filesystem::path bench = std::filesystem::path(source_path("/bench"));
  const auto list = whole_file(bench / "grid.json");
  ASSERT_TRUE(list.ok()) << list.status().message();
  const auto grid = parse_config(fmt::format(R"({{"version": 1, "ops": {}}})", *list), "grid", bench);
  ASSERT_TRUE(grid.ok()) << grid.status().message();
  const auto text = whole_file(bench / "baselines/peers_h200_attention.json");
  ASSERT_TRUE(text.ok());
  const Json baselines = Json::parse(*text);
  ASSERT_EQ(grid->instances.size(), baselines.size());
  for (const Instance& instance : grid->instances) {
    const auto& params = static_cast<const HstuAttentionSpec&>(*instance.spec).params();
    const Lengths lengths = make_lengths(instance, instance.max_seq_lens[0]);
    const Work work = instance.spec->work(Direction::kForward, lengths);
    const double pairs = baselines[instance.name]["valid_pairs_per_head"].get<double>();
    EXPECT_EQ(work.flops, 2.0 * static_cast<double>(params.heads * (params.attn_dim + params.hidden_dim)) * pairs)
        << instance.name;
    EXPECT_EQ(std::accumulate(lengths.rows.begin(), lengths.rows.end(), int64_t{0}), baselines[instance.name]["rows"])
        << instance.name;
    EXPECT_EQ(instance.alpha, 1.0 / static_cast<double>(params.attn_dim));
  }
}

}  // namespace
}  // namespace hstujit
