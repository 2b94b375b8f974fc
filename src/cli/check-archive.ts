/** The part of `sluice check` about the archive: whether it can be used, by connecting to it. */
import { addressOf, openArchiveEngine } from '../store/archive/open-archive-engine.js'
import { inspectArchive, type ArchiveFinding } from '../store/archive/inspect-archive.js'
import type { ArchiveConfig } from '../config/config.js'
import type { LoadResult } from '../config/load-config.js'
import { secretsOf } from '../config/secret-settings.js'
import { located, parseYaml } from '../config/yaml.js'
import { hideSecrets, protectSecrets } from '../hide-secrets.js'

/** The loaded file, refused if its archive cannot be used; and notes about one that may be used later. */
export async function withArchive(
  loaded: LoadResult,
): Promise<{ readonly loaded: LoadResult; readonly notes: readonly string[] }> {
  if (!loaded.ok || loaded.config.archive === null) return { loaded, notes: [] }
  protectSecrets(secretsOf(loaded.config))
  const findings = await findingsOf(loaded.config.archive)
  const isNote = ({ kind }: ArchiveFinding) => kind === 'away' || kind === 'columns'
  const textOf = ({ message }: ArchiveFinding) => hideSecrets(message, '***')
  const notes = findings.filter(isNote).map((finding) => `archive.url: ${textOf(finding)}`)
  const wrong = findings.filter((finding) => !isNote(finding))
  if (wrong.length === 0) return { loaded, notes }
  const { sources } = loaded
  const yaml = parseYaml(sources.path, sources.text)
  const errors = located(
    wrong.map((finding) => ({ path: ['archive', 'url'], message: textOf(finding) })),
    yaml,
  )
  return { loaded: { ok: false, errors, sources }, notes }
}

/** What is wrong with the archive of a configuration. */
async function findingsOf(config: ArchiveConfig): Promise<readonly ArchiveFinding[]> {
  try {
    const engine = await openArchiveEngine(config)
    try {
      return (await inspectArchive(engine, null)).findings
    } finally {
      await engine.close()
    }
  } catch (error) {
    const { host } = addressOf(config)
    const message = error instanceof Error ? error.message : String(error)
    return [{ kind: 'denied', message: `${host}: a file of archive.tls cannot be used (${message})` }]
  }
}
