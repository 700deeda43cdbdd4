// Limits of control groups, of file systems that a test lays out.
#include "compiler/support/cgroup.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "compiler/support/files.h"

namespace hstujit {
namespace {

namespace fs = std::filesystem;

class CgroupTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto folder = TempDir::create();
    ASSERT_TRUE(folder.ok());
    folder_ = std::make_unique<TempDir>(std::move(*folder));
  }
  void put(const std::string& path, const std::string& text) const {
    const fs::path whole = folder_->path() / path;
    fs::create_directories(whole.parent_path());
    std::ofstream(whole) << text;
  }
  std::optional<uint64_t> limit() const {
    return cgroup_memory_limit(folder_->path() / "proc", folder_->path() / "cgroup");
  }

  std::unique_ptr<TempDir> folder_;
};

TEST_F(CgroupTest, WithoutGroupsThereIsNoLimit) {
  EXPECT_EQ(limit(), std::nullopt);
  put("proc/self/cgroup", "nonsense\n1:\n");
  EXPECT_EQ(limit(), std::nullopt);
}

TEST_F(CgroupTest, TheSmallestOfTheGroupsAroundAProcessCounts) {
  put("proc/self/cgroup", "0::/a/b\n");
  put("cgroup/a/b/memory.max", "max\n");
  EXPECT_EQ(limit(), std::nullopt);
  put("cgroup/a/memory.max", "1000\n");
  EXPECT_EQ(limit(), 1000);
  put("cgroup/a/b/memory.max", "3000\n");
  EXPECT_EQ(limit(), 1000);
  put("cgroup/a/b/memory.max", "300\n");
  EXPECT_EQ(limit(), 300);
}

TEST_F(CgroupTest, VersionOneSaysNoLimitByAHugeNumber) {
  put("proc/self/cgroup", "9:name=systemd:/\n4:cpu,memory:/docker/0123\n");
  put("cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  EXPECT_EQ(limit(), std::nullopt);
  put("cgroup/memory/memory.limit_in_bytes", "209715200\n");  // of a container that does not see its group's folder
  EXPECT_EQ(limit(), 209715200);
}

}  // namespace
}  // namespace hstujit
