/**
 * Where the recorded provider traffic is, for tests that replay it.
 * It is not part of the repository; a test without it says so loudly and checks the rest.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'

/** The folder of recordings, or null where this machine has none. */
export function fixturesFolder(): string | null {
  const named = process.env['SLUICE_FIXTURES']
  const places = named === undefined ? ['../shared/fixtures', '../../shared/fixtures'] : [named]
  for (const place of places) {
    const folder = resolve(process.cwd(), place)
    if (existsSync(folder)) return folder
  }
  process.emitWarning('No recordings found: set SLUICE_FIXTURES to the folder that holds them.')
  return null
}

/** Every recording under the folder, with its path relative to it, in order of name. */
export function* recordings(folder: string): Generator<{ name: string; recording: unknown }> {
  for (const provider of readdirSync(folder, { withFileTypes: true })) {
    if (!provider.isDirectory()) continue
    const files = readdirSync(join(folder, provider.name)).filter((file) => file.endsWith('.json'))
    for (const file of files.sort()) {
      const recording: unknown = JSON.parse(readFileSync(join(folder, provider.name, file), 'utf8'))
      yield { name: `${provider.name}/${file}`, recording }
    }
  }
}
