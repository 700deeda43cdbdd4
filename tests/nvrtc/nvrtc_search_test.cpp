#include "compiler/nvrtc/nvrtc_search.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "compiler/support/files.h"

namespace hstujit {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;

// A file system of its own, so that what this machine has installed plays no part.
class NvrtcSearchTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto folder = TempDir::create();
    ASSERT_TRUE(folder.ok());
    folder_.emplace(std::move(folder).value());
    places_.root = root();
    places_.variable = [this](const std::string& name) { return variables_[name]; };
  }

  std::string root() const { return folder_->path().native(); }

  std::string put(const std::string& path) {
    const std::filesystem::path file = folder_->path() / path;
    EXPECT_TRUE(make_directories(file.parent_path()).ok());
    EXPECT_TRUE(write_file_atomically(file, "x").ok());
    return file.native();
  }

  std::optional<TempDir> folder_;
  std::map<std::string, std::string> variables_;
  NvrtcPlaces places_;
};

TEST_F(NvrtcSearchTest, NamesForTheLoaderComeFirst) {
  EXPECT_THAT(nvrtc_candidates(places_), ElementsAre("libnvrtc.so.13", "libnvrtc.so.12"));
}

TEST_F(NvrtcSearchTest, ToolkitsNewestFirst) {
  const std::string old_toolkit = put("usr/local/cuda-12.8/lib64/libnvrtc.so.12");
  const std::string new_toolkit = put("usr/local/cuda-13.0/lib64/libnvrtc.so.13");
  const std::string chosen = put("my/toolkit/lib64/libnvrtc.so.12");
  variables_["CUDA_HOME"] = root() + "/my/toolkit";
  EXPECT_THAT(nvrtc_candidates(places_),
              ElementsAre("libnvrtc.so.13", "libnvrtc.so.12", chosen, new_toolkit, old_toolkit));
}

TEST_F(NvrtcSearchTest, FindsWheels) {
  const std::string beside = put("site/nvidia/cu13/lib/libnvrtc.so.13");
  const std::string active = put("venv/lib/python3.12/site-packages/nvidia/cuda_nvrtc/lib/libnvrtc.so.12");
  const std::string user = put("home/.local/lib/python3.11/site-packages/nvidia/cu13/lib/libnvrtc.so.13");
  const std::string conda = put("conda/lib/libnvrtc.so.12");
  places_.library_folder = root() + "/site/hstujit/lib";
  variables_["VIRTUAL_ENV"] = root() + "/venv";
  variables_["CONDA_PREFIX"] = root() + "/conda";
  variables_["HOME"] = root() + "/home";
  EXPECT_THAT(nvrtc_candidates(places_), ElementsAre("libnvrtc.so.13", "libnvrtc.so.12", beside, active, conda, user));
}

TEST_F(NvrtcSearchTest, MessageNamesFoldersThatDoNotExist) {
  EXPECT_THAT(nvrtc_folders(places_), Contains(root() + "/usr/local/cuda/lib64"));
}

TEST_F(NvrtcSearchTest, ExplicitPathIsAFileOrAFolder) {
  const std::string file = put("toolkit/lib64/libnvrtc.so.12");
  EXPECT_THAT(explicit_candidates(file), ElementsAre(file));
  EXPECT_THAT(explicit_candidates(root() + "/toolkit"), ElementsAre(file));
  EXPECT_THAT(explicit_candidates(root() + "/toolkit/lib64"), ElementsAre(file));
  EXPECT_THAT(explicit_candidates(root()), ElementsAre(root() + "/libnvrtc.so.13"));
}

}  // namespace
}  // namespace hstujit
