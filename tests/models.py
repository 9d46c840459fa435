"""Models that the tests share: Gymnasium's installed MJCF files, and small ones that exercise one group of features."""

from __future__ import annotations

from pathlib import Path

import gymnasium
import mujoco

from tests.models_of_rows import LINKAGE, ROLLERS

GYMNASIUM = (
    *("ant", "half_cheetah", "hopper", "walker2d", "swimmer"),
    *("inverted_pendulum", "inverted_double_pendulum"),
)
"""Gymnasium's models within the engine's features, by file name."""

MIXED_TREE = """
<mujoco model="mixed_tree">
  <compiler angle="radian"/>
  <option timestep="0.004" gravity="0.3 -0.2 -9.81" impratio="3"/>
  <default><geom contype="0" conaffinity="0" density="800"/></default>
  <worldbody>
    <geom name="floor" type="plane" size="5 5 1" contype="1" conaffinity="1"/>
    <body name="cart" pos="0.1 0.2 0.6" quat="0.9 0.1 -0.2 0.3">
      <joint name="along" type="slide" axis="1 0.3 0" range="-0.4 0.5" limited="true" damping="0.7" stiffness="20"
             springref="0.15" ref="0.05" solreflimit="-900 -40" margin="0.03"/>
      <joint name="swivel" type="hinge" axis="0.2 0 1" pos="0.05 -0.1 0.02" range="-0.9 0.8" limited="true"
             damping="0.2" armature="0.02" ref="0.2" solimplimit="0.7 0.95 0.2 0.4 3"/>
      <joint name="lift" type="slide" axis="0 0 1" damping="1.5" stiffness="60"/>
      <geom type="box" size="0.12 0.08 0.05"/>
      <site name="corner" pos="0.1 0.05 0.04"/>
      <body name="bracket" pos="0.2 0 0.1" quat="0.8 0 0.6 0">
        <geom type="ellipsoid" size="0.05 0.07 0.09"/>
        <body name="arm" pos="0 0 0.2">
          <joint name="shoulder" type="hinge" axis="0 1 0" pos="0 0 -0.1" range="-1.2 1.0" limited="true"
                 stiffness="3" springref="-0.3" actuatorfrcrange="-2 1.5" actuatorfrclimited="true"/>
          <geom type="capsule" fromto="0 0 0 0.1 0.05 0.3" size="0.04"/>
          <body name="hand" pos="0.1 0.05 0.32">
            <joint name="wrist" type="hinge" axis="1 1 0" armature="0.01"/>
            <joint name="reach" type="slide" axis="0 0.2 1" range="-0.1 0.2" limited="true"/>
            <geom type="sphere" size="0.06" contype="1" conaffinity="1"/>
            <site name="palm" pos="0.02 -0.01 0.05" quat="0.6 0.2 -0.5 0.3"/>
          </body>
        </body>
      </body>
      <body name="tail" pos="-0.2 0 0">
        <joint name="wag" type="hinge" axis="0 0 1" damping="0.05" range="-1 1" limited="true"/>
        <geom type="capsule" fromto="0 0 0 -0.3 0 0" size="0.03"/>
      </body>
    </body>
    <site name="mark" pos="0.3 0.2 0.1" euler="0.3 0.2 0.1"/>
    <body name="drifter" pos="0.8 0 0.4">
      <freejoint/>
      <inertial pos="0.03 -0.02 0.05" mass="1.3" fullinertia="0.02 0.03 0.025 0.004 -0.003 0.002"/>
      <geom type="capsule" size="0.05 0.1" contype="1" conaffinity="1"/>
      <body name="pendant" pos="0 0.1 -0.1">
        <joint name="swing" type="hinge" axis="1 0 0" damping="0.01"/>
        <geom type="sphere" size="0.05" pos="0 0 -0.1"/>
      </body>
    </body>
  </worldbody>
  <actuator>
    <motor name="push" joint="along" gear="30" ctrllimited="true" ctrlrange="-0.5 0.6"/>
    <position name="turn" joint="swivel" kp="12" forcelimited="true" forcerange="-3 2"/>
    <velocity name="raise" joint="lift" kv="4"/>
    <position name="bend" joint="shoulder" kp="9" kv="0.5" gear="-2"/>
    <general name="twist" joint="wrist" gear="1.5" gainprm="2" biastype="affine" biasprm="0.3 -1 -0.2"/>
    <motor name="bend_more" joint="shoulder"/>
  </actuator>
</mujoco>
"""

