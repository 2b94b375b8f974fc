/** Replaces the certificate of a running server when its files change. */
import { unwatchFile, watchFile } from 'node:fs'
import { readTlsFiles, type TlsContents, type TlsFiles } from './read-tls-files.js'

/** Interval of checks of the certificate files. */
const WATCH_MS = 1000

/** The reports about certificates. */
export interface ReloadOptions {
  /** Called with the error of changed certificate files; the previous certificate stays in use. */
  readonly onProblem: (problem: Error) => void
  /** Called with the certificate in use, in PEM: at the start and after each change of the files. */
  readonly onCertificate: (pem: string) => void
}

/**
 * Checks the files every second until the returned function is called, and passes changed contents to `use`.
 * Reports files that cannot be used; the previous certificate then stays in use.
 */
export function reloadTlsFiles(
  files: TlsFiles,
  use: (contents: TlsContents) => void,
  { onProblem, onCertificate }: ReloadOptions,
): () => void {
  const { cert, key, clientCa } = files
  const paths = clientCa === null ? [cert, key] : [cert, key, clientCa]
  const changed = (): void => {
    try {
      const contents = readTlsFiles(files)
      use(contents)
      onCertificate(contents.cert)
    } catch (error) {
      onProblem(error instanceof Error ? error : new Error(String(error)))
    }
  }
  for (const path of paths) watchFile(path, { interval: WATCH_MS, persistent: false }, changed)
  return () => {
    for (const path of paths) unwatchFile(path, changed)
  }
}
