// Calls of the C API: from tensors to the op that computes them.
#include <cmath>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "tests/capi/capi_fixture.h"

namespace {

using nlohmann::json;

constexpr DLDataType kFloat32 = {kDLFloat, 32, 1}, kFloat64 = {kDLFloat, 64, 1}, kInt64 = {kDLInt, 64, 1};

// A tensor in host memory, filled with one value.
template <typename T>
struct HostTensor {
  HostTensor(std::vector<int64_t> sizes, T value, DLDataType type) : shape(std::move(sizes)) {
    size_t count = 1;
    for (const int64_t size : shape) count *= static_cast<size_t>(size);
    elements.assign(count, value);
    tensor = {elements.data(), {kDLCPU, 0}, static_cast<int>(shape.size()), type, shape.data(), nullptr, 0};
  }
  std::vector<int64_t> shape;
  std::vector<T> elements;
  DLTensor tensor;
};
using Floats = HostTensor<float>;
using Integers = HostTensor<int64_t>;

Floats floats(std::vector<int64_t> shape, float value = 1) { return Floats(std::move(shape), value, kFloat32); }
Integers integers(std::vector<int64_t> values) {
  Integers made({static_cast<int64_t>(values.size())}, 0, kInt64);
  std::copy(values.begin(), values.end(), made.elements.begin());
  return made;
}

hstujit_given given(const char* name, const DLTensor& tensor) {
  hstujit_given argument = {name, HSTUJIT_GIVEN_TENSOR, {}, nullptr};
  argument.value.tensor = &tensor;
  return argument;
}
hstujit_given given(const char* name, double real) {
  hstujit_given argument = {name, HSTUJIT_GIVEN_REAL, {}, nullptr};
  argument.value.real = real;
  return argument;
}
hstujit_given given(const char* name, int64_t integer, hstujit_given_kind kind = HSTUJIT_GIVEN_INTEGER) {
  hstujit_given argument = {name, kind, {}, nullptr};
  argument.value.integer = integer;
  return argument;
}
hstujit_given given(const char* name, const char* text) { return {name, HSTUJIT_GIVEN_TEXT, {}, text}; }

class CallTest : public CapiTest {
 protected:
  void TearDown() override {
    hstujit_call_destroy(call_);
    CapiTest::TearDown();
  }

  hstujit_status create(const char* op, const std::vector<hstujit_given>& arguments,
                        hstujit_direction direction = HSTUJIT_FORWARD) {
    hstujit_call_destroy(call_);
    call_ = nullptr;
    hstujit_op_options options = HSTUJIT_INIT(hstujit_op_options);
    options.direction = direction;
    options.backend = HSTUJIT_BACKEND_HOST;
    return hstujit_call_create(context_, op, &options, arguments.data(), arguments.size(), &call_);
  }
  // The sentence with which the arguments are refused.
  std::string refusal(const char* op, const std::vector<hstujit_given>& arguments) {
    EXPECT_NE(create(op, arguments), HSTUJIT_OK);
    return hstujit_last_error();
  }
  hstujit_error_fields fields() {
    hstujit_error_fields fields = HSTUJIT_INIT(hstujit_error_fields);
    EXPECT_EQ(hstujit_last_error_fields(&fields), HSTUJIT_OK);
    return fields;
  }
  json described() {
    hstujit_text text = {};
    EXPECT_EQ(hstujit_call_describe(call_, &text), HSTUJIT_OK) << hstujit_last_error();
    return parse(&text);
  }