PILE = """
<mujoco model="pile">
  <option timestep="0.003"/>
  <default><geom density="500"/></default>
  <worldbody>
    <geom name="floor" type="plane" size="5 5 1" friction="0.7 0.01 0.001"/>
    <geom name="slope" type="plane" size="5 5 1" pos="0.6 0 0" euler="0 -35 10" condim="1"/>
    <geom name="post" type="capsule" size="0.05 0.4" pos="-0.2 0 0.3"/>
    <body name="a" pos="0 0 0.2">
      <freejoint/><geom size="0.12" friction="0.4"/><site name="a" type="box" size="0.05 0.1 0.15" pos="0.05 0 0"/>
    </body>
    <body name="b" pos="0.1 0 0.4"><freejoint/><geom size="0.1" condim="1" solmix="3"/></body>
    <body name="c" pos="0 0.1 0.3">
      <freejoint/>
      <geom type="capsule" size="0.07 0.15" friction="1.2 0.1 0.1" solref="0.03 0.8" solimp="0.8 0.9 0.02 0.3 3"/>
      <site name="c" type="capsule" size="0.06 0.1" euler="40 0 0"/>
    </body>
    <body name="d" pos="0.1 0.1 0.3" quat="0.7 0.7 0 0">
      <freejoint/>
      <geom type="capsule" size="0.06 0.2" priority="1" friction="0.2" solref="-700 -35"/>
    </body>
    <body name="e" pos="-0.1 0 0.5" quat="0.5 0.2 0.7 0">
      <freejoint/>
      <geom type="capsule" size="0.05 0.1" condim="1"/>
      <geom type="sphere" size="0.08" pos="0 0 0.15" solimp="0.5 0.99 0.05 0.7 1"/>
    </body>
    <site name="world" type="ellipsoid" size="0.3 0.3 0.1" pos="0.1 0 0"/>
  </worldbody>
  <sensor><touch site="a"/><touch site="c"/><touch site="world"/><force site="c"/></sensor>
</mujoco>
"""

CONTACT_PARAMETERS = """
<mujoco model="contact_parameters">
  <option timestep="0.002" impratio="5" integrator="RK4"/>
  <worldbody>
    <geom name="floor" type="plane" size="5 5 1" margin="0.02" gap="0.015"/>
    <body name="a" pos="0 0 0.2">
      <freejoint/><geom size="0.1" margin="0.03" solimp="0.9 0.9 0.001"/>
    </body>
    <body name="b" pos="0.2 0 0.2">
      <freejoint/><geom size="0.1" gap="0.02" solref="0.001 1" solimp="0.6 0.95 0 0.5 2"/>
    </body>
    <body name="c" pos="0 0.2 0.2">
      <freejoint/>
      <geom type="capsule" size="0.08 0.1" margin="0.01" gap="0.01" solref="-400 -20" contype="2" conaffinity="3"/>
    </body>
    <body name="d" pos="0.1 0.1 0.3">
      <freejoint/>
      <geom type="capsule" size="0.08 0.1" friction="0 0 0" solref="-100 -30" contype="1" conaffinity="2"/>
      <body name="e" pos="0 0 0.25">
        <joint type="hinge" axis="0 1 0" range="-40 40" limited="true"/>
        <geom type="sphere" size="0.09"/>
        <body name="f" pos="0 0 0.2">
          <joint type="hinge" axis="1 0 0" range="-80 80" limited="true"/>
          <geom type="capsule" size="0.05 0.12"/>
        </body>
      </body>
    </body>
  </worldbody>
  <contact><exclude body1="a" body2="b"/></contact>
</mujoco>
"""

TWO_ARMS = """
<mujoco model="two_arms">
  <option timestep="0.005"/>
  <default><joint damping="0.1" armature="0.01"/><geom density="600"/></default>
  <worldbody>
    <body name="left" pos="-0.3 0 0.5">
      <joint type="hinge" axis="0 1 0"/>
      <geom type="capsule" fromto="0 0 0 0.3 0 0" size="0.05"/>
      <body name="left_end" pos="0.3 0 0">
        <joint type="hinge" axis="0 0.3 1" range="-100 100" limited="true"/>
        <geom type="capsule" fromto="0 0 0 0.25 0 0" size="0.05"/>
        <body name="left_tip" pos="0.25 0 0">
          <joint type="hinge" axis="0 1 0" range="-120 120" limited="true"/>
          <geom type="capsule" fromto="0 0 0 0.25 0 0" size="0.04" condim="1"/>
        </body>
      </body>
    </body>
    <body name="right" pos="0.3 0.05 0.5">
      <joint type="hinge" axis="0 1 0"/>
      <geom type="capsule" fromto="0 0 0 -0.3 0 0" size="0.05"/>
      <body name="right_end" pos="-0.3 0 0">
        <joint type="hinge" axis="0 0 1" range="-100 100" limited="true"/>
        <geom type="capsule" fromto="0 0 0 -0.25 0 0" size="0.05"/>
        <geom type="sphere" size="0.07" pos="-0.25 0 0"/>
      </body>
    </body>
  </worldbody>
</mujoco>
"""

