/**
 * Goal: a command that calls a gateway takes its token from a file, the environment, or an option.
 * Method: `sluice apply` against a gateway's admin API.
 */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { command } from '../../src/cli/apply/apply.js'
import { helpText } from '../../src/cli/command.js'
import { startAdmin } from '../control/admin/admin-stage.js'
import { argvOf, exitStatus } from './session.js'

/** The status of the command with the variable SLUICE_ADMIN_TOKEN. */
async function ran(values: Readonly<Record<string, string | boolean | string[]>>, variable: string) {
  process.env['SLUICE_ADMIN_TOKEN'] = variable
  const terminal = {
    out: () => undefined,
    err: () => undefined,
    ready: () => Promise.resolve(),
    input: () => Promise.resolve(''),
  }
  return exitStatus(command(undefined, terminal), argvOf(values))
}

void t.test('the token comes from a file, the environment or an option', async (t) => {
  const stage = await startAdmin(t)
  const file = join(stage.gateway.folder, 'account.yaml')
  const tokenFile = join(stage.gateway.folder, 'token')
  writeFileSync(file, 'kind: Account\nmetadata: { name: acme }\n')
  writeFileSync(tokenFile, `${stage.token}\n`)
  const values = { file: [file], server: stage.gateway.origin, 'dry-run': true }
  t.equal(await ran(values, stage.token), 2)
  t.equal(await ran({ ...values, 'token-file': tokenFile }, 'sat_wrong'), 2)
  t.equal(await ran({ ...values, token: stage.token }, ''), 2)
  await t.rejects(ran(values, ''), /needs --token-file FILE, or the variable/)
  for (const [own, message] of [
    [{ 'token-file': tokenFile, token: stage.token }, /remove --token$/],
    [{ 'token-file': join(stage.gateway.folder, 'none') }, /cannot be read \(ENOENT\)$/],
    [{ 'token-file': file }, /must contain the token and nothing else$/],
  ] as const) {
    await t.rejects(ran({ ...values, ...own }, ''), { name: 'UsageError', message })
  }
  const help = helpText(command())
  t.match(help, /--token-file FILE[\s\S]*--json[\s\S]*--token TOKEN/)
})
