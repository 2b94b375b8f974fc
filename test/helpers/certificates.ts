/** Certificates for tests, made by the openssl command. */
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'

/** Files in PEM. */
export interface Pair {
  readonly cert: string
  readonly key: string
}

/** Files in PEM: an authority, and a server and a client that it vouches for. */
export interface Certificates {
  readonly ca: string
  readonly serverCert: string
  readonly serverKey: string
  readonly clientCert: string
  readonly clientKey: string
}

const NEW_KEY = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '2']

/** A certificate authority that signs itself. */
export function newAuthority(folder: string, name: string): Pair {
  const pair = { cert: join(folder, `${name}.pem`), key: join(folder, `${name}.key`) }
  const files = ['-keyout', pair.key, '-out', pair.cert]
  openssl('req', '-x509', ...NEW_KEY, '-subj', `/CN=${name}`, ...files)
  return pair
}

/** A certificate of the authority for `subject`, an address or DNS name as `subjectAltName` has it. */
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

/** Makes them in `folder`; the server's certificate is for `serverName` and no other. */
export function makeCertificates(folder: string, serverName: string): Certificates {
  const authority = newAuthority(folder, 'ca')
  const server = newPair(folder, 'server', authority, `DNS:${serverName}`)
  const client = newPair(folder, 'client', authority, 'DNS:gateway')
  return {
    ca: authority.cert,
    serverCert: server.cert,
    serverKey: server.key,
    clientCert: client.cert,
    clientKey: client.key,
  }
}

/** The text of a file. */
export function pem(path: string): string {
  return readFileSync(path, 'utf8')
}

function openssl(...args: readonly string[]): void {
  execFileSync('openssl', args, { stdio: 'ignore' })
}
