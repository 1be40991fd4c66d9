export {
  AmbientLight, Box3, BufferAttribute, BufferGeometry, Color, ConeGeometry, CylinderGeometry, BoxGeometry,
  DirectionalLight, DoubleSide, Group, HemisphereLight, Line, LineBasicMaterial, LineSegments, Matrix4, Mesh,
  MeshStandardMaterial, PerspectiveCamera, Quaternion, Raycaster, Scene, SphereGeometry, Vector2, Vector3,
  WebGLRenderer,
} from "three";
export { OrbitControls } from "three/addons/controls/OrbitControls.js";
