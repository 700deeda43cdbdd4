module {
  func.func @row_outputs(%arg0: f32 {hstu.name = "left"}, %arg1: f32 {hstu.name = "right"}) -> (f32 {hstu.name = "out"}) {
    %0 = arith.addf %arg0, %arg1 : f32
    return %0 : f32
  }
  func.func @row_index(%arg0: index {hstu.name = "sequence"}, %arg1: index {hstu.name = "position"}) -> (index {hstu.name = "left"}, index {hstu.name = "right"}) {
    %c-1 = arith.constant -1 : index
    %c0 = arith.constant 0 : index
    %0 = hstu.argument "max_len_left" : index
    %1 = arith.cmpi slt, %arg1, %0 : index
    %2 = arith.cmpi sge, %arg1, %c0 : index
    %3 = arith.andi %2, %1 : i1
    %4 = arith.subi %arg1, %0 : index
    %5 = arith.muli %arg0, %0 : index
    %6 = arith.addi %5, %arg1 : index
    %7 = arith.select %3, %6, %c-1 : index
    %8 = hstu.element "offsets_right"[%arg0]
    %9 = arith.addi %8, %4 : index
    %10 = arith.select %3, %c-1, %9 : index
    return %7, %10 : index, index
  }
}
