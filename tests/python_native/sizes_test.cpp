#include "python/native/sizes.h"

#include <gtest/gtest.h>

#include <bit>
#include <limits>
#include <stdexcept>
#include <vector>

#include "tests/python_native/fake_functions.h"

namespace hstujit::torch {
namespace {

constexpr std::int64_t kLargest = std::numeric_limits<std::int64_t>::max();

// A tensor (6, 40), a number, and rows that may be given.
struct Call {
  explicit Call(std::int64_t number, std::int64_t rows) {
    op.slots = {{HSTUJIT_TORCH_TENSOR, 0, HSTUJIT_TORCH_INPUT, 0},
                {HSTUJIT_TORCH_INTEGER, 0, HSTUJIT_TORCH_INPUT, 1},
                {HSTUJIT_TORCH_INTEGER, 0, HSTUJIT_TORCH_ROWS, 0},
                {HSTUJIT_TORCH_TEXT, 0, HSTUJIT_TORCH_PARAMETER, 0}};
    op.inputs = 2;
    op.parameters = 1;
    op.rows = 1;
    op.outputs = 1;
    op.first = 0;
    Functions& torch = test::fake_functions();
    torch.aoti_torch_device_type_cpu = [] { return 0; };
    torch.aoti_torch_get_dim = [](AtenTensorHandle, std::int64_t* rank) { return *rank = 2, 0; };
    torch.aoti_torch_get_sizes = [](AtenTensorHandle, std::int64_t** sizes) { return *sizes = kSizes, 0; };
    torch.aoti_torch_get_strides = [](AtenTensorHandle, std::int64_t** strides) { return *strides = kSizes, 0; };
    torch.aoti_torch_get_dtype = [](AtenTensorHandle, std::int32_t* dtype) { return *dtype = 6, 0; };
    torch.aoti_torch_get_device_type = [](AtenTensorHandle, std::int32_t* type) { return *type = 0, 0; };
    torch.torch_get_const_data_ptr = [](AtenTensorHandle, const void** data) { return *data = nullptr, 0; };
    torch.aoti_torch_delete_tensor_object = [](AtenTensorHandle) { return ++deleted, 0; };
    torch.torch_string_length = [](StringHandle, std::size_t* length) { return *length = 4, 0; };
    torch.torch_string_c_str = [](StringHandle, const char** text) { return *text = "silu", 0; };
    torch.torch_delete_string = [](StringHandle) { return ++deleted, 0; };
    stack = {std::bit_cast<StableIValue>(&op), static_cast<StableIValue>(number), static_cast<StableIValue>(rows),
             std::bit_cast<StableIValue>(&op)};
  }

  // The size that a program gives, -1 where it gives none.
  std::int64_t run(std::vector<std::int64_t> program) {
    StackArguments arguments(op, stack.data());
    arguments.describe();
    program.push_back(HSTUJIT_TORCH_END);
    std::int64_t size = 0;
    Last last;
    return evaluate(program, arguments, {&size, 1}, last) ? size : -1;
  }

  static inline std::int64_t kSizes[2] = {6, 40};
  static inline int deleted = 0;
  Operator op;
  std::vector<StableIValue> stack;
};

TEST(Sizes, FollowFromShapesNumbersAndRows) {
  Call call(5, 9);
  EXPECT_EQ(call.run({HSTUJIT_TORCH_CONSTANT, 7}), 7);
  EXPECT_EQ(call.run({HSTUJIT_TORCH_SIZE, 0, 1}), 40);
  EXPECT_EQ(call.run({HSTUJIT_TORCH_NUMBER, 1}), 5);
  EXPECT_EQ(call.run({HSTUJIT_TORCH_GIVEN, 0}), 9);
  EXPECT_EQ(call.run({HSTUJIT_TORCH_SIZE, 0, 0, HSTUJIT_TORCH_CONSTANT, 1, HSTUJIT_TORCH_SUBTRACT, HSTUJIT_TORCH_NUMBER,
                      1, HSTUJIT_TORCH_MULTIPLY, HSTUJIT_TORCH_GIVEN, 0, HSTUJIT_TORCH_ADD}),
            34);
}

TEST(Sizes, QuotientsAreRoundedDown) {
  Call call(5, 9);
  for (const std::int64_t dividend : {7, -7, 6, -6, 0})
    EXPECT_EQ(call.run({HSTUJIT_TORCH_CONSTANT, dividend, HSTUJIT_TORCH_CONSTANT, 3, HSTUJIT_TORCH_DIVIDE,
                        HSTUJIT_TORCH_CONSTANT, 10, HSTUJIT_TORCH_ADD}),
              10 + (dividend - ((dividend % 3 + 3) % 3)) / 3);
}

TEST(Sizes, BelowZeroOrTooLargeAreNone) {
  EXPECT_EQ(Call(-3, 0).run({HSTUJIT_TORCH_NUMBER, 1}), -1);
  for (const std::int64_t operation : {HSTUJIT_TORCH_ADD, HSTUJIT_TORCH_MULTIPLY})
    EXPECT_EQ(Call(kLargest, 0).run({HSTUJIT_TORCH_NUMBER, 1, HSTUJIT_TORCH_SIZE, 0, 1, operation}), -1);
}

TEST(Sizes, OutOfBoundsAreNone) {
  const std::vector<std::int64_t> program = {HSTUJIT_TORCH_NUMBER, 1, HSTUJIT_TORCH_SIZE, 0, 1, HSTUJIT_TORCH_BOUNDED};
  for (const auto& [number, size] : {std::pair{0, 0}, {40, 40}, {41, -1}, {-1, -1}})
    EXPECT_EQ(Call(number, 0).run(program), size) << number;
}

TEST(Sizes, AProgramThatIsNoExpressionIsRefused) {
  EXPECT_THROW(Call(1, 1).run({HSTUJIT_TORCH_ADD}), std::logic_error);
  EXPECT_THROW(Call(1, 1).run({HSTUJIT_TORCH_CONSTANT, 1, HSTUJIT_TORCH_END, HSTUJIT_TORCH_CONSTANT, 1}),
               std::logic_error);
  EXPECT_THROW(Call(1, 1).run(std::vector<std::int64_t>(100, HSTUJIT_TORCH_CONSTANT)), std::logic_error);
}

TEST(Arguments, GiveBackEveryTensorAndTextOfTheStack) {
  Call call(1, 1);
  const int before = Call::deleted;
  call.run({HSTUJIT_TORCH_CONSTANT, 1});
  EXPECT_EQ(Call::deleted, before + 2);
  // Also where PyTorch cannot describe one.
  test::fake_functions().aoti_torch_get_strides = [](AtenTensorHandle, std::int64_t**) { return 1; };
  EXPECT_THROW(call.run({HSTUJIT_TORCH_CONSTANT, 1}), std::runtime_error);
  EXPECT_EQ(Call::deleted, before + 4);
}

}  // namespace
}  // namespace hstujit::torch