  hstujit_call* call_ = nullptr;
};

TEST_F(CallTest, TypesSizesAndPresenceDecideTheInstance) {
  const Floats q = floats({8, 2, 16}), v = floats({8, 2, 32});
  const Integers offsets = integers({0, 3, 8}), targets = integers({1, 0});
  std::vector<hstujit_given> arguments = {given("q", q.tensor),
                                          given("k", q.tensor),
                                          given("v", v.tensor),
                                          given("seq_offsets", offsets.tensor),
                                          given("max_seq_len", int64_t{5}),
                                          given("alpha", 0.25),
                                          given("scaling_seqlen", int64_t{0}),
                                          given("score", "relu"),
                                          given("causal", int64_t{0}, HSTUJIT_GIVEN_FLAG)};
  ASSERT_EQ(create("hstu_attention", arguments), HSTUJIT_OK) << hstujit_last_error();
  EXPECT_EQ(described()["instance"], (json{{"op", "hstu_attention"},
                                           {"heads", 2},
                                           {"attn_dim", 16},
                                           {"hidden_dim", 32},
                                           {"dtype", "fp32"},
                                           {"offsets_dtype", "int64"},
                                           {"score", "relu"},
                                           {"causal", false}}));
  arguments.push_back(given("num_targets", targets.tensor));
  arguments.erase(arguments.begin() + 7, arguments.begin() + 9);
  ASSERT_EQ(create("hstu_attention", arguments), HSTUJIT_OK) << hstujit_last_error();
  EXPECT_EQ(described()["instance"]["num_targets"], true);
  EXPECT_FALSE(described()["instance"].contains("score"));
}

TEST_F(CallTest, TensorsThatATextDeclaresAreGivenByNameOrByPlace) {
  const Floats q = floats({8, 2, 16}), table = floats({9, 2}), few = floats({7, 2});
  const Integers offsets = integers({0, 3, 8}), times = integers({1, 2, 3, 4, 5, 6, 7, 8});
  const auto arguments_with = [&](const std::vector<hstujit_given>& tensors) {
    std::vector<hstujit_given> arguments = {given("q", q.tensor),
                                            given("k", q.tensor),
                                            given("v", q.tensor),
                                            given("seq_offsets", offsets.tensor),
                                            given("max_seq_len", int64_t{5}),
                                            given("alpha", 0.25),
                                            given("score", "x + w[ts[row] - ts[col]]"),
                                            given("operands", "ts: row(int64), w: table(9, heads)")};
    arguments.insert(arguments.end(), tensors.begin(), tensors.end());
    return arguments;
  };
  for (const char* const name : {"w", "operands[1]"}) {
    ASSERT_EQ(create("hstu_attention", arguments_with({given("ts", times.tensor), given(name, table.tensor)})),
              HSTUJIT_OK)
        << hstujit_last_error();
    const json signature = described()["signature"];
    EXPECT_EQ(signature[4]["name"], "ts");
    EXPECT_EQ(signature[5]["name"], "w");
    EXPECT_EQ(signature[5]["shape"], (json{9, 2}));
  }
  std::vector<hstujit_value> values(10);
  ASSERT_EQ(hstujit_call_argument_count(call_), 10);
  values[0].tensor = values[1].tensor = values[2].tensor = &q.tensor;
  values[3].tensor = &offsets.tensor;
  values[4].tensor = &times.tensor;
  values[6].integer = 5;
  values[7].real = 0.25;
  values[8].integer = 0;
  for (const Floats* const given_table : {&table, &few}) {
    values[5].tensor = &given_table->tensor;
    EXPECT_EQ(hstujit_call_check(call_, values.data(), 10),
              given_table == &table ? HSTUJIT_OK : HSTUJIT_INVALID_ARGUMENT)
        << hstujit_last_error();
  }
  EXPECT_TRUE(std::string(hstujit_last_error()).starts_with("w.shape[0] is 7; it must be 9")) << hstujit_last_error();
  const std::string refused = refusal("hstu_attention", arguments_with({given("weights", table.tensor)}));
  EXPECT_TRUE(refused.starts_with("hstu_attention: ts is missing; w is missing; weights is not declared in operands; "))
      << refused;
}

TEST_F(CallTest, OutputsOfRowsOfTwoTensorsHaveTheRowsOfBoth) {
  const Floats left = floats({3, 8}), right = floats({4, 8});
  const Integers of_left = integers({0, 1, 3}), of_right = integers({0, 2, 4});
  ASSERT_EQ(
      create("concat_2d_jagged", {given("left", left.tensor), given("right", right.tensor),
                                  given("offsets_left", of_left.tensor), given("offsets_right", of_right.tensor)}),
      HSTUJIT_OK)
      << hstujit_last_error();
  std::vector<hstujit_value> values(5);
  ASSERT_EQ(hstujit_call_argument_count(call_), 5);
  for (int at = 0; at < 5; ++at) {
    hstujit_call_argument argument = HSTUJIT_INIT(hstujit_call_argument);
    ASSERT_EQ(hstujit_call_argument_at(call_, at, &argument), HSTUJIT_OK);
    const std::string name = argument.name;
    values[static_cast<size_t>(at)].tensor = name == "left"            ? &left.tensor
                                             : name == "right"         ? &right.tensor
                                             : name == "offsets_left"  ? &of_left.tensor
                                             : name == "offsets_right" ? &of_right.tensor
                                                                       : nullptr;
    EXPECT_EQ(argument.output, name == "out" ? 1 : 0);
  }
  int64_t sizes[2] = {};
  EXPECT_EQ(hstujit_call_rows_count(call_), 0);
  ASSERT_EQ(hstujit_call_output_sizes(call_, values.data(), 5, nullptr, 0, sizes, 2), HSTUJIT_OK)
      << hstujit_last_error();
  EXPECT_EQ(sizes[0], 7);
  EXPECT_EQ(sizes[1], 8);
  EXPECT_EQ(hstujit_call_output_sizes(call_, values.data(), 5, nullptr, 0, sizes, 1), HSTUJIT_INVALID_ARGUMENT);
  EXPECT_STREQ(hstujit_last_error(), "capacity is 1; it must be 2 or more");
}

TEST_F(CallTest, RowsThatNoInputTellsAreGivenOrReadFromOffsets) {
  const Floats dense = floats({6, 8});
  const Integers offsets = integers({0, 2, 5});
  const std::vector<hstujit_given> arguments = {given("dense", dense.tensor), given("seq_offsets", offsets.tensor),
                                                given("max_len", int64_t{3})};
  ASSERT_EQ(create("dense_to_jagged", arguments), HSTUJIT_OK) << hstujit_last_error();
  ASSERT_EQ(hstujit_call_rows_count(call_), 1);
  hstujit_call_rows rows = HSTUJIT_INIT(hstujit_call_rows);
  ASSERT_EQ(hstujit_call_rows_at(call_, 0, &rows), HSTUJIT_OK);
  EXPECT_EQ(rows.keyword, nullptr);
  std::vector<hstujit_value> values(static_cast<size_t>(hstujit_call_argument_count(call_)));
  for (size_t at = 0; at < values.size(); ++at) {
    hstujit_call_argument argument = HSTUJIT_INIT(hstujit_call_argument);
    ASSERT_EQ(hstujit_call_argument_at(call_, static_cast<int>(at), &argument), HSTUJIT_OK);
    if (static_cast<int>(at) == rows.offsets) {
      EXPECT_STREQ(argument.name, "seq_offsets");
    }
    if (argument.kind == HSTUJIT_INT) {
      values[at].integer = 3;
    } else {
      values[at].tensor = std::string(argument.name) == "dense" ? &dense.tensor : &offsets.tensor;
    }
  }
  int64_t sizes[2] = {}, last = 5;
  ASSERT_EQ(hstujit_call_output_sizes(call_, values.data(), values.size(), &last, 1, sizes, 2), HSTUJIT_OK)
      << hstujit_last_error();
  EXPECT_EQ(sizes[0], 5);
  last = -1;
  EXPECT_EQ(hstujit_call_output_sizes(call_, values.data(), values.size(), &last, 1, sizes, 2),
            HSTUJIT_INVALID_ARGUMENT);
  EXPECT_STREQ(hstujit_last_error(), "seq_offsets[2] is -1; it must be at least 0");
  EXPECT_STREQ(fields().argument, "seq_offsets[2]");

  std::vector<hstujit_given> told = arguments;
  told.push_back(given("out_rows", int64_t{5}));
  ASSERT_EQ(create("dense_to_jagged", told), HSTUJIT_OK) << hstujit_last_error();
  ASSERT_EQ(hstujit_call_rows_at(call_, 0, &rows), HSTUJIT_OK);
  EXPECT_STREQ(rows.keyword, "out_rows");
  EXPECT_EQ(hstujit_call_rows_at(call_, 1, &rows), HSTUJIT_INVALID_ARGUMENT);
}

TEST_F(CallTest, ErrorsHaveTheFieldsOfTheirSentence) {
  const Floats x = floats({4, 8}), cube = floats({2, 2, 8});
  const HostTensor<double> wide({4, 8}, 1, kFloat64);
  EXPECT_EQ(refusal("silu", {given("x", wide.tensor)}), "x has dtype fp64; it must be bf16, fp16 or fp32");
  EXPECT_STREQ(fields().argument, "x");
  EXPECT_STREQ(fields().value, "fp64");
  EXPECT_STREQ(fields().allowed, "bf16, fp16 or fp32");
  EXPECT_EQ(refusal("silu", {given("x", cube.tensor)}), "x has rank 3, shape (2, 2, 8); it must be (L, width)");
  const Floats empty = floats({4, 0});
  EXPECT_EQ(refusal("silu", {given("x", empty.tensor)}), "x.shape[1] is 0; it must be width, from 1 to 16384");
  EXPECT_STREQ(fields().argument, "x.shape[1]");
  EXPECT_STREQ(fields().value, "0");
  EXPECT_EQ(refusal("silu", {given("x", x.tensor), given("wieght", x.tensor)}).substr(0, 35),
            "silu has no argument \"wieght\"; allo");
  EXPECT_STREQ(fields().argument, "wieght");
  EXPECT_EQ(refusal("layer_norm", {given("x", x.tensor), given("weight", x.tensor)}),
            "weight has rank 2, shape (4, 8); it must be (8)");
  EXPECT_EQ(refusal("silu", {given("x", x.tensor), given("x", x.tensor)}), "silu: \"x\" is given twice");
  EXPECT_EQ(refusal("silu", {given("x", 1.0)}),
            "silu: \"x\" is given with kind 1; it must be HSTUJIT_GIVEN_TENSOR (0)");
  EXPECT_EQ(refusal("sliu", {given("x", x.tensor)}).substr(0, 36), "op is \"sliu\", did you mean \"silu\"?; ");
  EXPECT_EQ(create("complete_cumsum", {given("lengths", x.tensor)}, HSTUJIT_BACKWARD), HSTUJIT_UNSUPPORTED);
  // One without fields has none of another's.
  EXPECT_NE(hstujit_op_create(context_, "", HSTUJIT_FORWARD, HSTUJIT_BACKEND_CUDA, nullptr), HSTUJIT_OK);
  EXPECT_STREQ(fields().argument, "");
}

TEST_F(CallTest, ArgumentsThatAreMissingOrNotUsedAreNamed) {
  const Floats weight = floats({8});
  EXPECT_EQ(refusal("layer_norm", {given("weight", weight.tensor)}),
            "layer_norm: x is missing; with these parameters it takes x, weight, eps");
  EXPECT_STREQ(fields().argument, "x");
}

// Sizes are read only of a rank that an argument may have: what lies behind them is nobody's.
TEST_F(CallTest, ARankThatNoArgumentHasIsRefusedBeforeSizesAreRead) {
  Floats x = floats({7, 64});
  for (const int rank : {9, 100000, std::numeric_limits<int>::max(), -1, std::numeric_limits<int>::min()}) {
    x.tensor.ndim = rank;
    const std::string sentence = "x has rank " + std::to_string(rank) + "; allowed: 0 to 8";
    EXPECT_EQ(refusal("silu", {given("x", x.tensor)}), sentence);
    EXPECT_EQ(refusal("hstu_attention", {given("x", x.tensor)}), sentence);
  }
  x.tensor.ndim = 2;
  x.shape[0] = -5;
  EXPECT_EQ(refusal("silu", {given("x", x.tensor)}),
            "x.shape[0] is -5; it must be 0 or more, or -1 where it is not known");
}

TEST_F(CallTest, CallsOfOneContextShareTheOpsOfAnInstance) {
  const Floats x = floats({4, 8});
  Floats out = floats({4, 8}, 0);
  const std::vector<hstujit_given> arguments = {given("x", x.tensor)};
  hstujit_value values[2] = {};
  values[0].tensor = &x.tensor;
  values[1].tensor = &out.tensor;
  std::set<hstujit_op*> ops;
  hstujit_call* first = nullptr;
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(create("silu", arguments), HSTUJIT_OK) << hstujit_last_error();
    hstujit_op* op = nullptr;
    ASSERT_EQ(hstujit_call_op(call_, values, 2, &op), HSTUJIT_OK) << hstujit_last_error();
    ops.insert(op);
    if (i == 0) std::swap(first, call_);
  }
  EXPECT_EQ(ops.size(), 1u);
  // An op outlives the context that it was made in.
  hstujit_context_destroy(context_);
  context_ = nullptr;
  hstujit_op* op = nullptr;
  EXPECT_EQ(hstujit_call_op(first, values, 2, &op), HSTUJIT_OK);
  EXPECT_TRUE(ops.contains(op));
  hstujit_call_destroy(first);
}

