// Candidates in a worker process, and everything that may happen to it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <thread>

#include "compiler/spec/config.h"
#include "compiler/spec/json_text.h"
#include "compiler/support/files.h"
#include "operations/tuning/worker/worker_bench.h"
#include "operations/tuning/worker/worker_program.h"
#include "runtime/dispatch/bench_problem.h"
#include "tests/paths.h"

namespace hstujit {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

Result<std::unique_ptr<WorkerBench>> open_worker(const std::string& script = "", const WorkerLimits& limits = {}) {
  return WorkerBench::open(binary_path("/bin/hstujit_fake_worker"), {{"script", script}}, limits);
}

CompiledCandidate candidate(const std::string& script) {
  CompiledCandidate made;
  made.config.skeleton = "attention/sm90_forward";
  made.cubin = script;
  return made;
}

WorkerLimits short_limits() {
  WorkerLimits limits;
  limits.validate = limits.time = milliseconds(300);
  return limits;
}

// The process is gone, and nobody has to reap it.
bool gone(pid_t process) { return ::kill(process, 0) != 0 && errno == ESRCH; }

TEST(WorkerBench, CarriesCandidatesThereAndResultsBack) {
  const auto bench = open_worker();
  ASSERT_TRUE(bench.ok()) << bench.status().message();
  const auto fast = (*bench)->load(candidate("ok 0.25"));
  const auto slow = (*bench)->load(candidate("ok 2"));
  ASSERT_TRUE(fast.ok() && slow.ok());
  EXPECT_TRUE((*bench)->validate(*fast).ok());
  const auto samples = (*bench)->time({*slow, *fast}, 3);
  ASSERT_TRUE(samples.ok()) << samples.status().message();
  EXPECT_THAT(*samples, ElementsAre(ElementsAre(2, 2, 2), ElementsAre(0.25, 0.25, 0.25)));
}

TEST(WorkerBench, CarriesLargeCubins) {
  const auto bench = open_worker();
  ASSERT_TRUE(bench.ok());
  const auto number = (*bench)->load(candidate("ok 1" + std::string(8 << 20, ' ')));
  ASSERT_TRUE(number.ok()) << number.status().message();
  EXPECT_TRUE((*bench)->validate(*number).ok());
}

TEST(WorkerChannel, ASizeAloneTakesNoMemory) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
  const Descriptor broken(ends[0]);
  WorkerChannel channel{Descriptor(ends[1])};
  const auto peak_mib = [] {
    rusage usage{};
    ::getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss >> 10;
  };
  const auto before = peak_mib();
  const std::array<unsigned char, 9> sizes = {0, 0, 0, 16, 0, 0, 0, 16, '{'};  // 256 MiB of both parts
  ASSERT_EQ(::send(broken.number(), sizes.data(), sizes.size(), 0), static_cast<ssize_t>(sizes.size()));
  ::shutdown(broken.number(), SHUT_WR);
  WorkerMessage message;
  WorkerChannel::End end = WorkerChannel::End::kTimeout;
  EXPECT_FALSE(channel.receive(&message, std::chrono::steady_clock::now() + std::chrono::seconds(60), &end));
  EXPECT_EQ(end, WorkerChannel::End::kClosed);
  EXPECT_LT(peak_mib() - before, 128);
}

TEST(WorkerBench, AnAnswerThatIsAFailureIsNoLoss) {
  const auto bench = open_worker();
  ASSERT_TRUE(bench.ok());
  EXPECT_EQ((*bench)->load(candidate("unloadable")).status().message(), "no kernel image for this device");
  const auto wrong = (*bench)->load(candidate("wrong"));
  ASSERT_TRUE(wrong.ok());
  EXPECT_EQ((*bench)->validate(*wrong).code(), Code::kCheckFailed);
  EXPECT_EQ((*bench)->validate(99).code(), Code::kInvalidArgument);
  EXPECT_EQ((*bench)->state(), BenchState::kSound);
  const auto good = (*bench)->load(candidate("ok 1"));
  ASSERT_TRUE(good.ok());
  EXPECT_TRUE((*bench)->validate(*good).ok());
}

struct Death {
  const char* script;
  const char* ending;
};

class WorkerDeath : public ::testing::TestWithParam<Death> {};

