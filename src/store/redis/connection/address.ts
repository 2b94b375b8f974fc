/**
 * Parses the addresses of Redis stores.
 *
 *     redis://[USER[:PASSWORD]@]HOST[:PORT][/DB][?OPTIONS]                       one server
 *     redis+sentinel://[…@]HOST[:PORT][,HOST[:PORT]…]/MASTER[/DB][?OPTIONS]      found by Sentinel
 *     redis+cluster://[…@]HOST[:PORT][,HOST[:PORT]…][?OPTIONS]                   a Cluster
 *
 * `rediss` in place of `redis` is TLS. USER, PASSWORD and MASTER may be percent-encoded; the last `@`
 * ends the credentials, so a password may contain any other character except `%` unencoded.
 */

/** A server's address. */
export interface RedisHost {
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
export interface BadRedisUrl {
  readonly problem: string
}

const OPTIONS = [
  'wait_replicas',
  'timeout_ms',
  'sentinel_user',
  'sentinel_password',
  'tls_ca',
  'tls_cert',
  'tls_key',
] as const
const DEFAULT_TIMEOUT_MS = 100
const HOST = /^(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::(\d{1,5}))?$/i
const KINDS = { '': 'single', '+sentinel': 'sentinel', '+cluster': 'cluster' } as const
const DEFAULT_PORTS = { single: 6379, sentinel: 26_379, cluster: 6379 } as const
const EXAMPLES = {
  single: 'redis://cache.example.com:6379/0',
  sentinel: 'redis+sentinel://s1.example.com:26379,s2.example.com:26379/mymaster',
  cluster: 'redis+cluster://n1.example.com:6379,n2.example.com:6379',
} as const

/** True if the text is the address of a Redis store, valid or not. */
export function isRedisUrl(url: string): boolean {
  return /^rediss?(\+[a-z]*)?:/.test(url)
}

/** The parsed address, or what is wrong with it. */
export function parseRedisUrl(url: string): RedisAddress | BadRedisUrl {
  const scheme = /^redis(s?)(\+sentinel|\+cluster|):\/\//.exec(url)
  if (scheme === null) {
    return bad(
      "must begin with 'redis://', 'redis+sentinel://' or 'redis+cluster://' (TLS: rediss)",
    )
  }
  const kind = KINDS[kindOf(scheme[2])]
  const rest = url.slice(scheme[0].length)
  const at = rest.lastIndexOf('@')
  const credentials = credentialsOf(at < 0 ? '' : rest.slice(0, at))
  if (credentials === null)
    return bad("has '%' in its credentials that is not an encoding; write %25")
  const [location, query = ''] = splitOnce(rest.slice(at + 1), '?')
  const [authority, path = ''] = splitOnce(location, '/')
  const hosts = hostsOf(authority, DEFAULT_PORTS[kind])
  if (hosts === null) return bad(`has no host, or a bad one; write it as ${EXAMPLES[kind]}`)
  if (kind === 'single' && hosts.length > 1) {
    return bad(`has more than one host; redis+cluster:// and redis+sentinel:// may`)
  }
  const where = pathOf(kind, path)
  if ('problem' in where) return where
  const options = optionsOf(query)
  if ('problem' in options) return options
  const stray = strayOf(options, scheme[0])
  if (stray !== null) return stray
  return {
    kind,
    hosts,
    tls: scheme[1] === 's',
    ...credentials,
    ...where,
    ...withDefaults(kind, options),
  }
}

function kindOf(suffix: string | undefined): keyof typeof KINDS {
  return suffix === '+sentinel' || suffix === '+cluster' ? suffix : ''
}

function credentialsOf(text: string): { username: string | null; password: string | null } | null {
  const [user, password] = splitOnce(text, ':')
  const username = decoded(user)
  const secret = decoded(password ?? '')
  if (username === null || secret === null) return null
  return { username: username === '' ? null : username, password: secret === '' ? null : secret }
}

function hostsOf(authority: string, defaultPort: number): RedisHost[] | null {
  const hosts: RedisHost[] = []
  for (const part of authority.split(',')) {
    const [, host, port] = HOST.exec(part) ?? []
    const number = port === undefined ? defaultPort : Number(port)
    if (host === undefined || number < 1 || number > 65_535) return null
    hosts.push({ host: host.replace(/^\[|\]$/g, ''), port: number })
  }
  return hosts
}

function pathOf(
  kind: RedisAddress['kind'],
  path: string,
): Pick<RedisAddress, 'db' | 'master'> | BadRedisUrl {
  const parts = path === '' ? [] : path.split('/')
  let master = ''
  if (kind === 'sentinel') {
    master = decoded(parts.shift() ?? '') ?? ''
    if (master === '') return bad(`names no master; write it as ${EXAMPLES.sentinel}`)
  }
  if (kind === 'cluster' && parts.length > 0) return bad('has a path; a cluster has no databases')
  const [db = '0', more] = parts
  if (more !== undefined || !/^\d{1,5}$/.test(db)) {
    return bad(`has a path that is not a database's number; write it as ${EXAMPLES[kind]}`)
  }
  return { db: Number(db), master }
}

function optionsOf(query: string): Map<string, string> | BadRedisUrl {
  const options = new Map<string, string>()
  for (const part of query === '' ? [] : query.split('&')) {
    const [name, value = ''] = splitOnce(part, '=')
    const known = OPTIONS.find((option) => option === name)
    const text = decoded(value)
    if (known === undefined) return bad(`has an unknown option; there are ${OPTIONS.join(', ')}`)
    if (text === null || text === '') return bad(`has a bad value for ${known}`)
    if (known === 'wait_replicas' && !/^\d$/.test(text))
      return bad('needs 0 to 9 for wait_replicas')
    if (known === 'timeout_ms' && !/^[1-9]\d{1,3}$/.test(text)) {
      return bad('needs 10 to 9999 for timeout_ms')
    }
    options.set(known, text)
  }
  return options
}

/** An option that the scheme does not use. */
function strayOf(options: ReadonlyMap<string, string>, scheme: string): BadRedisUrl | null {
  for (const name of options.keys()) {
    if (name.startsWith('tls_') && !scheme.startsWith('rediss')) {
      return bad(`has ${name} and no TLS; write rediss in place of redis`)
    }
    if (name.startsWith('sentinel_') && !scheme.includes('+sentinel')) {
      return bad(`has ${name} and no sentinels; write it as ${EXAMPLES.sentinel}`)
    }
  }
  return null
}

function withDefaults(kind: RedisAddress['kind'], options: ReadonlyMap<string, string>) {
  // Sentinel and Cluster fail over to a replica, which loses the changes that it does not have.
  const wait = options.get('wait_replicas') ?? (kind === 'single' ? '0' : '1')
  return {
    waitReplicas: Number(wait),
    timeoutMs: Number(options.get('timeout_ms') ?? DEFAULT_TIMEOUT_MS),
    sentinelUsername: options.get('sentinel_user') ?? null,
    sentinelPassword: options.get('sentinel_password') ?? null,
    tlsCa: options.get('tls_ca') ?? null,
    tlsCert: options.get('tls_cert') ?? null,
    tlsKey: options.get('tls_key') ?? null,
  }
}

function splitOnce(text: string, mark: string): [string, string?] {
  const at = text.indexOf(mark)
  return at < 0 ? [text] : [text.slice(0, at), text.slice(at + mark.length)]
}

function decoded(text: string): string | null {
  try {
    return decodeURIComponent(text)
  } catch {
    return null
  }
}

function bad(problem: string): BadRedisUrl {
  return { problem }
}