TEST_F(CallTest, TheOpIsThatOfTheLargestAlignmentThatTensorsHave) {
  const Floats storage = floats({9, 8});
  DLTensor x = storage.tensor, out = storage.tensor;
  int64_t shape[2] = {4, 8};
  x.shape = out.shape = shape;
  const std::vector<hstujit_given> arguments = {given("x", x)};
  ASSERT_EQ(create("silu", arguments), HSTUJIT_OK) << hstujit_last_error();
  hstujit_value values[2] = {};
  values[0].tensor = &x;
  values[1].tensor = &out;
  hstujit_op *aligned = nullptr, *unaligned = nullptr;
  ASSERT_EQ(hstujit_call_op(call_, values, 2, &aligned), HSTUJIT_OK) << hstujit_last_error();
  x.byte_offset = 4;
  ASSERT_EQ(hstujit_call_op(call_, values, 2, &unaligned), HSTUJIT_OK) << hstujit_last_error();
  EXPECT_NE(aligned, unaligned);
  x.byte_offset = 2;
  EXPECT_EQ(hstujit_call_op(call_, values, 2, &unaligned), HSTUJIT_INVALID_ARGUMENT);
  EXPECT_STREQ(hstujit_last_error(),
               "x begins at an address that is no multiple of 4 bytes, an element of fp32; it must be one");
}

