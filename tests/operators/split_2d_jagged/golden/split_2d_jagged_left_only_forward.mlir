module {
  func.func @row_outputs(%arg0: f32 {hstu.name = "values"}) -> (f32 {hstu.name = "left"}) {
    return %arg0 : f32
  }
  func.func @row_index(%arg0: index {hstu.name = "sequence"}, %arg1: index {hstu.name = "position"}) -> (index {hstu.name = "values"}) {
    %0 = hstu.element "offsets_right"[%arg0]
    %1 = hstu.element "offsets_left"[%arg0]
    %2 = arith.addi %1, %0 : index
    %3 = arith.addi %2, %arg1 : index
    return %3 : index
  }
}
