// Compiles in worker processes: the real worker program with the fake compiler library, which crashes and hangs.
#include "operations/tuning/worker/compile_worker.h"

#include <signal.h>
#include <sys/socket.h>

#include <cstdlib>
#include <thread>

#include "compiler/generator/generator_digest.h"
#include "operations/tuning/worker/worker_compile.h"
#include "operations/tuning/worker/worker_program.h"
#include "tests/paths.h"
#include "tests/runtime/tuner_fixture.h"

namespace hstujit::test {
namespace {

using std::chrono::milliseconds;
using ::testing::Contains;
using ::testing::HasSubstr;
using Clock = std::chrono::steady_clock;

class CompileWorkerTest : public TunerTest {
 protected:
  void SetUp() override {
    TunerTest::SetUp();
    compiler_ = nullptr;
    values_["HSTUJIT_COMPILER_LIBRARY"] = binary_path("/test_libraries/libhstujit_fake_compiler.so");
    values_.erase("HSTUJIT_WORKER");
    ::setenv("FAKE_COMPILER_GENERATOR", std::string(generator_digest()).c_str(), 1);
    script({});
  }
  void TearDown() override {
    ::unsetenv("FAKE_COMPILER_GENERATOR");
    ::unsetenv("FAKE_COMPILER_SCRIPT");
  }

