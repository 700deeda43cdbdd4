module {
  func.func @row_outputs(%arg0: f32 {hstu.name = "values"}) -> (f32 {hstu.name = "left"}, f32 {hstu.name = "right"}) {
    return %arg0, %arg0 : f32, f32
  }
  func.func @row_index(%arg0: index {hstu.name = "sequence"}, %arg1: index {hstu.name = "position"}) -> (index {hstu.name = "left"}, index {hstu.name = "right"}) {
    %c-1 = arith.constant -1 : index
    %c1 = arith.constant 1 : index
    %0 = hstu.element "offsets_left"[%arg0]
    %1 = arith.addi %arg0, %c1 : index
    %2 = hstu.element "offsets_left"[%1]
    %3 = arith.subi %2, %0 : index
    %4 = hstu.argument "max_len_right" : index
    %5 = hstu.argument "n_prefix_to_right" : index
    %6 = arith.minsi %5, %4 : index
    %7 = arith.cmpi slt, %arg1, %6 : index
    %8 = arith.subi %arg1, %6 : index
    %9 = arith.cmpi slt, %8, %3 : index
    %10 = arith.cmpi sge, %arg1, %6 : index
    %11 = arith.andi %10, %9 : i1
    %12 = arith.subi %arg1, %3 : index
    %13 = arith.select %7, %arg1, %12 : index
    %14 = arith.addi %0, %8 : index
    %15 = arith.select %11, %14, %c-1 : index
    %16 = arith.muli %arg0, %4 : index
    %17 = arith.addi %16, %13 : index
    %18 = arith.select %11, %c-1, %17 : index
    return %15, %18 : index, index
  }
}
