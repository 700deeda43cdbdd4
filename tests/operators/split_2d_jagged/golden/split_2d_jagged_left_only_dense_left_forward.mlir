module {
  func.func @row_outputs(%arg0: f32 {hstu.name = "values"}) -> (f32 {hstu.name = "left"}) {
    return %arg0 : f32
  }
  func.func @row_index(%arg0: index {hstu.name = "sequence"}, %arg1: index {hstu.name = "position"}) -> (index {hstu.name = "values"}) {
    %0 = hstu.element "offsets_right"[%arg0]
    %1 = hstu.argument "max_len_left" : index
    %2 = arith.muli %arg0, %1 : index
    %3 = arith.addi %2, %0 : index
    %4 = arith.addi %3, %arg1 : index
    return %4 : index
  }
}
