# docker build -t fouriscope . && docker run --rm -v "$PWD:/data" fouriscope reconstruct acquisition.toml
FROM python:3.13-slim
COPY pyproject.toml setup.py README.md LICENSE /build/
COPY src /build/src
RUN pip install --no-cache-dir /build && rm -rf /build && useradd --create-home --uid 1000 user
USER 1000
# Compiled code is kept here; mount a volume to keep it from run to run.
ENV NUMBA_CACHE_DIR=/home/user/numba
WORKDIR /data
ENTRYPOINT ["fouriscope"]
CMD ["--help"]
