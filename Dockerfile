# docker build -t dolfinx_mbd . && docker run -it --rm -v "$PWD:/work" dolfinx_mbd
FROM dolfinx/dolfinx:stable
ENV OMP_NUM_THREADS=1
COPY . /opt/dolfinx_mbd
RUN python3 -m pip install --no-cache-dir '/opt/dolfinx_mbd[plot,fast]'
WORKDIR /work
CMD ["bash"]
