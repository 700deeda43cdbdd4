#include "compiler/host/philox.h"

#include "compiler/spec/operators/hstu_attention/dropout.h"
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
    const Value counter = right(at, pair_constant(3)), second = pair(offset);
    Value words[4] = {low(counter), high(counter), low(second), high(second)};
    draw(pair(seed), words);
    const Value place = low(at), which = emit_.both(right(place, word_constant(1)), word_constant(3));
    const Value word = word_of(words, which);
    const Value is_low = emit_.eq(emit_.both(place, word_constant(1)), word_constant(0));
    const Value half = emit_.both(emit_.select(is_low, word, right(word, word_constant(16))), word_constant(0xffff));
    const auto real = [this](float value) { return emit_.broadcast(emit_.real(value)); };
    return emit_.addf(emit_.mulf(number(half), real(0x1p-16F)), real(128));
  }

  // A byte of each pair's, from 0 to 255, as AttentionDropout has it.
  Value byte(const DropoutStream& of, Value row, Value column) {
    const Value i = emit_.broadcast(row), j = emit_.broadcast(column);
    const auto bits = [this](Value word, uint32_t from, uint32_t mask) {
      return emit_.both(right(word, word_constant(from)), word_constant(mask));
    };
    const auto times = [this](Value word, uint32_t factor) { return emit_.mul(word, word_constant(factor)); };
    const Value start = pair(of.start), head = low(pair(of.head));
    Value words[4] = {emit_.add(times(right(i, word_constant(4)), 8), bits(i, 0, 7)),
                      emit_.add(times(right(j, word_constant(4)), 2), bits(j, 2, 1)), low(start),
                      emit_.add(times(high(start), 1024), head)};
    const Value step = pair_constant(static_cast<int64_t>(kDropoutOffsetStep));
    draw(emit_.add(pair(of.seed), emit_.mul(pair(of.offset), step)), words);
    const Value word = word_of(words, emit_.add(times(bits(i, 3, 1), 2), bits(j, 3, 1)));
    return number(emit_.both(right(word, times(bits(j, 0, 3), 8)), word_constant(0xff)));
  }

 private:
  void draw(Value key, Value (&words)[4]) {
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
  }

  Value word_of(const Value (&words)[4], Value which) {
    Value word = words[0];
    for (uint32_t i = 1; i < 4; ++i) word = emit_.select(emit_.eq(which, word_constant(i)), words[i], word);
    return word;
  }

  Value number(Value word) {
    return arith::SIToFPOp::create(builder(), location(), emit_.lanes_of(builder().getF32Type()), word);
  }

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

Value emit_dropout_factor(Emitter& emit, const DropoutStream& of, Value ratio, Value row, Value column) {
  // Rounded to an integer, half to even.
  const Value steps = emit.real(kDropoutSteps), place = emit.real(0x1.8p23);
  const Value dropped = emit.subf(emit.addf(emit.mulf(ratio, steps), place), place), kept = emit.subf(steps, dropped);
  const Value none = emit.compare(arith::CmpFPredicate::OEQ, kept, emit.real(0));
  const Value factor = emit.select(none, emit.real(0), emit.divf(steps, kept));
  const Value byte = PhiloxEmitter(emit).byte(of, row, column);
  return emit.select(emit.compare(arith::CmpFPredicate::OGE, byte, emit.broadcast(dropped)), emit.broadcast(factor),
                     emit.zero_lanes());
}

}  // namespace hstujit
