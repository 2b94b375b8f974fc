/**
 * Goal: the chart renders valid manifests of pods that drain in time, reload without a restart and contain no
 * secret.
 * Method: manifests that Helm rendered (committed, with a digest of the chart) against schemas and types, and
 * their parts against each other; the configuration is loaded by the gateway. With Helm on the PATH, also
 * Helm.
 */
import { randomBytes } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { parseAllDocuments, parse } from 'yaml'
import * as z from 'zod'
import { loadConfig } from '../../src/config/load-config.js'
import { formatProblem } from '../../src/config/config-problem.js'
import { CHART, digestOf, helm, helmMissing, render, RENDERED, VALUES, valueSets } from './chart.js'
import { schemaProblem, unknownFields, type Manifest } from './manifests.js'

const Probe = z.object({ httpGet: z.object({ path: z.string(), port: z.string() }) })

const Pod = z.object({
  metadata: z.object({ labels: z.record(z.string(), z.string()) }),
  spec: z.object({
    terminationGracePeriodSeconds: z.number(),
    serviceAccountName: z.string(),
    automountServiceAccountToken: z.literal(false),
    containers: z.tuple([
      z.object({
        image: z.string(),
        env: z.array(
          z.object({
            name: z.string(),
            value: z.string().optional(),
            valueFrom: z.unknown().optional(),
          }),
        ),
        ports: z.array(z.object({ name: z.string(), containerPort: z.number() })),
        startupProbe: Probe,
        livenessProbe: Probe,
        readinessProbe: Probe,
        volumeMounts: z.array(
          z.object({ name: z.string(), mountPath: z.string(), subPath: z.string().optional() }),
        ),
      }),
    ]),
    volumes: z.array(z.object({ name: z.string() })),
  }),
})

const Workload = z.object({
  spec: z.object({
    replicas: z.number().optional(),
    selector: z.object({ matchLabels: z.record(z.string(), z.string()) }),
    volumeClaimTemplates: z.array(z.object({ metadata: z.object({ name: z.string() }) })).default([]),
    template: Pod,
  }),
})

const Selecting = z.object({ spec: z.object({ selector: z.record(z.string(), z.unknown()) }) })

/** Grace beyond `drain_ms` that the gateway needs (docs/how-to/operate.md). */
const BEYOND_SECONDS = 6

interface Release {
  readonly set: string
  readonly text: string
  readonly manifests: readonly Manifest[]
  readonly of: (...kinds: readonly string[]) => Manifest | undefined
}

function releaseOf(set: string): Release {
  const text = readFileSync(join(RENDERED, `${set}.yaml`), 'utf8')
  const manifests = parseAllDocuments(text).map((document) => document.toJS() as Manifest)
  return {
    set,
    text,
    manifests,
    of: (...kinds) => manifests.find(({ kind }) => kinds.includes(kind)),
  }
}

const releases = valueSets().map(releaseOf)

function workloadOf(release: Release): z.infer<typeof Workload> {
  return Workload.parse(release.of('Deployment', 'StatefulSet'))
}

function gatewayFile({ of }: Release): string {
  const { data } = z.object({ data: z.object({ 'gateway.yaml': z.string() }) }).parse(of('ConfigMap'))
  return data['gateway.yaml']
}

void t.test('the rendered manifests are those of this chart', (t) => {
  t.ok(releases.length >= 3)
  for (const { set, text } of releases) {
    t.match(text.split('\n')[0], digestOf(set), `${set}: run npm run render:chart`)
  }
  t.end()
})

