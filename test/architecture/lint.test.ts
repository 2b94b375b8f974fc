/**
 * Goal: ESLint and Prettier find nothing in the repository.
 * Method: both as `npm run check` starts them. ESLint takes three minutes of one core, so the suite runs it
 * beside the other tests instead of before them.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { text } from 'node:stream/consumers'
import t from 'tap'

async function findings(...command: readonly string[]): Promise<string> {
  const [program = '', ...args] = command
  const child = spawn(`node_modules/.bin/${program}`, args, {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const [output, [code]] = await Promise.all([
    text(child.stdout),
    once(child, 'close') as Promise<[number | null]>,
  ])
  return code === 0 ? '' : `${program} exits with ${String(code)}: ${output}`
}

await t.test('every file has the format of Prettier', async (t) => {
  t.equal(await findings('prettier', '--check', '--log-level', 'warn', '.'), '')
})
await t.test('ESLint finds nothing', async (t) => {
  t.equal(await findings('eslint', '.'), '')
})