  // Sets what the compiler does, by config, in workers that start from now on.
  static void script(const std::map<std::string, std::string>& actions) {
    ::setenv("FAKE_COMPILER_SCRIPT", Json(actions).dump().c_str(), 1);
  }
  std::string text(size_t index) const { return to_json(space_[index].config).dump(); }
  CompileRequest request(size_t index) const {
    return {problem_.spec, problem_.direction, space_[index].config, problem_.device, false};
  }
  CompileWorkerSetup setup(milliseconds limit = milliseconds(20'000)) {
    const auto program = worker_program(Environment::of_values(values_));
    EXPECT_TRUE(program);
    return {
        program.value_or(""), {binary_path("/test_libraries/libhstujit_fake_compiler.so"), "/a/libnvrtc.so.13"}, limit};
  }
};

bool gone(pid_t process) { return ::kill(process, 0) != 0 && errno == ESRCH; }

TEST_F(CompileWorkerTest, FaultsOfTheCompilerCostOneCandidateEach) {
  ASSERT_GT(space_.size(), 6u);
  script({{text(0), "hang"}, {text(1), "crash"}, {text(2), "kill"}, {text(3), "exit"}, {text(4), "fail"}});
  // Sanitizers and a busy machine take their time: over a short limit, each candidate would be a slow one.
  options_.compile_limit_s = 3;
  options_.budget_s = 600;
  takes(6, 0.5);
  const auto start = Clock::now();
  auto report = tune();
  EXPECT_LT(Clock::now() - start, std::chrono::seconds(60));
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_EQ(report->winner, space_[6].config);
  EXPECT_EQ(report->ended_early, "");
  EXPECT_EQ(report->restarts, 0) << "the bench has nothing to do with it";
  EXPECT_EQ(report->timed, static_cast<int>(space_.size()) - 5);
  const std::tuple<const char*, const char*> expected[] = {{"compile_timeout", "within 3 s"},
                                                           {"compile_crashed", "signal 11"},
                                                           {"compile_killed", "signal 9"},
                                                           {"compile_crashed", "exited with status 7"},
                                                           {"compile", "told to fail"}};
  for (size_t i = 0; i < std::size(expected); ++i) {
    ASSERT_NE(rejection(report->record, i), nullptr) << i;
    EXPECT_EQ(rejection(report->record, i)->reason, std::get<0>(expected[i]));
    EXPECT_THAT(rejection(report->record, i)->detail, HasSubstr(std::get<1>(expected[i])));
  }

  // A compile that was late, or killed, says nothing about the source. The rest lasts as long as the source.
  script({});
  report = tune();
  ASSERT_TRUE(report.ok()) << report.status().message();
  for (const size_t i : {0, 2}) EXPECT_EQ(rejection(report->record, i), nullptr) << i;
  for (const size_t i : {1, 3, 4}) EXPECT_NE(rejection(report->record, i), nullptr) << i;
}

TEST_F(CompileWorkerTest, ACompilerThatAlwaysHangsEndsTheRunSoonAfterTheBudget) {
  script({{"*", "hang"}});
  options_.compile_limit_s = 0.2;
  options_.budget_s = 0.3;
  options_.late_timeouts = 2;
  const auto report = tune();
  EXPECT_EQ(report.status().code(), Code::kCompileFailed);
  EXPECT_THAT(report.status().message(), HasSubstr("2 compiles took more than 0.2 s each after the budget had ended"));
}

TEST_F(CompileWorkerTest, ACancelledRunEndsSoonAndRejectsNothing) {
  script({{"*", "hang"}});
  static volatile int cancel = 0;
  options_.cancellation = Cancellation(&cancel);
  Result<TuneReport> report = TuneReport();
  std::jthread tuning([&] { report = tune(); });
  std::this_thread::sleep_for(milliseconds(500));
  const auto start = Clock::now();
  __atomic_store_n(&cancel, 1, __ATOMIC_RELAXED);
  tuning.join();
  EXPECT_LT(Clock::now() - start, std::chrono::seconds(10)) << "a compile may take 60 s";
  EXPECT_EQ(report.status().code(), kCancelled);
  script({});
  options_.cancellation = {};
  report = tune();
  ASSERT_TRUE(report.ok()) << report.status().message();
  for (size_t i = 0; i < space_.size(); ++i) EXPECT_EQ(rejection(report->record, i), nullptr) << i;
}

TEST_F(CompileWorkerTest, GivesWhatACompileOfThisProcessGives) {
  values_["HSTUJIT_DUMP"] = "all";
  const auto engine = make_engine();
  const auto here = engine->kernels().compile(request(1));
  ASSERT_TRUE(here.ok()) << here.status().message();
  const auto recipe = (*engine->compiler())->recipe();
  ASSERT_TRUE(recipe);
  EXPECT_EQ(recipe->nvrtc, "/a/libnvrtc.so.13") << "the one that was found, not where it is looked for";
  CompileWorkerSetup of_recipe = setup();
  of_recipe.recipe = *recipe;
  CompileWorker worker(of_recipe);
  const auto compile = [&](const CompileRequest& wanted) { return worker.compile(wanted); };
  const auto there = engine->kernels().compile_by(compile, request(1));
  ASSERT_TRUE(there.ok()) << there.status().message();
  EXPECT_EQ(there->digest, here->digest);
  EXPECT_EQ(there->cubin, here->cubin);
  EXPECT_EQ(there->info, here->info);
  EXPECT_EQ(there->origin, here->origin);
  ASSERT_EQ(there->notes.size(), 3u);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(there->notes[i].extension, here->notes[i].extension);
    EXPECT_EQ(there->notes[i].text, here->notes[i].text);
  }
  const auto emitted = worker.emit(request(1));
  ASSERT_TRUE(emitted.ok());
  EXPECT_EQ(*emitted, *(*engine->compiler())->emit(request(1)));
}

TEST_F(CompileWorkerTest, AProcessServesManyCallsAndOneThatDiedIsReplaced) {
  script({{text(1), "crash"}});
  CompileWorker worker(setup());
  EXPECT_EQ(worker.process(), -1) << "it starts when it is needed";
  ASSERT_TRUE(worker.compile(request(0)).ok());
  const pid_t first = worker.process();
  ASSERT_TRUE(worker.compile(request(2)).ok());
  EXPECT_EQ(worker.process(), first);
  EXPECT_EQ(worker.compile(request(1)).status().code(), Code::kCompileFailed);
  EXPECT_EQ(worker.reason(), "compile_crashed");
  EXPECT_TRUE(gone(first));
  ASSERT_TRUE(worker.compile(request(2)).ok());
  EXPECT_EQ(worker.reason(), "");
  EXPECT_NE(worker.process(), first);
}

TEST_F(CompileWorkerTest, AProcessThatCannotBeginSaysNothingAboutACandidate) {
  CompileWorkerSetup wrong = setup();
  wrong.recipe.library = "/nowhere/libhstujit_compiler.so";
  CompileWorker without_library(wrong);
  EXPECT_EQ(without_library.compile(request(0)).status().code(), Code::kNoCompiler);
  wrong = setup();
  wrong.program = "/bin/true";
  CompileWorker ending(wrong);
  EXPECT_EQ(ending.compile(request(0)).status().code(), Code::kIo);
  EXPECT_EQ(ending.reason(), "");
}

TEST_F(CompileWorkerTest, EndsWithItsTunerAlsoWhileACompileHangs) {
  script({{"*", "hang"}});
  auto started = WorkerProcess::start(setup().program);
  ASSERT_TRUE(started.ok()) << started.status().message();
  const WorkerAnswer opened = started->ask(
      {{{"do", "compiler"}, {"library", binary_path("/test_libraries/libhstujit_fake_compiler.so")}, {"nvrtc", ""}},
       ""},
      milliseconds(20'000));
  ASSERT_TRUE(opened.answered() && opened.status.ok()) << opened.ending << opened.status.message();
  ASSERT_TRUE(started->channel().send({{{"do", "compile"}, {"request", to_json(request(0))}}, ""},
                                      Clock::now() + std::chrono::seconds(5)));
  ASSERT_EQ(::shutdown(started->channel().descriptor(), SHUT_RDWR), 0);
  EXPECT_EQ(started->end(std::chrono::seconds(10)).text, "exited with status 0");
}

TEST_F(CompileWorkerTest, WithoutAWorkerThisProcessCompiles) {
  options_.budget_s = 0;
  for (const char* value : {"none", "/nowhere/hstujit-worker"}) {
    values_["HSTUJIT_WORKER"] = value;
    log_.clear();
    const auto report = tune();
    ASSERT_TRUE(report.ok()) << report.status().message();
    EXPECT_THAT(log_, Contains(HasSubstr("none: this process compiles"))) << value;
  }
}

TEST_F(CompileWorkerTest, BlobsArriveWholeOrNotAtAll) {
  WorkerMessage message{Json::object(), ""};
  const Blobs blobs = {{"cubin", std::string("\0\1", 2)}, {"ir", ""}, {"log", "text"}};
  put_blobs(blobs, &message);
  ASSERT_TRUE(take_blobs(message).ok());
  EXPECT_EQ(*take_blobs(message), blobs);
  message.body.pop_back();
  EXPECT_EQ(take_blobs(message).status().code(), Code::kInternal);
  message.body += "too much";
  EXPECT_EQ(take_blobs(message).status().code(), Code::kInternal);
}

}  // namespace
}  // namespace hstujit::test
