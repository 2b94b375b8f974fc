/** Configurations with one mistake each, and the check of the message that reports it. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Test } from 'tap'
import { loadConfig } from '../../../src/config/load-config.js'
import { formatProblem } from '../../../src/config/config-problem.js'

/** One upstream, on line 2. */
export const UPSTREAMS = `upstreams:
  openai: { dialect: openai, base_url: https://api.openai.com/v1 }
`
/** One route for it, on the next two lines. */
export const ROUTES = `routes:
  - { prefix: gpt-, upstream: openai }
`
/** A valid file of four lines. */
export const GOOD = UPSTREAMS + ROUTES
/** Dialect and URL of an upstream, in flow style. */
export const OPENAI = 'dialect: openai, base_url: https://api.openai.com/v1'

/** A file whose upstream on line 2 has these keys. */
export function upstreamWith(keys: string): string {
  return `upstreams:\n  openai: { ${keys} }\n${ROUTES}`
}

/** A file whose route on line 4 has these keys. */
export function routeWith(keys: string): string {
  return `${UPSTREAMS}routes:\n  - { ${keys} }\n`
}

/** A mistake, the text of the file, and the message after the file's name. */
export type Mistake = readonly [mistake: string, text: string | Buffer, message: string]

/**
 * Loads each text from a file in a folder with `files`, and compares the first message. `FOLDER` in a message
 * is that folder.
 */
export function checkMessages(
  t: Test,
  files: Parameters<Test['testdir']>[0],
  mistakes: readonly Mistake[],
): void {
  const folder = t.testdir(files)
  const file = join(folder, 'gateway.yaml')
  for (const [mistake, text, expected] of mistakes) {
    writeFileSync(file, text)
    const loaded = loadConfig(file, {})
    const message = loaded.ok ? 'valid' : loaded.errors.slice(0, 1).map(formatProblem).join()
    t.equal(message.replaceAll(folder, 'FOLDER'), `FOLDER/gateway.yaml:${expected}`, mistake)
    t.notMatch(message, /[‘’“”]/, `${mistake}: straight quotes`)
  }
}