PARALLEL_CAPSULES = """
<mujoco model="parallel_capsules">
  <worldbody>
    <geom name="rail" type="capsule" size="0.05 0.5" pos="0 0 0.1" quat="0.7071067811865476 0 0.7071067811865476 0"/>
    <body name="log" pos="0 0 0.22">
      <joint type="slide" axis="1 0 0" damping="0.3"/><joint type="slide" axis="0 0 1"/>
      <geom type="capsule" size="0.06 0.3" quat="0.7071067811865476 0 0.7071067811865476 0"/>
    </body>
    <body name="stick" pos="0 0 0.33">
      <joint type="slide" axis="1 0 0"/><joint type="slide" axis="0 0 1"/><joint type="slide" axis="0 1 0"/>
      <geom type="capsule" size="0.04 0.2" quat="0.7071067811865476 0 0.7071067811865476 0" margin="0.02" condim="1"/>
    </body>
  </worldbody>
</mujoco>
"""

SUNKEN = """
<mujoco model="sunken">
  <option timestep="0.004" density="900" viscosity="0.8" wind="0.4 -0.3 0.2"/>
  <default><geom density="1500"/></default>
  <worldbody>
    <geom name="bed" type="plane" size="5 5 1"/>
    <body name="trunk" pos="0 0 0.4">
      <freejoint/>
      <inertial pos="0.02 -0.01 0.03" mass="9" fullinertia="0.12 0.2 0.15 0.02 -0.03 0.01"/>
      <geom type="capsule" size="0.1 0.15"/>
      <body name="fin" pos="0.25 0 0">
        <joint name="flap" type="hinge" axis="0 1 0" range="-50 60" limited="true" damping="0.3" stiffness="2"/>
        <geom type="box" size="0.12 0.1 0.01" pos="0.1 0 0" contype="0" conaffinity="0"/>
        <body name="tip" pos="0.22 0 0">
          <joint name="feather" type="hinge" axis="1 0.2 0"/>
          <geom type="ellipsoid" size="0.08 0.05 0.02" pos="0.08 0 0" contype="0" conaffinity="0"/>
          <geom type="sphere" size="0.03" pos="0.16 0 0" condim="1"/>
        </body>
      </body>
    </body>
    <body name="buoy" pos="0.8 0 0.5">
      <joint name="bob" type="slide" axis="0 0 1" stiffness="30" damping="1"/>
      <geom type="sphere" size="0.1"/>
    </body>
  </worldbody>
  <actuator><motor joint="flap" gear="2"/><position joint="feather" kp="1"/></actuator>
</mujoco>
"""

TENDONS = """
<mujoco model="tendons">
  <option timestep="0.004" magnetic="0.2 -0.5 0.3"/>
  <default><geom density="700" contype="0" conaffinity="0"/></default>
  <worldbody>
    <geom name="floor" type="plane" size="5 5 1" contype="1" conaffinity="1"/>
    <body name="gripper" pos="0 0 0.35">
      <joint name="lower" type="slide" axis="0 0 1" damping="2" range="-0.2 0.2" limited="true"/>
      <geom type="box" size="0.1 0.05 0.03"/>
      <site name="palm" type="box" size="0.3 0.2 0.25" pos="0.02 0.01 -0.03" euler="160 -30 40"/>
      <body name="left" pos="-0.1 0 -0.05">
        <joint name="left" type="hinge" axis="0 1 0" range="-60 60" limited="true" ref="10" stiffness="0.5"/>
        <geom type="capsule" fromto="0 0 0 -0.05 0 -0.2" size="0.02" contype="1"/>
        <body name="left_tip" pos="-0.05 0 -0.2">
          <joint name="left_tip" type="hinge" axis="0 1 0" damping="0.02" actuatorfrcrange="-0.4 0.5"
                 actuatorfrclimited="true"/>
          <geom name="pad" type="sphere" size="0.03" pos="0 0 -0.05" contype="1"/>
          <site name="tip" type="ellipsoid" size="0.2 0.1 0.3" pos="0.01 0 -0.08" quat="0.8 0.1 -0.3 0.5"/>
          <camera name="eye" pos="0 0.05 0.02" euler="10 60 -20"/>
        </body>
      </body>
      <body name="right" pos="0.1 0 -0.05">
        <joint name="right" type="hinge" axis="0 1 0" springref="20"/>
        <geom type="capsule" fromto="0 0 0 0.05 0 -0.2" size="0.02" contype="1"/>
      </body>
    </body>
    <geom name="drum" type="cylinder" size="0.1 0.2" pos="0.3 0.3 0.2" euler="70 20 0"/>
    <geom name="egg" type="ellipsoid" size="0.2 0.1 0.15" pos="-0.3 0.2 0.3"/>
    <geom name="glass" type="box" size="0.2 0.1 0.15" pos="0.2 -0.2 0.3" rgba="1 1 1 0"/>
    <site name="home" type="cylinder" size="0.25 0.3" pos="0.1 0.2 0.3" euler="0 40 10"/>
    <body name="weight" pos="0.6 0 0.5">
      <freejoint/>
      <site name="load" type="capsule" size="0.2 0.1" pos="0.03 -0.02 0.05" euler="50 0 20"/>
      <geom type="sphere" size="0.06" contype="1"/>
      <body name="pointer"><joint name="pointer" type="hinge" axis="0 1 0.2"/><geom size="0.03" pos="0.1 0 0"/></body>
    </body>
  </worldbody>
  <tendon>
    <fixed name="finger" stiffness="4" damping="0.3" springlength="-0.1 0.25" range="-0.8 0.9" limited="true"
           margin="0.02" solreflimit="0.03 0.9" solimplimit="0.8 0.97 0.1 0.4 3">
      <joint joint="left" coef="0.8"/><joint joint="left_tip" coef="-1.3"/>
    </fixed>
    <fixed name="idle"><joint joint="pointer" coef="2"/></fixed>
    <fixed name="grip" stiffness="3" damping="0.1">
      <joint joint="right" coef="1"/><joint joint="left" coef="-1"/><joint joint="lower" coef="0.5"/>
    </fixed>
    <fixed name="across" range="-1.5 1.2" limited="true" solreflimit="-300 -20" stiffness="1" springlength="0.3">
      <joint joint="pointer" coef="0.7"/><joint joint="right" coef="0.9"/><joint joint="lower" coef="-2"/>
    </fixed>
  </tendon>
  <actuator>
    <motor name="close" tendon="grip" gear="1.5"/>
    <motor name="tip" joint="left_tip" gear="0.7"/>
    <position name="curl" tendon="finger" kp="2" kv="0.2" gear="-2" forcelimited="true" forcerange="-1.5 1.2"/>
    <velocity name="turn" tendon="idle" kv="0.3" ctrllimited="true" ctrlrange="-0.5 0.5"/>
    <position name="reach" joint="lower" kp="20"/>
  </actuator>
  {sensors}
</mujoco>
"""

