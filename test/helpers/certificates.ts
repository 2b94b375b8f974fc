/** Certificates for tests, made by the openssl command. */
import { execFileSync } from 'node:child_process'
import { join } from 'node:path'

/** Files in PEM. */
export interface Pair {
  readonly cert: string
  readonly key: string
}

const NEW_KEY = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes']

/** A certificate authority that signs itself. */
export function newAuthority(folder: string, name: string): Pair {
  const pair = { cert: join(folder, `${name}.pem`), key: join(folder, `${name}.key`) }
  const files = ['-keyout', pair.key, '-out', pair.cert]
  openssl('req', '-x509', ...NEW_KEY, '-days', '2', '-subj', `/CN=${name}`, ...files)
  return pair
}

/** The issuer and the content of a certificate. */
export interface CertificateOptions {
  readonly authority: Pair
  /** Default: `IP:127.0.0.1`. */
  readonly subject?: string
  /** Validity; default: 2. */
  readonly days?: number
}

/** A certificate of the authority for 127.0.0.1 or another name, valid for `days`. */
export function newPair(
  folder: string,
  name: string,
  { authority, subject = 'IP:127.0.0.1', days = 2 }: CertificateOptions,
): Pair {
  const pair = { cert: join(folder, `${name}.pem`), key: join(folder, `${name}.key`) }
  const by = ['-CA', authority.cert, '-CAkey', authority.key]
  const names = ['-subj', `/CN=${name}`, '-addext', `subjectAltName=${subject}`]
  const files = ['-days', String(days), '-keyout', pair.key, '-out', pair.cert]
  openssl('req', '-x509', ...NEW_KEY, ...by, ...names, ...files)
  return pair
}

/** A certificate that signs itself and expired yesterday. */
export function newExpiredPair(folder: string): Pair {
  const pair = { cert: join(folder, 'expired.pem'), key: join(folder, 'expired.key') }
  const request = join(folder, 'expired.csr')
  openssl('req', '-new', ...NEW_KEY, '-subj', '/CN=expired', '-keyout', pair.key, '-out', request)
  const signed = ['-in', request, '-signkey', pair.key, '-out', pair.cert]
  openssl('x509', '-req', '-days', '-1', ...signed)
  return pair
}

function openssl(...args: readonly string[]): void {
  execFileSync('openssl', args, { stdio: 'ignore' })
}