TEST_P(WorkerDeath, IsSaidAndLosesTheBenchOnly) {
  const auto bench = open_worker();
  ASSERT_TRUE(bench.ok());
  const pid_t process = (*bench)->process();
  const auto number = (*bench)->load(candidate(GetParam().script));
  ASSERT_TRUE(number.ok());
  const Status status = (*bench)->validate(*number);
  EXPECT_THAT(status.message(), HasSubstr(GetParam().ending));
  EXPECT_THAT(status.message(), HasSubstr("validate"));
  EXPECT_EQ((*bench)->state(), BenchState::kCrashed);
  EXPECT_TRUE(gone(process));
  EXPECT_FALSE((*bench)->load(candidate("ok 1")).ok());
  (*bench)->unload(*number);
}

INSTANTIATE_TEST_SUITE_P(Ways, WorkerDeath,
                         ::testing::Values(Death{"segfault", "signal 11"}, Death{"abort", "signal 6"},
                                           Death{"exit", "exited with status 7"}, Death{"kill", "signal 9"}),
                         [](const auto& info) { return std::string(info.param.script); });

TEST(WorkerBench, ACrashWhileTimingIsSaid) {
  const auto bench = open_worker();
  ASSERT_TRUE(bench.ok());
  const auto good = (*bench)->load(candidate("ok 1"));
  const auto bad = (*bench)->load(candidate("slow-segfault"));
  const auto after = (*bench)->load(candidate("ok 1"));
  ASSERT_TRUE(good.ok() && bad.ok() && after.ok());
  EXPECT_TRUE((*bench)->validate(*bad).ok());
  EXPECT_THAT((*bench)->time({*good, *bad, *after}, 3).status().message(), HasSubstr("signal 11"));
  EXPECT_EQ((*bench)->culprit(), *bad);
}

TEST(WorkerBench, AContextThatIsLostEndsItsProcess) {
  const auto bench = open_worker();
  ASSERT_TRUE(bench.ok());
  const pid_t process = (*bench)->process();
  const auto number = (*bench)->load(candidate("fault"));
  ASSERT_TRUE(number.ok());
  EXPECT_EQ((*bench)->validate(*number).message(), "an illegal memory access was encountered");
  EXPECT_EQ((*bench)->state(), BenchState::kCrashed);
  EXPECT_TRUE(gone(process));
}

TEST(WorkerBench, AHangIsEndedInTime) {
  const auto bench = open_worker("", short_limits());
  ASSERT_TRUE(bench.ok());
  const pid_t process = (*bench)->process();
  const auto number = (*bench)->load(candidate("hang"));
  ASSERT_TRUE(number.ok());
  const auto start = std::chrono::steady_clock::now();
  const Status status = (*bench)->validate(*number);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(10));
  EXPECT_THAT(status.message(), HasSubstr("no answer to \"validate\" within 0.3 s"));
  EXPECT_EQ((*bench)->state(), BenchState::kTimedOut);
  EXPECT_TRUE(gone(process));
}

TEST(WorkerBench, AFloodOfNotesIsEndedInTime) {
  const auto bench = open_worker("", short_limits());
  ASSERT_TRUE(bench.ok());
  const auto number = (*bench)->load(candidate("flood"));
  ASSERT_TRUE(number.ok());
  EXPECT_THAT((*bench)->validate(*number).message(), HasSubstr("no answer to \"validate\" within 0.3 s"));
  EXPECT_EQ((*bench)->state(), BenchState::kTimedOut);
}

TEST(WorkerBench, WhatIsNoMessageIsSaidAndNotWaitedFor) {
  const auto bench = open_worker();
  ASSERT_TRUE(bench.ok());
  const auto number = (*bench)->load(candidate("noise"));
  ASSERT_TRUE(number.ok());
  EXPECT_EQ((*bench)->validate(*number).message(),
            "what came for \"validate\" is no message of a worker; the process was killed");
  EXPECT_EQ((*bench)->state(), BenchState::kCrashed);
}

