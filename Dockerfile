# docker build -t dolfinx_mbd . && docker run -it --rm -v "$PWD:/work" dolfinx_mbd
FROM dolfinx/dolfinx:stable
# OpenGL without a display, for pictures; the versions are those of the image's distribution
# hadolint ignore=DL3008
RUN apt-get update && apt-get install -y --no-install-recommends libegl1 libegl-mesa0 && \
    rm -rf /var/lib/apt/lists/*
ENV OMP_NUM_THREADS=1 VTK_DEFAULT_OPENGL_WINDOW=vtkEGLRenderWindow
COPY . /opt/dolfinx_mbd
RUN python3 -m pip install --no-cache-dir '/opt/dolfinx_mbd[plot,fast]'
WORKDIR /work
CMD ["bash"]
