// Whole generated sources: the same bytes every time, and accepted by NVRTC for every skeleton.
#include "compiler/emit/source.h"

#include <gtest/gtest.h>

#include <regex>
#include <thread>

#include "compiler/emit/flatten.h"
#include "compiler/emit/launcher.h"
#include "compiler/generator/generator_digest.h"
#include "compiler/nvrtc/cubin.h"
#include "compiler/nvrtc/nvrtc.h"
#include "compiler/plan/skeleton.h"
#include "compiler/support/code_text.h"
#include "compiler/support/hash.h"
#include "compiler/support/json.h"
#include "tests/emit/emit_with.h"
#include "tests/emit/toy_operator.h"
#include "tests/nvrtc/kept_results.h"
#include "tests/passes/attention_cases.h"
#include "tests/paths.h"

namespace hstujit {
namespace {

// The first config of each skeleton that `device` accepts for `params`.
std::vector<KernelConfig> accepted_configs(const HstuAttentionParams& params, const DeviceSpec& device) {
  const HstuAttentionSpec spec(params);
  std::vector<KernelConfig> configs;
  for (const Skeleton* skeleton : skeletons()) {
    if (!skeleton->serves(spec, Direction::kForward)) continue;
    for (const KernelConfig& config : skeleton->space(spec)) {
      if (!skeleton->reject(spec, config, device).empty()) continue;
      configs.push_back(config);
      break;
    }
  }
  return configs;
}

DeviceSpec device_of(const char* arch) {
  const auto device = known_device(arch);
  EXPECT_TRUE(device.ok()) << device.status().message();
  return *device;
}

// The build follows includes by itself; here they are the emitter's, of the entry that the host side names.
TEST(Source, TheDigestOfASkeletonIsOfTheTemplatesInItsSources) {
  for (const Skeleton* skeleton : skeletons()) {
    const auto flat =
        flatten_template(embedded_templates(), skeleton->entry_file(), {"common/types.cuh", "common/math.cuh"});
    ASSERT_TRUE(flat.ok()) << flat.status().message();
    const auto& table = skeleton_digests();
    const auto found = std::find_if(table.begin(), table.end(),
                                    [&](const SkeletonDigests& row) { return row.entry == skeleton->entry_file(); });
    ASSERT_NE(found, table.end()) << skeleton->name() << " has no digest";
    EXPECT_EQ(found->device, sha256_hex(without_comments(flat->common + flat->own))) << skeleton->name();
    EXPECT_NE(kernel_generator("hstu_attention", skeleton->entry_file()), generator_digest()) << skeleton->name();
  }
}

TEST(Source, SameBytesFromEveryThread) {
  HstuAttentionParams params = attention_params();
  params.num_targets = true;
  params.max_attn_len = 100;
  const HstuAttentionSpec spec(params);
  const DeviceSpec device = device_of("sm_90a");
  const auto configs = accepted_configs(params, device);
  ASSERT_FALSE(configs.empty());
  std::vector<std::string> sources(4);
  std::vector<std::thread> threads;
  for (std::string& source : sources) {
    threads.emplace_back([&] {
      const auto kernel = emit_kernel(spec, Direction::kForward, configs[0], device);
      if (kernel.ok()) source = kernel->source + print_launcher(spec, Direction::kForward, kernel->plan, device);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_FALSE(sources[0].empty());
  for (const std::string& source : sources) EXPECT_EQ(source, sources[0]);
  EXPECT_EQ(sources[0].find("#include \"common"), std::string::npos);
  EXPECT_EQ(sources[0].find(source_path()), std::string::npos);
}

TEST(Source, CompilesForEverySkeletonAndScore) {
  const auto nvrtc = Nvrtc::open();
  if (!nvrtc.ok()) GTEST_SKIP() << nvrtc.status().message();
  for (const char* arch : {"sm_90a", "sm_80"}) {
    const DeviceSpec device = device_of(arch);
    for (const auto& [name, params] : named_cases()) {
      if (name == "causal" || name == "target_groups") continue;  // parts of other cases; compiling is slow
      for (const KernelConfig& config : accepted_configs(params, device)) {
        const auto kernel = emit_kernel(HstuAttentionSpec(params), Direction::kForward, config, device);
        ASSERT_TRUE(kernel.ok()) << kernel.status().message();
        std::string log;
        const auto output =
            compile_once(kept_cubins(), **nvrtc, compile_input(kernel->source, kernel->plan, arch), &log);
        EXPECT_TRUE(output.ok()) << name << ", " << config.skeleton << ": "
                                 << (output.ok() ? "" : output.status().message()) << log;
      }
    }
  }
}

// Whether `source` has `name` as more than a part of another word.
bool names(const std::string& source, const std::string& name) {
  return std::regex_search(source, std::regex("\\b" + name + "\\b"));
}

// A kernel of relu has the maximum that keeps NaN, and others have no trace of it.
TEST(Source, TheMaximumThatKeepsNanIsWhereAScoreHasIt) {
  const DeviceSpec device = *known_device("sm_90a");
  for (const Direction direction : {Direction::kForward, Direction::kBackward}) {
    for (const char* score : {"silu", "relu", "relu2"}) {
      const OpSpecPtr spec =
          parse_op_spec(
              {{"op", "hstu_attention"}, {"heads", 2}, {"attn_dim", 64}, {"hidden_dim", 64}, {"score", score}}, "spec")
              .value();
      for (const Skeleton* skeleton : skeletons()) {
        if (!skeleton->serves(*spec, direction)) continue;
        for (const KernelConfig& config : skeleton->space(*spec)) {
          if (!skeleton->reject(*spec, config, device).empty()) continue;
          const auto kernel = emit_kernel(*spec, direction, config, device);
          ASSERT_TRUE(kernel.ok()) << kernel.status().message();
          const bool there = kernel->source.find("max.NaN.f32") != std::string::npos;
          EXPECT_EQ(there, std::string_view(score) != "silu") << skeleton->name() << " " << score;
          break;
        }
      }
    }
  }
}

TEST(Source, RegionsThatNoTemplateNamesLeaveNoTrace) {
  const HstuAttentionParams params = attention_params();
  for (const char* arch : {"sm_90a", "sm_80"}) {
    const DeviceSpec device = device_of(arch);
    for (const KernelConfig& config : accepted_configs(params, device)) {
      const auto kernel = emit_kernel(HstuAttentionSpec(params), Direction::kForward, config, device);
      ASSERT_TRUE(kernel.ok()) << kernel.status().message();
      for (const char* used : {"mask_valid", "mask_tile", "mask_columns", "score"})
        EXPECT_TRUE(names(kernel->source, used)) << config.skeleton << " " << used;
      for (const char* unused : {"mask_rows", "score_grad"})
        EXPECT_FALSE(names(kernel->source, unused)) << config.skeleton << " " << unused;
    }
  }
}

// A template that names one region gets this one, whole words only.
TEST(Source, ARegionIsPrintedForTheTemplateThatNamesIt) {
  const DeviceSpec device = device_of("sm_80");
  const HstuAttentionSpec spec(attention_params());
  const auto configs = accepted_configs(attention_params(), device);
  ASSERT_FALSE(configs.empty());
  const Skeleton& skeleton = **find_skeleton(configs[0].skeleton);
  std::vector<EmbeddedTemplate> templates;
  for (const EmbeddedTemplate& file : embedded_templates()) {
    if (file.path.starts_with("common/")) templates.push_back(file);
  }
  const std::string entry = skeleton.entry_file();
  templates.push_back({entry, "// my_score and score_gradient are none\nvoid f() { mask_rows(); }\n"});
  const auto kernel =
      emit_with(skeleton, templates, operator_schema(spec.op()), spec, Direction::kForward, configs[0], device);
  ASSERT_TRUE(kernel.ok()) << kernel.status().message();
  EXPECT_NE(kernel->source.find("void mask_rows(int c0"), std::string::npos);
  for (const char* other : {" mask_valid(", " mask_columns(", " score(", " score_grad("})
    EXPECT_EQ(kernel->source.find(other), std::string::npos) << other;
}

// A timing holds as long as its source does: what is not in the source must not change it.
TEST(Source, WhatIsNotUsedLeavesTheBytesAsTheyAre) {
  const DeviceSpec device = device_of("sm_80");
  const HstuAttentionSpec spec(attention_params());
  const auto configs = accepted_configs(attention_params(), device);
  ASSERT_FALSE(configs.empty());
  const Skeleton& skeleton = **find_skeleton(configs[0].skeleton);
  const auto source_with = [&](const std::vector<EmbeddedTemplate>& templates) {
    const auto kernel =
        emit_with(skeleton, templates, operator_schema(spec.op()), spec, Direction::kForward, configs[0], device);
    EXPECT_TRUE(kernel.ok()) << kernel.status().message();
    return kernel.ok() ? kernel->source : "";
  };
  const std::string source = source_with(embedded_templates());
  std::vector<EmbeddedTemplate> others = embedded_templates();
  for (EmbeddedTemplate& file : others) {
    if (file.path == "attention/sm90_forward/kernel.cuh") file.text = "// another text\n";
  }
  others.push_back({"another_op/kernel.cuh", "// a template of another operator\n"});
  EXPECT_EQ(source_with(others), source);
  EXPECT_TRUE(names(source, "kBlockM"));
  for (const char* unread : {"kConsumers", "kLanesArrive", "kPingPong", "lanes_arrive", "kCausal", "kScoreSilu"})
    EXPECT_FALSE(names(source, unread)) << unread;
  EXPECT_EQ(source.find("// Generated by hstu-jit from\n"), 0u);
  EXPECT_EQ(source.find(key_text(configs[0])), source.find("{\"skeleton\"")) << "the header has the canonical config";
}

TEST(Source, OperatorsMayShareTemplatesAndCommonFilesBelongToNone) {
  const ToySpec spec;
  const ToySkeleton skeleton;
  const DeviceSpec device = device_of("sm_80");
  const auto error_with = [&](std::string_view path, std::string_view text) {
    std::vector<EmbeddedTemplate> templates = {{"common/types.cuh", ""},
                                               {"common/math.cuh", ""},
                                               {"toy/helper.cuh", "#include \"common/math.cuh\"\n"},
                                               {"other_op/helper.cuh", ""},
                                               {"toy/simple/kernel.cuh", "#include \"toy/helper.cuh\"\n"}};
    for (EmbeddedTemplate& file : templates) {
      if (file.path == path) file.text = text;
    }
    return emit_with(skeleton, templates, toy_schema(), spec, Direction::kForward, skeleton.space(spec)[0], device)
        .status()
        .message();
  };
  EXPECT_EQ(error_with("", ""), "");
  EXPECT_EQ(error_with("toy/simple/kernel.cuh", "#include \"other_op/helper.cuh\"\n"), "");
  EXPECT_EQ(error_with("common/math.cuh", "#include \"toy/helper.cuh\"\n"),
            "template common/math.cuh includes toy/helper.cuh; files of common/ are of no operator, and may "
            "include files of common/ only");
  EXPECT_EQ(error_with("toy/simple/kernel.cuh", "#include \"toy/none.cuh\"\n"),
            "template toy/simple/kernel.cuh includes toy/none.cuh, which is no template");
}

TEST(Source, AnOperatorWithoutRegions) {
  const ToySpec spec({{"op", "toy"}, {"width", 64}, {"dropout", 0.25}});
  const ToySkeleton skeleton;
  const DeviceSpec device = device_of("sm_80");
  const auto kernel =
      emit_with(skeleton, toy_templates(), toy_schema(), spec, Direction::kForward, skeleton.space(spec)[0], device);
  ASSERT_TRUE(kernel.ok()) << kernel.status().message();
  for (const char* name : {"mask_valid", "mask_tile", "score", "kMaskTrivial"})
    EXPECT_FALSE(names(kernel->source, name)) << name;
  EXPECT_TRUE(names(kernel->source, "kWidth = 64"));
  const ToySpec other({{"op", "toy"}, {"width", 64}, {"dropout", 0.5}});
  const auto same =
      emit_with(skeleton, toy_templates(), toy_schema(), other, Direction::kForward, skeleton.space(other)[0], device);
  ASSERT_TRUE(same.ok()) << same.status().message();
  EXPECT_NE(same->source, kernel->source) << "the header has the parameter";
  EXPECT_EQ(without_comments(same->source), without_comments(kernel->source)) << "the template does not read dropout";
  const auto nvrtc = Nvrtc::open();
  if (!nvrtc.ok()) GTEST_SKIP() << nvrtc.status().message();
  std::string log;
  const auto output = (*nvrtc)->compile(compile_input(kernel->source, kernel->plan, device.arch), &log);
  EXPECT_TRUE(output.ok()) << (output.ok() ? "" : output.status().message()) << log;
}

TEST(Source, KernelsThatFollowAreOfTheSameCubin) {
  const ToySpec spec;
  const AddRowsSkeleton skeleton;
  const DeviceSpec device = device_of("sm_80");
  const auto kernel =
      emit_with(skeleton, toy_templates(), toy_schema(), spec, Direction::kForward, skeleton.space(spec)[0], device);
  ASSERT_TRUE(kernel.ok()) << kernel.status().message();
  EXPECT_NE(kernel->source.find("  float* sums;\n"), std::string::npos);
  EXPECT_TRUE(kernel->source.ends_with(
      "// ---- kernel\n"
      "extern \"C\" __global__ void __launch_bounds__(64, 1) add_rows(const __grid_constant__ Params params) {\n"
      "  kernel_main<Spec, Config>(params);\n"
      "}\n"
      "extern \"C\" __global__ void __launch_bounds__(32) add_rows_write(const __grid_constant__ Params params) {\n"
      "  write_sums<Spec, Config>(params);\n"
      "}\n"))
      << kernel->source;
  const auto nvrtc = Nvrtc::open();
  if (!nvrtc.ok()) GTEST_SKIP() << nvrtc.status().message();
  CompileInput input;
  input.source = kernel->source;
  input.entry = kernel->plan.kernel_name;
  input.others = {kernel->plan.following[0].kernel_name};
  input.arch = device.arch;
  const auto output = (*nvrtc)->compile(input);
  ASSERT_TRUE(output.ok()) << output.status().message();
  const auto cubin = parse_cubin(output->cubin);
  ASSERT_TRUE(cubin.ok());
  EXPECT_EQ(cubin->kernels.size(), 2u);
  input.others.emplace_back("another");
  EXPECT_EQ((*nvrtc)->compile(input).status().code(), Code::kCompileFailed) << "a kernel that is not there";
}

TEST(Source, RejectedConfigIsUnsupported) {
  const DeviceSpec device = device_of("sm_90a");
  const auto configs = accepted_configs(attention_params(), device);
  ASSERT_FALSE(configs.empty());
  KernelConfig config = configs[0];
  config.attention().stages = 1000;
  const auto kernel = emit_kernel(HstuAttentionSpec(attention_params()), Direction::kForward, config, device);
  ASSERT_FALSE(kernel.ok());
  EXPECT_EQ(kernel.status().code(), Code::kUnsupported);
  EXPECT_EQ(
      emit_kernel(HstuAttentionSpec(attention_params()), Direction::kBackward, configs[0], device).status().code(),
      Code::kUnsupported);
}

}  // namespace
}  // namespace hstujit
