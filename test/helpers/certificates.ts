/**
 * Certificates for tests over TLS, made with openssl: an authority, a server and a client that it vouches for.
 */
import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** Paths of PEM files. */
export interface Certificates {
  readonly ca: string
  readonly serverCert: string
  readonly serverKey: string
  readonly clientCert: string
  readonly clientKey: string
}

/** Makes them in `folder`; the server's certificate is for `serverName` and no other. */
export function makeCertificates(folder: string, serverName: string): Certificates {
  const file = (name: string): string => join(folder, name)
  const ec = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes']
  const ca = file('ca.pem')
  const caKey = file('ca.key')
  openssl('req', '-x509', ...ec, '-days', '2', '-subj', '/CN=Test CA', '-keyout', caKey, '-out', ca)
  const issue = (name: string, subject: string, extension: string): [string, string] => {
    const [cert, key] = [file(`${name}.pem`), file(`${name}.key`)]
    const [request, ext] = [file(`${name}.csr`), file(`${name}.ext`)]
    writeFileSync(ext, extension)
    openssl('req', ...ec, '-subj', `/CN=${subject}`, '-keyout', key, '-out', request)
    const from = ['-req', '-in', request, '-CA', ca, '-CAkey', caKey, '-CAcreateserial']
    openssl('x509', ...from, '-days', '2', '-extfile', ext, '-out', cert)
    return [cert, key]
  }
  const [serverCert, serverKey] = issue('server', serverName, `subjectAltName=DNS:${serverName}`)
  const [clientCert, clientKey] = issue('client', 'gateway', 'extendedKeyUsage=clientAuth')
  return { ca, serverCert, serverKey, clientCert, clientKey }
}

/** The text of a file. */
export function pem(path: string): string {
  return readFileSync(path, 'utf8')
}

function openssl(...args: string[]): void {
  execFileSync('openssl', args, { stdio: 'ignore' })
}
