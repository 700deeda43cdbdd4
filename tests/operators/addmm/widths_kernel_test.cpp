// Products whose rows no tensor map loads, in emulation and on the host: any number of columns, and any alignment.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstring>

#include "compiler/plan/search_space.h"
#include "tests/emulation/emulated_kernel.h"
#include "tests/host/host_call.h"

namespace hstujit {
namespace {

using Json = nlohmann::ordered_json;

constexpr int64_t kWidths[] = {1, 2, 7, 25, 50, 100, 130};

Lengths of(int64_t rows) { return {{rows}, {}, rows, {}}; }

// Fills the room behind the rows of inputs with NaN, which a read of it would carry into the result.
void poison_gaps(const OpSpecPtr& spec, HostCall& call) {
  for (const Argument& argument : spec->signature(Direction::kForward)) {
    if (argument.kind != ArgumentKind::kTensor || argument.role != ArgumentRole::kInput) continue;
    const HstujitHostValue& value = call.value(argument.name);
    if (value.rank < 2) continue;
    const auto element = static_cast<int64_t>(size_of(argument.dtype));
    for (int64_t row = 0; row < value.shape[0]; ++row) {
      std::byte* const end = static_cast<std::byte*>(value.data) + (row * value.strides[0] + value.shape[1]) * element;
      std::memset(end, 0xff, static_cast<size_t>((value.strides[0] - value.shape[1]) * element));
    }
  }
}

// `gap`: elements behind each row, which decide how rows are aligned.
void check(const Json& json, const GemmConfig& config, const std::vector<int64_t>& rows, int64_t gap = 16) {
  const OpSpecPtr spec = make_spec(json);
  SCOPED_TRACE(spec->to_json().dump() + describe({"gemm/sm80", config}));
  const auto emitted = emit_kernel(*spec, Direction::kForward, {"gemm/sm80", config}, *known_device("sm_80"));
  ASSERT_TRUE(emitted.ok()) << emitted.status().message();
  const EmulatedKernel kernel(*emitted);
  const HostHandle handle(*spec, 2);
  ASSERT_NE(handle.get(), nullptr) << handle.error();
  for (const int64_t count : rows) {
    HostCall call(spec, of(count), 7, gap), on_host = call;
    call.pack_inputs();
    on_host.pack_inputs();
    poison_gaps(spec, call);
    poison_gaps(spec, on_host);
    kernel.launch(call.values(), 2);
    EXPECT_EQ(call.mistakes(), "") << count << " rows";
    EXPECT_EQ(call.written_elsewhere(), "");
    ASSERT_EQ(on_host.launch(handle), 0) << on_host.error();
    EXPECT_EQ(on_host.mistakes(), "") << count << " rows";
    EXPECT_EQ(on_host.written_elsewhere(), "");
  }
}

Json product(const char* op, int64_t k, int64_t n, const Json& changes) {
  Json json = {{"op", op}, {"k", k}, {"n", n}};
  json.update(changes);
  return json;
}

const Json kTypes[] = {
    {{"dtype", "bf16"}}, {{"dtype", "fp16"}}, {{"dtype", "fp32"}}, {{"dtype", "fp32"}, {"precision", "ieee"}}};

// Each width as k and as n, beside every other one in turn, with every addend, layout and type in turn.
TEST(EmulatedWidths, EveryWidth) {
  const char* const inputs[] = {"none", "vector", "matrix"};
  size_t number = 0;
  for (const int64_t k : kWidths) {
    for (const size_t step : {0, 2, 3}) {
      const int64_t n = kWidths[(number + step) % std::size(kWidths)];
      Json json = product("addmm", k, n, kTypes[number % std::size(kTypes)]);
      json.update({{"input", inputs[number % 3]}, {"transpose_mat2", number % 2 == 1}});
      if (number % 5 == 0) json["silu_columns"] = (n + 1) / 2;
      check(json, number % 2 == 0 ? GemmConfig{64, 64, 3, 1} : GemmConfig{128, 64, 2, 1}, {1, 67});
      ++number;
    }
  }
}

// Every addend and layout of elements that are loaded one by one, of copies of 4 bytes, and of some of 16.
TEST(EmulatedWidths, EveryInputAndLayout) {
  for (const auto& [k, n] : {std::pair{25, 7}, {50, 130}, {50, 200}, {200, 50}, {25, 64}}) {
    for (const char* input : {"none", "vector", "matrix"}) {
      for (const bool transpose : {false, true}) {
        const Json changes = {{"input", input}, {"transpose_mat2", transpose}};
        check(product("addmm", k, n, changes), {64, 64, 2, 1}, {0, 65});
        Json ieee = changes;
        ieee.update(kTypes[3]);
        if (transpose) check(product("addmm", k, n, ieee), {64, 64, 2, 1}, {65});
      }
    }
  }
}

// Either layout of each size and type, with sums of one CTA or of three.
TEST(EmulatedWidths, SumsOverRows) {
  int64_t number = 0;
  for (const Json& type : kTypes) {
    for (const auto& [k, n] : {std::pair{25, 50}, {1, 130}, {50, 200}, {7, 1}, {100, 25}}) {
      for (const bool transpose : {false, true}) {
        Json changes = type;
        changes.update({{"bias", n != 130}, {"transpose_mat2", transpose}});
        const int64_t split = (number / 2 + number) % 2 == 0 ? 1 : 3;
        check(product("addmm_wgrad", k, n, changes), {64, 64, 2, 1, false, split}, {0, 1, 130});
        ++number;
      }
    }
  }
}

// Matrices of a multiple of 8 columns that begin at fewer bytes: gaps between rows are one, two or four elements.
TEST(EmulatedWidths, ColumnsOfOtherMatrices) {
  for (const Json& type : kTypes) {
    const int64_t element = type["dtype"] == "fp32" ? 4 : 2;
    for (const int64_t gap : {1, 2, 4}) {
      if (gap * element == 16) continue;
      Json changes = type;
      changes["alignment"] = gap * element;
      check(product("addmm_wgrad", 64, 72, changes), {64, 64, 2, 1, false, /*split_k=*/2}, {70}, gap);
      for (const auto& [input, transpose] : {std::pair{"vector", gap == 2}, {"matrix", gap != 2}}) {
        changes.update({{"input", input}, {"transpose_mat2", transpose}});
        check(product("addmm", 64, 72, changes), {64, 64, 2, 1}, {70}, gap);
      }
    }
  }
}

// Tiles of more threads and of other shapes.
TEST(EmulatedWidths, EveryTile) {
  for (const GemmConfig& config : {GemmConfig{128, 128, 3, 2}, GemmConfig{256, 128, 2, 2}, GemmConfig{64, 128, 4, 1}}) {
    check(product("addmm", 130, 150, {{"input", "vector"}}), config, {150});
    check(product("addmm", 75, 131, {{"input", "matrix"}, {"dtype", "fp16"}}), config, {130});
    check(product("addmm_wgrad", 130, 150, Json::object()), config, {150});
  }
}

}  // namespace
}  // namespace hstujit
