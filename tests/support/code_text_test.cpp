#include "compiler/support/code_text.h"

#include <gtest/gtest.h>

namespace hstujit {
namespace {

TEST(CodeText, CommentsAndLayoutAreGone) {
  EXPECT_EQ(without_comments("// title\n#pragma once\n\n  int  a ;  // b\n\n\tint/* c\n d */b;\n"),
            "#pragma once\nint a ;\nint b;\n");
  EXPECT_EQ(without_comments("int a;"), "int a;\n");
  EXPECT_EQ(without_comments("/* to the end"), "");
  EXPECT_EQ(without_comments("int a; // on \\\n the next line\nint b;\n"), "int a;\nint b;\n");
  EXPECT_EQ(without_comments(""), "");
}

TEST(CodeText, LiteralsStay) {
  for (const char* code : {"f(\"// no  comment\");\n", "f(\"\\\"/*\", '\"', '\\'', \"*/\");\n",
                           "f(R\"(\"//\n\n  x)\");\n", "f(u8R\"d()\" // )d\");\n", "a = 1'000'000 / b;\n",
                           "a = 0x1p-3 + 1.5e+3f;\n", "f(L'\\'', u'/');\n", "a = b / c; d = *e;\n"}) {
    EXPECT_EQ(without_comments(code), code);
  }
}

TEST(CodeText, SeparatorsOfNumbersOpenNoLiteral) {
  EXPECT_EQ(without_comments("a = 1'000;  // b's\nc = '/';  // d\n"), "a = 1'000;\nc = '/';\n");
  EXPECT_EQ(without_comments("f<16'384>(x);  // it's\n"), "f<16'384>(x);\n");
}

TEST(CodeText, AQuoteThatIsNotClosedEndsWithItsLine) {
  EXPECT_EQ(without_comments("#error don't  // x\nint a;  // b\n"), "#error don't  // x\nint a;\n");
  EXPECT_EQ(without_comments("\"\\"), "\"\\\n");
  EXPECT_EQ(without_comments("R\"(open"), "R\"(open\n");
}

TEST(CodeText, TokensDoNotGrowTogether) {
  EXPECT_EQ(without_comments("a/**/b"), "a b\n");
  EXPECT_EQ(without_comments("x R/**/\"(//)\""), "x R \"(//)\"\n");
}

}  // namespace
}  // namespace hstujit
