/**
 * Models, projects, locations and services that a request names to a cloud: the cloud opens them with the
 * gateway's identity, which may do more than a client should. A client may name the cloud's public models;
 * any other model, such as an inference profile, a prompt or an endpoint, only if the configuration names it
 * for the upstream; of projects only the upstream's own; and no service that runs what the operator has made,
 * such as a guardrail or an agent. Pure.
 *
 * Sources: botocore 1.44.5 `bedrock-runtime` (`modelId`), Vertex AI's REST reference, read 2026-11-29.
 */
import type { UpstreamConfig } from '../../config/config.js'

/** Clouds with an identity of the gateway. */
export type Cloud = 'bedrock' | 'vertex' | 'azure'

type Located = Pick<UpstreamConfig, 'platform' | 'preset' | 'baseUrl'>

const HOSTS: readonly (readonly [RegExp, Cloud])[] = [
  [/\.(?:openai|cognitiveservices|services\.ai)\.azure\.(?:com|us)$/i, 'azure'],
  [/(?:^|[.-])aiplatform\.(?:[\w-]+\.)?(?:rep\.)?googleapis\.com$/i, 'vertex'],
  [/^bedrock-[\w.-]+\.(?:amazonaws\.com(?:\.cn)?|api\.aws)$/i, 'bedrock'],
]

/** By the configuration of an upstream, which never changes: a request looks its cloud up several times. */
const clouds = new WeakMap<Located, Cloud | null>()

/** The cloud of an upstream, also if it is configured without `platform`; null for a vendor's own API. */
export function cloudOf(upstream: Located): Cloud | null {
  let cloud = clouds.get(upstream)
  if (cloud === undefined) clouds.set(upstream, (cloud = findCloud(upstream)))
  return cloud
}

function findCloud({ platform, preset, baseUrl }: Located): Cloud | null {
  if (platform !== null) return platform.name
  if (preset === 'azure') return 'azure'
  const host = URL.canParse(baseUrl) ? new URL(baseUrl).hostname : ''
  return HOSTS.find(([pattern]) => pattern.test(host))?.[1] ?? null
}

/** A project of Vertex AI and one of its locations. */
interface Scope {
  readonly project: string
  readonly location: string
}

const SCOPE = /(?:^|\/)projects\/([^/]+)\/locations\/([^/]+)/

/** The upstream's own project; null in express mode. */
function scopeOf({ platform, baseUrl }: Located): Scope | null {
  if (platform !== null) {
    const { project, location } = platform
    return project === null ? null : { project, location: location ?? 'global' }
  }
  const [, project, location] = SCOPE.exec(URL.canParse(baseUrl) ? new URL(baseUrl).pathname : '') ?? []
  return project === undefined || location === undefined ? null : { project, location }
}

/**
 * Whether the resource is in the upstream's own project and location. Replies name a project by its number,
 * which the configuration does not have: `byNumber` accepts any, for a resource whose owner is checked by its
 * id.
 */
export function isInScope(resource: string, at: Located, byNumber: boolean): boolean {
  const own = scopeOf(at)
  const [, project = '', location] = SCOPE.exec(resource) ?? []
  if (own === null || location !== own.location) return false
  return project === own.project || (byNumber && /^\d+$/.test(project))
}

/** A model that AWS offers to every account: by its vendor and name, or as an ARN without an account. */
const PUBLIC_BEDROCK =
  /^(?:arn:aws[\w-]*:bedrock:[\w-]*::foundation-model\/)?[a-z0-9-]+(?:\.[a-z0-9-]+)+(?::[\w.:-]+)?$/i
const RESOURCE = /^\s*(?:\/\/[\w.-]+\/)?(?:projects|endpoints)\//i

/** Whether the name is that of a resource, such as an ARN, and not only that of a model. */
export function isResource(name: string, cloud: Cloud): boolean {
  return cloud === 'bedrock' ? /^\s*arn:/i.test(name) : cloud === 'vertex' && RESOURCE.test(name)
}