ACTUATORS = """
<mujoco model="actuators">
  <option timestep="0.005" actuatorgroupdisable="2"/>
  <default><joint armature="0.01"/><geom density="700" contype="0" conaffinity="0"/></default>
  <worldbody>
    <geom name="floor" type="plane" size="5 5 1" contype="1" conaffinity="1"/>
    <site name="anchor" pos="0.1 -0.2 0.9" euler="20 -30 40"/>
    <body name="craft" pos="0 0 0.4">
      <joint name="craft" type="free"/>
      <geom type="capsule" size="0.08 0.1" contype="1"/>
      <site name="nozzle" pos="0.05 0.02 -0.1" euler="10 20 -30"/>
      <body name="boom" pos="0.1 0 0.05">
        <joint name="boom" type="hinge" axis="0 1 0.2" damping="0.05" range="-60 70" limited="true"/>
        <geom type="capsule" fromto="0 0 0 0.3 0 0" size="0.02"/>
        <site name="pin" pos="0.3 0.02 0.01" euler="-20 10 50"/>
        <body name="grip" pos="0.3 0 0">
          <joint name="grip" type="slide" axis="1 0 0" range="-0.1 0.1" limited="true"/>
          <geom size="0.03"/>
        </body>
      </body>
      <body name="arm" pos="-0.1 0 0.05">
        <joint name="arm" type="hinge" axis="0 1 -0.3" actuatorfrcrange="-3 4" actuatorfrclimited="true"/>
        <geom type="capsule" fromto="0 0 0 -0.25 0 0.1" size="0.02"/>
        <site name="slot" pos="-0.1 0 0.02" euler="80 15 25"/>
        <body name="hand" pos="-0.25 0 0.1" quat="0.8 0.1 0.3 0.2">
          <joint name="wrist" type="ball" pos="0.01 0.02 0"/>
          <geom type="capsule" fromto="0 0 0 -0.1 0.05 0" size="0.03"/>
        </body>
      </body>
    </body>
  </worldbody>
  <tendon>
    <fixed name="belt" actuatorfrclimited="true" actuatorfrcrange="-1 1.2">
      <joint joint="boom" coef="0.8"/><joint joint="arm" coef="-1.3"/>
    </fixed>
    <fixed name="cord"><joint joint="grip" coef="2"/></fixed>
  </tendon>
  <actuator>
    <general name="bend" joint="wrist" gear="0.5 0.2 -0.3" biastype="affine" biasprm="0 -1 -0.1"/>
    <position name="turn" jointinparent="wrist" gear="0.1 0.4 0.3" kp="1"/>
    <general name="drift" joint="craft" gear="1 -2 0.5 0.3 0.2 -0.4"/>
    <general name="steer" jointinparent="craft" gear="0.5 1 -1 0.2 -0.3 0.4" dyntype="filter" dynprm="0.03"/>
    <intvelocity name="crank" joint="arm" kp="3" kv="0.1" actrange="-0.4 0.5"/>
    <general name="exact" joint="boom" dyntype="filterexact" dynprm="0.02" gainprm="2" biastype="affine"
             biasprm="0.1 -1 -0.2" actearly="true" forcelimited="true" forcerange="-0.8 0.9"/>
    <general name="early" joint="grip" dyntype="integrator" gainprm="1.5" actlimited="true" actrange="-0.3 0.2"
             actearly="true"/>
    <general name="valve" joint="boom" gaintype="affine" gainprm="1 2 -0.5" gear="1.5"/>
    <damper name="brake" joint="arm" kv="0.6" ctrlrange="0 1"/>
    <muscle name="biceps" joint="boom" lengthrange="-0.8 0.9" force="3"/>
    <muscle name="pull" tendon="cord" lengthrange="-0.3 0.2" scale="2" tausmooth="0.3" range="0.7 1.1"/>
    <motor name="tight" tendon="belt" gear="1.2" ctrlrange="-2 2"/>
    <position name="slack" tendon="belt" kp="3" timeconst="0.05"/>
    <general name="jet" site="nozzle" gear="0.3 -0.2 1 0.1 0.05 -0.1"/>
    <position name="dock" site="pin" refsite="anchor" gear="1 0.5 -0.3 0.2 0.1 0.3" kp="2"/>
    <position name="fold" site="pin" refsite="slot" gear="0.4 -0.5 0.6 0.3 -0.2 0.1" kp="1" kv="0.1"/>
    <position name="face" site="slot" refsite="anchor" gear="0 0 0 0.5 -0.3 0.2" kp="0.5" kv="0.1"/>
    <general name="rod" cranksite="pin" slidersite="slot" cranklength="0.9" gear="2" biastype="affine"
             biasprm="0.2 -1 -0.1"/>
    <general name="short" cranksite="pin" slidersite="nozzle" cranklength="0.02"/>
    <general name="off" joint="arm" group="2" dyntype="integrator" forcelimited="true" forcerange="0.1 0.5"/>
  </actuator>
  <sensor>
    <actuatorpos actuator="dock"/><actuatorvel actuator="rod"/><actuatorfrc actuator="biceps"/>
    <tendonpos tendon="belt"/><tendonvel tendon="cord"/><tendonactuatorfrc tendon="belt"/><actuatorpos actuator="bend"/>
  </sensor>
</mujoco>
"""

