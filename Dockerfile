# The bulk worker. The Lambdas don't use it: their wheels are a layer (infra/bundling.py).
# By its digest (Python 3.13.16 on Debian 13, of October 2026, for both architectures), so that the
# same commit builds the same image next month. bulk_lane.base_image names another one.
ARG BASE=public.ecr.aws/docker/library/python:3.13-slim@sha256:70729b46c69b4f1e97c4822c1af3df53a1476cf5ddc6c087c0c10bc3a5678c2f
FROM ${BASE}

# Each line of output is a log event of its own, also the last one before a kill.
ENV PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1

WORKDIR /app
COPY requirements requirements
RUN pip install --no-cache-dir --only-binary :all: --require-hashes -r requirements/lambda.txt
# What a team's own operations require, which never changes Fairlane's versions.
RUN if [ -f requirements/operations.txt ]; then pip install --no-cache-dir --only-binary :all: \
    -c requirements/constraints.txt -r requirements/operations.txt; fi
COPY . .

# The root file system is read-only in a task (infra/bulk_lane.py). Fargate gives a volume the
# rights of the folder that is declared here.
VOLUME ["/tmp"]

RUN useradd --system --no-create-home fairlane
USER fairlane

# Exec form: Python is the process that gets SIGTERM.
ENTRYPOINT ["python", "-m", "handlers.bulk_worker"]
