/** Parses the address of a store: Redis or a SQLite file. */

/** A server's address. */
interface RedisHost {
  readonly host: string
  readonly port: number
}

/** A parsed address. */
export interface RedisAddress {
  readonly kind: 'single' | 'sentinel' | 'cluster'
  /** The server, the sentinels, or some nodes of the cluster. */
  readonly hosts: readonly RedisHost[]
  readonly tls: boolean
  readonly username: string | null
  readonly password: string | null
  readonly db: number
  /** The name of the primary at the sentinels; empty for other kinds. */
  readonly master: string
  readonly sentinelUsername: string | null
  readonly sentinelPassword: string | null
  /** Replicas that must have a change of accounts or keys before it is acknowledged. */
  readonly waitReplicas: number
  /** Time limit of commands that a request waits for; those of the dashboard may take longer. */
  readonly timeoutMs: number
  /** Files in PEM: the certificate authority to trust, and the gateway's certificate and key. */
  readonly tlsCa: string | null
  readonly tlsCert: string | null
  readonly tlsKey: string | null
}

/** Why an address is invalid; never contains it, since it may hold a password. */
interface BadRedisUrl {
  readonly problem: string
}

/** The options, with the form of a value and its description. */
const OPTIONS: Readonly<Record<string, readonly [RegExp, string]>> = {
  wait_replicas: [/^\d$/, 'must have 0 to 9 for wait_replicas'],
  timeout_ms: [/^[1-9]\d{1,3}$/, 'must have 10 to 9999 for timeout_ms'],
  sentinel_user: [/./, 'must have a value for sentinel_user'],
  sentinel_password: [/./, 'must have a value for sentinel_password'],
  tls_ca: [/./, 'must have a file for tls_ca'],
  tls_cert: [/./, 'must have a file for tls_cert'],
  tls_key: [/./, 'must have a file for tls_key'],
}
const DEFAULT_TIMEOUT_MS = 100
const SCHEME = /^redis(s?)(?:\+(sentinel|cluster))?:\/\//
/** Hosts, path, query. */
const LOCATION = /^([^/?]*)(?:\/([^?]*))?(?:\?(.*))?$/s
const HOST = /^(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::(\d{1,5}))?$/i
const DEFAULT_PORTS = { single: 6379, sentinel: 26_379, cluster: 6379 } as const
const EXAMPLES = {
  single: 'redis://cache.example.com:6379/0',
  sentinel: 'redis+sentinel://s1.example.com:26379,s2.example.com:26379/mymaster',
  cluster: 'redis+cluster://n1.example.com:6379,n2.example.com:6379',
} as const

/** What is wrong with an address. */
class Malformed extends Error {}

/** True if the text is the address of a Redis store, valid or not. */
export function isRedisUrl(url: string): boolean {
  return /^rediss?(\+[a-z]*)?:/.test(url)
}

/** The parsed address, or what is wrong with it. */
export function parseRedisUrl(url: string): RedisAddress | BadRedisUrl {
  try {
    return parse(url)
  } catch (error) {
    if (error instanceof Malformed) return { problem: error.message }
    throw error
  }
}

function parse(url: string): RedisAddress {
  const scheme = SCHEME.exec(url)
  if (scheme === null) {
    throw new Malformed(
      'must start with redis://, redis+sentinel:// or redis+cluster:// (with TLS: rediss in place of redis)',
    )
  }
  const [start, secure, fleet] = scheme
  const rest = url.slice(start.length)
  const at = rest.lastIndexOf('@')
  const credentials = at < 0 ? '' : rest.slice(0, at)
  const [, authority = '', path = '', query = ''] = LOCATION.exec(rest.slice(at + 1)) ?? []
  const kind = fleet === 'sentinel' || fleet === 'cluster' ? fleet : 'single'
  const tls = secure === 's'
  const [user, ...secret] = credentials.split(':').map(decodeCredential)
  const options = optionsOf(query, kind, tls)
  return {
    kind,
    tls,
    hosts: hostsOf(authority, kind),
    username: user || null,
    password: secret.join(':') || null,
    ...pathOf(kind, path),
    // Sentinel and Cluster fail over to a replica, which loses the changes that it does not have.
    waitReplicas: Number(options.get('wait_replicas') ?? (kind === 'single' ? '0' : '1')),
    timeoutMs: Number(options.get('timeout_ms') ?? DEFAULT_TIMEOUT_MS),
    sentinelUsername: options.get('sentinel_user') ?? null,
    sentinelPassword: options.get('sentinel_password') ?? null,
    tlsCa: options.get('tls_ca') ?? null,
    tlsCert: options.get('tls_cert') ?? null,
    tlsKey: options.get('tls_key') ?? null,
  }
}

