from __future__ import annotations
import os
import numpy as np
from dolfinx_mbd.kernels.corotation import BODY, SPACE, PLANE, group_orientations, rotate

class Corotation:
    def __init__(self, eqs):
        self._eqs, s = eqs, eqs.system
        mode = os.environ.get("COROT", "d")
        rows = []
        at = eqs.frames
        n = s.num_velocities
        size = [b.num_velocities for b in s.bodies]
        rank = [0 if k else 1 for k in size]
        tied = set()
        for e in range(len(s.first)):
            one, two = s.frame_body[s.first[e]], s.frame_body[s.second[e]]
            if size[one] and size[two]: tied |= {one, two}
        if mode == "off": rank=[0]*len(size)
        else:
            for k, q, v in zip(at.bodies.members, at.bodies.origins, at.bodies._first):
                if size[k] > 6 or k not in tied:
                    rank[k] = size[k]
                    rows.append((BODY, v, q + 3, 0))
        for e, part in enumerate(s.entry_slices):
            if mode == "off": break
            one, two = s.first[e], s.second[e]
            i, j = s.frame_body[one], s.frame_body[two]
            m = [int(x) for x in eqs.joints.motion_rows[part, 1]]
            turning = e < len(s.joints) and s.joints[e].kind in ("revolute", "cylindrical", "planar")
            for g, r in (((0, 1, 2), rank), ((3, 4, 5), size)):
                if r[j] <= r[i]: continue
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
