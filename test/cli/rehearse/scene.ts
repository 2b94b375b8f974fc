/**
 * Starts an emulator, writes a configuration with an upstream of each dialect, and runs `sluice rehearse`
 * on it, in this process or as the built program.
 */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import type { Test } from 'tap'
import { objectOf, type JsonObject } from '../../../src/base/json.js'
import { EMULATED_KEYS } from '../../../src/emulator/cloud-credentials.js'
import { startEmulator } from '../../../src/emulator/server.js'
import { CANARY, run } from '../../process/program.js'
import { sluiceHere } from '../session.js'

export async function openRehearsal(t: Test) {
  const emulator = await startEmulator()
  t.teardown(() => emulator.close())
  const folder = t.testdir()
  const temporary = join(folder, 'tmp')
  mkdirSync(temporary)
  const { openai, anthropic, gemini } = emulator.baseUrls
  const file = join(folder, 'gateway.yaml')
  writeFileSync(
    file,
    `store: sqlite:./data/sluice.db
models: ${resolve('config/models.yaml')}
upstreams:
  chat: { dialect: openai-chat, base_url: ${openai}, api_key: ${CANARY} }
  responses: { dialect: openai-responses, base_url: ${openai}, api_key: ${CANARY} }
  anthropic: { dialect: anthropic, base_url: ${anthropic}, api_key: ${CANARY} }
  google: { dialect: gemini, base_url: ${gemini}, api_key: ${CANARY} }
  ranker: { preset: cohere, base_url: ${emulator.origin}/v1, api_key: ${CANARY} }
  keyless: { dialect: openai-chat, base_url: ${openai}, api_key: '\${NO_SUCH_KEY_IS_SET}' }
  bedrock: { platform: bedrock, dialect: anthropic, region: eu-west-1, base_url: ${emulator.origin}, auth: { aws: { access_key_id: ${EMULATED_KEYS.keyId}, secret_access_key: ${EMULATED_KEYS.secret} } } }
  converse: { platform: bedrock, dialect: converse, region: eu-west-1, base_url: ${emulator.origin}, api_key: ${CANARY} }
  vertex: { platform: vertex, dialect: gemini, project: acme, location: global, base_url: ${emulator.origin}, api_key: ${CANARY} }
  azure: { platform: azure, dialect: openai, api_version: 2024-10-21, deployments: { gpt-5.4: gpt-5.4-prod }, base_url: ${emulator.origin}, api_key: ${CANARY} }
guardrails:
  words: { patterns: ['absent text'], action: mask }
routes:
  - { prefix: gpt-guarded, upstream: chat, guardrails: [words] }
  - { prefix: gpt-, upstream: chat }
`,
  )
  const env = { TMPDIR: temporary }
  const rehearse = (...args: string[]) => sluiceHere(['rehearse', '--config', file, ...args], { env })
  const spawned = async (...args: string[]) => {
    const program = run(t, ['rehearse', '--config', file, ...args], env)
    const status = await program.ended
    return { status, out: program.out(), err: program.err() }
  }
  /** The report of a rehearsal in this process, or with `start` set to `spawned` of the program. */
  const report = async (args: readonly string[], start: typeof spawned = rehearse) => {
    const ran = await start(...args, '--json')
    const made = ran.out === '' ? {} : objectOf(JSON.parse(ran.out))
    return { ...ran, made, results: (made['results'] ?? []) as JsonObject[] }
  }
  return { emulator, temporary, rehearse, spawned, report }
}
