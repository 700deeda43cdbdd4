// The program with a remote cache: Apache, as it is installed, between two machines.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>

#include "tests/autotune_cache/http_server.h"
#include "tests/autotune_cache/real_server.h"
#include "tests/tools/program.h"

namespace hstujit {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class RemoteProgram : public ::testing::Test {
 protected:
  Outcome run(std::vector<std::string> arguments, const std::string& machine, const std::string& url) const {
    const Variables variables = {{"HSTUJIT_CACHE_DIR", (scratch_.path() / machine).string()},
                                 {"HSTUJIT_REMOTE_CACHE", url},
                                 {"HSTUJIT_LOG", "cache"},
                                 {"no_proxy", "127.0.0.1"}};
    return hstujit_tool(std::move(arguments), variables);
  }
  Outcome prewarm(const std::string& machine, const std::string& url) const {
    return run({"prewarm", "--config", scratch_.config(), "--arch", "sm_90a"}, machine, url);
  }

  Scratch scratch_;
};

TEST_F(RemoteProgram, TheSecondMachineCompilesNothing) {
  if (!has_nvrtc()) GTEST_SKIP() << "no NVRTC here";
  std::string why;
  const auto server = RealServer::apache("Require all granted", &why);
  if (!server) GTEST_SKIP() << why;
  const Outcome first = prewarm("a", server->url());
  EXPECT_EQ(first.last_line(), "prewarmed: 1 kernel, 1 compiled, 0 hits") << first.err;
  EXPECT_THAT(first.err, HasSubstr(",uploaded,"));
  EXPECT_EQ(prewarm("b", server->url()).last_line(), "prewarmed: 1 kernel, 0 compiled, 1 hit");
  EXPECT_EQ(prewarm("b", "").last_line(), "prewarmed: 1 kernel, 0 compiled, 1 hit") << "in its directory now";
}

TEST_F(RemoteProgram, ADeadRemoteIsNoTrouble) {
  if (!has_nvrtc()) GTEST_SKIP() << "no NVRTC here";
  const BoundPort port;
  const Outcome outcome = prewarm("a", port.url());
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.last_line(), "prewarmed: 1 kernel, 1 compiled, 0 hits");
  EXPECT_THAT(outcome.err, HasSubstr(",remote_failed,"));
}

TEST_F(RemoteProgram, DoctorSaysWhetherItAnswers) {
  MemoryRemote memory;
  std::string url;
  {
    HttpServer server(std::ref(memory));
    url = server.url();
    const Outcome good = run({"doctor"}, "a", "http://me:secret@" + url.substr(7));
    EXPECT_THAT(good.out, HasSubstr(url + ", remote, answers"));
    EXPECT_THAT(good.out, Not(HasSubstr("secret")));
  }
  const Outcome none = run({"doctor"}, "a", url);
  EXPECT_THAT(none.out, HasSubstr(url + ", remote, is no use\n"));
  EXPECT_THAT(none.out, HasSubstr("HSTUJIT_REMOTE_CACHE: Failed to connect"));
  const Outcome bad = run({"doctor"}, "a", "cache:8080");
  EXPECT_EQ(bad.code, 1);
  const std::string one_line = std::regex_replace(bad.out, std::regex("\\s+"), " ");
  EXPECT_THAT(one_line, HasSubstr("HSTUJIT_REMOTE_CACHE does not begin with http:// or https://; allowed: http://"));
}

}  // namespace
}  // namespace hstujit