CRATES = """
<mujoco model="crates">
  <option timestep="0.004"/>
  <default>
    <geom density="400" solimp="0.8 0.95 0.01"/>
    <default class="sphere"><geom contype="2" conaffinity="3"/></default>
    <default class="capsule"><geom type="capsule" contype="4" conaffinity="7"/></default>
    <default class="cylinder"><geom type="cylinder" contype="0" conaffinity="3"/></default>
    <default class="box"><geom type="box" contype="8" conaffinity="15"/></default>
  </default>
  <worldbody>
    <geom name="floor" type="plane" size="5 5 1" conaffinity="0" margin="0.01" gap="0.005"/>
    <geom name="step" class="box" size="0.3 0.4 0.05" pos="0.1 0.1 0.02" euler="5 10 20" condim="1"/>
    <body name="crate" pos="0 0 0.25">
      <freejoint/>
      <geom name="crate" class="box" size="0.15 0.1 0.12"/>
      <geom class="cylinder" size="0.06 0.09" pos="0.1 0 0.2" euler="20 30 0"/>
    </body>
    <body name="stick" pos="0.1 0.1 0.3">
      <freejoint/>
      <geom name="stick" class="capsule" size="0.05 0.25" margin="0.01"/>
      <geom name="knob" class="sphere" size="0.12" pos="0 0.05 0.25"/>
    </body>
    <body name="can" pos="0 0.1 0.3" quat="0.7 0.1 0.3 0">
      <freejoint/>
      <geom class="cylinder" size="0.1 0.15" friction="0.5"/>
      <geom name="chip" class="box" size="0.12 0.05 0.08" pos="0.05 -0.12 0" euler="30 0 40" margin="0.02"/>
      <geom class="cylinder" type="ellipsoid" size="0.2 0.1 0.15" pos="0 0.15 0.2" conaffinity="1"/>
    </body>
  </worldbody>
  <contact>
    <pair geom1="crate" geom2="chip" friction="0.9 0.3 0.01 0.001 0.001" margin="0.03" gap="0.01" solref="0.03 0.8"/>
    <pair geom1="knob" geom2="stick"/>
    <pair geom1="stick" geom2="floor" condim="1" solimp="0.5 0.9 0.02 0.3 3"/>
  </contact>
</mujoco>
"""