TEST_F(CallTest, ATracedCallIsCheckedAsFarAsItIsKnown) {
  const int64_t unknown = std::numeric_limits<int64_t>::min();
  DLTensor values_of_rows = {nullptr, {kDLCPU, 0}, 2, kFloat32, nullptr, nullptr, 0};
  DLTensor offsets = {nullptr, {kDLCPU, 0}, 1, kInt64, nullptr, nullptr, 0};
  int64_t rows[2] = {8, 16}, places[1] = {4};
  values_of_rows.shape = rows;
  offsets.shape = places;
  ASSERT_EQ(create("jagged_to_padded_dense",
                   {given("values", values_of_rows), given("seq_offsets", offsets), given("max_len", int64_t{4})}),
            HSTUJIT_OK)
      << hstujit_last_error();
  hstujit_value values[4] = {};
  values[0].tensor = &values_of_rows;
  values[1].tensor = &offsets;
  values[2].integer = 4;
  const auto sentence = [&] {
    return hstujit_call_check(call_, values, 4) == HSTUJIT_OK ? "" : std::string(hstujit_last_error());
  };
  EXPECT_EQ(sentence(), "");
  places[0] = 0;
  EXPECT_EQ(sentence(), "seq_offsets.shape[0] is 0; it must be B+1, at least 1, shape (B+1)");
  EXPECT_STREQ(fields().argument, "seq_offsets");
  places[0] = -1;
  EXPECT_EQ(sentence(), "");
  values[2].integer = (int64_t{1} << 28) + 1;
  EXPECT_EQ(sentence(), "max_len is 268435457; it must be at most 268435456");
  values[2].integer = unknown;
  EXPECT_EQ(sentence(), "");
  rows[1] = 17;
  EXPECT_EQ(sentence(), "values.shape[1] is 17; it must be 16, shape (L, 16)");
}

