// Configs from the whole range of their fields, not from the search spaces alone: tuning records, and whoever overrides
// a choice, may name any of them. Of each, the skeleton says why it cannot be, or its source compiles: what a template
// demands of a config by static_assert, reject() knows, too.
//
// Most are only parsed by the compiler, which is when templates are instantiated; of each skeleton a few are compiled.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <random>
#include <set>
#include <unordered_set>

#include "compiler/plan/search_space.h"
#include "compiler/spec/json_text.h"
#include "compiler/support/dynamic_library.h"
#include "compiler/support/text.h"
#include "tests/nvrtc/compiled_kernels.h"
#include "tests/support/sanitized.h"

namespace hstujit {
namespace {

// Tries of a case. Under a sanitizer, which the compiler of kernels does not have, a few show that nothing else fails.
constexpr int kTries = kSanitized ? 300 : 8000;  // configs, most of which a skeleton rejects
constexpr size_t kAccepted = 200;                // that are chosen among
constexpr size_t kParsed = kSanitized ? 1 : 6;
constexpr size_t kCompiled = kSanitized ? 0 : 1;

// A number of the field's range: near the one that is there, near its ends, or any.
int64_t another(const FieldRules& field, int64_t value, std::mt19937_64& random) {
  const auto any = [&](int64_t least, int64_t most) {
    return std::uniform_int_distribution<int64_t>(least, std::max(least, most))(random);
  };
  constexpr std::array<int64_t, 8> kSteps = {1, 2, 8, 16, 32, 48, 64, 128};
  const int64_t step = kSteps[static_cast<size_t>(any(0, std::size(kSteps) - 1))];
  const std::array<int64_t, 10> numbers = {
      field.min,     field.max,    value * 2,    value / 2,        value * 3,
      value * 3 / 2, value + step, value - step, any(0, 8) * step, any(field.min, field.max)};
  return std::clamp(numbers[static_cast<size_t>(any(0, std::size(numbers) - 1))], field.min, field.max);
}

// `config` with some of its fields changed.
KernelConfig changed(KernelConfig config, std::mt19937_64& random) {
  std::bernoulli_distribution change(0.4);
  const auto change_field = [&](const auto& field, auto& value) {
    if (!change(random)) return;
    using Value = std::remove_cvref_t<decltype(value)>;
    if constexpr (std::is_same_v<Value, bool>) {
      value = !value;
    } else if constexpr (std::is_same_v<Value, std::string>) {
      const std::vector<std::string> names = split(field.choices, ' ');
      value = names[std::uniform_int_distribution<size_t>(0, names.size() - 1)(random)];
    } else {
      value = another(field, value, random);
    }
  };
  std::visit([&](auto& tunables) { for_each_field(tunables, change_field); }, config.tunables);
  return config;
}

// Selects at most `count` of `configs`: one after the other, the one that has most pairs of values that none before
// had.
std::vector<KernelConfig> most_different(const std::vector<KernelConfig>& configs, size_t count) {
  std::vector<std::vector<std::string>> pairs;
  for (const KernelConfig& config : configs) {
    std::vector<std::string> values;
    for_each_config_field(config, [&](const auto& field, const auto& value) {
      values.push_back(fmt::format("{}={}", field.name, value));
    });
    std::vector<std::string>& own = pairs.emplace_back();
    for (size_t i = 0; i < values.size(); ++i)
      for (size_t j = 0; j < i; ++j) own.push_back(values[i] + values[j]);
  }
  std::vector<KernelConfig> chosen;
  std::unordered_set<std::string> had;
  while (chosen.size() < std::min(count, configs.size())) {
    std::vector<ptrdiff_t> news;
    for (const auto& own : pairs)
      news.push_back(std::count_if(own.begin(), own.end(), [&](const auto& pair) { return !had.contains(pair); }));
    const auto best = static_cast<size_t>(std::max_element(news.begin(), news.end()) - news.begin());
    if (news[best] == 0) break;
    had.insert(pairs[best].begin(), pairs[best].end());
    chosen.push_back(configs[best]);
  }
  return chosen;
}

class ConfigRanges : public CompiledKernels {
 protected:
  void SetUp() override {
    CompiledKernels::SetUp();
    if (IsSkipped()) return;
    auto library =
        DynamicLibrary::open("libnvrtc", {nvrtc_->path()}, Code::kNoCompiler, DynamicLibrary::Keep::kForever);
    ASSERT_TRUE(library.ok()) << library.status().message();
    create_ = *library->function<decltype(create)>("nvrtcCreateProgram");
    compile_ = *library->function<decltype(compile)>("nvrtcCompileProgram");
    log_size_ = *library->function<decltype(log_size)>("nvrtcGetProgramLogSize");
    log_ = *library->function<decltype(log)>("nvrtcGetProgramLog");
    destroy_ = *library->function<decltype(destroy)>("nvrtcDestroyProgram");
  }

