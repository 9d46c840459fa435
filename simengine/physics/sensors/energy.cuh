// Energies: MuJoCo documentation, "XML Reference", "option/flag", "energy".
#pragma once

// Energy of gravity and of the springs of joints and tendons [J].
DEVICE real potential_energy(const Model& m, const real* qpos, const real* xipos, const real* ten_length) {
  real energy = 0;
  ROLLED for (int b = 1; b < m.nbody(); ++b) {
    energy = fma_(-m.body_mass()[b], dot3(m.opt_gravity(), xipos + 3 * b), energy);
  }
  ROLLED for (int j = 0; j < m.njnt(); ++j) {
    if (!is_sprung(m, j)) continue;
    const int size = size_of_stretch(m, j), dofs = m.jnt_type()[j] == JNT_FREE ? 6 : size;
    ROLLED for (int first = 0; first < dofs; first += size) {
      real square = 0, stretch = 0;
      for (int k = 0; k < size; ++k) {
        stretch = joint_stretch(m, j, first + k, qpos);
        square = fma_(stretch, stretch, square);
      }
      if (size > 1) stretch = sqrt_(square);
      energy += spring_energy(m.jnt_stiffness()[j], m.jnt_stiffnesspoly() + 2 * j, stretch);
    }
  }
  ROLLED for (int t = 0; t < m.ntendon(); ++t) {
    const real length = ten_length[t], *rest = m.tendon_lengthspring() + 2 * t;
    const real stretch = length - clamp_(length, rest[0], rest[1]);
    energy += spring_energy(m.tendon_stiffness()[t], m.tendon_stiffnesspoly() + 2 * t, stretch);
  }
  return energy;
}

// Half of qvel' M qvel [J], summed over the blocks of M; most models have one block of all dofs.
DEVICE real kinetic_energy(const Model& m, const real* qvel, const real* qM) {
  real energy = 0;
  ROLLED for (int b = 0; b < m.nblock(); ++b) {
    const Block block = block_of(m, b);
    const real *M = qM + block.at, *vel = qvel + block.dof;
    ROLLED for (int r = 0; r < block.n; ++r) {
      real momentum = 0;
      ROLLED for (int c = 0; c < block.n; ++c) momentum = fma_(M[r * block.n + c], vel[c], momentum);
      energy = fma_(R(0.5) * vel[r], momentum, energy);
    }
  }
  return energy;
}
