// Energies of a world, as in mjData.energy when MuJoCo's flag "energy" is enabled.

DEVICE void energy(const Model& m, const real* qpos, const real* qvel, const real* xipos, const real* ten_length,
                   const real* qM, real* energy) {
  // (1) of position and (2) of velocity
  LANE_FOR(i, 2) energy[i] = i == 0 ? potential_energy(m, qpos, xipos, ten_length) : kinetic_energy(m, qvel, qM);
  lane_sync();
}