RAGDOLL = """
<mujoco model="ragdoll">
  <option timestep="0.004" integrator="implicit"/>
  <default><geom density="700" type="capsule"/><joint armature="0.01"/></default>
  <worldbody>
    <geom name="floor" type="plane" size="5 5 1"/>
    <body name="torso" pos="0 0 0.5">
      <joint name="root" type="free" stiffness="3" damping="0.1" armature="0"/>
      <geom size="0.09 0.15"/>
      <body name="upper_arm" pos="0.12 0 0.1" quat="0.8 0.3 -0.4 0.1" gravcomp="0.7">
        <joint name="shoulder" type="ball" pos="-0.02 0.03 0.01" damping="0.2" armature="0.03" stiffness="1.5"
               range="0 70" limited="true" margin="0.05" solimplimit="0.8 0.95 0.1 0.4 3"/>
        <geom fromto="0 0 0 0.2 0 0" size="0.04"/>
        <body name="forearm" pos="0.22 0 0">
          <joint name="extend" type="slide" axis="1 0 0" range="-0.03 0.05" limited="true" stiffness="50"/>
          <joint name="roll" type="hinge" axis="1 0 0" pos="0 0.02 0"/>
          <joint name="elbow" type="ball" pos="0.01 0 0.02" range="0 100" limited="true" solreflimit="-200 -10"/>
          <geom fromto="0 0 0 0.18 0 0" size="0.03"/>
          <geom name="hand" type="sphere" size="0.05" pos="0.2 0 0" contype="0" conaffinity="0"/>
        </body>
      </body>
      <body name="thigh" pos="-0.05 0 -0.2">
        <joint name="hip" type="ball" damping="0.05"/>
        <geom fromto="0 0 0 0 0.05 -0.22" size="0.05"/>
        <body name="shin" pos="0 0.05 -0.25">
          <joint name="knee" type="hinge" axis="0 1 0" range="-100 10" limited="true"/>
          <geom fromto="0 0 0 0 0 -0.2" size="0.04"/>
        </body>
      </body>
    </body>
    <body name="paddle" mocap="true" pos="0.2 0.2 0.3" quat="0.9 0.1 0 0.2">
      <geom size="0.05 0.15"/>
      <body name="grip" pos="0.1 0 0"><geom type="sphere" size="0.06"/></body>
      <body name="flag" pos="0 0 0.2">
        <joint name="wave" type="hinge" axis="1 0 0"/>
        <geom fromto="0 0 0 0 0.05 0.15" size="0.02"/>
      </body>
    </body>
    <body name="bob" pos="0.8 0 0.6">
      <joint name="swing" type="ball" pos="0 0 0.3" stiffness="0.8" armature="0.02"/>
      <geom type="sphere" size="0.08"/>
    </body>
  </worldbody>
  <actuator><motor joint="knee" gear="3"/><position joint="extend" kp="30"/></actuator>
  <sensor>
    <ballquat joint="shoulder"/><ballangvel joint="elbow"/><e_potential/><e_kinetic/>
    <jointlimitpos joint="shoulder"/><jointlimitvel joint="elbow"/><jointlimitfrc joint="shoulder"/>
    <jointlimitfrc joint="knee"/><jointlimitfrc joint="extend"/>
  </sensor>
</mujoco>
"""


def _sensors() -> str:
    """Every type of sensor; frames of and in all kinds of things."""
    sites = ("palm", "tip", "load", "home")
    measured = [f'objtype="{kind}" objname="{name}"' for kind, name in FRAMES]
    references = ["", *(f'reftype="{kind}" refname="{name}"' for kind, name in (*FRAMES[3:5], FRAMES[0]))]
    lines = []
    for i, name in enumerate(("pos", "quat", "xaxis", "yaxis", "zaxis", "linvel", "angvel")):
        lines += [f"<frame{name} {what} {references[(i + k) % 4]}/>" for k, what in enumerate(measured)]
    for name in ("linacc", "angacc"):
        lines += [f"<frame{name} {what}/>" for what in measured]
    for name in ("gyro", "velocimeter", "accelerometer", "force", "torque", "magnetometer"):
        lines += [f'<{name} site="{site}"/>' for site in sites]
    for name in ("subtreecom", "subtreelinvel", "subtreeangmom"):
        lines += [f'<{name} body="{body}"/>' for body in ("world", "left", "weight")]
    lines += [f'<joint{name} joint="{joint}"/>' for name in ("pos", "vel") for joint in ("left", "right", "lower")]
    lines += [f'<tendon{name} tendon="{tendon}"/>' for name in ("pos", "vel") for tendon in ("finger", "grip")]
    lines += [f'<joint{name} joint="{joint}"/>' for name in ("limitpos", "limitvel") for joint in ("left", "lower")]
    lines += [
        f'<tendon{name} tendon="{tendon}"/>' for name in ("limitpos", "limitvel") for tendon in ("finger", "across")
    ]
    lines += [f'<actuator{name} actuator="{u}"/>' for name in ("pos", "vel", "frc") for u in ("curl", "tip", "reach")]
    lines += [f'<touch site="{site}"/>' for site in sites]
    lines += [f'<jointlimitfrc joint="{joint}"/>' for joint in ("left", "lower")]
    lines += [f'<tendonlimitfrc tendon="{tendon}"/>' for tendon in ("finger", "across")]
    lines += [f'<rangefinder site="{site}"/>' for site in sites]
    lines += [f'<insidesite site="{site}" {what}/>' for site in sites for what in measured[:3]]
    lines += ['<rangefinder site="palm" cutoff="0.3"/>', '<rangefinder site="tip" cutoff="0.3"/>']
    lines += ['<jointactuatorfrc joint="left_tip"/>', '<tendonactuatorfrc tendon="grip"/>']
    lines += ['<gyro site="palm" cutoff="0.4"/>', '<framezaxis objtype="xbody" objname="left"/>']
    lines += ['<jointpos joint="left" cutoff="0.1"/>', '<framepos objtype="site" objname="tip" cutoff="0.1"/>']
    return "<sensor><clock/><e_potential/><e_kinetic/>" + "".join(lines) + "</sensor>"


