/** Certificates for tests, made by the openssl command. */
import { execFileSync } from 'node:child_process'
import { join } from 'node:path'

/** Files in PEM. */
export interface Pair {
  readonly cert: string
  readonly key: string
}

const NEW_KEY = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '2']

/** A certificate authority that signs itself. */
export function newAuthority(folder: string, name: string): Pair {
  const pair = { cert: join(folder, `${name}.pem`), key: join(folder, `${name}.key`) }
  const files = ['-keyout', pair.key, '-out', pair.cert]
  openssl('req', '-x509', ...NEW_KEY, '-subj', `/CN=${name}`, ...files)
  return pair
}

/** A certificate of the authority, for 127.0.0.1 or another name. */
export function newPair(
  folder: string,
  name: string,
  authority: Pair,
  subject = 'IP:127.0.0.1',
): Pair {
  const pair = { cert: join(folder, `${name}.pem`), key: join(folder, `${name}.key`) }
  const by = ['-CA', authority.cert, '-CAkey', authority.key]
  const names = ['-subj', `/CN=${name}`, '-addext', `subjectAltName=${subject}`]
  openssl('req', '-x509', ...NEW_KEY, ...by, ...names, '-keyout', pair.key, '-out', pair.cert)
  return pair
}

function openssl(...args: readonly string[]): void {
  execFileSync('openssl', args, { stdio: 'ignore' })
}
