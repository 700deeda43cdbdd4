module {
  func.func @row_outputs(%arg0: f32 {hstu.name = "values"}) -> (f32 {hstu.name = "left"}) {
    return %arg0 : f32
  }
  func.func @row_index(%arg0: index {hstu.name = "sequence"}, %arg1: index {hstu.name = "position"}) -> (index {hstu.name = "values"}) {
    %c1 = arith.constant 1 : index
    %0 = hstu.element "offsets_right"[%arg0]
    %1 = hstu.argument "max_len_left" : index
    %2 = arith.muli %arg0, %1 : index
    %3 = arith.addi %2, %0 : index
    %4 = arith.addi %arg0, %c1 : index
    %5 = hstu.element "offsets_right"[%4]
    %6 = arith.subi %5, %0 : index
    %7 = hstu.argument "n_prefix_to_right" : index
    %8 = arith.minsi %7, %6 : index
    %9 = arith.addi %arg1, %8 : index
    %10 = arith.addi %3, %9 : index
    return %10 : index
  }
}
