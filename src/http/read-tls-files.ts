/** Reads and validates the certificate files of the listener. */
import { createPrivateKey, X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { codeWithAdvice } from '../base/file-access.js'

/** The paths of the PEM files. */
export interface TlsFiles {
  readonly cert: string
  readonly key: string
  /** The authority of client certificates; null if none are required. */
  readonly clientCa: string | null
}

/** The files' contents, for `node:tls`. */
export interface TlsContents {
  readonly cert: string
  readonly key: string
  readonly ca?: string
}

/** A file cannot be used. The message contains the file and the cause. */
export class TlsFileError extends Error {
  readonly setting: 'cert' | 'key' | 'client_ca'

  constructor(setting: 'cert' | 'key' | 'client_ca', message: string) {
    super(message)
    this.setting = setting
  }
}

/**
 * Throws a `TlsFileError` if a file cannot be read, is not PEM, or the key does not belong to the
 * certificate.
 */
export function readTlsFiles(files: TlsFiles): TlsContents {
  const cert = readPem('cert', files.cert)
  const key = readPem('key', files.key)
  const certificate = parsed('cert', files.cert, () => new X509Certificate(cert))
  const privateKey = parsed('key', files.key, () => createPrivateKey(key))
  if (!certificate.checkPrivateKey(privateKey)) {
    throw new TlsFileError(
      'key',
      `the file "${files.key}" does not belong to the certificate "${files.cert}"`,
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
    if (code === 'ENOENT') throw new TlsFileError(setting, `the file "${path}" does not exist`)
    throw new TlsFileError(setting, `the file "${path}" cannot be read (${codeWithAdvice(error)})`)
  }
}

function parsed<T>(setting: TlsFileError['setting'], path: string, parse: () => T): T {
  try {
    return parse()
  } catch {
    const what = setting === 'key' ? 'PEM private key without a passphrase' : 'PEM certificate'
    throw new TlsFileError(setting, `the file "${path}" is not a ${what}`)
  }
}

/** The clock may be set meanwhile, and timers cannot be longer than 24 days. */
const LONGEST_WAIT_MS = 3_600_000

/** Calls `expired` when the time has come, at once if it has. Returns a function that ends the wait. */
export function whenExpired(expirySeconds: number, expired: () => void): () => void {
  let timer: NodeJS.Timeout | undefined
  const check = (): void => {
    const leftMs = expirySeconds * 1000 - Date.now()
    if (leftMs <= 0) expired()
    else timer = setTimeout(check, Math.min(leftMs, LONGEST_WAIT_MS)).unref()
  }
  check()
  return () => clearTimeout(timer)
}

/**
 * The expiry of a PEM certificate, of the first one of a chain, in seconds since 1970. Throws if it is not a
 * certificate.
 */
export function expiryOf(pem: string): number {
  return Date.parse(new X509Certificate(pem).validTo) / 1000
}
