module {
  func.func @row_outputs(%arg0: f32 {hstu.name = "values"}) -> (f32 {hstu.name = "left"}, f32 {hstu.name = "right"}) {
    return %arg0, %arg0 : f32, f32
  }
  func.func @row_index(%arg0: index {hstu.name = "sequence"}, %arg1: index {hstu.name = "position"}) -> (index {hstu.name = "left"}, index {hstu.name = "right"}) {
    %c-1 = arith.constant -1 : index
    %c1 = arith.constant 1 : index
    %c0 = arith.constant 0 : index
    %0 = hstu.element "offsets_left"[%arg0]
    %1 = arith.addi %arg0, %c1 : index
    %2 = hstu.element "offsets_left"[%1]
    %3 = arith.subi %2, %0 : index
    %4 = arith.cmpi slt, %arg1, %3 : index
    %5 = arith.cmpi sge, %arg1, %c0 : index
    %6 = arith.andi %5, %4 : i1
    %7 = arith.subi %arg1, %3 : index
    %8 = arith.addi %0, %arg1 : index
    %9 = arith.select %6, %8, %c-1 : index
    %10 = hstu.argument "max_len_right" : index
    %11 = arith.muli %arg0, %10 : index
    %12 = arith.addi %11, %7 : index
    %13 = arith.select %6, %c-1, %12 : index
    return %9, %13 : index, index
  }
}
