// Contexts with a remote cache: what they share through it, and that a bad one costs little and harms nothing.
#include <fmt/ranges.h>

#include <set>

#include "operations/configs/operation.h"
#include "tests/autotune_cache/http_server.h"
#include "tests/autotune_cache/real_server.h"
#include "tests/runtime/support.h"

namespace hstujit::test {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::Not;

class RemoteEngineTest : public RuntimeTest {
 protected:
  void SetUp() override {
    ::setenv("no_proxy", "127.0.0.1", 1);
    RuntimeTest::SetUp();
  }
  // A context on a machine with a directory of its own.
  EnginePtr machine(const std::string& name, const std::string& url) {
    values_["HSTUJIT_CACHE_DIR"] = (folder_->path() / name).string();
    values_["HSTUJIT_REMOTE_CACHE"] = url;
    return make_engine();
  }
  static Config config() {
    const auto config = parse_config(R"({"version": 1, "ops": [{"name": "test", "op": "hstu_attention", "heads": 2,
        "attn_dim": 64, "hidden_dim": 64, "max_seq_len": [128, 1024], "lengths": [100, 128, 90]}]})",
                                     "test", "");
    EXPECT_TRUE(config.ok()) << config.status().message();
    return *config;
  }
  static Json prewarmed(const EnginePtr& engine) {
    const OperationResult result = prewarm(*engine, config(), {});
    EXPECT_TRUE(result.status.ok()) << result.status.message();
    return result.report;
  }
  int lines_with(const std::string& text) {
    const std::lock_guard lock(log_mutex_);
    return static_cast<int>(std::count_if(
        log_.begin(), log_.end(), [&](const std::string& line) { return line.find(text) != std::string::npos; }));
  }
  double seconds() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count(); }

  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

TEST_F(RemoteEngineTest, ABadUrlOrSwitchIsSaidAtOnce) {
  const auto message = [&] {
    EngineOptions options;
    options.environment = Environment::of_values(values_);
    const auto engine = Engine::create(std::move(options));
    return engine.ok() ? std::string() : engine.status().message();
  };
  values_["HSTUJIT_REMOTE_CACHE"] = "cache:8080";
  EXPECT_THAT(message(), HasSubstr("HSTUJIT_REMOTE_CACHE does not begin with http:// or https://; allowed: http://"));
  values_["HSTUJIT_REMOTE_CACHE"] = "https://cache/c?sig=secret";
  EXPECT_THAT(message(), AllOf(HasSubstr("HSTUJIT_REMOTE_CACHE has a blank, \"?\""), Not(HasSubstr("secret"))));
  values_["HSTUJIT_REMOTE_CACHE"] = "http://cache:8080";
  values_["HSTUJIT_REMOTE_UPLOAD"] = "never";
  EXPECT_THAT(message(), HasSubstr("HSTUJIT_REMOTE_UPLOAD is \"never\""));
}

TEST_F(RemoteEngineTest, WhatOneMachinePrewarmsAnotherNeedNotCompile) {
  std::string why;
  const auto server = RealServer::nginx("dav_methods PUT; create_full_put_path on;", &why);
  if (!server) GTEST_SKIP() << why;
  const Json first = prewarmed(machine("a", server->url()));
  const int64_t kernels = first["kernels"];
  EXPECT_GE(kernels, 1);
  EXPECT_EQ(first["compiled"], kernels);
  const Json second = prewarmed(machine("b", server->url()));
  EXPECT_EQ(second["compiled"], 0);
  EXPECT_EQ(second["hits"], kernels);
  EXPECT_EQ(prewarmed(machine("b", ""))["hits"], kernels) << "they are in its directory";
  EXPECT_EQ(compiler_->compiles, kernels);
}

TEST_F(RemoteEngineTest, ADeadRemoteCostsLittle) {
  const BoundPort port;
  const Json report = prewarmed(machine("a", port.url()));
  EXPECT_EQ(report["compiled"], report["kernels"]);
  EXPECT_LT(seconds(), 5);
  EXPECT_EQ(lines_with(",remote_failed,"), 1) << fmt::format("{}", fmt::join(log_, "\n"));
}