FRAMES = (("xbody", "left"), ("body", "weight"), ("geom", "pad"), ("site", "tip"), ("camera", "eye"), ("site", "home"))
"""Kinds of frames, with one of each in the model of tendons."""

TENDONS = TENDONS.replace("{sensors}", _sensors())

DUAL = (
    CONTACT_PARAMETERS.replace("contact_parameters", "dual")
    .replace('integrator="RK4"', 'solver="PGS" iterations="30" cone="elliptic"')
    .replace('contype="2" conaffinity="3"', 'contype="2" conaffinity="3" condim="6"')
    .replace('gap="0.02" solref', 'gap="0.02" condim="1" solref')
    .replace('range="-80 80"', 'range="-80 80" frictionloss="0.3"')
    .replace("<contact>", '<equality><connect body1="a" body2="d" anchor="0.1 0 0"/></equality><contact>')
)

GLIDER = """
<mujoco model="glider">
  <option timestep="0.005" integrator="implicitfast" density="600" viscosity="0.4" wind="0.5 -0.2 0.1"/>
  <default><geom density="700" contype="0" conaffinity="0" fluidshape="ellipsoid"/></default>
  <worldbody>
    <geom name="floor" type="plane" size="5 5 1" contype="1" conaffinity="1"/>
    <body name="hull" pos="0 0 0.5" gravcomp="0.6">
      <freejoint/>
      <geom type="capsule" size="0.08 0.2" euler="0 80 0" contype="1"/>
      <geom type="box" size="0.1 0.05 0.02" pos="0.1 0 0.1" euler="10 20 30" fluidcoef="0.6 0.2 1.2 0.8 0.5"/>
      <body name="wing" pos="0 0.1 0" gravcomp="1.2">
        <joint name="wing" type="hinge" axis="1 0 0.2" damping="0.1" actuatorgravcomp="true" actuatorfrcrange="-1.5 2"/>
        <geom type="ellipsoid" size="0.15 0.3 0.02" pos="0 0.3 0"/>
        <body name="flap" pos="-0.15 0.3 0">
          <joint name="flap" type="hinge" axis="0 1 0" range="-60 60" limited="true" stiffness="1" armature="0.01"
                 actuatorgravcomp="true"/>
          <geom type="cylinder" size="0.05 0.15" pos="-0.05 0 0" euler="90 0 0"/>
        </body>
      </body>
      <body name="tail" pos="-0.25 0 0">
        <joint name="tail" type="ball" damping="0.05" armature="0.01"/>
        <geom type="sphere" size="0.07" pos="-0.1 0 0" fluidshape="none" contype="1"/>
      </body>
    </body>
    <body name="post" pos="0.8 0 0.4" gravcomp="1">
      <joint name="lift" type="slide" axis="0 0 1" damping="3"/>
      <geom type="cylinder" size="0.04 0.2"/>
    </body>
  </worldbody>
  <tendon>
    <fixed name="both" damping="0.4" range="-0.5 0.5" limited="true" actuatorfrcrange="-0.75 0.875">
      <joint joint="wing" coef="1"/><joint joint="flap" coef="-1.5"/>
    </fixed>
    <fixed name="apart" damping="0.3"><joint joint="lift" coef="1"/><joint joint="flap" coef="0.5"/></fixed>
  </tendon>
  <actuator>
    <position name="beat" joint="wing" kp="6" kv="2"/>
    <velocity name="trim" joint="flap" kv="1.5" forcelimited="true" forcerange="-0.5 0.375"/>
    <position name="pair" tendon="both" kp="2" kv="0.8"/>
    <general name="valve" joint="lift" gainprm="1 0 -3" gaintype="affine" biastype="affine" biasprm="2 -1 -0.5"/>
    <motor name="steer" tendon="both" gear="0.6"/>
  </actuator>
</mujoco>
"""

