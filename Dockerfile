# A server of Satchel: `docker build -t satchel .`, then see docs/deploy.md.
FROM python:3.13-slim AS build
WORKDIR /src
COPY pyproject.toml README.md LICENSE constraints.txt ./
COPY docs/satchel.1 docs/satchel.1
COPY src src
RUN python -m venv /opt/satchel \
    && /opt/satchel/bin/pip install --no-cache-dir --constraint constraints.txt '.[documents,postgres,serve]'

FROM python:3.13-slim
RUN useradd --system --uid 10001 --user-group --create-home --home-dir /var/lib/satchel satchel \
    && mkdir /work && chown satchel:satchel /work
COPY --from=build /opt/satchel /opt/satchel
ENV PATH=/opt/satchel/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    SATCHEL_INDEX_DIR=/var/lib/satchel/index
# The folder that is served can be mounted read-only; what is made of it is below /var/lib/satchel.
USER 10001:10001
WORKDIR /work
VOLUME ["/var/lib/satchel"]
EXPOSE 8420
HEALTHCHECK --interval=30s --timeout=5s --start-period=30s \
    CMD ["python", "-c", "from urllib.request import urlopen; urlopen('http://127.0.0.1:8420/health', timeout=4)"]
ENTRYPOINT ["satchel"]
CMD ["serve", "/work", "--host", "0.0.0.0", "--keys", "/run/secrets/satchel-keys"]
