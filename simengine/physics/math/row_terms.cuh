// What solvers know of a constraint row before they look at its Jacobian.
#pragma once

// The dofs in whose columns a row has entries, if its type says that there are at most two. `high` is -1 if there is
// one, and `low` is -1, too, if there may be more.
struct FewDofs {
  int low = -1, high = -1;
};

// What a constraint row adds: its force, and its weight in the Hessian. Of a row of a cone that its second derivatives
// mix with other rows, the weights are not these.
// A row that has the entry 1 in the column of one dof, and no other, may name that dof; it is -1 for other rows.
struct RowTerm {
  real force, weight;
  bool cone;
  int dof;
  FewDofs few;
};
