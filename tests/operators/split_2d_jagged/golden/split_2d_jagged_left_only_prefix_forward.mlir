module {
  func.func @row_outputs(%arg0: f32 {hstu.name = "values"}) -> (f32 {hstu.name = "left"}) {
    return %arg0 : f32
  }
  func.func @row_index(%arg0: index {hstu.name = "sequence"}, %arg1: index {hstu.name = "position"}) -> (index {hstu.name = "values"}) {
    %c1 = arith.constant 1 : index
    %0 = hstu.element "offsets_right"[%arg0]
    %1 = hstu.element "offsets_left"[%arg0]
    %2 = arith.addi %1, %0 : index
    %3 = arith.addi %arg0, %c1 : index
    %4 = hstu.element "offsets_right"[%3]
    %5 = arith.subi %4, %0 : index
    %6 = hstu.argument "n_prefix_to_right" : index
    %7 = arith.minsi %6, %5 : index
    %8 = arith.addi %arg1, %7 : index
    %9 = arith.addi %2, %8 : index
    return %9 : index
  }
}