function decodeCredential(text: string): string {
  const decoded = decode(text)
  if (decoded !== null) return decoded
  throw new Malformed('has an invalid percent-encoding in its user or password: write %25 for %')
}

function hostsOf(authority: string, kind: RedisAddress['kind']): RedisHost[] {
  const hosts = authority.split(',').map((part) => {
    const [, host = '', port = DEFAULT_PORTS[kind]] = HOST.exec(part) ?? []
    const number = Number(port)
    if (host !== '' && number >= 1 && number <= 65_535) {
      return { host: host.replace(/^\[|\]$/g, ''), port: number }
    }
    throw new Malformed(`must have a valid host and port, as in ${EXAMPLES[kind]}`)
  })
  if (kind !== 'single' || hosts.length === 1) return hosts
  throw new Malformed('has more than one host: use redis+cluster:// or redis+sentinel:// for several')
}

function pathOf(kind: RedisAddress['kind'], path: string): Pick<RedisAddress, 'db' | 'master'> {
  const parts = path === '' ? [] : path.split('/')
  const master = kind === 'sentinel' ? (decode(parts.shift() ?? '') ?? '') : ''
  if (kind === 'sentinel' && master === '') {
    throw new Malformed(`must have the name of the primary, as in ${EXAMPLES.sentinel}`)
  }
  if (kind === 'cluster' && parts.length > 0) {
    throw new Malformed('must not have a path: a cluster has no databases')
  }
  const [db = '0', more] = parts
  if (more === undefined && /^\d{1,5}$/.test(db)) return { db: Number(db), master }
  throw new Malformed(`has a path that is not the number of a database: write it as in ${EXAMPLES[kind]}`)
}

function optionsOf(query: string, kind: RedisAddress['kind'], tls: boolean): Map<string, string> {
  const options = new Map<string, string>()
  for (const part of query === '' ? [] : query.split('&')) {
    const [name = '', ...value] = part.split('=')
    const text = decode(value.join('=')) ?? ''
    const option = Object.hasOwn(OPTIONS, name) ? OPTIONS[name] : undefined
    if (option === undefined) {
      throw new Malformed(`has an unknown option: use one of ${Object.keys(OPTIONS).join(', ')}`)
    }
    const [form, problem] = option
    if (!form.test(text)) throw new Malformed(problem)
    if (name.startsWith('tls_') && !tls) {
      throw new Malformed(`has ${name} without TLS: write rediss in place of redis`)
    }
    if (name.startsWith('sentinel_') && kind !== 'sentinel') {
      throw new Malformed(`has ${name} without sentinels: write it as in ${EXAMPLES.sentinel}`)
    }
    options.set(name, text)
  }
  return options
}

/** Percent-decodes a text; null if it is not percent-encoded. */
function decode(text: string): string | null {
  try {
    return decodeURIComponent(text)
  } catch {
    return null
  }
}

/** The path as written, or the reason why it cannot be a store. */
type SqliteAddress = { readonly path: string } | { readonly problem: string }

const EXAMPLE = 'as in sqlite:./data/sluice.db'

/** Null for an address of another scheme. */
export function parseSqliteAddress(url: string): SqliteAddress | null {
  if (!url.startsWith('sqlite:')) return null
  const path = url.slice('sqlite:'.length)
  if (path.trim() === '') return { problem: `must have a file name after sqlite:, ${EXAMPLE}` }
  if (path.endsWith('/')) return { problem: `must be a file, not a folder, ${EXAMPLE}` }
  // Of sqlite:///srv/sluice.db the path is /srv/sluice.db.
  if (/^\/\/[^/]/.test(path)) return { problem: `must not have // after sqlite:, ${EXAMPLE}` }
  if (path === ':memory:') {
    return { problem: `must be a file, which all processes of the gateway open, ${EXAMPLE}` }
  }
  return { path }
}
