// The C++ interface: tensors, specs of operators, launches by name. On the host backend.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <thread>

#include "compiler/support/files.h"
#include "hstujit/hstujit.hpp"

struct MyBfloat16 {
  std::uint16_t bits;
};
template <>
struct hstujit::api::ElementType<MyBfloat16> {
  static constexpr DataType value = DataType::bf16;
};

namespace hstujit::api {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// The sentence and the status of what `body` throws.
template <typename Body>
std::string sentence_of(const Body& body, hstujit_status status = HSTUJIT_INVALID_ARGUMENT) {
  try {
    body();
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), status);
    return error.what();
  }
  ADD_FAILURE() << "nothing is thrown";
  return "";
}

TEST(Tensor, HasTheDataTypeOfItsElements) {
  float reals[6] = {};
  const std::int64_t longs[3] = {};
  const long long long_longs[3] = {};
  const std::int32_t ints[3] = {};
  MyBfloat16 own[2] = {};
  const auto type = [](const Tensor& tensor) {
    const DLDataType type = tensor.dl()->dtype;
    return std::vector<int>{type.code, type.bits, type.lanes};
  };
  EXPECT_THAT(type(Tensor(reals, {6})), ElementsAre(kDLFloat, 32, 1));
  EXPECT_THAT(type(Tensor(longs, {3})), ElementsAre(kDLInt, 64, 1));
  EXPECT_THAT(type(Tensor(long_longs, {3})), ElementsAre(kDLInt, 64, 1));
  EXPECT_THAT(type(Tensor(ints, {3})), ElementsAre(kDLInt, 32, 1));
  EXPECT_THAT(type(Tensor(own, {2})), ElementsAre(kDLBfloat, 16, 1));
  EXPECT_THAT(type(Tensor(reals, DataType::bf16, {3})), ElementsAre(kDLBfloat, 16, 1));
  EXPECT_THAT(type(Tensor(reals, DataType::fp16, {3})), ElementsAre(kDLFloat, 16, 1));
  EXPECT_THAT(type(Tensor(reals, DataType::fp32, {6})), ElementsAre(kDLFloat, 32, 1));
  EXPECT_THAT(type(Tensor(reals, DataType::int32, {6})), ElementsAre(kDLInt, 32, 1));
  EXPECT_THAT(type(Tensor(reals, DataType::int64, {3})), ElementsAre(kDLInt, 64, 1));
}

TEST(Tensor, OwnsItsSizesAndStrides) {
  float data[24] = {};
  Tensor copy(data, {1});
  {
    std::vector<std::int64_t> sizes = {2, 3};
    const Tensor whole(data, sizes, gpu(3));
    sizes[0] = 77;
    copy = whole.with_strides({12, 1});
    EXPECT_EQ(whole.dl()->strides, nullptr) << "compact";
    EXPECT_EQ(whole.dl()->shape[0], 2);
  }
  const Tensor again = copy;
  for (const DLTensor* tensor : {copy.dl(), again.dl()}) {
    const DLTensor& dl = *tensor;
    EXPECT_EQ(dl.data, data);
    EXPECT_EQ(dl.device.device_type, kDLCUDA);
    EXPECT_EQ(dl.device.device_id, 3);
    ASSERT_EQ(dl.ndim, 2);
    EXPECT_THAT(std::vector<std::int64_t>(dl.shape, dl.shape + 2), ElementsAre(2, 3));
    EXPECT_THAT(std::vector<std::int64_t>(dl.strides, dl.strides + 2), ElementsAre(12, 1));
  }
  EXPECT_NE(copy.dl()->shape, again.dl()->shape);
  EXPECT_NE(copy.dl()->strides, again.dl()->strides);
  EXPECT_EQ(Tensor(data, {2}).dl()->device.device_type, kDLCPU);
}

