// A context over a cache of its own.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "compiler/support/files.h"
#include "hstujit/hstujit.h"
#include "tests/paths.h"

inline constexpr char kOp[] = R"({"op": "hstu_attention", "heads": 2, "attn_dim": 64, "hidden_dim": 64})";
inline constexpr char kConfig[] = R"({"version": 1, "device": "sm_90a", "ops": [
  {"name": "ranker", "op": "hstu_attention", "heads": 2, "attn_dim": 64, "hidden_dim": 64, "max_seq_len": [256, 300],
   "lengths": [5, 17, 300]}]})";

class CapiTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::make_unique<hstujit::TempDir>(hstujit::TempDir::create().value());
    cache_ = folder_->path().string();
    context_ = make_context();
  }

  hstujit_context* make_context(hstujit_miss_policy policy = HSTUJIT_ON_MISS_DEFAULT) {
    hstujit_context_options options = HSTUJIT_INIT(hstujit_context_options);
    options.cache_dir = cache_.c_str();
    options.cache_path = "";
    options.on_miss = policy;
    hstujit_context* context = nullptr;
    EXPECT_EQ(hstujit_context_create(&options, &context), HSTUJIT_OK) << hstujit_last_error();
    return context;
  }

  // Makes the context anew, with a compiler that every build has.
  void use_fake_compiler() {
    hstujit_text text = {};
    ASSERT_EQ(hstujit_doctor(context_, &text), HSTUJIT_OK) << hstujit_last_error();
    const std::string generator = parse(&text)["library"]["generator"];
    hstujit_context_destroy(context_);
    ::setenv("HSTUJIT_COMPILER_LIBRARY", hstujit::binary_path("/test_libraries/libhstujit_fake_compiler.so").c_str(),
             1);
    ::setenv("FAKE_COMPILER_GENERATOR", generator.c_str(), 1);
    ::setenv("FAKE_COMPILER_SCRIPT", "{}", 1);
    context_ = make_context();
  }

  void TearDown() override {
    hstujit_context_destroy(context_);
    for (const char* name : {"HSTUJIT_COMPILER_LIBRARY", "FAKE_COMPILER_GENERATOR", "FAKE_COMPILER_SCRIPT"})
      ::unsetenv(name);
  }

  // By parsing, so that nothing outlives the text.
  static nlohmann::json parse(hstujit_text* text) {
    nlohmann::json result = nlohmann::json::parse(text->data, text->data + text->size);
    hstujit_text_free(text);
    return result;
  }

  std::unique_ptr<hstujit::TempDir> folder_;
  std::string cache_;
  hstujit_context* context_ = nullptr;
};