  // Everything that is accepted of a sample, of the skeleton and device, at most `kParsed`.
  void expect_compiles(const OpSpec& spec, const Skeleton& skeleton, const DeviceSpec& device) {
    const std::vector<KernelConfig> space = skeleton.space(spec);
    std::vector<KernelConfig> bases;
    for (const KernelConfig& config : space)
      if (skeleton.reject(spec, config, device).empty()) bases.push_back(config);
    if (bases.empty()) return;
    std::mt19937_64 random(20240601);
    std::set<std::string> seen;
    for (const KernelConfig& config : space) seen.insert(key_text(config));
    std::vector<KernelConfig> accepted;
    for (int i = 0; i < kTries && accepted.size() < kAccepted; ++i) {
      const KernelConfig& base = bases[std::uniform_int_distribution<size_t>(0, bases.size() - 1)(random)];
      const KernelConfig config = changed(base, random);
      if (skeleton.reject(spec, config, device).empty() && seen.insert(key_text(config)).second)
        accepted.push_back(config);
    }
    size_t parsed = 0;
    for (const KernelConfig& config : most_different(accepted, kParsed))
      expect_compiles(spec, skeleton, config, device, parsed++ < kCompiled);
    accepted_[std::string(skeleton.name())] += parsed;
  }

  void expect_compiles(const OpSpec& spec, const Skeleton& skeleton, const KernelConfig& config,
                       const DeviceSpec& device, bool whole) {
    const std::string what = spec.to_json().dump() + key_text(config) + device.arch;
    const auto kernel = emit_kernel(spec, skeleton.direction(), config, device);
    ASSERT_TRUE(kernel.ok()) << what << kernel.status().message();
    if (whole) {
      const auto output = compile_once(results_, *nvrtc_, compile_input(kernel->source, kernel->plan, device.arch));
      EXPECT_TRUE(output.ok()) << what << output.status().message();
    } else {
      CompileInput input;
      input.source = kernel->source;
      std::vector<std::string> options = compile_options(device.arch, kCppStandard, false);
      options.emplace_back("-fdevice-syntax-only");
      const std::string key = compile_key(*nvrtc_, input, options);
      if (results_.find(key)) return;
      const std::string errors = parse_errors(kernel->source, options);
      EXPECT_EQ(errors, "") << what;
      if (errors.empty()) results_.keep(key, "parsed");
    }
  }

  std::map<std::string, size_t> accepted_;  // by skeleton

 private:
  // Types of the functions that are used.
  static int create(void**, const char*, const char*, int, const char* const*, const char* const*);
  static int compile(void*, int, const char* const*);
  static int log_size(void*, size_t*);
  static int log(void*, char*);
  static int destroy(void**);

  std::string parse_errors(const std::string& source, const std::vector<std::string>& options) {
    std::vector<const char*> pointers;
    for (const std::string& option : options) pointers.push_back(option.c_str());
    void* program = nullptr;
    EXPECT_EQ(create_(&program, source.c_str(), "kernel.cu", 0, nullptr, nullptr), 0);
    std::string text;
    if (compile_(program, static_cast<int>(pointers.size()), pointers.data()) != 0) {
      size_t size = 0;
      EXPECT_EQ(log_size_(program, &size), 0);
      text.resize(size);
      EXPECT_EQ(log_(program, text.data()), 0);
      const size_t error = text.find("error");
      text = error == std::string::npos ? "failed: " + text : text.substr(error, 400);
    }
    destroy_(&program);
    return text;
  }