TEST_F(CallTest, AnArgumentSaysWhatItsAddressIsAMultipleOf) {
  const Floats x = floats({4, 8}), weight = floats({8, 16});
  const auto alignment_of = [&](int position) {
    auto argument = HSTUJIT_INIT(hstujit_call_argument);
    EXPECT_EQ(hstujit_call_argument_at(call_, position, &argument), HSTUJIT_OK);
    return argument.alignment;
  };
  ASSERT_EQ(create("silu", {given("x", x.tensor)}), HSTUJIT_OK) << hstujit_last_error();
  EXPECT_EQ(alignment_of(0), 4);  // an element: there is a kernel for rows that begin at any
  ASSERT_EQ(create("addmm", {given("mat1", x.tensor), given("mat2", weight.tensor), given("alpha", 1.0)}), HSTUJIT_OK)
      << hstujit_last_error();
  EXPECT_EQ(alignment_of(0), 16);
}

TEST_F(CallTest, NamesAreSuggested) {
  const auto meant = [](const char* written, std::vector<const char*> names) {
    hstujit_text text = {};
    EXPECT_EQ(hstujit_suggest(written, names.data(), names.size(), &text), HSTUJIT_OK);
    return parse(&text);
  };
  EXPECT_EQ(meant("num_head", {"heads", "alpha"}), json({"heads"}));
  EXPECT_EQ(meant("wieght", {"x", "weight"}), json({"weight"}));
  EXPECT_EQ(meant("something", {"x", "weight"}), json::array());
}

}  // namespace
