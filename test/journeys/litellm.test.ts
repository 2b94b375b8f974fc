/**
 * Goal: a LiteLLM user's ten minutes: import, check, apply, serve, and a request of an app that changed only
 * the host and keeps its key and its paths without `/v1`.
 * Method: the built program as a user types it, with providers of the emulator at the addresses of the file.
 */
import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import t, { type Test } from 'tap'
import { startEmulator, type Emulator } from '../../src/emulator/server.js'
import { freePort } from '../helpers/free-port.js'
import { eventually, show, succeeds } from './shell.js'

const PROGRAM = resolve('dist/main.js')
const APP_KEY = 'sk-Nn2kq8LxPz0aTeamKey'
const TEN_MINUTES_MS = 600_000

/** What a platform team has: its file with two providers, and a secret in plain text. */
function litellmConfig({ baseUrls, origin }: Emulator): string {
  return `
model_list:
  - model_name: assistant
    litellm_params:
      model: openai/gpt-5.4-mini
      api_base: ${baseUrls.openai}
      api_key: sk-provider-literal-1
  - model_name: assistant-deep
    litellm_params:
      model: anthropic/claude-haiku-4-5
      api_base: ${origin}/anthropic
      api_key: os.environ/ANTHROPIC_API_KEY
      max_tokens: 500
litellm_settings: { drop_params: true, num_retries: 2, success_callback: [langfuse] }
router_settings:
  model_group_alias: { gpt-4: assistant }
  fallbacks: [{ assistant: [assistant-deep] }]
general_settings: { master_key: os.environ/LITELLM_MASTER_KEY, database_url: os.environ/DATABASE_URL }
`
}

/** The rows that the commands of the page print. */
function keyRows(): string {
  const token = createHash('sha256').update(APP_KEY).digest('hex')
  const key = { token, key_alias: 'web shop', team_id: 'a1', models: ['assistant', 'gpt-4'], rpm_limit: 100 }
  const team = {
    team_id: 'a1',
    team_alias: 'Shop',
    max_budget: 50,
    budget_duration: '1d',
    members_with_roles: [],
  }
  return `${JSON.stringify(key)}\n${JSON.stringify(team)}\n`
}

async function serve(t: Test, folder: string, env: NodeJS.ProcessEnv): Promise<string> {
  const file = join(folder, 'gateway.yaml')
  const port = await freePort()
  const text = readFileSync(file, 'utf8')
  const ports = `server:\n  host: 127.0.0.1\n  port: ${port}\n  ops_port: 0\n  workers: 1\n`
  writeFileSync(file, text.replace('server:\n', ports))
  show(`$ sluice serve --config ${file}`)
  const child = spawn(process.execPath, [PROGRAM, 'serve', '--config', file], { env, stdio: 'ignore' })
  t.teardown(async () => {
    const ended = once(child, 'close')
    child.kill('SIGTERM')
    await ended
  })
  const origin = `http://127.0.0.1:${port}`
  await eventually('the gateway answers', 60_000, async () => {
    const reply = await fetch(`${origin}/models`).catch(() => null)
    return reply === null ? null : reply.status
  })
  return origin
}

const skip = existsSync(PROGRAM) ? {} : { skip: 'needs `npm run build`' }

void t.test("a LiteLLM user's ten minutes", skip, async (t) => {
  const beganMs = performance.now()
  const emulator = await startEmulator({ models: 'any' })
  t.teardown(() => emulator.close())
  const folder = mkdtempSync(join(tmpdir(), 'sluice-litellm-'))
  t.teardown(() => rmSync(folder, { recursive: true, force: true }))
  writeFileSync(join(folder, 'config.yaml'), litellmConfig(emulator))
  writeFileSync(join(folder, 'keys.jsonl'), keyRows())
  const { PATH, HOME } = process.env
  const env = { PATH, HOME, ANTHROPIC_API_KEY: 'emulated', LITELLM_MASTER_KEY: 'sk-master-of-the-team' }
  const sluice = (...args: string[]) => succeeds(t, ['node', PROGRAM, ...args], { cwd: folder, env: all })
  const all: NodeJS.ProcessEnv = { ...env }

  const made = await sluice('import', 'litellm', 'config.yaml', '--keys', 'keys.jsonl')
  t.match(made, /^Wrote gateway\.yaml, accounts\.yaml, \.env, report\.md/)
  t.notMatch(made, /provider-literal/)
  t.equal(statSync(join(folder, '.env')).mode & 0o777, 0o600)
  const report = readFileSync(join(folder, 'report.md'), 'utf8')
  t.match(report, /\| \d+ \| litellm_settings\.drop_params \| carried \|/)
  t.match(report, /success_callback\[0\] \| not carried \|/)
  const [, secret = ''] = /^OPENAI_API_KEY=(.*)$/m.exec(readFileSync(join(folder, '.env'), 'utf8')) ?? []
  all['OPENAI_API_KEY'] = secret

  t.match(await sluice('check', '--config', 'gateway.yaml', '--no-store'), /valid \(2 upstreams, 3 routes/)
  const applied = await sluice('apply', '-f', 'accounts.yaml', '--config', 'gateway.yaml')
  t.match(applied, /Applied: \d+ created, 0 changed/)
  const origin = await serve(t, folder, all)
  for (const model of ['assistant', 'gpt-4']) {
    const reply = await fetch(`${origin}/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${APP_KEY}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model, messages: [{ role: 'user', content: 'Hello' }] }),
    })
    t.equal(reply.status, 200, `${model}: ${(await reply.text()).slice(0, 200)}`)
  }
  const denied = await fetch(`${origin}/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${APP_KEY}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'assistant-deep', messages: [{ role: 'user', content: 'Hello' }] }),
  })
  t.equal(denied.status, 403, 'the models of the key are those of before')
  const tookMs = performance.now() - beganMs
  show(`import to first reply: ${(tookMs / 1_000).toFixed(0)} s`)
  t.ok(tookMs < TEN_MINUTES_MS)
})
