# The gateway alone: production dependencies, compiled code, configuration. Install scripts never
# run; native parts come as prebuilt packages.
# Node 26.10.0; CONTRIBUTING.md describes how to renew the digest.
ARG NODE_IMAGE=node:26-bookworm-slim@sha256:662933cf47f013bc8e4beb31a6116448427a82057ba7c42c97e4c5ba766504c2

FROM ${NODE_IMAGE} AS build
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
RUN npm ci --ignore-scripts
COPY tsconfig.json tsconfig.dist.json vite.config.js ./
COPY scripts ./scripts
COPY config ./config
COPY src ./src
# The modes do not depend on the umask of the clone, and the gateway's user may read all files.
RUN npm run build && node scripts/prune-modules.mjs dist && chmod -R u=rwX,go=rX config dist package.json

FROM ${NODE_IMAGE} AS dependencies
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
COPY scripts/prune-modules.mjs scripts/
RUN npm ci --omit=dev --ignore-scripts && node scripts/prune-modules.mjs node_modules

FROM ${NODE_IMAGE}
ENV NODE_ENV=production
# For `serve` and for commands beside it: docker exec CONTAINER sluice keys list …
ENV SLUICE_CONFIG=config/gateway.yaml
WORKDIR /app
# The store is the one thing that is written; it belongs to the user that the gateway runs as, and to no other.
RUN mkdir -m 700 data && chown node:node data && ln -s /app/dist/main.js /usr/local/bin/sluice
COPY --from=dependencies /app/node_modules ./node_modules
COPY --from=build /app/dist ./dist
COPY --from=build /app/package.json ./
COPY --from=build /app/config ./config
USER node
VOLUME /app/data
EXPOSE 8080
# `/healthz` says that the process lives; whether traffic may come is `/readyz`.
HEALTHCHECK --interval=10s --timeout=3s --start-period=20s --retries=3 \
  CMD ["node", "-e", "fetch('http://127.0.0.1:9464/healthz').then((r) => process.exit(r.ok ? 0 : 1), () => process.exit(1))"]
# SIGTERM drains; give it longer than `server.drain_ms` (docker stop -t 40).
STOPSIGNAL SIGTERM
CMD ["node", "dist/main.js", "serve"]