// It takes connections and never answers: the slowest that a remote can be. 3 s until a request is given up, then it is
// left alone for 3.75 s at least.
TEST_F(RemoteEngineTest, AHangingRemoteCostsItsTimeoutOnce) {
  HttpServer server([](const HttpServer::Request&) { return HttpServer::Answer{"", HttpServer::Then::kHang}; });
  const Json report = prewarmed(machine("a", server.url()));
  EXPECT_EQ(report["compiled"], report["kernels"]);
  EXPECT_LE(static_cast<double>(server.requests().size()), 1 + seconds() / 6.75);
}

TEST_F(RemoteEngineTest, NoCandidateOfTheTunerIsAskedFor) {
  MemoryRemote memory;
  HttpServer server(std::ref(memory));
  // The fake GPU writes no output: every candidate is compiled, and none is right.
  EXPECT_EQ(tune(*machine("a", server.url()), config(), {}).status.code(), Code::kCheckFailed);
  EXPECT_GT(compiler_->compiles, 20);
  // However often what was found out is stored, and uploaded, on the way.
  std::set<std::string> asked;
  for (const std::string& request : server.requests()) asked.insert(request.substr(request.find(' ') + 1));
  EXPECT_LE(asked.size(), 2u) << "the records of two keys";
}

TEST_F(RemoteEngineTest, NoLaunchAsksIt) {
  MemoryRemote memory;
  HttpServer server(std::ref(memory));
  const EnginePtr engine = machine("a", server.url());
  const auto op = make_op(engine);
  ASSERT_TRUE(op->prepare(256, 0).ok());
  // The upload goes on beside this.
  const auto settled = [&] { return lines_with(",uploaded,") == 1; };
  for (int i = 0; i < 500 && !settled(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  ASSERT_TRUE(settled());
  const size_t before = server.requests().size();
  const CurrentContext context(*engine);
  Lengths lengths;
  lengths.rows = {5, 9};
  lengths.max_seq_len = 256;
  const FakeLaunch launch(make_instance(), lengths);
  for (int i = 0; i < 50; ++i) {
    ASSERT_TRUE(op->launch(launch.values.data(), launch.values.size(), nullptr).ok());
  }
  EXPECT_EQ(fake().launches, 50);
  EXPECT_EQ(server.requests().size(), before);
}

TEST_F(RemoteEngineTest, AKernelThatTheDriverRefusesIsCompiledAnewForAll) {
  MemoryRemote memory;
  HttpServer server(std::ref(memory));
  compiler_->cubin = cubin_of("REFUSED");
  ASSERT_TRUE(make_op(machine("a", server.url()))->prepare(256, 0).ok());
  static const std::string refused = cubin_of("REFUSED");
  fake().refused_image = refused.c_str();
  compiler_->cubin = cubin_of("good");
  ASSERT_TRUE(make_op(machine("b", server.url()))->prepare(256, 0).ok());
  EXPECT_EQ(compiler_->compiles, 2);
  ASSERT_TRUE(make_op(machine("c", server.url()))->prepare(256, 0).ok());
  EXPECT_EQ(compiler_->compiles, 2) << "the new one has replaced it";
}

TEST_F(RemoteEngineTest, DoctorNamesItWithoutThePassword) {
  MemoryRemote memory;
  HttpServer server(std::ref(memory));
  std::string url = server.url();
  const Json good = doctor(*machine("a", url.insert(7, "me:secret@")));
  EXPECT_EQ(good["cache"].back()["role"], "remote");
  EXPECT_EQ(good["cache"].back()["path"], server.url());
  EXPECT_EQ(good["cache"].back()["ok"], true);
  EXPECT_THAT(good.dump(), Not(HasSubstr("secret")));
  const BoundPort port;
  const Json dead = doctor(*machine("a", port.url()));
  EXPECT_EQ(dead["cache"].back()["ok"], false);
  EXPECT_THAT(dead["cache"].back()["problem"].get<std::string>(), HasSubstr("Failed to connect"));
}

}  // namespace
}  // namespace hstujit::test
