/**
 * The connection to an upstream: TLS files, HTTP/2 and proxy. Schema, rules and resolved values; part of
 * `config-file-schema.ts` and `resolve-upstream.ts`.
 */
import { X509Certificate } from 'node:crypto'
import { createSecureContext } from 'node:tls'
import { z } from 'zod'
import type { UpstreamConfig, UpstreamTlsConfig } from '../config.js'
import type { Path, ReportFinding } from '../problem.js'

const file = z.string().min(1).max(4_096)

/** `upstreams.NAME.tls:` */
export const upstreamTlsSchema = z.strictObject({
  ca: file
    .optional()
    .describe(
      "A PEM file of certificate authorities to trust instead of the system's. Relative paths start at this file.",
    ),
  cert: file.optional().describe('A PEM file with the certificate that the gateway presents.'),
  key: file.optional().describe('The private key of `cert`, PEM.'),
  server_name: z
    .string()
    .regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,252}$/, { error: 'must be a host name' })
    .optional()
    .describe(
      "The name that the upstream's certificate must have, also sent as SNI; default: the host of `base_url`.",
    ),
})

/** `upstreams.NAME.proxy:` */
export const proxySchema = z
  .string()
  .max(2_048)
  .default('env')
  .describe(
    'The HTTP proxy to reach the upstream through (`CONNECT`). `env`: the environment variables HTTPS_PROXY, HTTP_PROXY and NO_PROXY. `none`: no proxy. Or its URL: `http://user:password@proxy.corp:3128`. The gateway never bypasses a proxy that fails: the request is answered 502. A proxy resolves names itself, so that `allow_private_address` does not cover what it connects to.',
  )

/** `upstreams.NAME.http2:` */
export const http2Schema = z
  .boolean()
  .default(false)
  .describe(
    'Whether to use HTTP/2 with an upstream that offers it (ALPN, so only with https). Each connection carries one request at a time, as with HTTP/1.1.',
  )

/** The values of these keys in the file's spelling. */
export interface ConnectionValues {
  readonly tls?: z.output<typeof upstreamTlsSchema> | undefined
  readonly http2: boolean
  readonly proxy: string
}

type ReadFile = (path: string) => string | null
/** The path of the upstream in the configuration file, and the files that it names. */
interface ConnectionContext {
  readonly path: Path
  readonly isTls: boolean
  readonly readFile: ReadFile
  /** Why `readFile` returned null, as the rest of a sentence. */
  readonly whyUnreadable: (path: string) => string
}

/** Reports problems of these keys; `isTls`: `base_url` starts with https. */
export function checkConnection(
  values: ConnectionValues,
  { path, isTls, readFile, whyUnreadable }: ConnectionContext,
  report: ReportFinding,
): void {
  const { tls, http2, proxy } = values
  if (http2 && !isTls) report([...path, 'http2'], 'needs a base_url that starts with https://')
  if (proxy !== 'env' && proxy !== 'none' && !isProxyUrl(proxy)) {
    report([...path, 'proxy'], 'must be env, none or a URL, as in http://proxy.corp:3128')
  }
  if (tls === undefined) return
  const at = [...path, 'tls']
  if (!isTls) report(at, 'needs a base_url that starts with https://')
  if ((tls.cert === undefined) !== (tls.key === undefined)) {
    report(at, 'must have both cert and key, or neither')
  }
  const findings = new Set<string>()
  for (const name of ['ca', 'cert', 'key'] as const) {
    const file = tls[name]
    if (file === undefined || readFile(file) !== null) continue
    findings.add(name)
    report([...at, name], `the file "${file}" ${whyUnreadable(file)}`)
  }
  if (findings.size === 0) checkPem(tlsOf(tls, readFile), at, report)
}

function isProxyUrl(text: string): boolean {
  return URL.canParse(text) && /^https?:$/.test(new URL(text).protocol)
}

function checkPem({ ca, cert, key }: UpstreamTlsConfig, at: Path, report: ReportFinding): void {
  if (ca !== null && !isCertificate(ca))
    report([...at, 'ca'], 'the file contains no PEM certificate')
  if (cert !== null && !isCertificate(cert)) {
    report([...at, 'cert'], 'the file contains no PEM certificate')
    return
  }
  if (cert === null || key === null) return
  try {
    createSecureContext({ cert, key })
  } catch {
    report([...at, 'key'], 'the file does not contain the PEM private key of cert')
  }
}

function isCertificate(pem: string): boolean {
  try {
    new X509Certificate(pem)
    return true
  } catch {
    return false
  }
}

/** With the content of the files; only for values without findings of `checkConnection`. */
export function connectionOf(
  { tls, http2, proxy }: ConnectionValues,
  readFile: ReadFile,
): Pick<UpstreamConfig, 'tls' | 'http2' | 'proxy'> {
  return { tls: tls === undefined ? null : tlsOf(tls, readFile), http2, proxy }
}

function tlsOf(tls: z.output<typeof upstreamTlsSchema>, readFile: ReadFile): UpstreamTlsConfig {
  const read = (file: string | undefined): string | null =>
    file === undefined ? null : readFile(file)
  return {
    ca: read(tls.ca),
    cert: read(tls.cert),
    key: read(tls.key),
    serverName: tls.server_name ?? null,
  }
}
