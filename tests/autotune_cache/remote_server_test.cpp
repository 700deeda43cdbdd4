// The remote layer against nginx and Apache, with their DAV modules, as they are installed.
#include <fmt/format.h>

#include "compiler/support/hash.h"
#include "tests/autotune_cache/real_server.h"
#include "tests/autotune_cache/remote_fixture.h"

namespace hstujit {
namespace {

using ::testing::HasSubstr;

constexpr const char* kNginxWritable = "dav_methods PUT; create_full_put_path on;";
constexpr const char* kNginxCollections = "dav_methods PUT MKCOL;";

struct Served {
  const char* name;
  std::unique_ptr<RealServer> (*start)(const std::string& settings, std::string* why);
  const char* settings;
};

class RemoteServerTest : public RemoteTest, public ::testing::WithParamInterface<Served> {
 protected:
  // Null, and the test is skipped, where the server is not installed; a server that does not start is a failure.
  std::unique_ptr<RealServer> start(const std::string& settings = "") {
    std::string why;
    auto server = GetParam().start(settings.empty() ? GetParam().settings : settings, &why);
    if (!server) {
      EXPECT_THAT(why, HasSubstr("is not installed"));
    }
    return server;
  }
};

#define START_OR_SKIP(server, ...)        \
  const auto server = start(__VA_ARGS__); \
  if (!server) GTEST_SKIP() << "the server is not installed"

TEST_P(RemoteServerTest, KernelsGoThereAndBack) {
  START_OR_SKIP(server);
  // Larger than any buffer on the way.
  const std::string large = cubin_of(std::string(3 << 20, 'x'));
  make(server->url(), sample_key(), large);
  make(server->url(), sample_key("{}"), cubin_of("small"));
  EXPECT_TRUE(std::filesystem::exists(server->folder() / "cas" / sha256_hex(large)));
  EXPECT_EQ(events("uploaded"), 2);
  const auto other = store("other", remote(server->url()));
  const auto found = other->find(sample_key());
  ASSERT_TRUE(found);
  EXPECT_TRUE(found->cubin == large);
  EXPECT_EQ(found->info, sample_info());
  EXPECT_TRUE(other->find(sample_key("{}")));
  EXPECT_FALSE(other->find(sample_key("[]")));
  EXPECT_TRUE(remote(server->url())->health().ok());
  EXPECT_EQ(lines_with("remote_failed"), "");
  EXPECT_EQ(found_by("other", nullptr, sample_key()), large) << "kept in the directory";
}

TEST_P(RemoteServerTest, RecordsAreMerged) {
  START_OR_SKIP(server);
  ASSERT_TRUE(TuningDatabase(layers("a", remote(server->url())), log()).add(record_of(R"({"m":64})", 20)).ok());
  ASSERT_TRUE(TuningDatabase(layers("b", remote(server->url())), log()).add(record_of(R"({"m":128})", 10)).ok());
  const auto found = TuningDatabase(layers("c", remote(server->url())), log()).find(record_of("{}", 1).key);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->timed.size(), 2u);
}

TEST_P(RemoteServerTest, FilesThatSomebodyChangedAreAMissAndReplaced) {
  START_OR_SKIP(server);
  const std::string cubin = cubin_of("a kernel");
  make(server->url(), sample_key(), cubin);
  const auto file = server->folder() / "cas" / sha256_hex(cubin);
  std::filesystem::resize_file(file, cubin.size() - 1);
  {
    const auto machine = store("user", remote(server->url()));
    EXPECT_FALSE(machine->find(sample_key()));
    EXPECT_THAT(lines_with("remote_failed"), HasSubstr("the cubin has"));
    EXPECT_TRUE(machine->put(sample_key(), cubin, sample_info()));
  }
  EXPECT_EQ(found_by("other", remote(server->url()), sample_key()), cubin);
}

TEST_P(RemoteServerTest, AServerThatTakesNothingIsReadOnly) {
  START_OR_SKIP(server, GetParam().start == &RealServer::nginx ? "autoindex off;" : "Dav Off");
  make(server->url(), sample_key(), cubin_of("a kernel"));
  EXPECT_EQ(events("remote_uploads_off"), 1);
  EXPECT_FALSE(store("other", remote(server->url()))->find(sample_key()));
  EXPECT_EQ(lines_with("remote_failed"), "");
}

INSTANTIATE_TEST_SUITE_P(, RemoteServerTest,
                         ::testing::Values(Served{"nginx", &RealServer::nginx, kNginxWritable},
                                           Served{"nginx_collections", &RealServer::nginx, kNginxCollections},
                                           Served{"apache", &RealServer::apache, "Require all granted"}),
                         [](const auto& served) { return served.param.name; });

using PasswordTest = RemoteTest;

TEST_F(PasswordTest, IsSentWhereTheUrlHasOne) {
  std::string why;
  const auto server =
      RealServer::nginx(fmt::format("{} auth_basic kernels; auth_basic_user_file passwords;", kNginxWritable), &why);
  if (!server) GTEST_SKIP() << why;
  ASSERT_TRUE(write_file_atomically(server->passwords(), "me:{PLAIN}p@ss word\n").ok());
  make(server->url("me:p%40ss%20word@"), sample_key(), cubin_of("a kernel"));
  EXPECT_EQ(lines_with("remote_uploads_off"), "");
  EXPECT_EQ(found_by("other", remote(server->url("me:p%40ss%20word@")), sample_key()), cubin_of("a kernel"));
  EXPECT_EQ(found_by("third", remote(server->url("me:wrong@")), sample_key()), "");
  EXPECT_THAT(lines_with("remote_failed"), HasSubstr("it answers 401 to GET"));
  for (const std::string& line : lines_) EXPECT_EQ(line.find("p@ss"), std::string::npos) << line;
}

}  // namespace
}  // namespace hstujit
