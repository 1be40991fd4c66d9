/* What the viewer uses of three.js 0.187.0. `three.min.js` is made from this file:
   npm install three@0.187.0 esbuild@0.28.2
   npx esbuild three.entry.js --bundle --minify --format=iife --global-name=THREE --outfile=three.min.js */
export {
  AmbientLight, Box3, BufferAttribute, BufferGeometry, Color, ConeGeometry, CylinderGeometry, BoxGeometry,
  DirectionalLight, DoubleSide, Group, HemisphereLight, Line, LineBasicMaterial, LineSegments, Matrix4, Mesh,
  MeshStandardMaterial, PerspectiveCamera, Quaternion, Raycaster, Scene, SphereGeometry, Vector2, Vector3,
  WebGLRenderer,
} from "three";
export { OrbitControls } from "three/addons/controls/OrbitControls.js";
