"""Pictures and animations: camera, surfaces, marks of joints and loads, bodies and mechanisms."""
