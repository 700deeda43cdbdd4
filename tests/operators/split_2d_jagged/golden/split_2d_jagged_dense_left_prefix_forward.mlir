module {
  func.func @row_outputs(%arg0: f32 {hstu.name = "values"}) -> (f32 {hstu.name = "left"}, f32 {hstu.name = "right"}) {
    return %arg0, %arg0 : f32, f32
  }
  func.func @row_index(%arg0: index {hstu.name = "sequence"}, %arg1: index {hstu.name = "position"}) -> (index {hstu.name = "left"}, index {hstu.name = "right"}) {
    %c-1 = arith.constant -1 : index
    %c1 = arith.constant 1 : index
    %0 = hstu.argument "max_len_left" : index
    %1 = hstu.element "offsets_right"[%arg0]
    %2 = arith.addi %arg0, %c1 : index
    %3 = hstu.element "offsets_right"[%2]
    %4 = arith.subi %3, %1 : index
    %5 = hstu.argument "n_prefix_to_right" : index
    %6 = arith.minsi %5, %4 : index
    %7 = arith.cmpi slt, %arg1, %6 : index
    %8 = arith.subi %arg1, %6 : index
    %9 = arith.cmpi slt, %8, %0 : index
    %10 = arith.cmpi sge, %arg1, %6 : index
    %11 = arith.andi %10, %9 : i1
    %12 = arith.subi %arg1, %0 : index
    %13 = arith.select %7, %arg1, %12 : index
    %14 = arith.muli %arg0, %0 : index
    %15 = arith.addi %14, %8 : index
    %16 = arith.select %11, %15, %c-1 : index
    %17 = arith.addi %1, %13 : index
    %18 = arith.select %11, %c-1, %17 : index
    return %16, %18 : index, index
  }
}
