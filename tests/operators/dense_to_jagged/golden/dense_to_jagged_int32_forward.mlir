module {
  func.func @row_outputs(%arg0: f32 {hstu.name = "dense"}) -> (f32 {hstu.name = "out"}) {
    return %arg0 : f32
  }
  func.func @row_index(%arg0: index {hstu.name = "sequence"}, %arg1: index {hstu.name = "position"}) -> (index {hstu.name = "dense"}) {
    %c-1 = arith.constant -1 : index
    %0 = hstu.argument "max_len" : index
    %1 = arith.cmpi slt, %arg1, %0 : index
    %2 = arith.muli %arg0, %0 : index
    %3 = arith.addi %2, %arg1 : index
    %4 = arith.select %1, %3, %c-1 : index
    return %4 : index
  }
}
