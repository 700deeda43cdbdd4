#include "compiler/spec/device_spec.h"

#include <gmock/gmock.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "compiler/support/files.h"

namespace hstujit {
namespace {

using testing::HasSubstr;

TEST(DeviceSpec, KnownByArchitectureProductAndShortName) {
  struct Case {
    const char *name, *product;
    int64_t sm_count, shared_memory;
  };
  for (const Case& c :
       {Case{"sm_80", "NVIDIA A100-SXM4-80GB", 108, 166912}, Case{"sm_86", "NVIDIA A10", 72, 101376},
        Case{"rtx 3090", "NVIDIA GeForce RTX 3090", 82, 101376}, Case{"sm_89", "NVIDIA L40S", 142, 101376},
        Case{"RTX 4090", "NVIDIA GeForce RTX 4090", 128, 101376}, Case{"sm_90a", "NVIDIA H200", 132, 232448},
        Case{"H100 PCIe", "NVIDIA H100 PCIe", 114, 232448}, Case{"NVIDIA H20", "NVIDIA H20", 78, 232448}}) {
    const auto device = known_device(c.name);
    ASSERT_TRUE(device.ok()) << device.status().message();
    EXPECT_EQ(device->name, c.product);
    EXPECT_EQ(device->sm_count, c.sm_count) << c.name;
    EXPECT_EQ(device->shared_memory, c.shared_memory) << c.name;
  }
  EXPECT_EQ(known_device("H200")->capability(), 90);
  EXPECT_EQ(known_device("sm_80")->capability(), 80);
}

TEST(DeviceSpec, AnUnknownNameListsWhatIsKnown) {
  const Status status = known_device("sm_70").status();
  EXPECT_EQ(status.code(), Code::kInvalidConfig);
  EXPECT_THAT(status.message(), testing::EndsWith(", or a DeviceSpec file (docs/config.md)"));
  EXPECT_THAT(status.message(), HasSubstr("device \"sm_70\" is not known, and there is no DeviceSpec file of that "
                                          "name; allowed: sm_80, sm_86, sm_89, sm_90a, A100,"));
  EXPECT_THAT(known_device("B200").status().message(), ::testing::Not(HasSubstr("did you mean")))
      << "kernels of an H200 do not run on it";
}

TEST(DeviceSpec, AnArchitectureOfAnotherSpellingIsRecognised) {
  for (const char* written : {"sm90a", "sm_90", "sm_9a", "hopper", "compute_90a"})
    EXPECT_THAT(known_device(written).status().message(), testing::HasSubstr("did you mean \"sm_90a\"?")) << written;
  EXPECT_THAT(known_device("H20").status().message(), testing::Not(testing::HasSubstr("did you mean")));
}

TEST(DeviceSpec, AProductOfAnotherSpellingIsRecognised) {
  for (const auto& [written, meant] :
       {std::pair{"RTX4090", "RTX 4090"}, std::pair{"rtx-3090", "RTX 3090"}, std::pair{"A100-80GB", "A100"},
        std::pair{"NVIDIA A100 80GB PCIe", "A100"}, std::pair{"H100-PCIe-80GB", "H100 PCIe"},
        std::pair{"geforce_rtx_4090", "RTX 4090"}, std::pair{"h100_sxm", "H100"}, std::pair{"compute_86", "sm_86"},
        std::pair{"l40", "L40S"}, std::pair{"H100P", "H100 PCIe"}}) {
    EXPECT_THAT(known_device(written).status().message(),
                HasSubstr(std::string("did you mean \"") + meant + "\"?; allowed: "))
        << written;
  }
  for (const char* other : {"A10G", "GH200", "H800", "RTX 4080", "A1000", "L4", "H10", "RTX", ""})
    EXPECT_THAT(known_device(other).status().message(), testing::Not(HasSubstr("did you mean"))) << other;
}

TEST(DeviceSpec, JsonRoundTrip) {
  const DeviceSpec device = *known_device("H200");
  const auto parsed = parse_device_spec(to_json(device));
  ASSERT_TRUE(parsed.ok()) << parsed.status().message();
  EXPECT_EQ(*parsed, device);
}

TEST(DeviceSpec, BadFieldsAreNamed) {
  auto json = to_json(*known_device("H200"));
  json["arch"] = "hopper";
  EXPECT_EQ(parse_device_spec(json).status().message(),
            "device.arch is \"hopper\"; allowed: a compute architecture such as \"sm_80\" or \"sm_90a\"");
  json.erase("arch");
  EXPECT_THAT(parse_device_spec(json).status().message(),
              HasSubstr("device.arch is missing; allowed: a text that is not empty"));
  json = to_json(*known_device("H200"));
  json["sm_count"] = int64_t{65537};
  EXPECT_THAT(parse_device_spec(json).status().message(), HasSubstr("device.sm_count is 65537; allowed:"));
  json["sm_count"] = 132;
  json["sm_counts"] = 3;
  EXPECT_THAT(parse_device_spec(json).status().message(),
              HasSubstr("device.sm_counts (value 3) is not a known field, did you mean \"sm_count\"?"));
}

TEST(DeviceSpec, ItsNameIsAShortPrintableText) {
  auto json = to_json(*known_device("H200"));
  json["name"] = std::string(128, 'n');
  EXPECT_TRUE(parse_device_spec(json).ok());
  for (const std::string& name : {std::string(129, 'n'), std::string("a\033[31m"), std::string("a\nb")}) {
    json["name"] = name;
    EXPECT_THAT(parse_device_spec(json).status().message(),
                HasSubstr("allowed: at most 128 printable characters of ASCII"));
  }
  json = to_json(*known_device("H200"));
  json["arch"] = "sm_090a";
  EXPECT_THAT(parse_device_spec(json).status().message(), HasSubstr("device.arch is \"sm_090a\"; allowed: "));
}

TEST(DeviceSpec, LoadedFromAFile) {
  const auto folder = TempDir::create();
  ASSERT_TRUE(folder.ok());
  const std::string path = folder->path() / "board.json";
  std::ofstream(path) << R"({"name": "Board", "arch": "sm_90a", "sm_count": 10, "shared_memory": 232448})";
  const auto device = load_device_spec(path);
  ASSERT_TRUE(device.ok()) << device.status().message();
  EXPECT_EQ(device->sm_count, 10);
  EXPECT_EQ(device->registers, 65536);
  EXPECT_EQ(load_device_spec("no such file").status().code(), Code::kInvalidConfig);
  const Status unreadable = load_device_spec(folder->path().string(), "arch").status();
  EXPECT_EQ(unreadable.code(), Code::kInvalidArgument);
  EXPECT_THAT(unreadable.message(), HasSubstr("arch: cannot read \"" + folder->path().string() + "\": it is a folder"));
}

}  // namespace
}  // namespace hstujit