void t.test('Helm renders the same manifests and accepts the chart', { skip: helmMissing() }, (t) => {
  for (const { set, text } of releases) {
    t.equal(text, render(set), set)
    helm('lint', '--strict', CHART, '--values', join(VALUES, `${set}.yaml`))
  }
  const bad = (...settings: readonly string[]) => {
    return () => helm('template', CHART, '--kube-version', '1.31.0', ...settings)
  }
  t.throws(bad(), /redis.url/, 'the address of Redis is required')
  t.throws(bad('--set', 'redis.url=redis://a,redis.secretRef.name=b'), /either/)
  t.throws(bad('--set', 'redis.url=http://a'), /redis/)
  t.throws(bad('--set', 'redis.url=redis://a,replica=3'), /replica/, 'an unknown value')
  const open = bad('--set', 'redis.url=redis://a', '--set-json', 'networkPolicy.opsNamespaces=[]')
  t.throws(open, /opsNamespaces/, 'an empty list would let all namespaces in')
  const none = bad('--set', 'redis.url=redis://a,networkPolicy.opsNamespaces=null')
  t.throws(none, /opsNamespaces/)
  t.throws(bad('--set', 'redis.url=redis://a,image.digest=sha256:1'), /digest/)
  t.throws(bad('--set', 'redis.url=redis://a,ingress.enabled=true'), /ingress.hosts/)
  const twice = 'redis.url=redis://a,podMonitor.enabled=true,serviceMonitor.enabled=true'
  t.throws(bad('--set', twice), /either/)
  t.end()
})

void t.test('every manifest fits its schema and has no unknown field', (t) => {
  for (const { set, manifests } of releases) {
    t.ok(manifests.length >= 4, set)
    for (const manifest of manifests) t.equal(schemaProblem(manifest), null, `${set}: ${manifest.kind}`)
  }
  t.same(unknownFields(releases.flatMap(({ manifests }) => manifests)), [])
  const [pdb] = releases.flatMap(({ of }) => of('PodDisruptionBudget') ?? [])
  const wrong = { ...pdb, spec: { maxUnavailible: 1 } } as unknown as Manifest
  t.match(unknownFields([wrong]), [/maxUnavailible/], 'the check detects an unknown field')
  t.end()
})

function eachRelease(name: string, check: (t: Test, release: Release) => void): void {
  void t.test(name, (t) => {
    for (const release of releases) check(t, release)
    t.end()
  })
}

eachRelease('everything selects the pods of the workload', (t, { set, of, manifests }) => {
  const { spec } = workloadOf({ set, of, manifests, text: '' })
  const { labels } = spec.template.metadata
  const selectors = [spec.selector.matchLabels]
  for (const manifest of manifests) {
    if (!/^(?:Service|PodDisruptionBudget|PodMonitor)$/.test(manifest.kind)) continue
    const { selector } = Selecting.parse(manifest).spec
    selectors.push((selector['matchLabels'] ?? selector) as Record<string, string>)
  }
  t.ok(selectors.length >= 3)
  for (const selector of selectors) {
    t.ok(Object.keys(selector).length > 0)
    for (const [name, value] of Object.entries(selector)) t.equal(labels[name], value, `${set}: ${name}`)
  }
})

eachRelease('the grace period is longer than the drain', (t, release) => {
  const { server } = z
    .object({ server: z.object({ drain_ms: z.number() }) })
    .parse(parse(gatewayFile(release)))
  const { terminationGracePeriodSeconds } = workloadOf(release).spec.template.spec
  const needed = server.drain_ms / 1000 + BEYOND_SECONDS
  t.ok(terminationGracePeriodSeconds >= needed, `${release.set}: ${needed} s`)
  t.ok(terminationGracePeriodSeconds < needed + 10, `${release.set}: and not much longer`)
})

eachRelease('probes and ports are those of the gateway', (t, release) => {
  const { server } = z
    .object({ server: z.object({ port: z.number(), ops_port: z.number(), ops_host: z.string() }) })
    .parse(parse(gatewayFile(release)))
  const [container] = workloadOf(release).spec.template.spec.containers
  t.same(container.ports, [
    { name: 'http', containerPort: server.port },
    { name: 'ops', containerPort: server.ops_port },
  ])
  t.equal(server.ops_host, '0.0.0.0', 'the kubelet reaches the ops port')
  t.same(container.startupProbe.httpGet, { path: '/readyz', port: 'ops' })
  t.same(container.readinessProbe.httpGet, { path: '/readyz', port: 'ops' })
  t.same(container.livenessProbe.httpGet, { path: '/healthz', port: 'ops' })
})