ROPES = """
<mujoco model="ropes">
  <option timestep="0.004"/>
  <default>
    <joint armature="0.02" damping="0.05"/>
    <geom density="700" contype="0" conaffinity="0"/>
  </default>
  <worldbody>
    <geom name="floor" type="plane" size="5 5 1" contype="1" conaffinity="1"/>
    <geom name="drum" type="cylinder" size="0.1 0.3" pos="0.1 0 0.9" euler="80 10 0"/>
    <geom name="post" type="sphere" size="0.12" pos="-0.4 0.1 0.7"/>
    <site name="hook" pos="-0.1 -0.1 1.2"/>
    <site name="eye" pos="-0.6 0.2 0.9"/>
    <site name="over" pos="0.1 0 1.1"/>
    <site name="core" pos="-0.38 0.08 0.72"/>
    <body name="upper" pos="0 0 0.8">
      <joint name="shoulder" type="ball" damping="0.2"/>
      <geom name="bone" type="capsule" fromto="0 0 0 0.3 0 0" size="0.03" contype="1"/>
      <site name="upper" pos="0.15 0.05 0.04"/>
      <geom name="elbow" type="cylinder" size="0.05 0.1" pos="0.3 0 0" euler="90 0 0"/>
      <site name="elbow_side" pos="0.32 0 0.09"/>
      <body name="fore" pos="0.3 0 0">
        <joint name="elbow" type="hinge" axis="0 1 0" range="-130 130" limited="true"/>
        <geom type="capsule" fromto="0 0 0 0.25 0 0" size="0.025" contype="1"/>
        <site name="fore" pos="0.15 0 0.04"/>
        <site name="tip" pos="0.25 0 0"/>
      </body>
    </body>
    <body name="weight" pos="-0.4 0.2 0.4">
      <freejoint/>
      <geom name="ball" type="sphere" size="0.08" contype="1"/>
      <site name="top" pos="0 0 0.08"/>
      <site name="flank" pos="0.13 0.02 0"/>
      <site name="inside" pos="0.02 0.01 0.03"/>
    </body>
  </worldbody>
  <tendon>
    <spatial name="line" frictionloss="0.7" stiffness="6" damping="0.4" springlength="0.2 0.5">
      <site site="hook"/><site site="upper"/><site site="tip"/>
    </spatial>
    <spatial name="extensor" range="0.1 0.4" limited="true" margin="0.01" stiffness="10">
      <site site="upper"/><geom geom="elbow" sidesite="elbow_side"/><site site="fore"/>
    </spatial>
    <spatial name="hoist" stiffness="20" springlength="0.4" damping="1">
      <site site="eye"/><geom geom="post"/><site site="top"/>
      <pulley divisor="2"/>
      <site site="top"/><geom geom="drum" sidesite="over"/><site site="upper"/>
      <pulley divisor="3"/>
      <site site="eye"/><site site="hook"/><geom geom="drum"/><site site="fore"/>
    </spatial>
    <spatial name="loop" range="0.3 1.1" limited="true" solreflimit="-200 -10">
      <site site="eye"/><geom geom="post" sidesite="core"/><site site="hook"/>
      <geom geom="ball" sidesite="flank"/><site site="tip"/>
    </spatial>
    <spatial name="bore" damping="0.3">
      <site site="tip"/><geom geom="ball" sidesite="inside"/><site site="hook"/>
    </spatial>
    <fixed name="bend" frictionloss="0.2"><joint joint="elbow" coef="0.7"/></fixed>
  </tendon>
  <equality>
    <tendon tendon1="bore" tendon2="hoist" polycoef="0.05 0.4 0.2 0 0"/><tendon tendon1="loop" active="false"/>
  </equality>
  <actuator>
    <motor name="pull" tendon="line" gear="2"/>
    <muscle name="triceps" tendon="extensor" force="8" lengthrange="0.12 0.35"/>
    <position name="wind" tendon="hoist" kp="5" kv="0.2" timeconst="0.02"/>
    <motor name="flex" tendon="bend"/>
  </actuator>
  <sensor><tendonpos tendon="hoist"/><tendonvel tendon="loop"/><tendonlimitpos tendon="loop"/></sensor>
</mujoco>
"""

OWN = {
    "mixed_tree": MIXED_TREE,
    "pile": PILE,
    "contact_parameters": CONTACT_PARAMETERS,
    "two_arms": TWO_ARMS,
    "parallel_capsules": PARALLEL_CAPSULES,
    "sunken": SUNKEN,
    "tendons": TENDONS,
    "actuators": ACTUATORS,
    "crates": CRATES,
    "ragdoll": RAGDOLL,
    "glider": GLIDER,
    "dual": DUAL,
    "linkage": LINKAGE,
    "ropes": ROPES,
    "rollers": ROLLERS.replace('impratio="2.5"', 'impratio="2.5" solver="CG" iterations="1000"'),
}
"""Small models by name, as MJCF text."""

ALL = (*GYMNASIUM, *OWN)


def gymnasium_path(name: str) -> Path:
    """Installed MJCF file of one of Gymnasium's models."""
    return Path(gymnasium.__file__).parent / "envs" / "mujoco" / "assets" / f"{name}.xml"


def compile_model(name: str) -> mujoco.MjModel:
    """A model of `ALL`, compiled by MuJoCo."""
    if name in OWN:
        return mujoco.MjModel.from_xml_string(OWN[name])
    return mujoco.MjModel.from_xml_path(str(gymnasium_path(name)))
