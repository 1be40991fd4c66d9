"use strict";
/* Draws the scene in the page: surface points R + A (x0 + s Ψη), with the pose R, A of a body, its modes Ψ, and the scale s. */
(() => {
const KINDS = { f4: Float32Array, f8: Float64Array, i2: Int16Array, u2: Uint16Array, u4: Uint32Array };

function bytesOf(text) {
  return Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
}

/** Replace the compressed arrays in an object by arrays of numbers. */
async function unpack(item) {
  for (const value of Object.values(item)) {
    if (value === null || typeof value !== "object") continue;
    if (!value.packed) { await unpack(value); continue; }
    const stream = new Blob([bytesOf(value.packed)]).stream().pipeThrough(new DecompressionStream("deflate"));
    const planes = new Uint8Array(await new Response(stream).arrayBuffer());
    const size = KINDS[value.type].BYTES_PER_ELEMENT, count = planes.length / size, bytes = new Uint8Array(planes.length);
    for (let j = 0; j < size; j++) for (let i = 0; i < count; i++) bytes[i * size + j] = planes[j * count + i];
    value.numbers = new KINDS[value.type](bytes.buffer);
  }
}

const scene = JSON.parse(document.getElementById("scene").textContent);
unpack(scene).then(() => { window.player = play(scene); }, (error) => {
  const message = document.getElementById("message");
  message.textContent = `This page needs a browser of 2023 or later (${error.message}).`;
  message.hidden = false;
});

function play(data) {
  const modal = data.kind === "modes";

  // ---- Arrays ---------------------------------------------------------------------------------
  function numbers(block) {
    return block.numbers ?? new KINDS[block.type](bytesOf(block.data).buffer);
  }

  /** The triangles of a surface; each begins with its lowest node. */
  function trianglesOf(part) {
    const steps = numbers(part.triangles), count = steps.length / 3, out = new Uint32Array(steps.length);
    for (let t = 0, a = 0; t < count; t++) {
      a += steps[t];
      const b = a + steps[count + t];
      out.set([a, b, b + signed(steps[2 * count + t])], 3 * t);
    }
    return out;
  }

  function signed(value) {
    return value & 1 ? -(value + 1) / 2 : value / 2;
  }

  /** For each node the terms [a, b, c, …] that predict it: parallelograms a + b - c, else lower neighbours [a, …]. */
  function predictors(triangles, count) {
    const pairs = Array.from({ length: count }, () => []), neighbours = Array.from({ length: count }, () => new Set());
    const open = new Map();
    for (let i = 0; i < triangles.length; i++) {
      const corner = i % 3, t = i - corner, end = triangles[t + ((corner + 1) % 3)], opposite = triangles[t + ((corner + 2) % 3)];
      const low = Math.min(triangles[i], end), high = Math.max(triangles[i], end), key = low * count + high;
      if (low < high) neighbours[high].add(low);
      const other = open.get(key);
      if (other === undefined) { open.set(key, opposite); continue; }
      open.delete(key);
      const last = Math.max(opposite, other), least = Math.min(opposite, other);
      if (last > high && last > least) pairs[last].push(low, high, least);
    }
    return pairs.map((terms, i) => ({ pairs: terms, neighbours: terms.length ? [] : [...neighbours[i]] }));
  }

  /** Integers of the nodes, one array for each component, from differences to their predictions. */
  function restored(block, nodes) {
    const steps = numbers(block), count = nodes.length, columns = [];
    for (let first = 0; first < steps.length; first += count) {
      const v = new Float64Array(count);
      for (let i = 0; i < count; i++) {
        const { pairs, neighbours } = nodes[i];
        let guess = 0;
        if (pairs.length) {
          for (let k = 0; k < pairs.length; k += 3) guess += v[pairs[k]] + v[pairs[k + 1]] - v[pairs[k + 2]];
          guess /= pairs.length / 3;
        } else if (neighbours.length) {
          for (const k of neighbours) guess += v[k];
          guess /= neighbours.length;
        } else if (i) guess = v[i - 1];
        v[i] = Math.floor(guess + 0.5) + signed(steps[first + i]);
      }
      columns.push(v);
    }
    return columns;
  }

  /** Modes of a surface with the values of each node in succession. */
  function modesOf(item, nodes) {
    const columns = restored(item.values, nodes), size = columns.length / item.scale.length;
    return item.scale.map((s, k) => woven(columns.slice(k * size, (k + 1) * size), (v) => s * v));
  }

  function woven(columns, value) {
    const size = columns.length, out = new Float32Array(size * columns[0].length);
    columns.forEach((column, j) => column.forEach((v, i) => { out[size * i + j] = value(v, j); }));
    return out;
  }

  /** Sum of modes with amplitudes, in `out`. */
  function combine(modes, amplitudes, out) {
    out.fill(0);
    modes.forEach((mode, k) => {
      const a = amplitudes[k];
      if (a) for (let i = 0; i < out.length; i++) out[i] += a * mode[i];
    });
    return out;
  }

  function greatest(values) {
    let most = 0;
    for (const value of values) if (value > most) most = value;
    return most;
  }

  /** Centre of the smallest box around points. */
  function middle(points) {
    const low = [Infinity, Infinity, Infinity], high = [-Infinity, -Infinity, -Infinity];
    points.forEach((x, i) => {
      low[i % 3] = Math.min(low[i % 3], x);
      high[i % 3] = Math.max(high[i % 3], x);
    });
    return low.map((x, j) => (x + high[j]) / 2);
  }

  const time = numbers(data.time), start = time[0], end = time[time.length - 1];

  /** Row and weight of a time, for linear interpolation between this row and the next one. */
  function place(t) {
    let low = 0, high = time.length - 1;
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (time[middle] <= t) low = middle; else high = middle;
    }
    const span = time[high] - time[low];
    return { row: low, weight: span > 0 ? Math.min(1, Math.max(0, (t - time[low]) / span)) : 0 };
  }

  function between(values, size, { row, weight }) {
    const out = new Array(size), next = weight ? row + 1 : row;
    for (let i = 0; i < size; i++) {
      out[i] = (1 - weight) * values[row * size + i] + weight * values[next * size + i];
    }
    return out;
  }

  // ---- Surfaces -------------------------------------------------------------------------------
  const CREASE = Math.cos((38 * Math.PI) / 180); // faces at a larger angle form a sharp edge

  /** Copy the points at sharp edges, so that each copy has its own normal. */
  function split(points, triangles) {
    const normals = [], corners = Uint32Array.from(triangles), source = [], copies = new Map();
    const a = new THREE.Vector3(), b = new THREE.Vector3(), c = new THREE.Vector3();
    for (let t = 0; t < triangles.length; t += 3) {
      a.fromArray(points, 3 * triangles[t]);
      b.fromArray(points, 3 * triangles[t + 1]).sub(a);
      c.fromArray(points, 3 * triangles[t + 2]).sub(a);
      normals.push(new THREE.Vector3().crossVectors(b, c).normalize());
    }
    for (let i = 0; i < triangles.length; i++) {
      const normal = normals[Math.floor(i / 3)], point = triangles[i];
      const list = copies.get(point) ?? copies.set(point, []).get(point);
      let copy = list.find((entry) => entry.normal.dot(normal) > CREASE * entry.normal.length());
      if (!copy) {
        copy = { normal: new THREE.Vector3(), index: source.length };
        source.push(point);
        list.push(copy);
      }
      copy.normal.add(normal);
      corners[i] = copy.index;
    }
    return { source: Uint32Array.from(source), corners };
  }

  const parts = data.parts.map((part) => {
    const triangles = trianglesOf(part), { scale, origin, values, count } = part.points;
    const nodes = predictors(triangles, count);
    const points = woven(restored(values, nodes), (v, j) => origin[j] + scale * v);
    return {
      points,
      modes: part.modes ? modesOf(part.modes, nodes) : [],
      stress: part.stress ? modesOf(part.stress, nodes) : null,
      field: part.field ? numbers(part.field) : null,
      centre: middle(points),
      ...split(points, triangles),
    };
  });
  const motions = data.bodies.map((body) => ({
    position: numbers(body.position),
    rotation: numbers(body.rotation),
    eta: numbers(body.eta),
  }));

  const MAP = [[48, 18, 59], [66, 73, 177], [70, 125, 244], [49, 175, 245], [24, 217, 200], [56, 244, 145],
    [132, 255, 81], [188, 245, 52], [233, 213, 57], [254, 169, 51], [248, 114, 28], [223, 63, 8], [180, 27, 1],
    [122, 4, 3]]; // "turbo" of matplotlib at equal distances
  const TABLE = new Float32Array(256 * 3);
  for (let i = 0; i < 256; i++) {
    const x = (i / 255) * (MAP.length - 1), k = Math.min(MAP.length - 2, Math.floor(x));
    const colour = new THREE.Color().setRGB(
      ...[0, 1, 2].map((j) => (MAP[k][j] + (x - k) * (MAP[k + 1][j] - MAP[k][j])) / 255), "srgb");
    colour.toArray(TABLE, 3 * i);
  }
  const PALETTE = ["#7f93a8", "#b08968", "#86a27c", "#a487b0", "#b7a55c", "#6fa3a8"];

  /** The mesh of one body, with its displacement u and the values that colour it. */
  class Surface {
    constructor(k) {
      const part = parts[data.bodies[k].part];
      Object.assign(this, { name: data.bodies[k].name, part, flexible: part.modes.length > 0, ghost: data.bodies[k].ghost });
      this.u = new Float32Array(part.points.length);
      this.stresses = part.stress ? new Float32Array(2 * part.points.length) : null;
      this.values = new Float32Array(part.points.length / 3);
      this.positions = new THREE.BufferAttribute(new Float32Array(3 * part.source.length), 3);
      this.colours = new THREE.BufferAttribute(new Float32Array(3 * part.source.length), 3);
      this.geometry = new THREE.BufferGeometry();
      this.geometry.setIndex(new THREE.BufferAttribute(part.corners, 1));
      this.geometry.setAttribute("position", this.positions);
      this.geometry.setAttribute("color", this.colours);
      this.plain = new THREE.Color(PALETTE[k % PALETTE.length]);
      this.solid = data.bodies[k].opacity ?? (this.flexible || data.bodies[k].bars ? 1 : 0.5); // opacity by default
      this.material = new THREE.MeshStandardMaterial({ color: this.plain, metalness: 0.15, roughness: 0.55, side: THREE.DoubleSide });
      this.mesh = new THREE.Mesh(this.geometry, this.material);
      this.mesh.frustumCulled = false;
      this.mesh.userData.surface = this;
      this.deform(0);
      this.geometry.computeVertexNormals();
    }

    move({ position, rotation, eta }, scale) {
      this.mesh.position.fromArray(position);
      this.mesh.quaternion.set(rotation[1], rotation[2], rotation[3], rotation[0]).normalize();
      this.mesh.updateMatrixWorld();
      if (!this.flexible) return;
      combine(this.part.modes, eta, this.u);
      this.eta = eta;
      this.deform(scale);
      this.geometry.computeVertexNormals();
    }

    deform(scale) {
      const { points, source } = this.part, out = this.positions.array;
      for (let i = 0; i < source.length; i++) {
        for (let j = 0, p = 3 * source[i]; j < 3; j++, p++) out[3 * i + j] = points[p] + scale * this.u[p];
      }
      this.positions.needsUpdate = true;
      this.geometry.boundingSphere = null;
    }

    has(quantity) {
      if (this.ghost) return false; // one colour
      if (quantity === "field") return this.part.field !== null;
      return this.flexible && (quantity === "displacement" || (quantity === "stress" && this.stresses));
    }

    /** Fill in the values of a quantity at the points and return the largest value. */
    evaluate(quantity) {
      if (!this.has(quantity)) return 0;
      const v = this.values;
      if (quantity === "field") {
        v.set(this.part.field);
      } else if (quantity === "displacement") {
        for (let i = 0; i < v.length; i++) v[i] = Math.hypot(this.u[3 * i], this.u[3 * i + 1], this.u[3 * i + 2]);
      } else {
        const s = combine(this.part.stress, this.eta ?? [], this.stresses);
        for (let i = 0, k = 0; i < v.length; i++, k += 6) {
          const a = s[k] - s[k + 1], b = s[k + 1] - s[k + 2], c = s[k + 2] - s[k];
          const shear = s[k + 3] ** 2 + s[k + 4] ** 2 + s[k + 5] ** 2;
          v[i] = Math.sqrt(0.5 * (a * a + b * b + c * c) + 3 * shear);
        }
      }
      return greatest(v);
    }

    /** Set the opacity; a faded surface is nearly transparent. */
    fade(faded, chosen) {
      this.faded = faded;
      const opacity = faded ? 0.12 : this.ghost ? settings.ghost : chosen ?? this.solid, transparent = opacity < 1;
      if (this.material.opacity === opacity && this.material.transparent === transparent) return;
      Object.assign(this.material, { opacity, transparent, depthWrite: !transparent, needsUpdate: true });
    }

    paint(quantity, limit, least = 0) {
      const coloured = this.has(quantity);
      if (this.material.vertexColors !== coloured) {
        this.material.vertexColors = coloured;
        this.material.color.set(coloured ? 0xffffff : this.plain);
        this.material.needsUpdate = true;
      }
      if (!coloured) return;
      const out = this.colours.array, { source } = this.part;
      for (let i = 0; i < source.length; i++) {
        const part = limit > least ? (this.values[source[i]] - least) / (limit - least) : 0;
        const level = Math.min(255, Math.max(0, Math.round(255 * part)));
        for (let j = 0; j < 3; j++) out[3 * i + j] = TABLE[3 * level + j];
      }
      this.colours.needsUpdate = true;
    }
  }

  // ---- Marks, lines and arrows: all of them are tubes -----------------------------------------
  const Z = new THREE.Vector3(0, 0, 1), size = data.length;
  const IN_FRONT = ["joint forces", "loads"];
  const frames = new Map((data.frames ?? []).map((frame) => [frame.index, {
    position: numbers(frame.position), axis: numbers(frame.axis),
  }]));
  const tubes = (data.tubes ?? []).map(({ points, radii, sides }) =>
    ({ points, sides, radii: radii.length > 1 ? radii : new Array(points.length / 3).fill(radii[0]) }));
  const lines = (data.lines ?? []).map((line) => ({ ...line, points: numbers(line.points) }));
  const arrows = (data.arrows ?? []).map((arrow) => ({
    ...arrow, vectors: Float32Array.from(numbers(arrow.vectors.values), (v) => v * arrow.vectors.scale), points: arrow.points && numbers(arrow.points),
  }));
  const materials = new Map(Object.entries(data.colours ?? {}).map(([group, color]) => {
    const over = IN_FRONT.includes(group);
    return [group, new THREE.MeshStandardMaterial({ color, roughness: 0.6, depthTest: !over, transparent: over })];
  }));

  /** Add the points and the triangles of a closed surface around a line to two lists. */
  function addTube({ points, radii, sides }, out, triangles) {
    const n = points.length / 3, first = out.length / 3;
    const at = (k) => new THREE.Vector3().fromArray(points, 3 * Math.min(n - 1, Math.max(0, k)));
    const x = new THREE.Vector3(), y = new THREE.Vector3(), t = new THREE.Vector3();
    for (let k = 0; k < n; k++) {
      const before = at(k).sub(at(k - 1)).normalize(), after = at(k + 1).sub(at(k)).normalize();
      t.copy(before).add(after).normalize();
      if (k === 0) x.set(...(Math.abs(t.x) < 0.6 ? [1, 0, 0] : [0, 1, 0]));
      x.addScaledVector(t, -x.dot(t)).normalize();
      y.crossVectors(t, x);
      for (const r of k === 0 ? [0, radii[0]] : k === n - 1 ? [radii[k], 0] : [radii[k]]) {
        for (let i = 0; i < sides; i++) {
          const angle = (Math.PI * (2 * i + 1)) / sides;
          const p = at(k).addScaledVector(x, r * Math.cos(angle)).addScaledVector(y, r * Math.sin(angle));
          out.push(p.x, p.y, p.z);
        }
      }
    }
    for (let k = 0; k < n + 1; k++) {
      for (let i = 0; i < sides; i++) {
        const a = first + k * sides + i, d = first + k * sides + ((i + 1) % sides);
        triangles.push(a, d, d + sides, a, d + sides, a + sides);
      }
    }
  }

  function geometryOf(list) {
    const points = [], triangles = [], geometry = new THREE.BufferGeometry();
    for (const tube of list) addTube(tube, points, triangles);
    const { source, corners } = split(points, triangles), out = new Float32Array(3 * source.length);
    source.forEach((k, i) => { for (let j = 0; j < 3; j++) out[3 * i + j] = points[3 * k + j]; });
    geometry.setAttribute("position", new THREE.BufferAttribute(out, 3));
    geometry.setIndex(new THREE.BufferAttribute(corners, 1));
    geometry.computeVertexNormals();
    return geometry;
  }

  const straight = (from, to, radii, sides) => ({ points: [...from, ...to], radii, sides });

  /** An arrow along z from 0 to its length, or on a circle about z with this radius. */
  function arrowTubes(length, moment) {
    const r = 0.014 * size, head = Math.min(2.8 * r, (moment ? 1 : 0.6) * length), thin = 0.13 * head, wide = 0.38 * head;
    if (!moment) {
      return [straight([0, 0, 0], [0, 0, length - head], [thin, thin], 12),
        straight([0, 0, length - head], [0, 0, length], [wide, 0], 24)];
    }
    const arc = Array.from({ length: 40 }, (_, i) => (1.5 * Math.PI * i) / 39);
    return [{ points: arc.flatMap((a) => [length * Math.cos(a), length * Math.sin(a), 0]), radii: arc.map(() => thin), sides: 12 },
      straight([0, -length, 0], [head, -length, 0], [wide, 0], 24)];
  }

  class Marks {
    constructor(scene) {
      this.groups = {};
      for (const name of materials.keys()) scene.add(this.groups[name] = new THREE.Group());
      const add = (group) => {
        const mesh = new THREE.Mesh(new THREE.BufferGeometry(), materials.get(group));
        mesh.frustumCulled = false;
        this.groups[group].add(mesh);
        return mesh;
      };
      this.marks = (data.marks ?? []).map((mark) => [mark, add(mark.group)]);
      this.lines = lines.map((line) => [line, add(line.group)]);
      this.arrows = arrows.map((arrow) => [arrow, add(arrow.group)]);
    }

    /** Replace the shape of a mesh if its key has changed. */
    shape(mesh, key, create) {
      if (mesh.userData.key === key) return;
      mesh.userData.key = key;
      mesh.geometry.dispose();
      mesh.geometry = geometryOf(create());
    }

    move(where, poses, linePoints) {
      for (const [mark, mesh] of this.marks) {
        if (mark.first === undefined) this.shape(mesh, "fixed", () => mark.shape.map((k) => tubes[k]));
        else this.place(mark, mesh, poses);
      }
      this.lines.forEach(([line, mesh], k) => {
        mesh.userData.key = null;
        this.shape(mesh, "line", () => [{ points: linePoints(k), radii: new Array(line.count).fill(line.radius), sides: 8 }]);
      });
      const vector = new THREE.Vector3();
      for (const [arrow, mesh] of this.arrows) {
        if (!settings.shown.has(arrow.group)) continue;
        vector.fromArray(between(arrow.vectors, 3, where)).multiplyScalar(arrow.scale);
        const length = vector.length(), longest = arrow.unit === "N" ? 0.2 : 0.07;
        mesh.visible = length > 0.01 * longest * size;
        if (!mesh.visible) continue;
        if (arrow.frame < 0) mesh.position.fromArray(between(arrow.points, 3, where));
        else mesh.position.copy(poses(arrow.frame).position);
        if (arrow.inward) mesh.position.sub(vector);
        this.shape(mesh, length, () => arrowTubes(length, arrow.unit !== "N"));
        mesh.quaternion.setFromUnitVectors(Z, vector.normalize());
      }
    }

    place(mark, mesh, poses) {
      const start = poses(mark.first), end = poses(mark.second).position;
      const along = new THREE.Vector3().subVectors(end, start.position), length = along.length();
      const sleeve = mark.connects && mark.size && length < 2 * mark.size;
      if (!mark.connects || sleeve) {
        this.shape(mesh, sleeve ? "sleeve" : "shape", () => (sleeve ? mark.sleeve : mark.shape).map((k) => tubes[k]));
        mesh.position.copy(end);
        if (sleeve) mesh.position.addScaledVector(along, -0.5); // halfway
        mesh.quaternion.setFromUnitVectors(Z, start.axis);
        mesh.scale.z = 1;
        return;
      }
      const first = mesh.userData.length ??= length || 1; // later lengths stretch this shape
      this.shape(mesh, "stretched", () => mark.shape.map((k) =>
        ({ ...tubes[k], points: tubes[k].points.map((value, i) => (i % 3 === 2 ? first * value : value)) })));
      mesh.position.copy(start.position);
      mesh.quaternion.setFromUnitVectors(Z, along.divideScalar(length || 1));
      mesh.scale.z = Math.max(length / first, 1e-9);
    }
  }

  // ---- Views: one for a motion, one for each mode ---------------------------------------------
  const stage = document.getElementById("stage");
  const camera = new THREE.PerspectiveCamera(28, 1, 0.001 * size, 100 * size);
  const controls = new THREE.OrbitControls(camera, stage);
  controls.zoomToCursor = !modal;
  controls.addEventListener("change", () => { dirty = true; });

  const views = (data.views ?? [null]).map((mode) => {
    const scene = new THREE.Scene(), lamp = new THREE.DirectionalLight(0xffffff, 2.2);
    scene.add(new THREE.HemisphereLight(0xffffff, 0x8d99a6, 1.5), lamp, lamp.target);
    const surfaces = data.bodies.map((_, k) => new Surface(k));
    surfaces.forEach((surface) => scene.add(surface.mesh));
    const label = document.createElement("div");
    document.getElementById("titles").append(label);
    const title = document.createElement("b"), small = document.createElement("small");
    title.textContent = mode ? mode.title : data.title;
    if (mode) small.textContent = `${format(mode.frequency)} Hz` +
      (mode.damping === undefined ? "" : `, damping ratio ${format(Math.abs(mode.damping) < 1e-9 ? 0 : mode.damping)}`);
    label.append(title, small);
    return { mode, scene, lamp, surfaces, marks: new Marks(scene), label, limits: {} };
  });

  const settings = {
    colour: data.colour ?? "displacement", range: "fixed", low: 0, high: 1, isolated: null, opacity: null, ghost: 0.3, follow: "", cut: "none", place: 0.5, scale: data.scale ?? 1, playing: false,
    seconds: 8, hidden: new Set(), shown: new Set(Object.keys(data.colours ?? {}).filter((group) => group !== "joint forces")),
  };
  let t = start, dirty = true;

  /** Real part of a complex amplitude [re, im] at a phase. */
  const real = ([re, im], phase) => re.map((value, i) => value * Math.cos(phase) - im[i] * Math.sin(phase));

  function bodyState(k, view, where) {
    const count = parts[data.bodies[k].part].modes.length;
    const state = {
      position: between(motions[k].position, 3, where),
      rotation: between(motions[k].rotation, 4, where),
      eta: between(motions[k].eta, count, where),
    };
    if (!view.mode) return state;
    const phase = 2 * Math.PI * t, move = view.mode.bodies[k];
    const rigid = real(move.rigid, phase).map((value) => value * settings.scale);
    const turn = new THREE.Vector3(...rigid.slice(3)), angle = turn.length();
    const [w, x, y, z] = state.rotation, q = new THREE.Quaternion(x, y, z, w);
    if (angle > 0) {
      turn.multiplyScalar(Math.sin(angle / 2) / angle);
      q.multiply(new THREE.Quaternion(turn.x, turn.y, turn.z, Math.cos(angle / 2)));
    }
    return {
      position: state.position.map((value, i) => value + rigid[i]),
      rotation: [q.w, q.x, q.y, q.z],
      eta: real(move.eta, phase),
    };
  }

  function framePose(index, view, where) {
    const frame = frames.get(index), fixed = { row: 0, weight: 0 };
    if (frame.position.length === 3) where = fixed;
    const position = new THREE.Vector3().fromArray(between(frame.position, 3, where));
    const axis = new THREE.Vector3().fromArray(between(frame.axis, 3, where)).normalize();
    if (view.mode?.frames?.length) {
      const move = real(view.mode.frames[index], 2 * Math.PI * t).map((value) => value * settings.scale);
      position.add(new THREE.Vector3(...move.slice(0, 3)));
      axis.add(new THREE.Vector3(...move.slice(3)).cross(axis)).normalize();
    }
    return { position, axis };
  }

  function linePoints(k, view, where) {
    const { points, count } = lines[k], out = between(points, 3 * count, where);
    if (!view.mode?.lines?.length) return out;
    const move = real(view.mode.lines[k], 2 * Math.PI * t);
    return out.map((value, i) => value + settings.scale * move[i]);
  }

  function update() {
    const where = place(modal ? start : t);
    for (const view of views) {
      view.surfaces.forEach((surface, k) => surface.move(bodyState(k, view, where), settings.scale));
      view.marks.move(where, (index) => framePose(index, view, where), (k) => linePoints(k, view, where));
      const running = greatest(view.surfaces.map((surface) =>
        settings.hidden.has(surface.name) ? 0 : surface.evaluate(settings.colour)));
      const whole = settings.range === "running" ? running : fixedLimit(view, running);
      const [factor] = unit(settings.colour, whole), byHand = settings.range === "by hand";
      view.whole = whole;
      view.least = byHand ? settings.low / factor : 0;
      view.limit = byHand ? settings.high / factor : whole;
      for (const surface of view.surfaces) {
        surface.paint(settings.colour, view.limit, view.least);
        surface.mesh.visible = !settings.hidden.has(surface.name);
        surface.fade(settings.isolated !== null && settings.isolated !== surface.name, settings.opacity);
      }
      drawTraces(view);
      for (const [name, group] of Object.entries(view.marks.groups)) group.visible = settings.shown.has(name);
    }
    follow();
    legend();
  }

  let followed = null; // the last centre of the body that the camera follows

  /** Move the camera with the centre of a body. */
  function follow() {
    const surface = views[0].surfaces.find(({ name }) => name === settings.follow);
    if (!surface || modal) { followed = null; return; }
    const centre = surface.mesh.localToWorld(new THREE.Vector3(...surface.part.centre));
    const way = centre.clone().sub(followed ?? controls.target);
    camera.position.add(way);
    controls.target.add(way);
    followed = centre;
  }

  /** The largest value during the motion, or during the vibration of a mode. */
  function fixedLimit(view, running) {
    if (!view.mode) {
      return greatest(data.bodies.map((body) => body.ranges?.[settings.colour] ?? 0)) || running;
    }
    if (!(settings.colour in view.limits)) {
      const now = t;
      view.limits[settings.colour] = greatest(Array.from({ length: 8 }, (_, i) => {
        t = i / 16; // half a period: magnitudes repeat after it
        return greatest(view.surfaces.map((surface, k) => {
          surface.move(bodyState(k, view, place(start)), settings.scale);
          return surface.evaluate(settings.colour);
        }));
      }));
      t = now;
      view.surfaces.forEach((surface, k) => {
        surface.move(bodyState(k, view, place(start)), settings.scale);
        surface.evaluate(settings.colour);
      });
    }
    return view.limits[settings.colour];
  }

  // ---- WebGL ----------------------------------------------------------------------------------
  // Browsers draw about 16 scenes at the same time, and a notebook may have more viewers. A viewer
  // has a canvas only while it is visible; the rest of the page works without a canvas.
  const DELAY = 1000; // time from leaving the screen to the release of the canvas, ms
  let renderer = null, visible = false, timer = 0;

  function openScene() {
    if (renderer) return;
    const canvas = element("canvas");
    let reason = "";
    canvas.addEventListener("webglcontextcreationerror", (event) => { reason = event.statusMessage; });
    canvas.addEventListener("webglcontextlost", () => {
      if (canvas !== renderer?.domElement) return; // it was released
      closeScene();
      if (visible) say("The browser has closed this scene, for example because the page shows many scenes.",
        element("button", { textContent: "Show it again" })); // a click on the stage opens the scene
    });
    const context = canvas.getContext("webgl2", { alpha: true, antialias: true });
    document.documentElement.classList.toggle("no-scene", !context);
    say(...(context ? [] : ["There is no scene, because this browser does not provide WebGL 2.",
      element("small", { textContent: reason }), "Curves and the time bar work. To see the scene, turn on " +
      "graphics acceleration in the settings of the browser, or open the page in another browser."]));
    if (!context) return;
    renderer = new THREE.WebGLRenderer({ canvas, context });
    renderer.setPixelRatio(Math.min(window.devicePixelRatio, 2));
    renderer.setScissorTest(true);
    stage.prepend(canvas);
    dirty = true;
  }

  function closeScene() {
    if (!renderer) return;
    const { domElement } = renderer, closed = renderer;
    renderer = null;
    for (const view of views) {
      view.scene.traverse(({ geometry, material }) => { geometry?.dispose(); material?.dispose(); });
    }
    closed.dispose();
    if (!closed.getContext().isContextLost()) closed.forceContextLoss();
    domElement.remove();
  }

  /** Show a message in place of the scene, or remove the message. */
  function say(...texts) {
    const box = document.getElementById("message");
    box.replaceChildren(...texts.map((text) => (text instanceof Node ? text : element("p", { textContent: text }))));
    box.hidden = !texts.length;
  }

  function watch(entries) {
    visible = entries.at(-1).isIntersecting;
    clearTimeout(timer);
    if (visible) openScene(); else timer = setTimeout(closeScene, DELAY);
  }

  const HEAD = modal ? 40 : 0; // height of the title of a mode
  const FOOT = modal ? 90 : 0; // height of the legend below the modes

  /** Rectangle of a view below its title, in pixels of the page. */
  function tile(k) {
    const width = stage.clientWidth, height = stage.clientHeight - FOOT, count = views.length;
    const columns = Math.max(1, Math.min(count, Math.round(Math.sqrt((count * width) / (1.35 * height)))));
    const rows = Math.ceil(count / columns);
    return { x: ((k % columns) * width) / columns, y: (Math.floor(k / columns) * height) / rows + HEAD,
      width: width / columns, height: height / rows - HEAD };
  }

  function draw() {
    const { clientWidth: width, clientHeight: height } = stage;
    renderer?.setSize(width, height, false);
    cutting = planes();
    if (renderer) renderer.clippingPlanes = cutting;
    views.forEach((view, k) => {
      const { x, y, width: w, height: h } = tile(k);
      view.label.style.left = `${x}px`;
      view.label.style.top = `${y - HEAD}px`;
      if (!renderer) return;
      renderer.setViewport(x, height - y - h, w, h);
      renderer.setScissor(x, height - y - h, w, h);
      camera.aspect = w / h;
      camera.updateProjectionMatrix();
      view.lamp.position.copy(camera.position).addScaledVector(camera.up, 0.5 * size);
      view.lamp.target.position.copy(controls.target);
      renderer.render(view.scene, camera);
    });
  }

  // ---- Cutting plane, triad and scale bar -----------------------------------------------------
  let cutting = [];

  /** The plane that hides one side of the scene, in the form of a plane of three.js. */
  function planes() {
    const axis = ["x", "y", "z"].indexOf(settings.cut);
    if (axis < 0) return [];
    const values = data.hull.map((point) => point[axis]), low = Math.min(...values), high = Math.max(...values);
    const normal = new THREE.Vector3().setComponent(axis, -1);
    return [{ normal, constant: low + settings.place * (high - low) }];
  }

  const triad = element("canvas", { id: "triad" });
  stage.append(element("span", { className: "scene-only" }, triad));

  /** Draw the directions of x, y, z, and a bar of a round length at the centre of the scene. */
  function drawTriad() {
    const style = getComputedStyle(document.documentElement), ratio = Math.min(window.devicePixelRatio, 2);
    const pen = triad.getContext("2d"), view = camera.matrixWorldInverse.elements;
    triad.width = 230 * ratio;
    triad.height = 70 * ratio;
    pen.scale(ratio, ratio);
    pen.font = "12px system-ui, sans-serif";
    pen.lineWidth = 2;
    ["x", "y", "z"].forEach((name, i) => {
      const across = 24 * view[4 * i], up = 24 * view[4 * i + 1];
      pen.strokeStyle = pen.fillStyle = ["#c23b3b", "#3a8f4d", "#3b62c2"][i];
      pen.beginPath(); pen.moveTo(195, 38); pen.lineTo(195 + across, 38 - up); pen.stroke();
      pen.fillText(name, 192 + 1.3 * across, 42 - 1.3 * up);
    });
    const depth = camera.position.distanceTo(controls.target);
    const perPixel = (2 * depth * Math.tan((camera.fov * Math.PI) / 360)) / tile(0).height;
    const most = 130 * perPixel, power = 10 ** Math.floor(Math.log10(most));
    const length = [5, 2, 1].map((n) => n * power).find((value) => value <= most), width = length / perPixel;
    const [factor, symbol] = unit("length", length);
    pen.strokeStyle = pen.fillStyle = style.getPropertyValue("--ink");
    pen.beginPath(); pen.moveTo(8, 50); pen.lineTo(8, 56); pen.lineTo(8 + width, 56); pen.lineTo(8 + width, 50); pen.stroke();
    pen.fillText(`${Number((factor * length).toPrecision(3))} ${symbol}`, 8, 44);
    Object.assign(triad.dataset, { length, width });
  }

  // ---- Traces of points -----------------------------------------------------------------------
  const traces = [];

  /** Add the path of a node of a body, or remove it. */
  function trace(body, node) {
    const k = data.bodies.findIndex(({ name }) => name === body), same = (item) => item.k === k && item.node === node;
    const index = traces.findIndex(same);
    if (index >= 0) traces.splice(index, 1)[0].line.removeFromParent();
    else if (!modal) traces.push({ k, node, line: null });
    dirty = true;
  }

  /** Positions of a node at all instants. */
  function pathOf({ k, node }) {
    const { points, modes } = parts[data.bodies[k].part], path = [];
    for (let row = 0; row < time.length; row++) {
      const { position, rotation, eta } = bodyState(k, views[0], { row, weight: 0 });
      const local = [0, 1, 2].map((j) => points[3 * node + j] +
        settings.scale * modes.reduce((sum, mode, m) => sum + eta[m] * mode[3 * node + j], 0));
      const turn = new THREE.Quaternion(rotation[1], rotation[2], rotation[3], rotation[0]).normalize();
      path.push(...new THREE.Vector3(...local).applyQuaternion(turn).toArray().map((x, j) => x + position[j]));
    }
    return path;
  }

  function drawTraces(view) {
    for (const item of traces) {
      if (item.line && item.scale === settings.scale) continue;
      item.line?.removeFromParent();
      item.scale = settings.scale;
      item.path = pathOf(item);
      const geometry = new THREE.BufferGeometry();
      geometry.setAttribute("position", new THREE.BufferAttribute(new Float32Array(item.path), 3));
      item.line = new THREE.Line(geometry, new THREE.LineBasicMaterial({ color: 0xd1242f }));
      item.line.frustumCulled = false;
      view.scene.add(item.line);
    }
  }

  const DIRECTIONS = { x: [1, 0, 0], y: [0, -1, 0], z: [0, 0, 1], oblique: data.towards };

  function look(name) {
    const direction = new THREE.Vector3(...DIRECTIONS[name]).normalize();
    camera.up.set(...(name === "oblique" ? data.up : name === "z" ? [0, 1, 0] : [0, 0, 1]));
    controls.target.set(...data.centre);
    followed = null; // the next drawing moves the camera to the body again
    camera.position.copy(controls.target).addScaledVector(direction, distance(direction));
    controls.update();
    dirty = true;
  }

  /** Distance from which the whole scene is visible in a direction. */
  function distance(direction) {
    const { width, height } = tile(0), up = Math.tan((camera.fov * Math.PI) / 360) * 0.9;
    const right = new THREE.Vector3().crossVectors(camera.up, direction).normalize();
    const top = new THREE.Vector3().crossVectors(direction, right), centre = new THREE.Vector3(...data.centre);
    let most = 0;
    for (const point of data.hull) {
      const corner = new THREE.Vector3(...point).sub(centre);
      const half = Math.max((Math.abs(corner.dot(right)) * height) / width, Math.abs(corner.dot(top)));
      most = Math.max(most, half / up + corner.dot(direction));
    }
    return (modal ? 1.15 : 1) * most;
  }

  // ---- Numbers and units ----------------------------------------------------------------------
  function format(value) {
    if (value === 0) return "0";
    const digits = Math.max(0, 3 - Math.floor(Math.log10(Math.abs(value))));
    return Math.abs(value) >= 1e6 || Math.abs(value) < 1e-4 ? value.toExponential(2) : value.toFixed(Math.min(6, digits));
  }

  /** A round number of an axis, without trailing zeros. */
  function formatTick(value) {
    return Math.abs(value) >= 1e6 || (value && Math.abs(value) < 1e-4) ? value.toExponential(1) : String(Number(value.toPrecision(4)));
  }

  function unit(quantity, most) {
    if (quantity === "field") return [1, data.field?.[1] ?? ""];
    if (quantity === "stress") return [1e-6, "MPa"];
    if (most < 1e-4) return [1e6, "µm"];
    return most < 2 ? [1e3, "mm"] : [1, "m"];
  }

  const NAMES = { ...data.quantities, field: data.field?.[0] };

  /** The greatest stress in single cells, in MPa, if the page contains it. */
  function peakText() {
    const peak = greatest(data.bodies.filter((body) => !settings.hidden.has(body.name)).map((body) => body.peak ?? 0));
    return peak && settings.colour === "stress" ? `greatest in one cell, whole motion: ${format(1e-6 * peak)} MPa` : "";
  }

  let legendTexts = null;

  function legend() {
    const box = document.getElementById("legend"), name = NAMES[settings.colour];
    box.hidden = !views.some((view) => view.surfaces.some((surface) => surface.has(settings.colour)));
    legendTexts = null;
    if (box.hidden) return;
    const { limit, least, whole } = views[0], [factor, symbol] = unit(settings.colour, whole);
    const colours = MAP.map((c) => `rgb(${c})`).join(",");
    const scale = element("i"), ends = modal ? ["0", "largest"] : [0, 0.5, 1].map((part) => format(factor * (least + part * (limit - least))));
    scale.style.background = `linear-gradient(90deg,${colours})`;
    legendTexts = { title: symbol && !modal ? `${name} (${symbol})` : name, ends, note: peakText() };
    box.replaceChildren(legendTexts.title, scale,
      element("span", {}, ...ends.map((text) => element("b", { textContent: text }))),
      element("small", { textContent: legendTexts.note }));
  }

  // ---- Value under the pointer ----------------------------------------------------------------
  const ray = new THREE.Raycaster(), hint = document.getElementById("hint");

  function probe(x, y) {
    const k = views.findIndex((_, i) => {
      const r = tile(i);
      return x >= r.x && x < r.x + r.width && y >= r.y && y < r.y + r.height;
    });
    if (k < 0) return null;
    const r = tile(k);
    camera.aspect = r.width / r.height;
    camera.updateProjectionMatrix();
    ray.setFromCamera(new THREE.Vector2((2 * (x - r.x)) / r.width - 1, 1 - (2 * (y - r.y)) / r.height), camera);
    const meshes = views[k].surfaces.filter((s) => s.mesh.visible).map((s) => s.mesh);
    const hits = ray.intersectObjects(meshes, false).filter(({ point }) =>
      cutting.every(({ normal, constant }) => normal.dot(point) + constant >= 0));
    const front = hits.filter(({ object }) => !object.userData.surface.faded);
    const first = front.filter(({ object }) => !object.userData.surface.ghost);
    const hit = first.find((entry) => !entry.object.material.transparent) ?? first[0] ?? front[0] ?? hits[0];
    if (!hit) return null;
    const surface = hit.object.userData.surface, { source, points } = surface.part;
    const [i] = [hit.face.a, hit.face.b, hit.face.c].sort((a, b) => near(a) - near(b));
    function near(c) {
      const p = new THREE.Vector3().fromBufferAttribute(surface.positions, c);
      return p.applyMatrix4(hit.object.matrixWorld).distanceToSquared(hit.point);
    }
    const node = source[i], body = [0, 1, 2].map((j) => points[3 * node + j]);
    const moved = new THREE.Vector3(...body.map((value, j) => value + surface.u[3 * node + j]));
    const position = moved.applyMatrix4(hit.object.matrixWorld).toArray();
    const value = surface.has(settings.colour) ? surface.values[node] : null;
    return { body: surface.name, node, reference: body, position, quantity: settings.colour, value, view: k };
  }

  let pointer = null; // place of the pointer in the scene

  function tell(event) {
    const box = stage.getBoundingClientRect(), x = event.clientX - box.left, y = event.clientY - box.top;
    pointer = [x, y];
    const found = event.buttons ? null : probe(x, y);
    hint.hidden = !found;
    if (!found) return;
    const [factor, symbol] = unit("length", size), lines = [found.body];
    lines.push(`position ${found.position.map((v) => format(factor * v)).join(", ")} ${symbol}`);
    if (found.value !== null) {
      if (modal) {
        lines.push(`${NAMES[found.quantity]} ${format((100 * found.value) / views[found.view].limit)} % of the greatest`);
      } else {
        const [f, s] = unit(found.quantity, views[0].whole);
        lines.push(`${NAMES[found.quantity]} ${format(f * found.value)} ${s}`);
      }
    }
    hint.textContent = lines.join("\n");
    hint.style.left = `${Math.min(x + 14, stage.clientWidth - hint.offsetWidth - 4)}px`;
    hint.style.top = `${Math.min(y + 14, stage.clientHeight - hint.offsetHeight - 4)}px`;
  }

  // ---- Page -----------------------------------------------------------------------------------
  function element(tag, properties = {}, ...children) {
    const node = Object.assign(document.createElement(tag), properties);
    node.append(...children);
    return node;
  }

  function change(action) {
    return (event) => { action(event); dirty = true; };
  }

  const controlsOf = {}, moves = modal || end > start;

  function select(name, options, action) {
    const node = element("select", { onchange: change(() => action(node.value)), ariaLabel: name },
      ...options.map(([value, text]) => element("option", { value, textContent: text })));
    controlsOf[name] = node;
    return element("label", { className: "wide" }, name, node);
  }

  function tick(text, checked, action) {
    const box = element("input", { type: "checkbox", checked, onchange: change(() => action(box.checked)) });
    controlsOf[text] = box;
    return element("label", {}, box, text);
  }

  const toggle = (set, name) => (on) => { if (on) set.add(name); else set.delete(name); };
  const button = (text, title, action) => element("button", { textContent: text, title, onclick: change(action) });

  const KEY_TEXTS = [[["space"], "play, pause"], [["←", "→"], "step"], [["Home"], "start"], [["X", "Y", "Z", "O"], "views"],
    [["F"], "follow a body"], [["C"], "colour"], [["R"], "range"], [["+", "-"], "magnification"],
    [["K"], "cut"], [["[", "]"], "move the cut"], [[",", "."], "opacity"], [["click"], "isolate a body"], [["I"], "the next body"],
    [["Esc"], "show all bodies"], [["shift", "click"], "trace of a point"], [["T"], "at the pointer"],
    [["D"], "light, dark"], [["P"], "save a picture"], [["M"], "save a film"], [["V"], "save curves"]];

  /** Whether a key does something in this page. */
  const applies = ([[key]]) => !(modal && ["F", "R", "V", "T", "shift"].includes(key)) && (key !== "M" || canRecord);

  function buildPanel() {
    const all = document.getElementById("panel"), panel = element("div", { className: "scene-only" });
    all.append(panel);
    const stress = parts.some((part) => part.stress), flexible = parts.some((part) => part.modes.length);
    if (!flexible) settings.colour = "none";
    if (data.field) settings.colour = "field";
    if (flexible) {
      const magnify = element("input", { type: "range", min: -1, max: 4, step: 0.05, ariaLabel: "magnification",
        value: Math.log10(Math.max(settings.scale, 0.1)),
        oninput: change(() => { settings.scale = 10 ** Number(magnify.value); showScale(); }) });
      const shown = element("output");
      const showScale = () => { shown.textContent = `× ${format(settings.scale)}`; };
      controlsOf.showScale = () => { magnify.value = Math.log10(settings.scale); showScale(); };
      showScale();
      panel.append(
        element("h2", { textContent: "Colour" }),
        select("colour", [...(data.field ? [["field", NAMES.field]] : []), ["displacement", "displacement"],
          ...(stress ? [["stress", "von Mises stress"]] : []), ["none", "none"]],
          setColour),
        ...(modal ? [] : [select("range", [["fixed", "whole motion"], ["running", "this instant"], ["by hand", "by hand"]],
          (value) => setRange(value)), element("div", { className: "row", id: "ends" }, limitInput("low"), "to", limitInput("high"), controlsOf.unit = element("output"))]),
        element("h2", { textContent: modal ? "Amplitude" : "Elastic displacement" }),
        element("label", {}, magnify, shown));
      if (!modal && materials.has("joints")) {
        panel.append(element("small", { textContent: "Joints are not magnified; gaps come from the magnification." }));
      }
    }
    if (controlsOf.colour) controlsOf.colour.value = settings.colour;
    panel.append(element("h2", { textContent: "View" }), element("div", { className: "row" },
      ...["x", "y", "z", "oblique"].map((name) => button(name, `Look along ${name}`, () => look(name))),
      button("◐", "Light or dark (D)", theme), button("⤓ picture", "Save a picture (P)", () => picture()), ...(canRecord ? [filmButton()] : [])));
    if (moves && !modal) {
      panel.append(select("follow", [["", "no body"], ...data.bodies.map(({ name }) => [name, name])],
        (value) => { settings.follow = value; }));
    }
    const cutAt = element("input", { type: "range", min: 0, max: 1, step: 0.01, value: settings.place, ariaLabel: "place of the cut",
      oninput: change(() => { settings.place = Number(cutAt.value); }) });
    controlsOf.place = cutAt;
    panel.append(select("cut", [["none", "no"], ["x", "along x"], ["y", "along y"], ["z", "along z"]],
      (value) => { settings.cut = value; }), element("label", {}, cutAt));
    const bodies = data.bodies.length > 1 ? data.bodies : [];
    const opacity = element("input", { type: "range", min: 0.1, max: 1, step: 0.05, value: 1, ariaLabel: "opacity",
      title: "Opacity of all bodies", oninput: change(() => { settings.opacity = Number(opacity.value); }) });
    controlsOf.opacity = opacity;
    const ghost = element("input", { type: "range", min: 0.05, max: 1, step: 0.05, value: settings.ghost, ariaLabel: "opacity of the second run",
      title: "Opacity of the second run", oninput: change(() => { settings.ghost = Number(ghost.value); }) });
    panel.append(element("h2", { textContent: "Bodies" }), ...bodies.map((body) =>
      tick(body.name, true, (on) => toggle(settings.hidden, body.name)(!on))), element("label", {}, "opacity", opacity),
      ...(bodies.some((body) => body.ghost) ? [element("label", {}, "second run", ghost)] : []));
    const groups = [...materials.keys()];
    if (groups.length) {
      panel.append(element("h2", { textContent: "Marks" }),
        ...groups.map((name) => tick(name, settings.shown.has(name), toggle(settings.shown, name))));
    }
    if (data.signals?.length) {
      all.append(element("h2", { textContent: "Curves" }),
        ...curves.map((curve) => tick(curve.label, curve.shown, (on) => { curve.shown = on; layoutCurves(); })),
        button("⤓ CSV", "Save the shown curves (V)", saveCurves));
    }
    all.append(element("h2", { textContent: "Keys" }), element("table", {}, ...KEY_TEXTS.filter(applies).map(([keys, text]) =>
      element("tr", {}, element("td", {}, ...keys.flatMap((key) => [element("kbd", { textContent: key }), " "])),
        element("td", { textContent: text })))));
    const menu = document.getElementById("menu");
    menu.onclick = change(() => all.classList.toggle("closed"));
    if (window.matchMedia("(max-width: 800px)").matches) all.classList.add("closed");
  }

  const limitInput = (name) => controlsOf[name] = element("input", { type: "number", step: "any", value: settings[name],
    ariaLabel: name === "low" ? "lower limit" : "upper limit", onchange: change(() => { settings[name] = Number(controlsOf[name].value); }) });

  /** Choose the quantity of the colours; limits set by hand are reset to those of the whole motion. */
  function setColour(value) {
    settings.colour = value;
    if (settings.range !== "by hand") return;
    settings.range = "fixed";
    update();
    setRange("by hand");
  }

  /** Choose the range of the colours; limits set by hand start with the present ones. */
  function setRange(value) {
    if (value === "by hand" && settings.range !== value) {
      const { limit, least, whole } = views[0], [factor, symbol] = unit(settings.colour, whole);
      controlsOf.unit.textContent = symbol;
      settings.low = Number((factor * least).toPrecision(3));
      settings.high = Number((factor * limit).toPrecision(3));
      controlsOf.low.value = settings.low;
      controlsOf.high.value = settings.high;
    }
    settings.range = value;
    document.getElementById("ends").hidden = value !== "by hand";
  }

  function buildBar() {
    const bar = document.getElementById("bar");
    if (!modal && !(end > start)) { bar.hidden = true; bar.style.display = "none"; return; }
    const play = element("button", { onclick: () => run(!settings.playing), title: "Play or pause (space)" });
    const slider = element("input", { type: "range", min: 0, max: 1, step: 0.0005, value: 0, ariaLabel: "time",
      oninput: change(() => { run(false); t = start + Number(slider.value) * ((modal ? 1 : end) - start); }) });
    const clock = element("output"), speed = element("select", { ariaLabel: "speed", title: "Speed",
      onchange: () => { settings.seconds = Number(speed.value); } });
    const choices = modal ? [[4, "slow"], [2, "normal"], [1, "fast"]]
      : [[60, "60 s"], [30, "30 s"], [16, "16 s"], [8, "8 s"], [4, "4 s"], [2, "2 s"], [end - start, "real time"]];
    speed.append(...choices.map(([value, text]) => element("option", { value, textContent: text })));
    speed.value = settings.seconds = modal ? 2 : 8;
    bar.append(play, slider, clock, speed);
    Object.assign(controlsOf, { play, slider, clock, speed });
  }

  function showTime() {
    if (!controlsOf.slider) return;
    controlsOf.slider.value = (t - start) / ((modal ? 1 : end) - start);
    controlsOf.clock.textContent = modal ? `phase ${(360 * (t % 1)).toFixed(0)}°`
      : end - start < 1 ? `${(1e3 * t).toFixed(3)} ms` : `${t.toFixed(4)} s`;
    controlsOf.play.textContent = settings.playing ? "❚❚" : "▶";
  }

  function run(playing) {
    settings.playing = playing;
    showTime();
  }

  function theme() {
    document.documentElement.classList.toggle("dark");
    dirty = true;
  }

  function save(blob, name) {
    const link = element("a", { href: URL.createObjectURL(blob), download: name });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  }

  function picture() {
    if (!renderer) return;
    refresh();
    compose(element("canvas")).toBlob((blob) => save(blob, `${data.title}.png`));
  }

  /** Draw the scene with titles, time, legend, scale bar and triad on a canvas. */
  function compose(canvas) {
    const { domElement: image } = renderer, { clientWidth: width, clientHeight: height } = stage;
    const style = getComputedStyle(document.documentElement), colour = (name) => style.getPropertyValue(`--${name}`);
    if (canvas.width !== image.width || canvas.height !== image.height) {
      Object.assign(canvas, { width: image.width, height: image.height });
    }
    const pen = canvas.getContext("2d");
    pen.setTransform(image.width / width, 0, 0, image.height / height, 0, 0);
    pen.fillStyle = colour("back");
    pen.fillRect(0, 0, width, height);
    pen.drawImage(image, 0, 0, width, height);
    pen.drawImage(triad, width - 238, height - 78, 230, 70);
    const write = (text, x, y, font = "12px", align = "left", ink = "ink") => {
      Object.assign(pen, { font: `${font} system-ui, sans-serif`, textAlign: align, fillStyle: colour(ink) });
      pen.fillText(text, x, y);
    };
    views.forEach(({ label }, k) => {
      const { x, y } = tile(k), [title, small] = label.children;
      write(title.textContent, x + 12, y - HEAD + 21, "bold 14px");
      write(small.textContent, x + 12, y - HEAD + 39, "12px", "left", "weak");
    });
    if (moves && !modal) write(controlsOf.clock.textContent, 12, 40, "13px");
    if (!legendTexts) return canvas;
    const { title, ends, note } = legendTexts, top = height - (note ? 82 : 64);
    write(title, 22, top + 12, "13px");
    const bar = pen.createLinearGradient(22, 0, 252, 0);
    MAP.forEach((c, k) => bar.addColorStop(k / (MAP.length - 1), `rgb(${c})`));
    pen.fillStyle = bar;
    pen.fillRect(22, top + 20, 230, 10);
    ends.forEach((text, k) => {
      const part = k / (ends.length - 1);
      write(text, 22 + 230 * part, top + 45, "bold 12px", ["left", "center", "right"][Math.round(2 * part)]);
    });
    write(note, 22, top + 63, "11px", "left", "weak");
    return canvas;
  }

  // ---- Film -----------------------------------------------------------------------------------
  const canRecord = moves && "MediaRecorder" in window && "captureStream" in HTMLCanvasElement.prototype;
  let film = null; // the recorder of a film and its canvas

  const filmButton = () => controlsOf.film = button("⤓ film", "Save a film of the whole motion, or stop it (M)", record);

  /** Record the motion from its start to its end at the present speed; a second call ends the film. */
  function record() {
    if (film) {
      run(false);
      if (film.recorder.state === "recording") film.recorder.stop();
      return;
    }
    if (!renderer || !canRecord) return;
    t = start;
    refresh();
    const canvas = compose(element("canvas")), pieces = [];
    const type = ["video/webm", "video/mp4"].find((kind) => MediaRecorder.isTypeSupported(kind));
    const recorder = new MediaRecorder(canvas.captureStream(30), { mimeType: type, videoBitsPerSecond: 8e6 });
    recorder.ondataavailable = (event) => pieces.push(event.data);
    recorder.onstop = () => {
      film = null;
      controlsOf.film.textContent = "⤓ film";
      save(new Blob(pieces, { type }), `${data.title}.${type.slice(6)}`);
    };
    film = { recorder, canvas };
    controlsOf.film.textContent = "■ stop";
    recorder.start();
    run(true);
  }

  /** Save the shown curves: a row for each value, with its curve and its time. */
  function saveCurves() {
    const quoted = (text) => `"${text.replaceAll('"', '""')}"`, rows = ["curve,time (s),value"];
    for (const { label, time: x, values: y, abscissa, shown } of curves) {
      if (!shown) continue;
      if (abscissa) x.forEach((value, i) => rows.push(`${quoted(`${label}, x`)},${value},${abscissa[i]}`));
      x.forEach((value, i) => rows.push(`${quoted(abscissa ? `${label}, y` : label)},${value},${y[i]}`));
    }
    save(new Blob([`${rows.join("\n")}\n`], { type: "text/csv" }), `${data.title}.csv`);
  }

  let span = [start, end]; // times that the curves show

  /** Zoom the curves about the time at the pointer. */
  function zoomCurves(event) {
    event.preventDefault();
    const box = event.currentTarget.getBoundingClientRect(), factor = event.deltaY < 0 ? 0.8 : 1.25;
    const fixed = span[0] + ((event.clientX - box.left) / box.width) * (span[1] - span[0]);
    span = [Math.max(start, fixed + factor * (span[0] - fixed)), Math.min(end, fixed + factor * (span[1] - fixed))];
    dirty = true;
  }

  /** Round numbers between two numbers. */
  function ticks(low, high, count) {
    const step = (high - low) / count, power = 10 ** Math.floor(Math.log10(step));
    const round = [1, 2, 5, 10].map((n) => n * power).find((value) => value >= step), first = Math.ceil(low / round);
    return Array.from({ length: Math.max(0, Math.floor(high / round) - first + 1) }, (_, i) => round * (first + i));
  }

  // ---- Curves ---------------------------------------------------------------------------------
  const curves = (data.signals ?? []).map((signal) => ({
    label: signal.label, time: numbers(signal.time), values: numbers(signal.values),
    abscissa: signal.abscissa && numbers(signal.abscissa), shown: Boolean(signal.abscissa),
  }));
  const overTime = curves.filter(({ abscissa }) => !abscissa);
  const peaks = overTime.map(({ values }) => greatest(values.map(Math.abs))), visibleFrom = 1e-12 * greatest(peaks);
  const firstCurve = Math.max(0, peaks.findIndex((peak) => peak > visibleFrom)); // not round-off
  if (overTime.length) overTime[firstCurve].shown = true;

  function layoutCurves() {
    const below = document.getElementById("curves"), beside = document.getElementById("orbits");
    below.replaceChildren();
    beside.replaceChildren();
    for (const curve of curves) {
      const actions = curve.abscissa ? { onpointerdown: (event) => seekOn(curve, event) }
        : { onpointerdown: seekTo, onpointermove: seekTo, onwheel: zoomCurves, ondblclick: change(() => { span = [start, end]; }) };
      curve.canvas = curve.shown ? element("canvas", actions) : null;
      if (curve.canvas) (curve.abscissa ? beside : below).append(curve.canvas);
    }
    for (const box of [below, beside]) box.hidden = !box.children.length;
    dirty = true;
  }

  function seekTo(event) {
    if (!event.buttons) return;
    run(false);
    const box = event.currentTarget.getBoundingClientRect();
    t = span[0] + Math.min(1, Math.max(0, (event.clientX - box.left) / box.width)) * (span[1] - span[0]);
    dirty = true;
  }

  /** Go to the time of the point of an orbit that is nearest to the pointer. */
  function seekOn(curve, event) {
    run(false);
    const box = event.currentTarget.getBoundingClientRect(), { across, down } = orbitScale(curve);
    const distance = curve.time.map((_, i) =>
      Math.hypot(across(curve.abscissa[i]) - event.clientX + box.left, down(curve.values[i]) - event.clientY + box.top));
    t = curve.time[distance.indexOf(distance.reduce((a, b) => Math.min(a, b)))];
    dirty = true;
  }

  /** Value of an array over the times of a curve at the current time. */
  function current({ time: x }, y) {
    let k = 0;
    while (k < x.length - 2 && x[k + 1] <= t) k++;
    const weight = Math.min(1, Math.max(0, (t - x[k]) / (x[k + 1] - x[k] || 1)));
    return y[k] + weight * (y[k + 1] - y[k]);
  }

  /** A pen on an empty canvas, with its size and colours. */
  function sheet(pad) {
    const style = getComputedStyle(document.documentElement), ratio = Math.min(window.devicePixelRatio, 2);
    const width = pad.clientWidth, height = pad.clientHeight, pen = pad.getContext("2d");
    pad.width = width * ratio;
    pad.height = height * ratio;
    pen.scale(ratio, ratio);
    return { width, height, pen, colour: (name) => style.getPropertyValue(name) };
  }

  /** Pixels of an orbit, with the same scale in both directions. */
  function orbitScale({ canvas, abscissa, values }) {
    const [x, y] = [abscissa, values].map((v) => [v.reduce((a, b) => Math.min(a, b)), v.reduce((a, b) => Math.max(a, b))]);
    const width = canvas.clientWidth, height = canvas.clientHeight, extent = Math.max(x[1] - x[0], y[1] - y[0]) || 1;
    const scale = Math.min(width - 50, height - 50) / extent, [centre, level] = [(x[0] + x[1]) / 2, (y[0] + y[1]) / 2];
    return {
      x: [centre - extent / 2, centre + extent / 2], y: [level - extent / 2, level + extent / 2],
      across: (value) => 15 + width / 2 + scale * (value - centre), down: (value) => 3 + height / 2 - scale * (value - level),
    };
  }

  function drawOrbit(curve) {
    const { width, height, pen, colour } = sheet(curve.canvas), { x, y, across, down } = orbitScale(curve);
    const right = across(x[1]) + 6, left = across(x[0]) - 6, top = down(y[1]) - 6, bottom = down(y[0]) + 6;
    pen.strokeStyle = colour("--line");
    pen.fillStyle = colour("--weak");
    pen.font = "10px system-ui, sans-serif";
    for (const value of ticks(...x, 3)) {
      pen.beginPath(); pen.moveTo(across(value), top); pen.lineTo(across(value), bottom); pen.stroke();
      pen.textAlign = "center";
      pen.fillText(formatTick(value), across(value), Math.min(height - 2, bottom + 11));
    }
    for (const value of ticks(...y, 3)) {
      pen.beginPath(); pen.moveTo(left, down(value)); pen.lineTo(right, down(value)); pen.stroke();
      pen.textAlign = "right";
      pen.fillText(formatTick(value), left - 3, down(value) + 3);
    }
    pen.strokeStyle = colour("--mark");
    pen.beginPath();
    curve.time.forEach((_, i) => pen.lineTo(across(curve.abscissa[i]), down(curve.values[i])));
    pen.stroke();
    const [a, b] = [current(curve, curve.abscissa), current(curve, curve.values)];
    pen.fillStyle = colour("--ink");
    pen.beginPath(); pen.arc(across(a), down(b), 4, 0, 2 * Math.PI); pen.fill();
    pen.font = "12px system-ui, sans-serif";
    pen.textAlign = "left";
    pen.fillText(curve.label, 8, 14, width - 16);
  }

  function drawCurves() {
    for (const curve of curves) {
      if (curve.canvas) (curve.abscissa ? drawOrbit : drawCurve)(curve);
    }
  }

  function drawCurve(curve) {
    const { canvas: pad, label, time: x, values: y } = curve, { width, height, pen, colour } = sheet(pad);
    let low = y.reduce((a, b) => Math.min(a, b)), high = y.reduce((a, b) => Math.max(a, b));
    if (low > 0 && low < high - low) low = 0; // zero belongs to a curve that comes near it
    if (high < 0 && -high < high - low) high = 0;
    if (!(high > low)) [low, high] = [low - 0.5, high + 0.5];
    const across = (value) => (width * (value - span[0])) / (span[1] - span[0]);
    const down = (value) => height - 18 - ((height - 38) * (value - low)) / (high - low);
    pen.strokeStyle = colour("--line");
    pen.fillStyle = colour("--weak");
    pen.font = "10px system-ui, sans-serif";
    for (const value of ticks(low, high, 3)) {
      pen.beginPath(); pen.moveTo(0, down(value)); pen.lineTo(width, down(value)); pen.stroke();
      pen.fillText(formatTick(value), 2, down(value) + (down(value) > 26 ? -2 : 10)); // (the label is above)
    }
    const [factor, symbol] = span[1] - span[0] < 1 ? [1e3, "ms"] : [1, "s"];
    for (const value of ticks(factor * span[0], factor * span[1], 8)) {
      pen.fillText(`${Number(value.toPrecision(6))} ${symbol}`, across(value / factor) + 2, height - 4);
      pen.beginPath(); pen.moveTo(across(value / factor), height - 18); pen.lineTo(across(value / factor), height); pen.stroke();
    }
    if (low <= 0 && high >= 0) { pen.beginPath(); pen.moveTo(0, down(0)); pen.lineTo(width, down(0)); pen.stroke(); }
    pen.strokeStyle = colour("--mark");
    pen.beginPath();
    for (let i = 0; i < x.length; i++) pen.lineTo(across(x[i]), down(y[i]));
    pen.stroke();
    const value = current(curve, y);
    pen.strokeStyle = pen.fillStyle = colour("--ink");
    pen.beginPath(); pen.moveTo(across(t), 18); pen.lineTo(across(t), height); pen.stroke();
    pen.font = "12px system-ui, sans-serif";
    pen.fillText(`${label}: ${format(value)}   (${format(low)} to ${format(high)})`, 8, 14);
  }

  // ---- Keys and the loop ----------------------------------------------------------------------
  const STEP = () => (modal ? 1 / 24 : (end - start) / 200);
  const KEYS = {
    " ": () => run(!settings.playing),
    ArrowRight: () => { run(false); t = Math.min(modal ? 1 : end, t + STEP()); },
    ArrowLeft: () => { run(false); t = Math.max(start, t - STEP()); },
    Home: () => { t = start; },
    x: () => look("x"), y: () => look("y"), z: () => look("z"), o: () => look("oblique"),
    c: () => next("colour"), r: () => next("range"), f: () => next("follow"), k: () => next("cut"),
    "[": () => slide("place", -0.05), "]": () => slide("place", 0.05),
    ",": () => slide("opacity", -0.1), ".": () => slide("opacity", 0.1),
    i: () => {
      const names = [null, ...data.bodies.map(({ name }) => name)];
      settings.isolated = names[(names.indexOf(settings.isolated) + 1) % names.length];
    },
    t: () => {
      const hit = pointer && probe(...pointer);
      if (hit) trace(hit.body, hit.node);
    },
    "+": () => magnify(10 ** 0.25), "-": () => magnify(10 ** -0.25),
    d: theme, p: picture, m: record, v: saveCurves,
    Escape: () => { settings.isolated = null; },
  };

  /** Choose the next option of a setting. */
  function next(name) {
    const node = controlsOf[name];
    if (!node) return;
    node.selectedIndex = (node.selectedIndex + 1) % node.options.length;
    node.onchange();
  }

  function slide(name, step) {
    const node = controlsOf[name];
    node.value = Number(node.value) + step;
    node.oninput();
  }

  function magnify(factor) {
    settings.scale = Math.min(1e4, Math.max(0.1, settings.scale * factor));
    controlsOf.showScale?.();
  }

  window.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || /SELECT/.test(event.target.tagName) || event.target.type === "number") return;
    const action = KEYS[event.key] ?? KEYS[event.key.toLowerCase()];
    if (!action || (event.target.tagName === "BUTTON" && event.key === " ")) return;
    event.preventDefault();
    action();
    dirty = true;
  });
  window.addEventListener("resize", () => { dirty = true; });
  window.addEventListener("message", ({ data: message }) => { // the page around the viewer changes its theme
    if (message?.theme) document.documentElement.classList.toggle("dark", message.theme === "dark");
    dirty = true;
  });
  stage.addEventListener("pointermove", tell);
  stage.addEventListener("pointerleave", () => { hint.hidden = true; pointer = null; });
  let pressed = [0, 0];
  stage.addEventListener("pointerdown", (event) => { pressed = [event.clientX, event.clientY]; }, true);
  stage.addEventListener("click", (event) => {
    if (visible) openScene();
    if (Math.hypot(event.clientX - pressed[0], event.clientY - pressed[1]) > 4) return; // the view was turned
    const box = stage.getBoundingClientRect(), hit = probe(event.clientX - box.left, event.clientY - box.top);
    if (hit && event.shiftKey) trace(hit.body, hit.node);
    else if (hit && data.bodies.length > 1) settings.isolated = settings.isolated === hit.body ? null : hit.body;
    dirty = true;
  });

  let last = 0;

  function frame(now) {
    requestAnimationFrame(frame);
    const elapsed = Math.min(0.1, (now - last) / 1000);
    last = now;
    if (!visible) return;
    const period = (modal ? 1 : end) - start;
    if (settings.playing && period > 0) {
      t += (elapsed * period) / settings.seconds;
      if (film && t > start + period) { t = start + period; record(); }
      if (t > start + period) t -= period;
      dirty = true;
    }
    if (dirty) refresh();
    if (film && renderer) compose(film.canvas);
  }

  function refresh() {
    dirty = false;
    update();
    draw();
    drawTriad();
    showTime();
    drawCurves();
  }

  if (window.matchMedia("(prefers-color-scheme: dark)").matches) document.documentElement.classList.add("dark");
  buildPanel();
  if (document.getElementById("ends")) document.getElementById("ends").hidden = true;
  buildBar();
  layoutCurves();
  look("oblique");
  if (window.top === window) watch([{ isIntersecting: true }]); // a page of its own
  new IntersectionObserver(watch).observe(stage);
  run((modal || end > start) && !window.matchMedia("(prefers-reduced-motion: reduce)").matches);
  refresh();
  requestAnimationFrame(frame);

  return {
    data, settings,
    probe(x, y) {
      if (dirty) refresh();
      return probe(x, y);
    },
    seek(value) { run(false); t = value; refresh(); },
    set(name, value) {
      if (name === "range" && document.getElementById("ends")) setRange(value);
      if (name === "colour") setColour(value);
      settings[name] = value;
      if (controlsOf[name]) controlsOf[name].value = value;
      controlsOf.showScale?.();
      refresh();
    },
    get time() { return t; },
    get limit() { return views[0].limit; },
    get paths() { return traces.map(({ path }) => path); },
    get span() { return span; },
    get markers() { // of the orbits
      return curves.filter(({ abscissa }) => abscissa).map((curve) => [current(curve, curve.abscissa), current(curve, curve.values)]);
    },
    get target() { return controls.target.toArray(); },
    get eye() { return camera.position.toArray(); },
  };
}
})();