  decltype(&create) create_ = nullptr;
  decltype(&compile) compile_ = nullptr;
  decltype(&log_size) log_size_ = nullptr;
  decltype(&log) log_ = nullptr;
  decltype(&destroy) destroy_ = nullptr;
};

// Specs that the templates tell apart: types, sizes that tiles do not divide, sums beside the product, masks, tensors.
// Any other operator is taken with its smallest parameters.
constexpr const char* kSpecs[] = {
    R"({"op": "addmm", "k": 8, "n": 8, "dtype": "fp16"})",
    R"({"op": "addmm", "k": 512, "n": 1536, "input": "vector", "transpose_mat2": true})",
    R"({"op": "addmm", "k": 64, "n": 200, "dtype": "fp32", "input": "matrix"})",
    R"({"op": "addmm", "k": 64, "n": 256, "dtype": "fp32", "precision": "ieee"})",
    R"({"op": "addmm_wgrad", "k": 256, "n": 512, "bias": true})",
    R"({"op": "addmm_wgrad", "k": 256, "n": 512, "bias": true, "transpose_mat2": true, "dtype": "fp32"})",
    R"({"op": "addmm_wgrad", "k": 64, "n": 72, "transpose_mat2": true})",
    R"({"op": "jagged_dense_bmm_broadcast_add", "k": 128, "n": 256, "bias": true})",
    R"({"op": "jagged_jagged_bmm", "k": 128, "n": 256, "bias": true})",
    R"({"op": "jagged_jagged_bmm", "k": 128, "n": 256, "dtype": "fp32", "transpose_out": true})",
    R"({"op": "hstu_attention", "heads": 4, "attn_dim": 128, "hidden_dim": 128})",
    R"({"op": "hstu_attention", "heads": 2, "attn_dim": 8, "hidden_dim": 256, "num_targets": true})",
    R"({"op": "hstu_attention", "heads": 2, "attn_dim": 40, "hidden_dim": 24, "dtype": "fp16", "max_attn_len": 100})",
    R"({"op": "hstu_attention", "heads": 2, "attn_dim": 64, "hidden_dim": 64, "dtype": "fp32"})",
    R"({"op": "hstu_attention", "heads": 2, "attn_dim": 32, "hidden_dim": 64, "dtype": "fp32", "precision": "ieee"})",
    R"({"op": "hstu_attention", "heads": 4, "attn_dim": 64, "hidden_dim": 128, "rab_heads": 2, "attn_scale": "rows"})",
    R"({"op": "hstu_attention", "heads": 4, "attn_dim": 256, "hidden_dim": 256, "alignment": 4})",
    R"({"op": "hstu_attention", "heads": 2, "attn_dim": 64, "hidden_dim": 8, "dropout": true, "num_softmax_heads": 1})",
    R"({"op": "delta_hstu_attention", "heads": 4, "attn_dim": 64, "hidden_dim": 64})",
    R"({"op": "complete_cumsum", "dtype": "int32"})",
    R"({"op": "layer_norm", "width": 512, "weight": true, "bias": true})",
    R"({"op": "rms_norm", "width": 1000, "weight": true, "silu": true, "dtype": "fp32"})",
    R"({"op": "swish_layer_norm", "width": 8192})",
    R"({"op": "hstu_norm_mul_dropout", "width": 1024, "group_norm": true, "heads": 8, "dropout": true})",
    R"({"op": "hstu_norm_mul_dropout", "width": 288, "group_norm": true, "heads": 3, "concat_u": true})",
    R"({"op": "silu", "width": 7, "alignment": 2})",
    R"({"op": "bias_add", "width": 512})",
    R"({"op": "jagged_dense_broadcast_add", "width": 256})",
    R"({"op": "concat_2d_jagged", "width": 128})",
    R"({"op": "add_positional_embeddings", "width": 512})",
    R"({"op": "add_timestamp_positional_embeddings", "width": 512})",
    R"({"op": "add_timestamp_positional_embeddings", "width": 100, "dtype": "fp32"})",
};

Result<std::vector<OpSpecPtr>> specs_of_all_operators() {
  std::vector<OpSpecPtr> specs;
  std::set<std::string_view> listed;
  for (const char* text : kSpecs) {
    HSTUJIT_ASSIGN_OR_RETURN(const OpSpecPtr spec, parse_op_spec(Json::parse(text), text));
    specs.push_back(spec);
    listed.insert(spec->op());
  }
  for (const std::string_view op : operator_names()) {
    if (listed.contains(op)) continue;
    HSTUJIT_ASSIGN_OR_RETURN(const OpSpecPtr spec, smallest_op_spec(op));
    specs.push_back(spec);
  }
  return specs;
}

TEST_F(ConfigRanges, WhatIsNotRejectedCompiles) {
  const auto specs = specs_of_all_operators();
  ASSERT_TRUE(specs.ok()) << specs.status().message();
  for (const OpSpecPtr& spec : *specs) {
    for (const Skeleton* skeleton : skeletons()) {
      if (!skeleton->serves(*spec, skeleton->direction()) || !spec->supports(skeleton->direction()) ||
          spec->program(skeleton->direction()) != nullptr)
        continue;
      for (const char* arch : {"sm_80", "sm_89", "sm_90a"}) expect_compiles(*spec, *skeleton, *known_device(arch));
    }
  }
  for (const Skeleton* skeleton : skeletons())
    EXPECT_GT(accepted_[std::string(skeleton->name())], 0u) << skeleton->name();
}

}  // namespace
}  // namespace hstujit
