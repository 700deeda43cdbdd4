#include "compiler/support/suggest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hstujit {
namespace {

const std::vector<std::string_view> kNames = {"heads", "attn_dim", "hidden_dim", "dtype", "op"};

TEST(Suggest, AMisspeltNameIsRecognised) {
  EXPECT_EQ(closest("ADDMM", {"addmm_wgrad", "addmm"}), "addmm") << "what was begun is not the longer name";
  EXPECT_EQ(closest("rank-64", {"rank_64_kept", "rank_64"}), "rank_64");
  EXPECT_EQ(closest("head", kNames), "heads");
  EXPECT_EQ(closest("haeds", kNames), "heads");
  EXPECT_EQ(closest("rnu", {"run", "emit"}), "run") << "letters are swapped";
  EXPECT_EQ(closest("attn_dims", kNames), "attn_dim");
  EXPECT_EQ(closest("hiden_dim", kNames), "hidden_dim");
}

TEST(Suggest, CaseAndKindOfDashDoNotMatter) {
  EXPECT_EQ(closest("HIDDEN-DIM", kNames), "hidden_dim");
  EXPECT_EQ(closest("hstujit_cache_dir", {"HSTUJIT_CACHE_DIR"}), "HSTUJIT_CACHE_DIR");
}

TEST(Suggest, NothingIsSuggestedForAnotherName) {
  EXPECT_EQ(closest("learning_rate", kNames), "");
  EXPECT_EQ(closest("xy", kNames), "");  // every letter of "op" would have to change
  EXPECT_EQ(closest("tcsh", {"bash", "fish", "zsh"}), "");
  EXPECT_EQ(closest("ksh93", {"bash", "fish"}), "");
  EXPECT_EQ(closest("foo", {"ir", "src", "log", "all"}), "");
  EXPECT_EQ(closest("", kNames), "");
  EXPECT_EQ(closest("heads", {}), "");
}

TEST(Suggest, ANameThatWasBegunIsFinished) {
  EXPECT_EQ(closest("--js", {"--op", "--json"}), "--json");
  EXPECT_EQ(closest("norm", {"norm_attention", "norms", "form"}), "norms");
  EXPECT_EQ(closest("hid", {"hidden_dim"}), "") << "too little of it";
}

TEST(Suggest, WordsMayBeWrittenOutAndOneOfManyMayBeAnother) {
  EXPECT_EQ(closest("hidden_dimension", kNames), "hidden_dim");
  EXPECT_EQ(closest("attention-dimension", {"hidden_dim", "attn_dim", "attention_dim"}), "attention_dim");
  EXPECT_EQ(closest("maximum_seq_len", {"min_seq_len", "max_seq_len"}), "max_seq_len");
  EXPECT_EQ(closest("jagged_dense_elementwise_add", {"jagged_to_padded_dense", "jagged_dense_broadcast_add"}),
            "jagged_dense_broadcast_add");
  EXPECT_EQ(closest("weight_dimension", kNames), "") << "of two words, none is another";
  EXPECT_EQ(closest("dimension", {"dim"}), "") << "one word is no name of words";
  EXPECT_EQ(closest(std::string(1 << 20, '_'), kNames), "");
}

TEST(Suggest, WordsMayBeLeftOut) {
  const std::vector<std::string_view> names = {
      "complete_cumsum",        "concat_2d_jagged",          "jagged_dense_broadcast_add",
      "jagged_to_padded_dense", "add_positional_embeddings", "add_timestamp_positional_embeddings"};
  EXPECT_EQ(closest("cumsum", names), "complete_cumsum");
  EXPECT_EQ(closest("concat_jagged", names), "concat_2d_jagged");
  EXPECT_EQ(closest("jagged_to_dense", names), "jagged_to_padded_dense");
  EXPECT_EQ(closest("positional-embeddings", names), "add_positional_embeddings") << "the fewest are left out";
  EXPECT_EQ(closest("HSTUJIT_JOBS", {"HSTUJIT_COMPILE_JOBS"}), "HSTUJIT_COMPILE_JOBS");
  EXPECT_EQ(closest("dense_jagged", names), "") << "in another order";
  EXPECT_EQ(closest("dim", kNames), "") << "too little of it";
}

TEST(Suggest, TheFirstOfEquallyNearNamesIsTaken) { EXPECT_EQ(closest("cat", {"bat", "hat"}), "bat"); }

TEST(Suggest, TheEndOfASentence) {
  EXPECT_EQ(did_you_mean("heads"), ", did you mean \"heads\"?");
  EXPECT_EQ(did_you_mean(std::vector<std::string_view>{"attn_dim", "hidden_dim"}),
            ", did you mean \"attn_dim\" and \"hidden_dim\"?");
  EXPECT_EQ(did_you_mean(""), "");
  EXPECT_EQ(did_you_mean(std::vector<std::string_view>()), "");
}

}  // namespace
}  // namespace hstujit