TEST(WorkerBench, MembersOfOtherTypesAndLongMessagesAreBorne) {
  const auto bench = open_worker();
  ASSERT_TRUE(bench.ok());
  const auto note = (*bench)->load(candidate("note")), talk = (*bench)->load(candidate("talk"));
  ASSERT_TRUE(note.ok() && talk.ok());
  EXPECT_TRUE((*bench)->validate(*note).ok());
  const Status wrong = (*bench)->validate(*talk);
  EXPECT_EQ(wrong.code(), Code::kCheckFailed);
  EXPECT_LT(wrong.message().size(), 32768);
  EXPECT_THAT(wrong.message(), testing::EndsWith("aaa..."));
}

TEST(WorkerBench, SamplesThatAreNoTimesAreAFailure) {
  const auto bench = open_worker();
  ASSERT_TRUE(bench.ok());
  const auto good = (*bench)->load(candidate("ok 1"));
  ASSERT_TRUE(good.ok());
  for (const char* script : {"torn", "ok 0", "ok -1", "ok 1e308"}) {
    const auto number = (*bench)->load(candidate(script));
    ASSERT_TRUE(number.ok());
    EXPECT_THAT((*bench)->time({*good, *number}, 3).status().message(),
                HasSubstr("allowed: 3 positive numbers of milliseconds"))
        << script;
  }
  EXPECT_EQ((*bench)->state(), BenchState::kSound);
}

TEST(WorkerBench, OpeningMayFailInEveryWay) {
  EXPECT_EQ(open_worker("fail").status().code(), Code::kOutOfMemory);
  EXPECT_THAT(open_worker("segfault").status().message(), HasSubstr("signal 11"));
  WorkerLimits limits;
  limits.open = milliseconds(300);
  EXPECT_THAT(open_worker("hang", limits).status().message(), HasSubstr("no answer to \"open\""));
  const Status missing = WorkerBench::open("/nowhere/hstujit-worker", {}).status();
  EXPECT_EQ(missing.code(), Code::kNotFound);
  EXPECT_THAT(missing.message(), HasSubstr("/nowhere/hstujit-worker"));
  EXPECT_THAT(WorkerBench::open("/tmp", {}).status().message(), HasSubstr("it is a folder, no regular file"));
  EXPECT_THAT(WorkerBench::open("/bin/true", {}).status().message(), HasSubstr("exited with status 0"));
}

// As doctor does.
TEST(WorkerBench, WhoeverWaitsForLessThanTuningSaysSo) {
  const auto folder = TempDir::create();
  ASSERT_TRUE(folder.ok());
  const std::string program = folder->path() / "worker";
  std::ofstream(program) << "#!/bin/sh\nexec sleep 30\n";
  std::filesystem::permissions(program, std::filesystem::perms(0700));
  EXPECT_THAT(WorkerProcess::start(program, milliseconds(100)).status().message(),
              HasSubstr("within 0.1 s; the worker process was killed; tuning waits for 60 s"));
}

TEST(WorkerBench, AWorkerOfAnotherBuildIsRefused) {
  for (const auto& [generator, sentence] :
       std::map<std::string, std::string>{{"none", "is of an older build"}, {"another", "has the generator another"}}) {
    ::setenv("FAKE_WORKER_GENERATOR", generator.c_str(), 1);
    const Status refused = open_worker().status();
    ::unsetenv("FAKE_WORKER_GENERATOR");
    EXPECT_EQ(refused.code(), Code::kNoCompiler);
    EXPECT_THAT(refused.message(), HasSubstr(sentence));
    EXPECT_THAT(refused.message(), HasSubstr(binary_path("/bin/hstujit_fake_worker")));
  }
}

TEST(WorkerBench, NothingOfAWorkerIsAmongTheReports) {
  const auto folder = TempDir::create();
  ASSERT_TRUE(folder.ok());
  const std::string program = folder->path() / "worker";
  std::ofstream(program) << "#!/bin/sh\necho noise\n";
  std::filesystem::permissions(program, std::filesystem::perms(0700));
  testing::internal::CaptureStdout();
  const auto bench = WorkerBench::open(program, {}, {});
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "");
  EXPECT_THAT(bench.status().message(), HasSubstr("exited with status 0"));
}

