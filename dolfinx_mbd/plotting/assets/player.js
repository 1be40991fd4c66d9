"use strict";
/* Draws the scene in the page: x = R + A (x0 + s Ψη) for each surface point, with the scale s. */
window.player = (() => {
  const data = JSON.parse(document.getElementById("scene").textContent);
  const modal = data.kind === "modes";

  // ---- Arrays ---------------------------------------------------------------------------------
  const KINDS = { f4: Float32Array, f8: Float64Array, i2: Int16Array, u2: Uint16Array, u4: Uint32Array };

  function numbers(block) {
    const bytes = Uint8Array.from(atob(block.data), (c) => c.charCodeAt(0));
    return new KINDS[block.type](bytes.buffer);
  }

  function scaled(modes) {
    const raw = numbers(modes.values), size = raw.length / modes.scale.length;
    return modes.scale.map((s, k) => Float32Array.from(raw.subarray(k * size, (k + 1) * size), (v) => v * s));
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

  const time = numbers(data.time), start = time[0], end = time[time.length - 1];

  /** Index k and weight of a time, for linear interpolation between the entries k and k + 1. */
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
  const CREASE = Math.cos((38 * Math.PI) / 180);

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
    const points = numbers(part.points);
    return {
      points,
      modes: part.modes ? scaled(part.modes) : [],
      stress: part.stress ? scaled(part.stress) : null,
      field: part.field ? numbers(part.field) : null,
      radius: Math.max(...Array.from({ length: points.length / 3 }, (_, i) =>
        Math.hypot(points[3 * i], points[3 * i + 1], points[3 * i + 2]))),
      ...split(points, numbers(part.triangles)),
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
      Object.assign(this, { name: data.bodies[k].name, part, flexible: part.modes.length > 0 });
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
      const glass = !this.flexible && !data.bodies[k].bars;
      this.material = new THREE.MeshStandardMaterial({
        color: this.plain, metalness: 0.15, roughness: 0.55, side: THREE.DoubleSide,
        transparent: glass, opacity: glass ? 0.5 : 1, depthWrite: !glass,
      });
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

    paint(quantity, limit) {
      const coloured = this.has(quantity);
      if (this.material.vertexColors !== coloured) {
        this.material.vertexColors = coloured;
        this.material.color.set(coloured ? 0xffffff : this.plain);
        this.material.needsUpdate = true;
      }
      if (!coloured) return;
      const out = this.colours.array, { source } = this.part;
      for (let i = 0; i < source.length; i++) {
        const level = limit > 0 ? Math.min(255, Math.round((255 * this.values[source[i]]) / limit)) : 0;
        for (let j = 0; j < 3; j++) out[3 * i + j] = TABLE[3 * level + j];
      }
      this.colours.needsUpdate = true;
    }
  }

  // ---- Marks: joints, springs, the ground, forces, cables -------------------------------------
  const Y = new THREE.Vector3(0, 1, 0), Z = new THREE.Vector3(0, 0, 1), size = data.length;
  const JOINT = new THREE.MeshStandardMaterial({ color: 0xc8551b, roughness: 0.5 });
  const SPRING = new THREE.LineBasicMaterial({ color: 0x2f9e63 });
  const GROUND = new THREE.MeshStandardMaterial({ color: 0x777777, roughness: 0.9 });
  const CABLE = new THREE.MeshStandardMaterial({ color: 0x3b62c2, roughness: 0.6 });
  const ROD = new THREE.CylinderGeometry(1, 1, 1, 10, 1).translate(0, 0.5, 0); // from 0 to 1 along y
  const FORCE = {
    "joint forces": new THREE.MeshStandardMaterial({ color: 0xd63a6a, roughness: 0.6, depthTest: false, transparent: true }),
    loads: new THREE.MeshStandardMaterial({ color: 0x8f47c2, roughness: 0.6, depthTest: false, transparent: true }),
  };
  const frames = new Map((data.frames ?? []).map((frame) => [frame.index, {
    ...frame, position: numbers(frame.position), axis: numbers(frame.axis),
  }]));
  const arrows = (data.arrows ?? []).map((arrow) => ({ ...arrow, vector: numbers(arrow.vector) }));
  const longest = greatest(arrows.map((arrow) => arrow.greatest)) || 1;
  const cables = (data.cables ?? []).map((cable) => ({ ...cable, points: numbers(cable.points) }));

  function jointShape(mark) {
    const r = 0.011 * size;
    if (mark === "ball") return new THREE.SphereGeometry(1.2 * r, 20, 14);
    if (mark === "pin") {
      return new THREE.CylinderGeometry(0.6 * r, 0.6 * r, 5 * r, 20).rotateX(Math.PI / 2);
    }
    if (mark === "rail") {
      return new THREE.CylinderGeometry(0.25 * r, 0.25 * r, 18 * r, 12).rotateX(Math.PI / 2);
    }
    return new THREE.BoxGeometry(1.6 * r, 1.6 * r, 1.6 * r);
  }

  function coil() { // from 0 to 1 along y, with radius 1
    const points = [];
    for (let i = 0; i <= 160; i++) {
      const y = i / 160, turn = 16 * Math.PI * Math.min(1, Math.max(0, (y - 0.1) / 0.8));
      const r = y > 0.1 && y < 0.9 ? 1 : 0;
      points.push(r * Math.cos(turn), y, r * Math.sin(turn));
    }
    return new THREE.BufferGeometry().setAttribute("position", new THREE.BufferAttribute(new Float32Array(points), 3));
  }

  class Marks {
    constructor(scene) {
      this.groups = {};
      for (const name of ["joints", "springs", "ground", "joint forces", "loads", "cables"]) {
        this.groups[name] = new THREE.Group();
        scene.add(this.groups[name]);
      }
      const add = (name, object) => { this.groups[name].add(object); return object; };
      this.joints = (data.joints ?? []).map((joint) =>
        [joint, add("joints", joint.mark === "rod"
          ? new THREE.Mesh(ROD, CABLE) : new THREE.Mesh(jointShape(joint.mark), JOINT))]);
      this.springs = (data.springs ?? []).map((spring) => [spring, add("springs", new THREE.Line(coil(), SPRING))]);
      this.ground = [...frames.values()].filter((frame) => frame.ground).map((frame) =>
        [frame, add("ground", new THREE.Mesh(new THREE.BoxGeometry(0.05 * size, 0.012 * size, 0.05 * size), GROUND))]);
      this.arrows = arrows.map((arrow) => {
        const group = add(arrow.group, new THREE.Group()), r = 0.006 * size;
        group.add(new THREE.Mesh(new THREE.CylinderGeometry(r, r, 1, 12).translate(0, 0.5, 0), FORCE[arrow.group]),
          new THREE.Mesh(new THREE.ConeGeometry(2.6 * r, 7 * r, 16).translate(0, 3.5 * r, 0), FORCE[arrow.group]));
        return [arrow, group];
      });
      this.cables = cables.map((cable) =>
        Array.from({ length: cable.count - 1 }, () => add("cables", new THREE.Mesh(ROD, CABLE))));
    }

    move(where, poses, lines) {
      const vector = new THREE.Vector3();
      for (const [joint, mark] of this.joints) {
        if (joint.mark === "rod") { stretch(mark, poses(joint.first).position, poses(joint.second).position, 0.004 * size); continue; }
        mark.position.copy(poses(joint.second).position);
        mark.quaternion.setFromUnitVectors(Z, poses(joint.first).axis);
      }
      for (const [spring, mark] of this.springs) {
        stretch(mark, poses(spring.first).position, poses(spring.second).position, 0.014 * size);
      }
      for (const [frame, mark] of this.ground) mark.position.copy(poses(frame.index).position);
      for (const [arrow, group] of this.arrows) {
        vector.fromArray(between(arrow.vector, 3, where));
        const length = (0.22 * size * vector.length()) / longest;
        group.visible = length > 0.004 * size;
        group.position.copy(poses(arrow.frame).position);
        group.quaternion.setFromUnitVectors(Y, vector.normalize());
        group.children[0].scale.y = Math.max(length, 1e-9);
        group.children[1].position.y = length;
      }
      this.cables.forEach((pieces, k) => {
        const points = lines(k), at = (i) => new THREE.Vector3().fromArray(points, 3 * i);
        pieces.forEach((piece, i) => stretch(piece, at(i), at(i + 1), 0.004 * size));
      });
    }
  }

  function stretch(object, from, to, width) {
    const along = new THREE.Vector3().subVectors(to, from), length = along.length() || 1e-12;
    object.position.copy(from);
    object.scale.set(width, length, width);
    object.quaternion.setFromUnitVectors(Y, along.divideScalar(length));
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
    colour: "displacement", range: "fixed", scale: data.scale ?? 1, playing: false,
    seconds: 8, hidden: new Set(), shown: new Set(["joints", "springs", "ground", "loads", "cables"]),
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
    const frame = frames.get(index);
    const position = new THREE.Vector3().fromArray(between(frame.position, 3, where));
    const axis = new THREE.Vector3().fromArray(between(frame.axis, 3, where)).normalize();
    if (view.mode?.frames) {
      const move = real(view.mode.frames[index], 2 * Math.PI * t).map((value) => value * settings.scale);
      position.add(new THREE.Vector3(...move.slice(0, 3)));
      axis.add(new THREE.Vector3(...move.slice(3)).cross(axis)).normalize();
    }
    return { position, axis };
  }

  function cablePoints(k, view, where) {
    const { points, count } = cables[k], out = between(points, 3 * count, where);
    if (!view.mode?.cables) return out;
    const move = real(view.mode.cables[k], 2 * Math.PI * t);
    return out.map((value, i) => value + settings.scale * move[i]);
  }

  function update() {
    const where = place(modal ? start : t);
    for (const view of views) {
      view.surfaces.forEach((surface, k) => surface.move(bodyState(k, view, where), settings.scale));
      view.marks.move(where, (index) => framePose(index, view, where), (k) => cablePoints(k, view, where));
      const running = greatest(view.surfaces.map((surface) =>
        settings.hidden.has(surface.name) ? 0 : surface.evaluate(settings.colour)));
      view.limit = settings.range === "running" ? running : fixedLimit(view, running);
      for (const surface of view.surfaces) {
        surface.paint(settings.colour, view.limit);
        surface.mesh.visible = !settings.hidden.has(surface.name);
      }
      for (const [name, group] of Object.entries(view.marks.groups)) group.visible = settings.shown.has(name);
    }
    legend();
  }

  /** The largest value during the motion, or during one period of a mode. */
  function fixedLimit(view, running) {
    if (!view.mode) {
      return greatest(data.bodies.map((body) => body.ranges?.[settings.colour] ?? 0)) || running;
    }
    if (!(settings.colour in view.limits)) {
      const now = t;
      view.limits[settings.colour] = greatest(Array.from({ length: 8 }, (_, i) => {
        t = i / 16;
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

  /** Rectangle of a view below its title, in pixels of the page. */
  function tile(k) {
    const { clientWidth: width, clientHeight: height } = stage, count = views.length;
    const columns = Math.max(1, Math.min(count, Math.round(Math.sqrt((count * width) / (1.35 * height)))));
    const rows = Math.ceil(count / columns);
    return { x: ((k % columns) * width) / columns, y: (Math.floor(k / columns) * height) / rows + HEAD,
      width: width / columns, height: height / rows - HEAD };
  }

  function draw() {
    const { clientWidth: width, clientHeight: height } = stage;
    renderer?.setSize(width, height, false);
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

  const DIRECTIONS = { x: [1, 0, 0], y: [0, -1, 0], z: [0, 0, 1], oblique: data.towards };

  function look(name) {
    const direction = new THREE.Vector3(...DIRECTIONS[name]).normalize();
    camera.up.set(...(name === "oblique" ? data.up : name === "z" ? [0, 1, 0] : [0, 0, 1]));
    controls.target.set(...data.centre);
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

  function unit(quantity, most) {
    if (quantity === "field") return [1, data.field[1]];
    if (quantity === "stress") return [1e-6, "MPa"];
    if (most < 1e-4) return [1e6, "µm"];
    return most < 2 ? [1e3, "mm"] : [1, "m"];
  }

  const NAMES = { displacement: "elastic displacement", stress: "von Mises stress, averaged over cells",
    field: data.field?.[0] };

  /** The greatest stress in single cells, in MPa, if the page contains it. */
  function peakText() {
    const peak = greatest(data.bodies.filter((body) => !settings.hidden.has(body.name)).map((body) => body.peak ?? 0));
    return peak && settings.colour === "stress" ? `greatest in one cell, whole motion: ${format(1e-6 * peak)} MPa` : "";
  }

  function legend() {
    const box = document.getElementById("legend"), name = NAMES[settings.colour];
    box.hidden = !views.some((view) => view.surfaces.some((surface) => surface.has(settings.colour)));
    if (box.hidden) return;
    const limit = views[0].limit, [factor, symbol] = unit(settings.colour, limit);
    const colours = MAP.map((c) => `rgb(${c})`).join(",");
    const scale = element("i"), ends = modal ? ["0", "largest"] : [0, 0.5, 1].map((part) => format(part * factor * limit));
    scale.style.background = `linear-gradient(90deg,${colours})`;
    box.replaceChildren(symbol && !modal ? `${name} (${symbol})` : name, scale,
      element("span", {}, ...ends.map((text) => element("b", { textContent: text }))),
      element("small", { textContent: peakText() }));
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
    const hits = ray.intersectObjects(meshes, false);
    const hit = hits.find((entry) => !entry.object.material.transparent) ?? hits[0];
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

  function tell(event) {
    const box = stage.getBoundingClientRect(), x = event.clientX - box.left, y = event.clientY - box.top;
    const found = event.buttons ? null : probe(x, y);
    hint.hidden = !found;
    if (!found) return;
    const [factor, symbol] = unit("length", size), lines = [found.body];
    lines.push(`position ${found.position.map((v) => format(factor * v)).join(", ")} ${symbol}`);
    if (found.value !== null) {
      if (modal) {
        lines.push(`${NAMES[found.quantity]} ${format((100 * found.value) / views[found.view].limit)} % of the greatest`);
      } else {
        const [f, s] = unit(found.quantity, views[0].limit);
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

  const controlsOf = {};

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

  const KEY_TEXTS = [[["space"], "play, pause"], [["←", "→"], "step"], [["X", "Y", "Z", "O"], "views"], [["C"], "colour"],
    [["+", "-"], "magnification"], [["D"], "light, dark"], [["P"], "save a picture"]];

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
          (value) => { settings.colour = value; }),
        ...(modal ? [] : [select("range", [["fixed", "whole motion"], ["running", "this instant"]],
          (value) => { settings.range = value; })]),
        element("h2", { textContent: modal ? "Amplitude" : "Elastic displacement" }),
        element("label", {}, magnify, shown));
      if (!modal && data.joints?.length) {
        panel.append(element("small", { textContent: "Joints are not magnified; gaps come from the magnification." }));
      }
    }
    panel.append(element("h2", { textContent: "View" }), element("div", { className: "row" },
      ...["x", "y", "z", "oblique"].map((name) => button(name, `Look along ${name}`, () => look(name))),
      button("◐", "Light or dark (D)", theme), button("⤓ picture", "Save a picture (P)", () => picture())));
    if (data.bodies.length > 1) {
      panel.append(element("h2", { textContent: "Bodies" }), ...data.bodies.map((body) =>
        tick(body.name, true, (on) => toggle(settings.hidden, body.name)(!on))));
    }
    const groups = ["joints", "springs", "ground", "cables", "joint forces", "loads"]
      .filter((name) => views[0].marks.groups[name].children.length);
    if (groups.length) {
      panel.append(element("h2", { textContent: "Marks" }),
        ...groups.map((name) => tick(name, settings.shown.has(name), toggle(settings.shown, name))));
    }
    if (data.signals?.length) {
      all.append(element("h2", { textContent: "Curves" }),
        ...curves.map((curve, k) => tick(curve.label, k === 0, (on) => { curve.shown = on; layoutCurves(); })));
    }
    all.append(element("h2", { textContent: "Keys" }), element("table", {}, ...KEY_TEXTS.map(([keys, text]) =>
      element("tr", {}, element("td", {}, ...keys.flatMap((key) => [element("kbd", { textContent: key }), " "])),
        element("td", { textContent: text })))));
    const menu = document.getElementById("menu");
    menu.onclick = change(() => all.classList.toggle("closed"));
    if (window.matchMedia("(max-width: 800px)").matches) all.classList.add("closed");
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

  function picture() {
    if (!renderer) return;
    draw();
    renderer.domElement.toBlob((blob) => {
      const link = element("a", { href: URL.createObjectURL(blob), download: `${data.title}.png` });
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 1000);
    });
  }

  // ---- Curves ---------------------------------------------------------------------------------
  const curves = (data.signals ?? []).map((signal, k) => ({
    label: signal.label, time: numbers(signal.time), values: numbers(signal.values), shown: k === 0,
  }));

  function layoutCurves() {
    const box = document.getElementById("curves");
    box.replaceChildren();
    box.hidden = !curves.some((curve) => curve.shown);
    for (const curve of curves) {
      curve.canvas = curve.shown ? element("canvas", { onpointerdown: seekTo, onpointermove: seekTo }) : null;
      if (curve.canvas) box.append(curve.canvas);
    }
    dirty = true;
  }

  function seekTo(event) {
    if (!event.buttons) return;
    run(false);
    const box = event.currentTarget.getBoundingClientRect();
    t = start + Math.min(1, Math.max(0, (event.clientX - box.left) / box.width)) * (end - start);
    dirty = true;
  }

  function drawCurves() {
    const style = getComputedStyle(document.documentElement), ratio = Math.min(window.devicePixelRatio, 2);
    for (const { canvas: pad, label, time: x, values: y } of curves) {
      if (!pad) continue;
      const width = pad.clientWidth, height = pad.clientHeight, pen = pad.getContext("2d");
      pad.width = width * ratio;
      pad.height = height * ratio;
      pen.scale(ratio, ratio);
      let low = y.reduce((a, b) => Math.min(a, b)), high = y.reduce((a, b) => Math.max(a, b));
      if (low > 0 && low < high - low) low = 0; // zero belongs to a curve that comes near it
      if (high < 0 && -high < high - low) high = 0;
      if (!(high > low)) [low, high] = [low - 0.5, high + 0.5];
      const across = (value) => (width * (value - start)) / (end - start);
      const down = (value) => height - 6 - ((height - 26) * (value - low)) / (high - low);
      pen.strokeStyle = style.getPropertyValue("--line");
      if (low <= 0 && high >= 0) { pen.beginPath(); pen.moveTo(0, down(0)); pen.lineTo(width, down(0)); pen.stroke(); }
      pen.strokeStyle = style.getPropertyValue("--mark");
      pen.beginPath();
      for (let i = 0; i < x.length; i++) pen.lineTo(across(x[i]), down(y[i]));
      pen.stroke();
      let k = 0;
      while (k < x.length - 2 && x[k + 1] <= t) k++;
      const share = Math.min(1, Math.max(0, (t - x[k]) / (x[k + 1] - x[k] || 1)));
      const value = y[k] + share * (y[k + 1] - y[k]);
      pen.strokeStyle = pen.fillStyle = style.getPropertyValue("--ink");
      pen.beginPath(); pen.moveTo(across(t), 18); pen.lineTo(across(t), height); pen.stroke();
      pen.font = "12px system-ui, sans-serif";
      pen.fillText(`${label}: ${format(value)}   (${format(low)} to ${format(high)})`, 8, 14);
    }
  }

  // ---- Keys and the loop ----------------------------------------------------------------------
  const STEP = () => (modal ? 1 / 24 : (end - start) / 200);
  const KEYS = {
    " ": () => run(!settings.playing),
    ArrowRight: () => { run(false); t = Math.min(modal ? 1 : end, t + STEP()); },
    ArrowLeft: () => { run(false); t = Math.max(start, t - STEP()); },
    Home: () => { t = start; },
    x: () => look("x"), y: () => look("y"), z: () => look("z"), o: () => look("oblique"),
    c: () => {
      const node = controlsOf.colour;
      if (!node) return;
      node.selectedIndex = (node.selectedIndex + 1) % node.options.length;
      settings.colour = node.value;
    },
    "+": () => magnify(10 ** 0.25), "-": () => magnify(10 ** -0.25),
    d: theme, p: picture,
  };

  function magnify(factor) {
    settings.scale = Math.min(1e4, Math.max(0.1, settings.scale * factor));
    controlsOf.showScale?.();
  }

  window.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || /SELECT/.test(event.target.tagName)) return;
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
  stage.addEventListener("pointerleave", () => { hint.hidden = true; });
  stage.addEventListener("click", () => { if (visible) openScene(); });

  let last = 0;

  function frame(now) {
    requestAnimationFrame(frame);
    const elapsed = Math.min(0.1, (now - last) / 1000);
    last = now;
    if (!visible) return;
    const period = (modal ? 1 : end) - start;
    if (settings.playing && period > 0) {
      t += (elapsed * period) / settings.seconds;
      if (t > start + period) t -= period;
      dirty = true;
    }
    if (dirty) refresh();
  }

  function refresh() {
    dirty = false;
    update();
    draw();
    showTime();
    drawCurves();
  }

  if (window.matchMedia("(prefers-color-scheme: dark)").matches) document.documentElement.classList.add("dark");
  buildPanel();
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
      settings[name] = value;
      if (controlsOf[name]) controlsOf[name].value = value;
      controlsOf.showScale?.();
      refresh();
    },
    get time() { return t; },
    get limit() { return views[0].limit; },
  };
})();