TEST(Tensor, RefusesTooManyDimensionsAndStridesOfAnotherRank) {
  float data[1] = {};
  EXPECT_EQ(sentence_of([&] { Tensor(data, {1, 1, 1, 1, 1, 1, 1, 1, 1}); }),
            "a tensor has 9 dimensions; allowed: at most 8");
  EXPECT_EQ(sentence_of([&] { Tensor(data, {1, 1}).with_strides({1}); }),
            "strides has rank 1; it must be 2, as the shape of the tensor");
}

TEST(Specs, SayWhatDiffersFromTheDefaults) {
  HstuAttention attention;
  attention.attn_dim = 64;
  attention.hidden_dim = 128;
  EXPECT_EQ(attention.json(), R"({"op": "hstu_attention", "attn_dim": 64, "hidden_dim": 128})");
  attention.heads = 2;
  attention.dtype = DataType::fp32;
  attention.precision = Precision::ieee;
  attention.causal = false;
  attention.score = Score::relu2;
  attention.max_attn_len = -1;
  attention.small_batches = true;
  EXPECT_EQ(json::parse(attention.json()), json({{"op", "hstu_attention"},
                                                 {"heads", 2},
                                                 {"attn_dim", 64},
                                                 {"hidden_dim", 128},
                                                 {"dtype", "fp32"},
                                                 {"precision", "ieee"},
                                                 {"causal", false},
                                                 {"score", "relu2"},
                                                 {"max_attn_len", -1},
                                                 {"small_batches", true}}));
  EXPECT_EQ(CompleteCumsum().json(), R"({"op": "complete_cumsum"})");
  attention.score = "leaky_relu(x, 0.2)";
  EXPECT_EQ(json::parse(attention.json())["score"], "leaky_relu(x, 0.2)");
  attention.score = Score::silu;
  EXPECT_FALSE(json::parse(attention.json()).contains("score"));
}

// The parameters as the library knows them, of an instance with this JSON.
json parsed(json instance) {
  instance["name"] = "op";
  const Config config = Config::parse(
      json{{"version", 1}, {"defaults", {{"rows", 8}, {"max_seq_len", 8}}}, {"ops", json::array({instance})}}.dump());
  Text text;
  check(hstujit_config_describe(config.get(), text.out()));
  return json::parse(text.str())["instances"][0]["spec"];
}

// Parameters of a spec are the parameters that the JSON with the required ones alone gives.
template <typename Spec>
void expect_defaults(const Spec& spec) {
  const json written = json::parse(spec.json());
  Text text;
  check(hstujit_operators(text.out()));
  for (const json& op : json::parse(text.str())) {
    if (op["op"] != written["op"]) continue;
    std::vector<std::string> names = {"op"};
    for (const std::string name : op["parameters"]["required"]) names.push_back(name);
    std::vector<std::string> given;
    for (const auto& [name, value] : written.items()) given.push_back(name);
    EXPECT_THAT(given, ::testing::UnorderedElementsAreArray(names));
    const json full = parsed(written);
    for (const auto& [name, rules] : op["parameters"]["properties"].items()) {
      if (!rules.contains("default") || name == "precision") continue;  // which follows dtype, too
      // A parameter that is written only where it is used.
      static const std::set<std::string> only_used = {"adds_gradients", "attn_func",    "attn_func_heads",
                                                      "mask",           "num_contexts", "num_softmax_heads",
                                                      "operands",       "softmax_score"};
      const bool of_weights = op["op"] == "hstu_attention" && (name == "dropout" || name == "seed_tensor");
      if (of_weights || only_used.contains(name))
        EXPECT_FALSE(full.contains(name));
      else
        EXPECT_EQ(full[name], rules["default"]) << name;
    }
    return;
  }
  ADD_FAILURE() << written << " is no operator";
}

TEST(Specs, HaveTheLibrarysDefaults) {
  HstuAttention attention;
  attention.attn_dim = attention.hidden_dim = 64;
  expect_defaults(attention);
  Addmm addmm;
  addmm.k = addmm.n = 64;
  expect_defaults(addmm);
  Concat2dJagged concat;
  concat.width = 64;
  expect_defaults(concat);
  HstuNormMulDropout gated;
  gated.width = 64;
  expect_defaults(gated);
  expect_defaults(LayerNorm{.width = 64});  // C++20 may write it so
  expect_defaults(CompleteCumsum());
}

