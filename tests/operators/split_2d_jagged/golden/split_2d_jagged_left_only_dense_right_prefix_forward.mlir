module {
  func.func @row_outputs(%arg0: f32 {hstu.name = "values"}) -> (f32 {hstu.name = "left"}) {
    return %arg0 : f32
  }
  func.func @row_index(%arg0: index {hstu.name = "sequence"}, %arg1: index {hstu.name = "position"}) -> (index {hstu.name = "values"}) {
    %0 = hstu.argument "max_len_right" : index
    %1 = arith.muli %arg0, %0 : index
    %2 = hstu.element "offsets_left"[%arg0]
    %3 = arith.addi %2, %1 : index
    %4 = hstu.argument "n_prefix_to_right" : index
    %5 = arith.minsi %4, %0 : index
    %6 = arith.addi %arg1, %5 : index
    %7 = arith.addi %3, %6 : index
    return %7 : index
  }
}
