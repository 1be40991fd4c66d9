"""The page `llms.txt`: what the site contains, for programs that read it."""

from __future__ import annotations

from pathlib import Path

from sphinx.application import Sphinx

START = """# dolfinx_mbd

> Flexible multibody dynamics for FEniCSx: floating-frame terms as UFL forms, Craig-Bampton
> reduction in parallel, and mechanisms of rigid and flexible bodies.

All units are SI. The usual import is `import dolfinx_mbd as mbd`. The main path:
`mesh = mbd.build_mesh(mbd.ConnectingRod(), comm)` or `mbd.read_mesh(path, comm)`,
`reduction = mbd.reduce(mesh, mbd.STEEL, interfaces=[...], num_modes=20)`,
`system = mbd.System(bodies, joints, drivers=..., loads=...)`,
`run = mbd.simulate(system, t_end=..., dt=...)`, `run.body(name)`, `run.joint(name)`,
`mbd.most_stressed(reduction, run.body(name))`.

## Pages

"""


def write_list(app: Sphinx, error: Exception | None) -> None:
    """Write the titles and addresses of all pages."""
    if error is not None or app.builder.format != "html":
        return
    titles = app.env.titles
    lines = [f"- [{titles[name].astext()}]({name}.html)" for name in sorted(titles)]
    Path(app.outdir, "llms.txt").write_text(START + "\n".join(lines) + "\n", encoding="utf-8")


def setup(app: Sphinx) -> dict[str, bool]:
    """Write the list when the pages are complete."""
    app.connect("build-finished", write_list)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