class CppTest : public ::testing::Test {
 protected:
  static constexpr std::int64_t kRows = 7, kHeads = 2, kDim = 8;

  CppTest() : folder_(hstujit::TempDir::create().value()), cache_(folder_.path().string()), context_(options()) {
    for (std::size_t i = 0; i < q_.size(); ++i) {
      q_[i] = std::sin(static_cast<float>(i));
      k_[i] = std::cos(static_cast<float>(3 * i));
      v_[i] = std::sin(static_cast<float>(5 * i + 2));
    }
  }

  hstujit_context_options options() const {
    hstujit_context_options options = HSTUJIT_INIT(hstujit_context_options);
    options.cache_dir = cache_.c_str();
    options.cache_path = "";
    return options;
  }
  static HstuAttention attention() {
    HstuAttention attention;
    attention.heads = kHeads;
    attention.attn_dim = attention.hidden_dim = kDim;
    attention.dtype = DataType::fp32;
    return attention;
  }
  Op prepared() const {
    Op op(context_, attention(), HSTUJIT_FORWARD, HSTUJIT_BACKEND_HOST);
    op.prepare(16);
    return op;
  }
  static Tensor rows(std::vector<float>& data) { return Tensor(data.data(), {kRows, kHeads, kDim}); }
  std::vector<Launch::Named> values(std::vector<float>& out) {
    return {{"q", rows(q_)},
            {"k", rows(k_)},
            {"v", rows(v_)},
            {"out", rows(out)},
            {"seq_offsets", Tensor(offsets_, {3})},
            {"max_seq_len", 16},
            {"alpha", 0.5},
            {"scaling_seqlen", 0}};
  }

  hstujit::TempDir folder_;
  std::string cache_;
  const Context context_;
  std::vector<float> q_ = std::vector<float>(kRows * kHeads * kDim), k_ = q_, v_ = q_, out_ = q_;
  std::int64_t offsets_[3] = {0, 3, 7};
};

TEST_F(CppTest, AnOpListsItsArguments) {
  const Op op(context_, attention(), HSTUJIT_BACKWARD, HSTUJIT_BACKEND_HOST);
  std::vector<std::string> outputs;
  for (const Argument& argument : op.arguments()) {
    EXPECT_EQ(op.position(argument.name), argument.position);
    if (argument.output) outputs.push_back(argument.name);
  }
  EXPECT_THAT(outputs, ElementsAre("dq", "dk", "dv"));
  EXPECT_EQ(op.arguments()[static_cast<std::size_t>(op.position("dout"))].kind, HSTUJIT_TENSOR);
  EXPECT_EQ(op.arguments()[static_cast<std::size_t>(op.position("alpha"))].kind, HSTUJIT_FLOAT);
  EXPECT_EQ(op.arguments()[static_cast<std::size_t>(op.position("max_seq_len"))].kind, HSTUJIT_INT);
  EXPECT_EQ(json::parse(op.signature()).size(), op.arguments().size());
  EXPECT_EQ(sentence_of([&] { op.position("seq_ofsets"); }),
            "hstu_attention backward has no argument \"seq_ofsets\", did you mean \"seq_offsets\"?; allowed: q, k, v, "
            "dout, seq_offsets, max_seq_len, alpha, scaling_seqlen, dq, dk, dv");
}

TEST_F(CppTest, MistakesOfASpecAreTheLibrarysSentences) {
  HstuAttention wrong = attention();
  wrong.attn_dim = 0;  // as it is when nobody gives it
  EXPECT_THAT(sentence_of([&] { Op(context_, wrong); }, HSTUJIT_INVALID_CONFIG),
              HasSubstr("hstu_attention.attn_dim is 0; allowed: "));
  wrong = attention();
  wrong.score = static_cast<Score>(77);
  EXPECT_THAT(sentence_of([&] { Op(context_, wrong); }, HSTUJIT_INVALID_CONFIG),
              HasSubstr("score is \"\"; allowed: silu"));
}

