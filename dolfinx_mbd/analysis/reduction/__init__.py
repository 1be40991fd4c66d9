"""From a mesh with interfaces to a reduced body: modes, frames, inertia, loads, stiffening."""