/** Whether the model is one that the cloud offers to everybody, in the upstream's own project. */
export function isPublicModel(model: string, cloud: Cloud, at: Located): boolean {
  if (cloud === 'azure') return true
  if (cloud === 'bedrock') return PUBLIC_BEDROCK.test(model)
  if (!RESOURCE.test(model)) return true
  return isInScope(model, at, false) && /\/locations\/[^/]+\/publishers\/[^/]+\/models\/[^/]+$/.test(model)
}

/** The part of a path that a rule must name itself; null if there is none. */
export interface ForeignPart {
  readonly what: 'model' | 'project' | 'location' | 'service'
  readonly name: string
}

/** What decides about a path. */
interface PathRules {
  /** Segments of the upstream's address before it. */
  readonly base: readonly string[]
  /** Whether a rule of `native` names the segment itself, which opens it to every key. */
  readonly isNamed: (at: number) => boolean
  readonly namesModel: (model: string) => boolean
  /** The path names an object whose owner is checked by its id. */
  readonly byNumber: boolean
}

/** The model, project, location or service of a path that clients must not choose; null if there is none. */
export function foreignPart(
  segments: readonly string[],
  { config, base, isNamed, namesModel, byNumber }: PathRules & { readonly config: Located },
): ForeignPart | null {
  const cloud = cloudOf(config)
  if (cloud === null) return null
  const own = scopeOf(config)
  for (const [at, name] of segments.entries()) {
    const before = segments[at - 1]
    if (at === 0 || isNamed(at)) continue
    if (cloud === 'bedrock' && before === 'model' && at === 1) {
      if (!isPublicModel(name, cloud, config) && !namesModel(name)) return { what: 'model', name }
    } else if (cloud === 'vertex' && before === 'projects') {
      if (name !== own?.project && !(byNumber && /^\d+$/.test(name))) return { what: 'project', name }
    } else if (cloud === 'vertex' && before === 'locations' && name !== own?.location) {
      return { what: 'location', name }
    }
  }
  const whole = [...base, ...segments]
  const at = serviceAt(whole, cloud)
  const name = whole[at] ?? ''
  const isOpened = (index: number): boolean => index < base.length || isNamed(index - base.length)
  if (isOpened(at) || name === '') return null
  if (cloud === 'vertex' && name === ENDPOINTS) {
    const [id = ''] = (whole[at + 1] ?? '').split(':')
    const resource = `${ENDPOINTS}/${id}`
    const isKnown =
      id === OPENAI_ENDPOINT ||
      isOpened(at + 1) ||
      namesModel(resource) ||
      namesModel([...whole.slice(whole.indexOf('projects'), at), resource].join('/'))
    return isKnown ? null : { what: 'model', name: resource }
  }
  return SERVICES[cloud].has(name) ? null : { what: 'service', name }
}

const ENDPOINTS = 'endpoints'
/** Chat completions of Vertex AI, for the models of all publishers. */
const OPENAI_ENDPOINT = 'openapi'

/** Services that run models or keep what requests make. Others may use what the operator has made. */
const SERVICES: Readonly<Record<Cloud, ReadonlySet<string>>> = {
  bedrock: new Set([
    ...[
      'anthropic',
      'async-invoke',
      'batches',
      'chat',
      'embeddings',
      'files',
      'foundation-models',
      'messages',
    ],
    ...['model', 'model-invocation-job', 'model-invocation-jobs', 'models', 'openai', 'responses'],
  ]),
  vertex: new Set(['batchPredictionJobs', 'cachedContents', 'operations', 'publishers', 'ws']),
  azure: new Set(['anthropic', 'models', 'openai', 'providers']),
}

/** The index of the segment that names the service. */
function serviceAt(segments: readonly string[], cloud: Cloud): number {
  if (cloud === 'vertex') {
    const location = segments.indexOf('locations')
    if (location >= 0) return location + 2
    const project = segments.indexOf('projects')
    if (project >= 0) return project + 2
  }
  return segments.findIndex((segment) => segment !== 'upload' && !/^v\d[a-z0-9]*$/.test(segment))
}