TEST_F(CppTest, MistakesOfALaunchAreNamedWhenItIsMade) {
  const Op op = prepared();
  const auto mistake = [&](const std::function<void(std::vector<Launch::Named>&)>& change) {
    std::vector<Launch::Named> changed = values(out_);
    change(changed);
    return sentence_of([&] { Launch(op, changed); });
  };
  EXPECT_THAT(mistake([](auto& v) { v[5].first = "max_seqlen"; }),
              HasSubstr("has no argument \"max_seqlen\", did you mean \"max_seq_len\"?; allowed: q, k, v, "));
  EXPECT_EQ(mistake([](auto& v) { v.erase(v.begin() + 4, v.begin() + 6); }),
            "a launch has no value for seq_offsets, max_seq_len; each argument needs one");
  EXPECT_EQ(mistake([](auto& v) { v[1].first = "q"; }), "argument q is given twice");
  EXPECT_EQ(mistake([](auto& v) { v[0].second = 1; }), "argument q is given an integer; it must be a tensor");
  EXPECT_EQ(mistake([](auto& v) { v[5].second = 16.0; }),
            "argument max_seq_len is given a real number; it must be an integer");
  EXPECT_EQ(mistake([](auto& v) { v[6].second = v[0].second; }),
            "argument alpha is given a tensor; it must be a real number");
}

TEST_F(CppTest, ALaunchIsThatOfTheCApi) {
  const Op op = prepared();
  Launch(op, values(out_)).run();
  EXPECT_GT(std::abs(out_[0]), 1e-3f);

  std::vector<float> expected(out_.size());
  const Tensor tensors[] = {rows(q_), rows(k_), rows(v_), Tensor(offsets_, {3}), rows(expected)};
  std::vector<hstujit_value> array(op.arguments().size());
  int next = 0;
  for (const char* name : {"q", "k", "v", "seq_offsets", "out"})
    array[static_cast<std::size_t>(op.position(name))].tensor = tensors[next++].dl();
  array[static_cast<std::size_t>(op.position("max_seq_len"))].integer = 16;
  array[static_cast<std::size_t>(op.position("alpha"))].real = 0.5;
  EXPECT_EQ(op.workspace_size(array.data(), array.size()), 0u);
  op.launch(array.data(), array.size());
  EXPECT_EQ(out_, expected);
}

TEST_F(CppTest, WhatALaunchRefusesIsTheLibrarysSentence) {
  Op op(context_, attention(), HSTUJIT_FORWARD, HSTUJIT_BACKEND_HOST);
  Launch launch(op, values(out_));
  EXPECT_THAT(sentence_of([&] { launch.run(); }, HSTUJIT_NOT_PREPARED), HasSubstr("call prepare"));
  op.prepare(16);
  launch.set(op.position("k"), Tensor(k_.data(), {kRows, kHeads, 4}));
  EXPECT_THAT(sentence_of([&] { launch.run(); }), HasSubstr("k.shape[2] is 4; it must be 8"));
  launch.set(op.position("k"), Tensor(k_.data(), DataType::bf16, {kRows, kHeads, kDim}));
  EXPECT_THAT(sentence_of([&] { launch.run(); }), HasSubstr("k has dtype bf16; it must be fp32"));
  EXPECT_THAT(sentence_of([&] { launch.set(op.position("k"), 1); }), HasSubstr("argument k is given an integer"));
  for (const int position : {99, -1, hstujit_op_argument(op.get(), "no argument")}) {
    EXPECT_EQ(sentence_of([&] { launch.set(position, 1); }), "position is " + std::to_string(position) +
                                                                 "; it must be Op::position of one of the " +
                                                                 std::to_string(op.arguments().size()) + " arguments");
  }
}