TEST(WorkerBench, AWorkerEndsWithItsTunerAlsoWhenItHangs) {
  pid_t process = -1;
  {
    auto started = WorkerProcess::start(binary_path("/bin/hstujit_fake_worker"));
    ASSERT_TRUE(started.ok());
    WorkerProcess worker = std::move(*started);
    process = worker.id();
    const auto soon = std::chrono::steady_clock::now() + std::chrono::seconds(5);
    ASSERT_TRUE(worker.channel().send({{{"do", "open"}, {"problem", {{"script", "hang"}}}}, ""}, soon));
    // What a dead tuner's kernel would do to its socket.
    ASSERT_EQ(::shutdown(worker.channel().descriptor(), SHUT_RDWR), 0);
    EXPECT_EQ(worker.end(std::chrono::seconds(10)).text, "exited with status 0");
  }
  EXPECT_TRUE(gone(process));
}

TEST(WorkerBench, ManyAtOnceFromManyThreads) {
  std::vector<std::thread> threads;
  std::atomic<int> good{0};
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&good, i] {
      const auto bench = open_worker();
      if (!bench.ok()) return;
      const auto number = (*bench)->load(candidate(i % 2 == 0 ? "ok 1" : "segfault"));
      if (number.ok() && (*bench)->validate(*number).ok() == (i % 2 == 0)) ++good;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(good, 8);
}

TEST(WorkerChannel, WhatIsNoFrameIsRefused) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()), 0);
  WorkerChannel channel{Descriptor(ends[0])};
  const Descriptor other(ends[1]);
  const std::string noise(64, '\xFF');
  ASSERT_EQ(::send(other.number(), noise.data(), noise.size(), 0), static_cast<ssize_t>(noise.size()));
  WorkerMessage message;
  WorkerChannel::End end = WorkerChannel::End::kClosed;
  EXPECT_FALSE(channel.receive(&message, std::chrono::steady_clock::now() + std::chrono::seconds(1), &end));
  EXPECT_EQ(end, WorkerChannel::End::kMalformed);
}

TEST(BenchProblem, GoesThereAndBack) {
  const auto json = parse_json_text(R"({"name": "test", "op": "delta_hstu_attention", "heads": 2, "attn_dim": 64,
      "hidden_dim": 64, "max_seq_len": 256, "lengths": [5, 0, 130], "jagged_queries": true, "delta_len": [3, 7],
      "num_targets": 2, "num_contexts": 4})",
                                    "test");
  ASSERT_TRUE(json.ok());
  const auto instance = parse_instance(*json, "test", "");
  ASSERT_TRUE(instance.ok()) << instance.status().message();
  const BenchProblem problem{"/a/libcuda.so.1",
                             instance->spec,
                             Direction::kForward,
                             *known_device("sm_90a"),
                             3,
                             make_lengths(*instance, 256),
                             0.125};
  const auto back = parse_bench_problem(nlohmann::ordered_json::parse(to_json(problem).dump()));
  ASSERT_TRUE(back.ok()) << back.status().message();
  EXPECT_EQ(back->cuda_driver, problem.cuda_driver);
  EXPECT_EQ(back->spec->to_json(), problem.spec->to_json());
  EXPECT_EQ(back->device, problem.device);
  EXPECT_EQ(back->ordinal, 3);
  EXPECT_EQ(back->lengths.rows, problem.lengths.rows);
  EXPECT_EQ(back->lengths.num_targets, (std::vector<int64_t>{2, 0, 2}));
  EXPECT_EQ(back->lengths.num_contexts, (std::vector<int64_t>{4, 0, 4}));
  EXPECT_EQ(back->lengths.rows_of("Lq"), (std::vector<int64_t>{3, 7, 3}));
  EXPECT_EQ(back->lengths.max_seq_len, 256);
  EXPECT_EQ(back->alpha, 0.125);
  EXPECT_FALSE(parse_bench_problem({{"spec", 1}}).ok());
}

TEST(WorkerProgram, IsTheVariablesOrTheInstallationsOrNone) {
  EXPECT_EQ(worker_program(Environment::of_values({{"HSTUJIT_WORKER", "/a/worker"}})), "/a/worker");
  EXPECT_EQ(worker_program(Environment::of_values({{"HSTUJIT_WORKER", "none"}})), std::nullopt);
  const auto found = worker_program(Environment::of_values({}));
  EXPECT_TRUE(!found || std::filesystem::exists(*found)) << *found;
}

}  // namespace
}  // namespace hstujit
