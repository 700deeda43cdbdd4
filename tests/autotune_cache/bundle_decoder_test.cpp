// Bundles that are zstd frames, by libhstujit_bundle.so and without it.
#include "autotune_cache/bundle/bundle_decoder.h"

#include <gmock/gmock.h>

#include "autotune_cache/store/bundle_transfer.h"
#include "autotune_cache/store/layers_passed_over.h"
#include "cache_fixture.h"
#include "tests/autotune_cache/zstd_frames.h"
#include "tests/paths.h"

namespace hstujit {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr const char* kNowhere = "/nowhere/libhstujit_bundle.so";

BundleDecoder decoder_of(const std::string& library) {
  return bundle_decoder(Environment::of_values({{"HSTUJIT_BUNDLE_LIBRARY", library}}));
}

BundleDecoder built_decoder() { return decoder_of(binary_path("/lib/libhstujit_bundle.so")); }

TEST(BundleDecoder, TheLibraryDecompressesWhatItsCodeDoes) {
  const std::string bytes(size_t{3} << 20, 'b');
  const std::string frame = compressed(bytes);
  EXPECT_EQ(*built_decoder()(frame), bytes);
  EXPECT_EQ(*built_decoder()(compressed("")), "");
  for (const std::string& damaged : {frame.substr(0, frame.size() / 2), frame + "x", std::string("no frame")}) {
    const Status status = built_decoder()(damaged).status();
    EXPECT_EQ(status.code(), Code::kIo);
    EXPECT_EQ(status.message(), linked_decoder(damaged).status().message());
  }
}

TEST(BundleDecoder, AFrameGoesIntoMemoryOfItsSizeOnly) {
  const std::string frame = compressed("four");
  EXPECT_EQ(*zstd_size(frame), 4u);
  std::string larger(5, '\0');
  EXPECT_EQ(decompress_zstd(frame, larger).message(), "the size is 5; the zstd frame unpacks to 4 bytes");
  std::string smaller(3, '\0');
  EXPECT_FALSE(decompress_zstd(frame, smaller).ok());
}

TEST(BundleDecoder, AMissingLibraryIsNamedWithWhatWasLookedFor) {
  const Status missing = decoder_of(kNowhere)(compressed("x")).status();
  EXPECT_EQ(missing.code(), Code::kNoCompiler);
  EXPECT_THAT(missing.message(), AllOf(HasSubstr("the bundle library that HSTUJIT_BUNDLE_LIBRARY names was not found"),
                                       HasSubstr(kNowhere)));
  // Beside the test program there is none.
  EXPECT_THAT(bundle_decoder(Environment::of_values({}))(compressed("x")).status().message(),
              AllOf(HasSubstr("the bundle library was not found"), HasSubstr("/bin/libhstujit_bundle.so")));
  const Status other = decoder_of("libc.so.6")(compressed("x")).status();
  EXPECT_EQ(other.code(), Code::kNoCompiler);
  EXPECT_THAT(other.message(), HasSubstr("hstujit_bundle_abi"));
}

// A bundle that cannot be read is one warning. The other layers, and bundles that are not compressed, are used.
using BundleLibraryTest = CacheTest;

TEST_F(BundleLibraryTest, ACacheWithoutTheLibraryUsesAllElse) {
  const CacheDirectories origin = {.user = path("origin"), .read_only = {}};
  ArtifactStore store(origin, log());
  ASSERT_TRUE(store.put(sample_key(), cubin_of("x"), sample_info()));
  const CacheLayers layers = open_layers(origin, log());
  const auto exported = export_bundle(layers, {}, layers);
  ASSERT_TRUE(exported.ok()) << exported.status().message();
  ASSERT_TRUE(write_file_atomically(path("plain"), exported->packed.bytes).ok());
  ASSERT_TRUE(write_file_atomically(path("frame"), compressed(exported->packed.bytes)).ok());

  CacheDirectories reading = {.user = path("user"), .read_only = {path("frame")}, .decode = decoder_of(kNowhere)};
  ArtifactStore without(reading, log());
  EXPECT_FALSE(without.find(sample_key()).has_value());
  EXPECT_FALSE(without.find(sample_key()).has_value());
  EXPECT_EQ(events("bad_bundle"), 1);
  const std::string problem = path("frame") + " cannot be read: the bundle library that HSTUJIT_BUNDLE_LIBRARY names";
  EXPECT_THAT(passed_over_text(without.layers()), AllOf(HasSubstr(problem), HasSubstr(kNowhere)));
  TuningDatabase database(origin, log());
  const Status imported =
      import_bundle(BundleLayer(path("frame"), Trust::kOwn, reading.decode, log()), without, database).status();
  EXPECT_EQ(imported.code(), Code::kNoCompiler);
  EXPECT_THAT(imported.message(), HasSubstr(problem));

  reading.read_only.push_back(path("plain"));
  EXPECT_EQ(ArtifactStore(reading, log()).find(sample_key())->directory, path("plain"));
  reading.decode = built_decoder();
  EXPECT_EQ(ArtifactStore(reading, log()).find(sample_key())->directory, path("frame"));
}

}  // namespace
}  // namespace hstujit
