/** Parses the address of an archive, `clickhouse://…` or `postgresql://…`. Pure. */

/** The database of an archive. */
export interface ArchiveAddress {
  readonly engine: 'clickhouse' | 'postgresql'
  readonly host: string
  readonly port: number
  readonly database: string
  readonly user: string
  readonly password: string
  readonly tls: boolean
  /** Whether the name in the server's certificate is compared. */
  readonly checksName: boolean
  /** A file in PEM, from the address; null: that of `archive.tls.ca`, else the system's authorities. */
  readonly caFile: string | null
}

/** Why an address is invalid; never contains it, since it has a password. */
interface BadArchiveUrl {
  readonly problem: string
}

/** What follows the credentials: host, port, database, options. */
const LOCATION = /^(\[[0-9a-f:.]+\]|[A-Za-z0-9._-]+)(?::(\d{1,5}))?(?:\/([^?]*))?(?:\?(.*))?$/s
const SCHEMES: Readonly<
  Record<string, { readonly engine: ArchiveAddress['engine']; readonly tls: boolean }>
> = {
  clickhouse: { engine: 'clickhouse', tls: false },
  clickhouses: { engine: 'clickhouse', tls: true },
  postgresql: { engine: 'postgresql', tls: false },
  postgres: { engine: 'postgresql', tls: false },
}
/** ClickHouse's native protocol, without and with TLS. */
const NATIVE_PORTS: readonly number[] = [9000, 9440]
const SSL_MODES: readonly string[] = ['disable', 'require', 'verify-ca', 'verify-full']
const FORMS =
  'must be clickhouse://USER:PASSWORD@HOST:8123/DATABASE or postgresql://USER:PASSWORD@HOST:5432/DATABASE'

/** The parsed address, or what is wrong with it. */
export function parseArchiveUrl(url: string): ArchiveAddress | BadArchiveUrl {
  const start = url.indexOf('://')
  const scheme = url.slice(0, Math.max(0, start))
  const rest = url.slice(start + 3)
  // A password may have the sign, too.
  const at = rest.lastIndexOf('@')
  const credentials = rest.slice(0, Math.max(0, at))
  const [, host = '', port, database = '', query = ''] = LOCATION.exec(rest.slice(at + 1)) ?? []
  const form = SCHEMES[scheme]
  if (form === undefined || host === '') return { problem: FORMS }
  const { engine } = form
  const number = Number(port ?? defaultPort(engine, form.tls))
  if (number < 1 || number > 65_535) return { problem: 'must have a port from 1 to 65535' }
  if (engine === 'clickhouse' && NATIVE_PORTS.includes(number)) {
    return {
      problem: `must not have port ${number}, ClickHouse's native protocol: use its HTTP interface (8123, with clickhouses:// 8443)`,
    }
  }
  const [user = '', ...secret] = credentials.split(':')
  const parts = [user, secret.join(':'), database].map(decoded)
  if (parts.includes(null)) {
    return { problem: 'has an invalid percent-encoding in its user, password or database: write %25 for %' }
  }
  const [name, password, base] = parts.map((part) => part ?? '')
  if (engine === 'postgresql' && base === '') return { problem: 'must end with the name of a database' }
  const found = optionsOf(query, engine)
  if ('problem' in found) return found
  return {
    engine,
    host: host.replace(/^\[|\]$/g, ''),
    port: number,
    database: base || 'default',
    user: name || (engine === 'clickhouse' ? 'default' : 'postgres'),
    password: password ?? '',
    tls: form.tls || (found.mode !== null && found.mode !== 'disable'),
    checksName: found.mode !== 'verify-ca',
    caFile: found.caFile,
  }
}

function defaultPort(engine: ArchiveAddress['engine'], tls: boolean): number {
  if (engine === 'postgresql') return 5432
  return tls ? 8443 : 8123
}

function decoded(text: string): string | null {
  try {
    return decodeURIComponent(text)
  } catch {
    return null
  }
}

/** The options of a PostgreSQL address; `mode` is its `sslmode`. */
function optionsOf(
  query: string,
  engine: ArchiveAddress['engine'],
): { readonly mode: string | null; readonly caFile: string | null } | BadArchiveUrl {
  const options = new URLSearchParams(query)
  for (const name of options.keys()) {
    if (engine === 'postgresql' && (name === 'sslmode' || name === 'sslrootcert')) continue
    const known = engine === 'postgresql' ? 'sslmode and sslrootcert' : 'none (use archive.settings)'
    return { problem: `has an unknown option; options are ${known}` }
  }
  const mode = options.get('sslmode')
  if (mode !== null && !SSL_MODES.includes(mode)) {
    return { problem: `must have ${SSL_MODES.join(', ')} for sslmode` }
  }
  return { mode, caFile: options.get('sslrootcert') }
}