TEST_F(CppTest, ATypeThatFollowsFromTheOffsetsIsSaidSo) {
  HstuAttention targets = attention();
  targets.num_targets = true;
  Op op(context_, targets, HSTUJIT_FORWARD, HSTUJIT_BACKEND_HOST);
  op.prepare(16);
  const std::int32_t counts[] = {1, 1};
  std::vector<Launch::Named> given = values(out_);
  given.push_back({"num_targets", Tensor(counts, {2})});
  EXPECT_THAT(sentence_of([&] { Launch(op, given).run(); }),
              HasSubstr("num_targets has dtype int32; it must be int64, as seq_offsets"));
}

TEST_F(CppTest, ValuesChangeBetweenLaunches) {
  const Op op = prepared();
  Launch launch(op, values(out_));
  launch.run();
  const std::vector<float> first = out_;
  launch.set(op.position("alpha"), 1);  // a whole number is a real one, too
  launch.run();
  EXPECT_NE(out_, first);
  // The second sequence alone.
  const std::int64_t offsets[] = {0, 4};
  const std::size_t skipped = 3 * kHeads * kDim;
  std::vector<float> out(4 * kHeads * kDim);
  launch.set(op.position("alpha"), 0.5);
  launch.set(op.position("seq_offsets"), Tensor(offsets, {2}));
  for (const auto& [name, data] : {std::pair("q", q_.data()), {"k", k_.data()}, {"v", v_.data()}})
    launch.set(op.position(name), Tensor(data + skipped, {4, kHeads, kDim}));
  launch.set(op.position("out"), Tensor(out.data(), {4, kHeads, kDim}));
  EXPECT_EQ(launch.workspace_size(), 0u);
  launch.run();
  EXPECT_TRUE(std::equal(out.begin(), out.end(), first.begin() + skipped));
}

TEST_F(CppTest, EachThreadHasACopy) {
  Op made = prepared();
  std::optional<Launch> original(std::in_place, made, values(out_));
  original->run();
  const Op op = std::move(made);  // launches stay those of its handle
  constexpr int kThreads = 4;
  std::vector<std::vector<float>> outs(kThreads, std::vector<float>(out_.size()));
  std::vector<Launch> copies;
  for (std::vector<float>& out : outs) {
    Launch copy = *original;
    copy.set(op.position("out"), rows(out));
    copies.push_back(std::move(copy));
  }
  original.reset();  // nor do they refer to what they were copied from
  std::vector<std::thread> threads;
  for (const Launch& copy : copies) {
    threads.emplace_back([&copy] {
      for (int i = 0; i < 20; ++i) copy.run();
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::vector<float>& out : outs) EXPECT_EQ(out, out_);
}

TEST_F(CppTest, RowsOfAWiderMatrixAreStrided) {
  const Op op = prepared();
  Launch launch(op, values(out_));
  launch.run();
  constexpr std::size_t kColumns = kHeads * kDim;
  std::vector<float> wide(kRows * 3 * kColumns);
  for (std::size_t row = 0; row < kRows; ++row) {
    const std::vector<float>* const parts[] = {&q_, &k_, &v_};
    for (std::size_t i = 0; i < 3 * kColumns; ++i)
      wide[row * 3 * kColumns + i] = (*parts[i / kColumns])[row * kColumns + i % kColumns];
  }
  std::vector<float> out(out_.size());
  std::size_t part = 0;
  for (const char* name : {"q", "k", "v"}) {
    launch.set(op.position(name),
               Tensor(wide.data() + part++ * kColumns, {kRows, kHeads, kDim}).with_strides({3 * kColumns, kDim, 1}));
  }
  launch.set(op.position("out"), rows(out));
  launch.run();
  EXPECT_EQ(out, out_);
}

TEST_F(CppTest, AnOpOutlivesItsContext) {
  Op op(Context(options()), attention(), HSTUJIT_FORWARD, HSTUJIT_BACKEND_HOST);
  op.prepare(16);
  std::vector<float> expected(out_.size());
  Launch(op, values(out_)).run();
  const Op other = prepared();
  Launch(other, values(expected)).run();
  EXPECT_EQ(out_, expected);
}

}  // namespace
}  // namespace hstujit::api
