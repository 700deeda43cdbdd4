// The C functions of the compiler library: requests in, named blobs out.
#include "compiler/driver/compiler_api.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "compiler/generator/generator_digest.h"
#include "compiler/plan/skeleton.h"
#include "compiler/spec/device_spec.h"
#include "compiler/support/json.h"
#include "compiler/support/status.h"

namespace hstujit {
namespace {

using Json = nlohmann::ordered_json;
using BlobMap = std::map<std::string, std::string>;

Code run(const std::string& request, BlobMap& blobs) {
  const auto sink = [](void* context, const char* name, const void* data, size_t size) {
    (*static_cast<BlobMap*>(context))[name].assign(static_cast<const char*>(data), size);
  };
  return static_cast<Code>(hstujit_compiler_run(request.c_str(), &blobs, sink));
}

Json good_request(const char* command) {
  const Json spec_json = {{"op", "hstu_attention"}, {"heads", 2}, {"attn_dim", 64}, {"hidden_dim", 64}};
  const DeviceSpec device = *known_device("sm_90a");
  const OpSpecPtr spec = *parse_op_spec(spec_json, "spec");
  for (const Skeleton* skeleton : skeletons()) {
    if (!skeleton->serves(*spec, Direction::kForward)) continue;
    for (const KernelConfig& config : skeleton->space(*spec)) {
      if (!skeleton->reject(*spec, config, device).empty()) continue;
      return {{"command", command},        {"spec", spec_json},
              {"direction", "forward"},    {"config", to_json(config)},
              {"device", to_json(device)}, {"options", {{"lineinfo", false}, {"nvrtc", ""}}}};
    }
  }
  return {};
}

TEST(CompilerApi, EmitsSourceIrAndLauncher) {
  BlobMap blobs;
  ASSERT_EQ(run(good_request("emit").dump(), blobs), Code::kOk) << blobs["error"];
  EXPECT_NE(blobs["source"].find("extern \"C\" __global__"), std::string::npos);
  EXPECT_NE(blobs["ir"].find("@mask_valid"), std::string::npos);
  EXPECT_NE(blobs["launcher"].find("int main("), std::string::npos);
  EXPECT_EQ(blobs.count("cubin"), 0U);
}

TEST(CompilerApi, CompilesToACubinWithResources) {
  BlobMap blobs;
  const Code code = run(good_request("compile").dump(), blobs);
  if (code == Code::kNoCompiler) GTEST_SKIP() << blobs["error"];
  ASSERT_EQ(code, Code::kOk) << blobs["error"] << blobs["log"];
  EXPECT_EQ(blobs["cubin"].substr(0, 4),
            "\x7f"
            "ELF");
  const Json resources = Json::parse(blobs["resources"], nullptr, false);
  EXPECT_GT(resources.value("registers", 0), 0);
  EXPECT_GT(resources.value("compile_ms", 0.0), 0.0);
  EXPECT_TRUE(resources.contains("spill_load_bytes"));
}

TEST(CompilerApi, BadRequestsAreSentences) {
  const auto broken = [](auto change) {
    Json request = good_request("emit");
    change(request);
    return request.dump();
  };
  const std::pair<std::string, std::string> cases[] = {
      {"{", "request: not a JSON object"},
      {broken([](Json& r) { r["command"] = "run"; }), "command is \"run\""},
      {broken([](Json& r) { r["direction"] = "up"; }), "direction is \"up\""},
      {broken([](Json& r) { r.erase("config"); }), "config must be an object"},
      {broken([](Json& r) { r["spec"]["heads"] = 0; }), "heads"},
      {broken([](Json& r) { r["config"]["blocks_per_sm"] = 0; }), "config.blocks_per_sm is 0"},
      {broken([](Json& r) { r["options"]["fast"] = true; }), "options.fast"}};
  for (const auto& [request, part] : cases) {
    BlobMap blobs;
    EXPECT_EQ(run(request, blobs), Code::kInvalidConfig) << request;
    EXPECT_NE(blobs["error"].find(part), std::string::npos) << blobs["error"];
  }
}

TEST(CompilerApi, MissingNvrtcIsNoCompiler) {
  Json request = good_request("compile");
  request["options"]["nvrtc"] = "/nonexistent/libnvrtc.so";
  BlobMap blobs;
  EXPECT_EQ(run(request.dump(), blobs), Code::kNoCompiler);
  EXPECT_NE(blobs["error"].find("/nonexistent/libnvrtc.so"), std::string::npos) << blobs["error"];
  EXPECT_FALSE(blobs["source"].empty());
}

TEST(CompilerApi, SaysWhichNvrtcItUses) {
  BlobMap blobs;
  EXPECT_EQ(run(R"({"command": "nvrtc", "options": {"nvrtc": "/nonexistent/libnvrtc.so"}})", blobs), Code::kNoCompiler);
  EXPECT_NE(blobs["error"].find("/nonexistent/libnvrtc.so"), std::string::npos) << blobs["error"];
  blobs.clear();
  const Code code = run(R"({"command": "nvrtc", "options": {"nvrtc": ""}})", blobs);
  if (code == Code::kNoCompiler) {
    // All the places of the search, not a list of doctor's own.
    EXPECT_NE(blobs["error"].find("site-packages"), std::string::npos) << blobs["error"];
    return;
  }
  ASSERT_EQ(code, Code::kOk) << blobs["error"];
  const Json nvrtc = Json::parse(blobs["nvrtc"], nullptr, false);
  EXPECT_NE(nvrtc.value("path", "").find("nvrtc"), std::string::npos);
  EXPECT_NE(nvrtc.value("version", ""), "");
  const auto archs = nvrtc["archs"].get<std::vector<int>>();
  EXPECT_NE(std::find(archs.begin(), archs.end(), 90), archs.end());
}

TEST(CompilerApi, NullArgumentsAreRefused) {
  EXPECT_EQ(static_cast<Code>(hstujit_compiler_run(nullptr, nullptr, nullptr)), Code::kInvalidArgument);
  EXPECT_EQ(hstujit_compiler_abi(), HSTUJIT_COMPILER_ABI);
}

TEST(CompilerApi, SaysTheDigestOfItsGenerator) {
  EXPECT_EQ(hstujit_compiler_generator(), std::string(generator_digest()));
  EXPECT_EQ(generator_digest().size(), 64U);
}

}  // namespace
}  // namespace hstujit
