#include "compiler/host/philox.h"

#include "compiler/spec/philox.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

namespace hstujit {

namespace {

namespace arith = mlir::arith;
using mlir::Value;

class PhiloxEmitter {
 public:
  explicit PhiloxEmitter(Emitter& emit)
      : emit_(emit),
        words_(emit.lanes_of(emit.builder().getI32Type())),
        pairs_(emit.lanes_of(emit.builder().getI64Type())) {}

  Value uniform(Value seed, Value offset, Value element) {
    const Value at = emit_.add(pair(element), steps());
    const Value counter = right(at, pair_constant(3)), key = pair(seed), second = pair(offset);
    Value words[4] = {low(counter), high(counter), low(second), high(second)};
    Value key0 = low(key), key1 = high(key);
    for (int round = 0; round < kPhiloxRounds; ++round) {
      const Value a = product(words[0], 0xd2511f53), b = product(words[2], 0xcd9e8d57);
      words[0] = exclusive(exclusive(high(b), words[1]), key0);
      words[1] = low(b);
      words[2] = exclusive(exclusive(high(a), words[3]), key1);
      words[3] = low(a);
      key0 = emit_.add(key0, word_constant(0x9e3779b9));
      key1 = emit_.add(key1, word_constant(0xbb67ae85));
    }
    const Value place = low(at), which = emit_.both(right(place, word_constant(1)), word_constant(3));
    Value word = words[0];
    for (uint32_t i = 1; i < 4; ++i) word = emit_.select(emit_.eq(which, word_constant(i)), words[i], word);
    const Value is_low = emit_.eq(emit_.both(place, word_constant(1)), word_constant(0));
    const Value half = emit_.both(emit_.select(is_low, word, right(word, word_constant(16))), word_constant(0xffff));
    const Value number = arith::SIToFPOp::create(builder(), location(), emit_.lanes_of(builder().getF32Type()), half);
    const auto real = [this](float value) { return emit_.broadcast(emit_.real(value)); };
    return emit_.addf(emit_.mulf(number, real(0x1p-16F)), real(128));
  }

 private:
  mlir::OpBuilder& builder() { return emit_.builder(); }
  mlir::Location location() { return emit_.location(); }

  Value constant(mlir::DenseElementsAttr elements) {
    return arith::ConstantOp::create(builder(), location(), elements);
  }
  Value word_constant(uint32_t value) {
    return constant(mlir::DenseElementsAttr::get(words_, static_cast<int32_t>(value)));
  }
  Value pair_constant(int64_t value) { return constant(mlir::DenseElementsAttr::get(pairs_, value)); }
  Value steps() {
    mlir::SmallVector<int64_t> steps;
    for (int64_t i = 0; i < emit_.tile().lanes; ++i) steps.push_back(i);
    return constant(mlir::DenseElementsAttr::get(pairs_, llvm::ArrayRef(steps)));
  }

  // The 64 bits of an index, in each lane.
  Value pair(Value index) {
    const Value bits = arith::IndexCastOp::create(builder(), location(), builder().getI64Type(), index);
    return mlir::vector::BroadcastOp::create(builder(), location(), pairs_, bits);
  }
  Value low(Value pair) { return arith::TruncIOp::create(builder(), location(), words_, pair); }
  Value high(Value pair) { return low(right(pair, pair_constant(32))); }
  Value right(Value bits, Value by) { return arith::ShRUIOp::create(builder(), location(), bits, by); }
  Value exclusive(Value a, Value b) { return arith::XOrIOp::create(builder(), location(), a, b); }
  Value product(Value word, uint32_t factor) {
    return emit_.mul(arith::ExtUIOp::create(builder(), location(), pairs_, word), pair_constant(factor));
  }

  Emitter& emit_;
  const mlir::VectorType words_, pairs_;
};

}  // namespace

Value emit_philox_uniform(Emitter& emit, Value seed, Value offset, Value element) {
  return PhiloxEmitter(emit).uniform(seed, offset, element);
}

}  // namespace hstujit
