"""Places in packed vectors and matrices, by name."""

from __future__ import annotations

ORIGIN, QUATERNION, ETA = slice(0, 3), slice(3, 7), slice(7, None)
"""Columns of the coordinates q of a body with a floating frame."""

OMEGA, ELASTIC, RIGID = slice(3, 6), slice(6, None), slice(0, 6)
"""Columns of its velocities v after those of the origin, and those of the frame; also of the rates
and increments of v, and of the rows of its matrices."""

FORCE, MOMENT = slice(0, 3), slice(3, 6)
"""Rows of a wrench."""

DISPLACEMENT, ROTATION, VELOCITY, SPIN = slice(0, 3), slice(3, 6), slice(6, 9), slice(9, 12)
"""Columns of the derivatives of a law, for the relative motion of two frames or that of one."""

ON_FIRST, ON_SECOND, OTHERS = slice(0, 6), slice(6, 12), slice(12, None)
"""Rows of what a load does: wrenches on both frames, then forces on elastic coordinates or rates of
states. Columns for the motion of both frames, then for elastic coordinates or states."""

#: Columns of the states of contact points; the first one is also the smallest gap of an oil film
GAP, GAP_RATE, NORMAL_FORCE = range(3)

#: Indices of the six motions of a second frame relative to a first one; those below ABOUT_X are
#: displacements, the others rotations
ALONG_X, ALONG_Y, ALONG_Z, ABOUT_X, ABOUT_Y, ABOUT_Z = range(6)
