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
    %4 = hstu.element "offsets_right"[%arg0]
    %5 = hstu.element "offsets_right"[%1]
    %6 = arith.subi %5, %4 : index
    %7 = hstu.argument "n_prefix_to_right" : index
    %8 = arith.minsi %7, %6 : index
    %9 = arith.cmpi slt, %arg1, %8 : index
    %10 = arith.subi %arg1, %8 : index
    %11 = arith.cmpi slt, %10, %3 : index
    %12 = arith.cmpi sge, %arg1, %8 : index
    %13 = arith.andi %12, %11 : i1
    %14 = arith.subi %arg1, %3 : index
    %15 = arith.select %9, %arg1, %14 : index
    %16 = arith.addi %0, %10 : index
    %17 = arith.select %13, %16, %c-1 : index
    %18 = arith.addi %4, %15 : index
    %19 = arith.select %13, %c-1, %18 : index
    return %17, %19 : index, index
  }
}
