from __future__ import annotations
import os
import numpy as np
from dolfinx_mbd.kernels.corotation import BODY, SPACE, PLANE, group_orientations, rotate

class Corotation:
    def __init__(self, eqs):
        self._eqs, s = eqs, eqs.system
        mode = os.environ.get("COROT", "big")
        rows = []
        at = eqs.frames
        if mode != "off":
            for k, q, v in zip(at.bodies.members, at.bodies.origins, at.bodies._first):
                if mode.startswith("c") and s.bodies[k].num_velocities == 6: continue
                rows.append((BODY, v, q + 3, 0))
        n = s.num_velocities
        size = [b.num_velocities for b in s.bodies]
        motion = eqs.joints.motion_rows
        for e, part in enumerate(s.entry_slices):
            one, two = s.first[e], s.second[e]
            big = size[s.frame_body[two]] > size[s.frame_body[one]]
            if mode == "second": big = True
            if mode.startswith("c"):
                m = [int(x) for x in motion[part, 1]]
                has = any(x in m for x in (0, 1, 2))
                rigid = max(size[s.frame_body[two]], size[s.frame_body[one]]) <= 6
                turning = e < len(s.joints) and s.joints[e].kind in ("revolute", "cylindrical", "planar")
                if rigid:
                    if m[:3] == [0, 1, 2]:
                        if size[s.frame_body[one]]: rows.append((3, n + part.start, one, two))
                    elif m[:2] == [0,1] and turning and size[s.frame_body[one]] and not size[s.frame_body[two]]: rows.append((PLANE, n + part.start-1, one, two))
                    if 5 not in m and 3 in m and 4 in m and turning and big: rows.append((PLANE, n + part.start + m.index(3) - 1, one, two))
                    continue
            if mode in ("off", "first") or not big: continue
            m = [int(x) for x in motion[part, 1]]
            turning = e < len(s.joints) and s.joints[e].kind in ("revolute", "cylindrical", "planar")
            for g in ((0, 1, 2), (3, 4, 5)):
                have = [x for x in m if x in g]
                if have == list(g):
                    rows.append((SPACE, n + part.start + m.index(g[0]), one, two))
                elif have == list(g[:2]) and turning:
                    rows.append((PLANE, n + part.start + m.index(g[0]) - 1, one, two))
        self.groups = np.array(rows, dtype=np.int64).reshape(-1, 4)
        self.then = np.zeros((len(rows), 3, 3)); self.now = np.zeros((len(rows), 3, 3))
    def store(self):
        group_orientations(self.groups, self._eqs.q, self._eqs.rotation, self.then)
    def solve(self, factor, rhs):
        if not len(self.groups): return factor.solve(rhs)
        group_orientations(self.groups, self._eqs.q, self._eqs.rotation, self.now)
        rotate(self.groups, self.now, self.then, rhs)
        x = factor.solve(rhs)
        rotate(self.groups, self.then, self.now, x)
        return x
