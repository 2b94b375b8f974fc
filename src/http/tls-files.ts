/** The certificate files of the listener: read and checked together. */
import { createPrivateKey, X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'

/** Where the PEM files are. */
export interface TlsFiles {
  readonly cert: string
  readonly key: string
  /** Clients must have a certificate that it signed; null: none is asked for. */
  readonly clientCa: string | null
}

/** The files' contents, as `node:tls` takes them. */
export interface TlsContents {
  readonly cert: string
  readonly key: string
  readonly ca?: string
}

/** A file cannot be used. The message names the setting, the file and the cause. */
export class TlsFileError extends Error {
  readonly setting: 'cert' | 'key' | 'client_ca'

  constructor(setting: 'cert' | 'key' | 'client_ca', message: string) {
    super(message)
    this.setting = setting
  }
}

/** Throws a `TlsFileError` if a file cannot be read, is not PEM, or the key is not the certificate's. */
export function readTlsFiles(files: TlsFiles): TlsContents {
  const cert = readPem('cert', files.cert)
  const key = readPem('key', files.key)
  const certificate = parsed('cert', files.cert, () => new X509Certificate(cert))
  const privateKey = parsed('key', files.key, () => createPrivateKey(key))
  if (!certificate.checkPrivateKey(privateKey)) {
    throw new TlsFileError(
      'key',
      `"${files.key}" is not the key of the certificate "${files.cert}"`,
    )
  }
  if (files.clientCa === null) return { cert, key }
  const { clientCa } = files
  const ca = readPem('client_ca', clientCa)
  parsed('client_ca', clientCa, () => new X509Certificate(ca))
  return { cert, key, ca }
}

function readPem(setting: TlsFileError['setting'], path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown error'
    if (code === 'ENOENT') throw new TlsFileError(setting, `"${path}" does not exist`)
    throw new TlsFileError(setting, `cannot read "${path}" (${code})`)
  }
}

function parsed<T>(setting: TlsFileError['setting'], path: string, parse: () => T): T {
  try {
    return parse()
  } catch {
    const what = setting === 'key' ? 'a private key without a passphrase' : 'a certificate'
    throw new TlsFileError(setting, `"${path}" is not ${what} in PEM`)
  }
}

/** When a certificate in PEM expires, in seconds since 1970; the first one if it is a chain. Throws if it is none. */
export function expiryOf(pem: string): number {
  return Date.parse(new X509Certificate(pem).validTo) / 1000
}
