// Operations and the cache behind the C API: their reports, of a machine without a GPU.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>

#include "hstujit/hstujit.hpp"
#include "tests/capi/capi_fixture.h"

namespace {

using nlohmann::json;
using ::testing::HasSubstr;

TEST_F(CapiTest, WithoutACacheDirectoryThereIsNoPath) {
  const std::string names[] = {"HSTUJIT_CACHE_DIR", "XDG_CACHE_HOME", "HOME"};
  std::map<std::string, std::optional<std::string>> before;
  for (const std::string& name : names) {
    const char* const value = std::getenv(name.c_str());
    before[name] = value == nullptr ? std::nullopt : std::optional<std::string>(value);
    ::unsetenv(name.c_str());
  }
  // An empty directory is none that was named, as the variable's.
  for (const char* const none : {static_cast<const char*>(nullptr), ""}) {
    hstujit_context_options options = HSTUJIT_INIT(hstujit_context_options);
    options.cache_dir = none;
    hstujit_context* context = nullptr;
    ASSERT_EQ(hstujit_context_create(&options, &context), HSTUJIT_OK) << hstujit_last_error();
    hstujit_text text = {};
    EXPECT_EQ(hstujit_cache_path(context, &text), HSTUJIT_NOT_FOUND);
    EXPECT_STREQ(
        hstujit_last_error(),
        "there is no cache directory: HSTUJIT_CACHE_DIR, XDG_CACHE_HOME and HOME are all unset; cache_dir names one");
    hstujit_context_destroy(context);
    ::setenv("HSTUJIT_CACHE_DIR", cache_.c_str(), 1);
    ASSERT_EQ(hstujit_context_create(&options, &context), HSTUJIT_OK) << hstujit_last_error();
    ASSERT_EQ(hstujit_cache_path(context, &text), HSTUJIT_OK) << hstujit_last_error();
    EXPECT_EQ(std::string(text.data), cache_);
    hstujit_text_free(&text);
    hstujit_context_destroy(context);
    ::unsetenv("HSTUJIT_CACHE_DIR");
  }
  for (const auto& [name, value] : before)
    if (value) ::setenv(name.c_str(), value->c_str(), 1);
}

TEST_F(CapiTest, ExplainNeedsNoGpuWhenTheDeviceIsGiven) {
  const auto config = hstujit::api::Config::parse(kConfig);
  hstujit_text text = {};
  ASSERT_EQ(hstujit_explain(context_, config.get(), nullptr, &text), HSTUJIT_OK) << hstujit_last_error();
  const json report = parse(&text);
  EXPECT_EQ(report["instances"][0]["bucket"], 256);
  EXPECT_EQ(report["instances"][1]["bucket"], 256);
  EXPECT_EQ(report["instances"][1]["short_sequences"], true);
  EXPECT_EQ(report["instances"][2]["bucket"], 512);
  EXPECT_FALSE(report["instances"][0]["cache"]["hit"]);
  EXPECT_EQ(report["instances"][0]["key"].get<std::string>().size(), 64u);
}

TEST_F(CapiTest, CheckSaysTheKernelOfEachKey) {
  const auto config = hstujit::api::Config::parse(kConfig);
  hstujit_text text = {};
  ASSERT_EQ(hstujit_check(context_, config.get(), nullptr, &text), HSTUJIT_OK) << hstujit_last_error();
  const json report = parse(&text);
  EXPECT_EQ(report["keys"], 4) << "of short sequences and of others";
  const json keys = report["instances"][0]["keys"];
  EXPECT_EQ(keys[0]["bucket"], 256);
  EXPECT_EQ(keys[2]["max_seq_len"], json({300}));
  EXPECT_FALSE(keys[2]["config"].empty());
}

TEST_F(CapiTest, DoctorAndCacheReportsNeverNeedAnything) {
  hstujit_text text = {};
  ASSERT_EQ(hstujit_doctor(context_, &text), HSTUJIT_OK) << hstujit_last_error();
  const json report = parse(&text);
  EXPECT_TRUE(report["driver"].contains("ok"));
  EXPECT_EQ(report["cache"][0]["path"], cache_);
  ASSERT_EQ(hstujit_cache_list(context_, &text), HSTUJIT_OK);
  EXPECT_EQ(parse(&text)["kernels"].size(), 0u);
  ASSERT_EQ(hstujit_cache_verify(context_, &text), HSTUJIT_OK);
  EXPECT_EQ(parse(&text)["bad"].size(), 0u);
  ASSERT_EQ(hstujit_cache_prune(context_, 0, &text), HSTUJIT_OK);
  EXPECT_EQ(parse(&text)["kept"], 0);
  ASSERT_EQ(hstujit_cache_prune_nvrtc(context_, "12.8", &text), HSTUJIT_OK);
  EXPECT_EQ(parse(&text)["removed"], 0);
  for (const std::string wrong : {"", "13", "13.", ".0", "13.0.1", "-13.0", "x"}) {
    EXPECT_EQ(hstujit_cache_prune_nvrtc(context_, wrong.c_str(), &text), HSTUJIT_INVALID_ARGUMENT) << wrong;
    EXPECT_THAT(hstujit_last_error(), HasSubstr("version is \"" + wrong + "\"; allowed: a version of NVRTC"));
  }
  ASSERT_EQ(hstujit_cache_path(context_, &text), HSTUJIT_OK);
  EXPECT_EQ(std::string(text.data), cache_);
  hstujit_text_free(&text);
}

TEST_F(CapiTest, StatsAreOfOneContext) {
  hstujit_text text = {};
  for (const char* format : {static_cast<const char*>(nullptr), "json"}) {
    ASSERT_EQ(hstujit_stats(context_, format, &text), HSTUJIT_OK) << hstujit_last_error();
    const nlohmann::json stats = parse(&text);
    EXPECT_EQ(stats["kernels"]["compiled"], 0);
    EXPECT_EQ(stats["tunings"]["done"], 0);
    EXPECT_TRUE(stats["launches"].is_array() && stats["launches"].empty());
  }
  ASSERT_EQ(hstujit_stats(context_, "prometheus", &text), HSTUJIT_OK) << hstujit_last_error();
  EXPECT_EQ(std::string_view(text.data, text.size).find("# HELP hstujit_kernel_lookups_total "), 0u);
  hstujit_text_free(&text);
  EXPECT_EQ(hstujit_stats(context_, "xml", &text), HSTUJIT_INVALID_ARGUMENT);
  EXPECT_STREQ(hstujit_last_error(), "format is \"xml\"; it must be \"json\" or \"prometheus\"");
  EXPECT_EQ(hstujit_stats(nullptr, "json", &text), HSTUJIT_INVALID_ARGUMENT);
  EXPECT_EQ(hstujit_stats(context_, "json", nullptr), HSTUJIT_INVALID_ARGUMENT);
}

TEST_F(CapiTest, ABundleGoesOutAndIn) {
  const std::string path = cache_ + "/bundle.tar";
  hstujit_text text = {};
  hstujit_cache_export_options options = HSTUJIT_INIT(hstujit_cache_export_options);
  options.op = "hstu_attention";
  EXPECT_EQ(hstujit_cache_export(context_, path.c_str(), &options, &text), HSTUJIT_NOT_FOUND);
  EXPECT_THAT(hstujit_last_error(), HasSubstr("no choice of hstu_attention; nothing is exported"));
  EXPECT_FALSE(std::filesystem::exists(path));
  options.op = "norm_attention";
  EXPECT_EQ(hstujit_cache_export(context_, path.c_str(), &options, &text), HSTUJIT_NOT_FOUND);
  EXPECT_THAT(hstujit_last_error(), HasSubstr("no choice of norm_attention or of its steps, hstu_attention, "
                                              "layer_norm, rms_norm; nothing is exported"));
  options.op = "hstu_attention";
  use_fake_compiler();
  hstujit_config* config = nullptr;
  ASSERT_EQ(hstujit_config_parse(kConfig, "model.json", &config), HSTUJIT_OK) << hstujit_last_error();
  const hstujit_run_options run = HSTUJIT_INIT(hstujit_run_options);
  ASSERT_EQ(hstujit_prewarm(context_, config, &run, &text), HSTUJIT_OK) << hstujit_last_error();
  hstujit_text_free(&text);
  hstujit_config_destroy(config);
  ASSERT_EQ(hstujit_cache_export(context_, path.c_str(), &options, &text), HSTUJIT_OK) << hstujit_last_error();
  const json exported = parse(&text);
  EXPECT_GE(exported["choices"], 1);
  EXPECT_EQ(exported["bytes"], std::filesystem::file_size(path));
  const std::string words = "what somebody wrote", other = cache_ + "/words";
  std::ofstream(other) << words;
  EXPECT_EQ(hstujit_cache_export(context_, other.c_str(), &options, &text), HSTUJIT_INVALID_ARGUMENT);
  EXPECT_EQ(std::string(hstujit_last_error()),
            "path is \"" + other + "\"; the existing file is not a bundle, and is not replaced");
  EXPECT_EQ(std::filesystem::file_size(other), words.size());
  hstujit_context_options reading = HSTUJIT_INIT(hstujit_context_options);
  reading.cache_dir = cache_.c_str();
  reading.cache_path = path.c_str();
  hstujit_context* reader = nullptr;
  ASSERT_EQ(hstujit_context_create(&reading, &reader), HSTUJIT_OK) << hstujit_last_error();
  EXPECT_EQ(hstujit_cache_export(reader, path.c_str(), &options, &text), HSTUJIT_INVALID_ARGUMENT);
  EXPECT_EQ(std::string(hstujit_last_error()), "path is \"" + path + "\"; it is read, and would be lost");
  hstujit_context_destroy(reader);
  options.op = "norm_attention";  // of whose steps one is
  ASSERT_EQ(hstujit_cache_export(context_, path.c_str(), &options, &text), HSTUJIT_OK) << hstujit_last_error();
  EXPECT_EQ(parse(&text)["kernels"], exported["kernels"]);
  options.op = "silu";
  EXPECT_EQ(hstujit_cache_export(context_, path.c_str(), &options, &text), HSTUJIT_NOT_FOUND);
  ASSERT_EQ(hstujit_cache_import(context_, path.c_str(), &text), HSTUJIT_OK) << hstujit_last_error();
  EXPECT_EQ(parse(&text)["new_kernels"], 0);
  std::filesystem::resize_file(path, 1000);
  EXPECT_EQ(hstujit_cache_import(context_, path.c_str(), &text), HSTUJIT_IO);
  EXPECT_THAT(hstujit_last_error(), HasSubstr(path + " is no whole bundle"));
  EXPECT_EQ(hstujit_cache_import(context_, (cache_ + "/absent").c_str(), &text), HSTUJIT_NOT_FOUND);
  EXPECT_EQ(hstujit_cache_export(context_, nullptr, nullptr, &text), HSTUJIT_INVALID_ARGUMENT);
  options.op = "hstu_attentoin";
  EXPECT_EQ(hstujit_cache_export(context_, path.c_str(), &options, &text), HSTUJIT_INVALID_ARGUMENT);
  EXPECT_THAT(hstujit_last_error(), HasSubstr("op is \"hstu_attentoin\", did you mean \"hstu_attention\"?"));
  options.op = "";
  EXPECT_EQ(hstujit_cache_export(context_, path.c_str(), &options, &text), HSTUJIT_INVALID_ARGUMENT);
  EXPECT_THAT(hstujit_last_error(), HasSubstr("op is \"\"; allowed: "));
  options.size = 8;
  EXPECT_EQ(hstujit_cache_export(context_, path.c_str(), &options, &text), HSTUJIT_INVALID_ARGUMENT);
  EXPECT_THAT(hstujit_last_error(), HasSubstr("hstujit_cache_export_options.size is 8"));
}

}  // namespace