eachRelease('a change of the ConfigMap reaches the running gateway', (t, release) => {
  const { template, volumeClaimTemplates } = workloadOf(release).spec
  const [{ volumeMounts, env }] = template.spec.containers
  const file = env.find(({ name }) => name === 'SLUICE_CONFIG')?.value
  const mount = volumeMounts.find(({ name }) => name === 'config')
  t.equal(file, `${mount?.mountPath ?? ''}/gateway.yaml`)
  for (const { name, subPath } of volumeMounts) t.equal(subPath, undefined, `${name}: a folder`)
  const given = [
    ...template.spec.volumes.map(({ name }) => name),
    ...volumeClaimTemplates.map(({ metadata }) => metadata.name),
  ]
  t.same([...given].sort(), volumeMounts.map(({ name }) => name).sort(), 'every volume is mounted')
  t.notMatch(release.text, 'checksum/', 'a change of the configuration restarts no pod')
})

eachRelease('secrets are references', (t, release) => {
  const [{ env }] = workloadOf(release).spec.template.spec.containers
  for (const { name, value, valueFrom } of env) {
    if (/KEY|TOKEN|PASSWORD/.test(name)) t.ok(valueFrom !== undefined && value === undefined, name)
  }
  t.notOk(release.of('Secret'), 'the chart contains no Secret')
  t.notMatch(release.text, /api_key: (?!\$\{)/, 'every API key is a variable')
})

eachRelease('the gateway takes the file of the ConfigMap', (t, release) => {
  const folder = t.testdir({})
  const file = join(folder, 'gateway.yaml')
  writeFileSync(file, gatewayFile(release))
  const [{ env }] = workloadOf(release).spec.template.spec.containers
  const given = env.find(({ name }) => name === 'SLUICE_REDIS_URL')?.value
  const loaded = loadConfig(file, {
    SLUICE_REDIS_URL: given ?? 'redis://:secret@redis:6379',
    OPENAI_API_KEY: 'sk-1',
    ANTHROPIC_API_KEY: 'sk-2',
    GEMINI_API_KEY: 'sk-3',
    SLUICE_ADMIN_TOKEN: randomBytes(24).toString('hex'),
    ARCHIVE_PASSWORD: 'p',
  })
  t.ok(loaded.ok, loaded.ok ? release.set : loaded.errors.map(formatProblem).join('\n'))
})

const Policy = z.object({
  spec: z.object({
    policyTypes: z.tuple([z.literal('Ingress')]),
    ingress: z.tuple([
      z.strictObject({ ports: z.tuple([z.object({ port: z.number() })]) }),
      z.strictObject({
        ports: z.tuple([z.object({ port: z.number() })]),
        from: z
          .array(
            z.strictObject({
              namespaceSelector: z.object({ matchLabels: z.record(z.string(), z.string()) }),
            }),
          )
          .min(1),
      }),
    ]),
  }),
})

eachRelease('only named namespaces reach the ops port', (t, release) => {
  const policy = release.of('NetworkPolicy')
  if (release.set === 'tiny') return t.equal(policy, undefined, 'switched off in its values')
  const [data, ops] = Policy.parse(policy).spec.ingress
  const [{ ports }] = workloadOf(release).spec.template.spec.containers
  t.same(
    [data, ops].flatMap((rule) => rule.ports.map(({ port }) => port)),
    [ports[0]?.containerPort, ports[1]?.containerPort],
  )
  const names = ops.from.map(({ namespaceSelector: { matchLabels } }) => matchLabels)
  for (const labels of names) t.match(labels, { 'kubernetes.io/metadata.name': /^[a-z-]+$/ })
  return t.equal(names.length, release.set === 'fleet' ? 2 : 1)
})

const Ports = z.object({ spec: z.object({ ports: z.array(z.object({ name: z.string() })) }) })

eachRelease('clients reach the data port only', (t, { set, manifests, of }) => {
  const services = manifests.filter(({ kind }) => kind === 'Service')
  t.same(
    services.map(({ metadata, ...rest }) => [metadata.name, Ports.parse(rest).spec.ports]),
    [['sluice', [{ name: 'http' }]], ...(set === 'fleet' ? [['sluice-ops', [{ name: 'ops' }]]] : [])].sort(),
  )
  if (set !== 'fleet') return
  t.match(of('Ingress'), {
    spec: {
      ingressClassName: 'nginx',
      rules: [
        { host: 'sluice.example.com', http: { paths: [backend('/')] } },
        { host: 'models.example.com', http: { paths: [backend('/v1')] } },
      ],
    },
  })
})

function backend(path: string): object {
  return {
    path,
    pathType: 'Prefix',
    backend: { service: { name: 'sluice', port: { name: 'http' } } },
  }
}

void t.test('with every option: monitors, rules, autoscaling, account and digest', (t) => {
  const fleet = releases.find(({ set }) => set === 'fleet')
  const tiny = releases.find(({ set }) => set === 'tiny')
  if (fleet === undefined || tiny === undefined) return t.fail('no values')
  const { metadata } = fleet.manifests.find(({ metadata: { name } }) => name === 'sluice-ops') ?? {}
  const monitor = z
    .object({
      spec: z.object({
        selector: z.object({ matchLabels: z.record(z.string(), z.string()) }),
        endpoints: z.tuple([z.object({ port: z.literal('ops'), interval: z.string() })]),
      }),
    })
    .parse(fleet.of('ServiceMonitor'))
  t.match(metadata?.labels, monitor.spec.selector.matchLabels, 'it finds the ops Service')
  for (const { kind } of tiny.manifests) t.not(kind, 'ServiceMonitor')
  t.ok(tiny.of('PodMonitor'))

  const rules = parse(readFileSync('grafana/alerts.yaml', 'utf8')) as unknown
  const text = JSON.stringify(rules).replaceAll(
    'docs/how-to/runbook.md',
    'https://wiki.example.com/sluice/runbook',
  )
  t.same(fleet.of('PrometheusRule')?.['spec'], JSON.parse(text), 'the alerts of grafana/alerts.yaml')

  const { spec } = workloadOf(fleet)
  t.equal(spec.replicas, undefined, 'the autoscaler sets the number')
  t.match(fleet.of('HorizontalPodAutoscaler'), {
    spec: {
      scaleTargetRef: { kind: fleet.of('Deployment', 'StatefulSet')?.kind, name: 'sluice' },
      minReplicas: 2,
      maxReplicas: 6,
    },
  })
  const [{ image }] = spec.template.spec.containers
  t.match(image, /^registry\.example\.com\/sluice@sha256:[0-9a-f]{64}$/)
  t.equal(spec.template.spec.serviceAccountName, 'gateway')
  t.match(fleet.of('ServiceAccount'), {
    metadata: { name: 'gateway' },
    automountServiceAccountToken: false,
  })
  t.equal(workloadOf(tiny).spec.template.spec.serviceAccountName, 'default')
  return t.end()
})

void t.test("the chart's copy of the alerts is current", (t) => {
  const copy = readFileSync(join(CHART, 'files', 'alerts.yaml'), 'utf8')
  const [first = '', ...rest] = copy.split('\n')
  t.match(first, /npm run generate/)
  t.equal(rest.join('\n'), readFileSync('grafana/alerts.yaml', 'utf8'), 'run npm run generate')
  t.end()
})
