"""Models whose constraint rows are of every type: a linkage with elliptic cones, and things that roll and spin."""

LINKAGE = """
<mujoco model="linkage">
  <option timestep="0.003" impratio="2.5" cone="elliptic"/>
  <default><geom density="600"/></default>
  <worldbody>
    <geom name="floor" type="plane" size="5 5 1" condim="3" friction="0.9 0.02 0.001"/>
    <body name="puck" pos="0 0 0.15">
      <freejoint/>
      <geom type="sphere" size="0.12" condim="6" friction="0.7 0.03 0.02" solimp="0.8 0.95 0.03 0.4 3"/>
      <site name="rim" pos="0.1 0.02 0" quat="1 0.3 0 0.1"/>
    </body>
    <body name="rod" pos="0.4 0 0.2" quat="0.8 0.4 0.3 0">
      <freejoint/>
      <geom type="capsule" size="0.06 0.15" condim="4" friction="1.1 0.04 0.01" margin="0.02" gap="0.008"/>
      <geom type="sphere" size="0.07" pos="0 0.1 0.1" condim="1" priority="1"/>
      <site name="end" pos="0 0.05 0.15" quat="1 -0.2 0.5 0.1"/>
    </body>
    <body name="crank" pos="-0.4 0 0.3">
      <joint name="turn" type="hinge" axis="0 1 0.2" frictionloss="0.3" range="-50 40" limited="true" ref="10"
             solreffriction="0.03 0.9" solimpfriction="0.7 0.9 0.01"/>
      <geom type="capsule" fromto="0 0 0 0.2 0 0" size="0.04" condim="3"/>
      <body name="slider" pos="0.2 0 0">
        <joint name="slide" type="slide" axis="1 0 0.1" frictionloss="0.5" ref="0.05" solreffriction="-150 -30"/>
        <geom type="sphere" size="0.06" pos="0.1 0 0" condim="4"/>
        <body name="tip" pos="0.1 0 0">
          <joint name="bend" type="hinge" axis="0 1 0" armature="0.01"/>
          <geom type="capsule" fromto="0 0 0 0.1 0 -0.1" size="0.03"/>
        </body>
      </body>
    </body>
    <body name="rest" pos="0 0.6 0.4"><geom type="sphere" size="0.05"/></body>
  </worldbody>
  <contact><exclude body1="puck" body2="rod"/></contact>
  <tendon>
    <fixed name="cord" frictionloss="0.2" solreffriction="0.04 1.1" solimpfriction="0.6 0.8 0.02">
      <joint joint="turn" coef="1.2"/><joint joint="slide" coef="-0.8"/>
    </fixed>
    <fixed name="strand" range="-0.5 0.6" limited="true"><joint joint="bend" coef="0.9"/></fixed>
  </tendon>
  <equality>
    <connect name="pin" body1="puck" body2="tip" anchor="0.05 0 0.1" solimp="0.8 0.95 0.6 0.4 3"/>
    <connect name="hook" site1="rim" site2="end" solref="0.04 0.8"/>
    <weld name="glue" body1="rod" body2="slider" anchor="0.05 0 0.1" relpose="0.1 0.2 0.3 1 0.1 0.2 0.3"
          torquescale="0.7" solimp="0.7 0.96 1.5 0.3 2"/>
    <weld name="joined" site1="end" site2="rim" torquescale="1.7" active="false"/>
    <weld name="fixed" body1="rod" solref="-200 -25"/>
    <connect name="still" body1="rest" anchor="0 0 0.1"/>
    <joint name="geared" joint1="turn" joint2="slide" polycoef="0.1 0.9 0.5 0.3 0.2"/>
    <joint name="held" joint1="bend" polycoef="0.1 0.9 0 0 0" solref="-300 -20"/>
    <tendon name="coupled" tendon1="cord" tendon2="strand" polycoef="0.1 -0.9 0.5 0.3 0.2"/>
    <tendon name="tied" tendon1="strand" polycoef="0.2 0 0 0 0" active="false"/>
  </equality>
</mujoco>
"""

ROLLERS = """
<mujoco model="rollers">
  <option timestep="0.003" impratio="2.5"/>
  <default><geom density="600"/></default>
  <worldbody>
    <geom name="floor" type="plane" size="5 5 1" friction="0.9 0.02 0.001"/>
    <body name="puck" pos="0 0 0.15">
      <freejoint/>
      <geom type="sphere" size="0.12" condim="6" friction="0.7 0.03 0.02" solimp="0.8 0.95 0.03 0.4 3"/>
    </body>
    <body name="rod" pos="0.2 0 0.2" quat="0.8 0.4 0.3 0">
      <freejoint/>
      <geom type="capsule" size="0.06 0.15" condim="4" friction="1.1 0.04 0.01" margin="0.02" gap="0.008"/>
      <geom type="sphere" size="0.07" pos="0 0.1 0.1" condim="1" priority="1"/>
      <body name="arm" pos="0 0 0.2">
        <joint type="hinge" axis="0 1 0" frictionloss="0.3" range="-50 40" limited="true"/>
        <geom type="capsule" fromto="0 0 0 0.2 0 0" size="0.04"/>
      </body>
    </body>
  </worldbody>
</mujoco>
"""
